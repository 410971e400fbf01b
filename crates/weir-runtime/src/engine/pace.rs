//! Whether what is done again and again is brief, as it was measured.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many brief ones are to be seen at first.
const OWED_AT_FIRST: u32 = 2;
/// How many after one that took long: so who counts on it is deceived once in a thousand times at most.
const OWED_AFTER_LONG: u32 = 1000;

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
        let left = if took_ns < self.brief_ns { owed.saturating_sub(1) } else { OWED_AFTER_LONG };
        if left != owed {
            self.owed.store(left, Ordering::Relaxed);
        }
    }
}
