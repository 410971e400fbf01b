//! Whether what is done again and again is brief, as it was measured.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many brief ones are to be seen at first.
const OWED_AT_FIRST: u32 = 2;
/// How many after one that took as long as a brief one may; more, where it took longer. So whoever counts on brief ones
/// loses to long ones a small part of what it would lose to brief ones anyway, however long those take.
const OWED_AFTER_LONG: u64 = 32;

/// What is known. Threads may miss each other's notes, which are hints.
pub(super) struct Pace {
    brief_ns: u64,
    /// How many brief ones are to be seen before the next is taken to be so.
    owed: AtomicU32,
}

impl Pace {
    /// Nothing is known, and brief is what takes less than this.
    pub(super) fn new(brief_ns: u64) -> Self {
        Pace { brief_ns, owed: AtomicU32::new(OWED_AT_FIRST) }
    }

    /// Whether the next one should be brief.
    pub(super) fn is_brief(&self) -> bool {
        self.owed.load(Ordering::Relaxed) == 0
    }

    /// One has taken so long.
    pub(super) fn note(&self, took_ns: u64) {
        let owed = self.owed.load(Ordering::Relaxed);
        let left = match took_ns / self.brief_ns {
            0 => owed.saturating_sub(1),
            times => u32::try_from(times.saturating_mul(OWED_AFTER_LONG)).unwrap_or(u32::MAX).max(owed),
        };
        if left != owed {
            self.owed.store(left, Ordering::Relaxed);
        }
    }
}
