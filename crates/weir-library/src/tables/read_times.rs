//! The times that a read of the program takes, by which it is executed on the thread of its flow or on another one.
//!
//! A read holds up the thread on which it is executed, and an event loop has many flows. So it is executed there only while it
//! took less than 50 µs in 99 of 100 cases. A share of the slow ones is kept, to which each further one counts as much as the
//! 128 before it have let it; a read that has worked for very long counts as if all had been slow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time from which a read is slow.
const SLOW: Duration = Duration::from_micros(50);
/// Number of steps of SQLite's machine from which a read is very long, about a millisecond.
const STEPS_MAX: u32 = 20_000;
/// The share of all reads.
const WHOLE: u32 = 1 << 20;
/// The largest share of slow reads with which a read is executed on the thread of its flow.
const SHARE_MAX: u32 = WHOLE / 100;
/// Number of reads of which the share is kept, approximately.
const READS: u32 = 128;
/// Stands for the share before the first read.
const UNKNOWN: u32 = u32::MAX;

/// The times of a read. Several threads may note times at once; of those some may be lost.
#[derive(Debug)]
pub(super) struct ReadTimes {
    /// The share of slow reads.
    slow: AtomicU32,
}

impl ReadTimes {
    /// The times of a read that visits rows whose number nobody knows before it.
    pub(super) fn unknown() -> ReadTimes {
        ReadTimes { slow: AtomicU32::new(UNKNOWN) }
    }

    /// The times of a read that visits one row.
    pub(super) fn of_one_row() -> ReadTimes {
        ReadTimes { slow: AtomicU32::new(0) }
    }

    /// Returns whether the read would hold up the thread of its flow too often.
    pub(super) fn are_long(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > SHARE_MAX
    }

    /// Notes a read that took this time, and so many steps of SQLite's machine.
    pub(super) fn note(&self, took: Duration, steps: u32) {
        let before = self.slow.load(Ordering::Relaxed);
        let this = if took > SLOW { WHOLE } else { 0 };
        let share = match before {
            _ if steps > STEPS_MAX => WHOLE,
            UNKNOWN => this,
            // Rounded towards the new time, so that the share does not stop above its bound.
            _ if this < before => before - (before - this).div_ceil(READS),
            _ => before + (this - before) / READS,
        };
        if share != before {
            self.slow.store(share, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(5);
    const LONG: Duration = Duration::from_micros(200);

    #[test]
    fn the_first_read_decides_and_then_the_share_of_slow_ones() {
        let times = ReadTimes::unknown();
        assert!(times.are_long(), "nobody knows");
        times.note(SHORT, 100);
        assert!(!times.are_long());
        (0..10).for_each(|_| times.note(LONG, 100));
        assert!(times.are_long());
        (0..1_000).for_each(|_| times.note(SHORT, 100));
        assert!(!times.are_long());
    }

    #[test]
    fn one_slow_read_of_many_is_no_reason_and_two_of_a_hundred_are() {
        let rare = ReadTimes::of_one_row();
        for round in 0..2_000 {
            rare.note(if round % 200 == 0 { LONG } else { SHORT }, 100);
            assert!(!rare.are_long(), "after {round}");
        }
        let often = ReadTimes::of_one_row();
        (0..2_000).for_each(|round| often.note(if round % 50 == 0 { LONG } else { SHORT }, 100));
        assert!(often.are_long());
    }

    #[test]
    fn one_very_long_read_is_enough() {
        let times = ReadTimes::of_one_row();
        times.note(SHORT, STEPS_MAX + 1);
        assert!(times.are_long());
    }
}
