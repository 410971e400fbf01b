//! The work of the executions of a query, by which it is executed on the thread of its flow or on another one.
//!
//! A read holds up the thread on which it is executed, and an event loop has many flows. So a query is executed there only while it
//! took 1,000 steps of SQLite's machine or fewer in 99 of 100 cases: about 50 µs where it makes values of rows, and less where it
//! mostly visits them. A clock would also count a thread that waits for its processor, and on a busy machine all reads would move. A share of the long ones is kept, to which
//! each further one counts as much as the 128 before it have let it; a read that has worked for very long counts as if
//! all had been long.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of steps above which a read is long: 43 to 55 µs for queries of fifty and a hundred rows, of which SQLite itself takes 13 to
/// 16, and 8 µs for their sum (`benches/tables`, case `steps`).
const LONG_STEPS: u32 = 1_000;
/// Number of steps above which a read is very long: about a millisecond where it makes values of rows.
const STEPS_MAX: u32 = 20_000;
/// The share of all reads.
const WHOLE: u32 = 1 << 20;
/// The largest share of long reads with which a read is executed on the thread of its flow.
const SHARE_MAX: u32 = WHOLE / 100;
/// Number of reads of which the share is kept, approximately.
const READS: u32 = 128;
/// Stands for the share before the first read.
const UNKNOWN: u32 = u32::MAX;

/// The work of a query.
#[derive(Debug)]
pub(super) struct ReadWork {
    long: LongShare,
}

impl ReadWork {
    /// The work of a query that was not executed yet.
    pub(super) fn unknown() -> ReadWork {
        ReadWork { long: LongShare(AtomicU32::new(UNKNOWN)) }
    }

    /// Returns whether the query would hold up the thread of its flow too often.
    pub(super) fn is_long(&self) -> bool {
        self.long.is_large()
    }

    /// Returns whether the query is known to hold up the thread of its flow too often.
    pub(super) fn is_known_as_long(&self) -> bool {
        self.long.0.load(Ordering::Relaxed) != UNKNOWN && self.is_long()
    }

    /// Notes an execution that took so many steps of SQLite's machine.
    pub(super) fn note(&self, steps: u32) {
        if steps > STEPS_MAX {
            self.long.set(WHOLE);
        } else {
            self.long.note(steps > LONG_STEPS);
        }
    }
}

/// The share of long reads. Several threads may note a read at once; of those some may be lost.
#[derive(Debug)]
pub(super) struct LongShare(AtomicU32);

impl LongShare {
    /// No read was long.
    pub(super) fn none() -> LongShare {
        LongShare(AtomicU32::new(0))
    }

    /// Returns whether it is too large for the threads of flows, or not known.
    pub(super) fn is_large(&self) -> bool {
        self.0.load(Ordering::Relaxed) > SHARE_MAX
    }

    /// Notes a read.
    pub(super) fn note(&self, is_long: bool) {
        let before = self.0.load(Ordering::Relaxed);
        let this = if is_long { WHOLE } else { 0 };
        let share = match before {
            UNKNOWN => this,
            // Rounded towards the new one, so that the share does not stop above its bound.
            _ if this < before => before - (before - this).div_ceil(READS),
            _ => before + (this - before) / READS,
        };
        if share != before {
            self.set(share);
        }
    }

    fn set(&self, share: u32) {
        self.0.store(share, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: u32 = 100;
    const LONG: u32 = LONG_STEPS + 1;

    #[test]
    fn the_first_read_decides_and_then_the_share_of_long_ones() {
        let work = ReadWork::unknown();
        assert!(work.is_long(), "nobody knows");
        work.note(SHORT);
        assert!(!work.is_long());
        (0..10).for_each(|_| work.note(LONG));
        assert!(work.is_long());
        (0..1_000).for_each(|_| work.note(SHORT));
        assert!(!work.is_long());
    }

    #[test]
    fn one_long_read_of_many_is_no_reason_and_two_of_a_hundred_are() {
        let rare = ReadWork::unknown();
        rare.note(SHORT);
        for round in 1..2_000 {
            rare.note(if round % 200 == 0 { LONG } else { SHORT });
            assert!(!rare.is_long(), "after {round}");
        }
        let often = ReadWork::unknown();
        (0..2_000).for_each(|round| often.note(if round % 50 == 0 { LONG } else { SHORT }));
        assert!(often.is_long());
    }

    #[test]
    fn one_very_long_read_is_enough() {
        let work = ReadWork::unknown();
        work.note(SHORT);
        work.note(STEPS_MAX + 1);
        assert!(work.is_long());
    }
}
