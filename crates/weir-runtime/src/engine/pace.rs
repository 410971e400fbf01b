//! Whether what is done again and again is brief, as it was measured.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many brief ones are to be seen at first.
const OWED_AT_FIRST: u32 = 2;
/// How many after one that took as long as a brief one may; more, where it took longer. So whoever counts on brief ones
/// loses to long ones a small part of what it would lose to brief ones anyway, however long those take.
const OWED_AFTER_LONG: u64 = 32;

/// What is known: how many brief ones are to be seen before the next is taken to be so. Threads may miss each other's
/// notes, which are hints.
pub(super) struct Pace(AtomicU32);

impl Pace {
    /// Nothing is known.
    pub(super) fn new() -> Self {
        Pace(AtomicU32::new(OWED_AT_FIRST))
    }

    /// Whether the next one should be brief.
    pub(super) fn is_brief(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// One has taken so long, where a brief one takes less than `brief_ns`.
    pub(super) fn note(&self, took_ns: u64, brief_ns: u64) {
        let owed = self.0.load(Ordering::Relaxed);
        let left = match took_ns / brief_ns {
            0 => owed.saturating_sub(1),
            times => u32::try_from(times.saturating_mul(OWED_AFTER_LONG)).unwrap_or(u32::MAX).max(owed),
        };
        if left != owed {
            self.0.store(left, Ordering::Relaxed);
        }
    }
}
