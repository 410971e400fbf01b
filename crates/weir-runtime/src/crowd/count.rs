//! How many have entered a place and not left it, for those who seldom ask.
//!
//! Who enters and who leaves are different threads most often, and a word that both write would go over and back with each.
//! So those who have entered are counted apart from those who have left, and these by stripes:
//! 1. Who asks for room compares with those who had left when it last looked, and looks again only where that is not enough.
//! 2. Who waits *calls*: it says below which number it waits for the count to come, and then looks whether it is there.
//! 3. Who leaves is counted, and then looks whether somebody has called. Where the count is below what was called, it takes
//!    the call back and has all who wait told; those who wait for less call again.
//!
//! What is written and then read in 2 and 3 is in the one order of sequentially consistent operations, so that one of the
//! two sees the other; and of several who leave, the last in that order sees all.

use super::sync::{AtomicU64, CachePadded, Mutant, Ordering, Striped, is};

/// The count.
pub(crate) struct Count {
    entries: CachePadded<Entries>,
    exits: Striped,
    /// Below which number somebody waits for the count to come; 0 where nobody waits.
    called: CachePadded<AtomicU64>,
    max: u64,
}

/// What those write who enter.
struct Entries {
    /// How many have entered.
    entered: AtomicU64,
    /// How many have left at least.
    left: AtomicU64,
}

impl Count {
    /// Nobody in a place for so many.
    pub(crate) fn new(max: u64) -> Self {
        let entries = Entries { entered: AtomicU64::new(0), left: AtomicU64::new(0) };
        let (entries, called) = (CachePadded::new(entries), CachePadded::new(AtomicU64::new(0)));
        Count { entries, exits: Striped::default(), called, max }
    }

    /// For how many the place is.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Whether there is room for one more.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let Entries { entered, left } = &*self.entries;
        entered.load(Ordering::Relaxed).saturating_sub(left.load(Ordering::Relaxed)) < self.max || self.has_room_now()
    }

    #[cold]
    fn has_room_now(&self) -> bool {
        let left = self.exits.sum();
        self.entries.left.store(left, Ordering::Relaxed);
        self.entries.entered.load(Ordering::Relaxed).saturating_sub(left) < self.max
    }

    /// How many are there.
    pub(crate) fn now(&self) -> u64 {
        // Those who have left have entered: so they are looked at first.
        let left = self.exits.sum();
        self.entries.entered.load(Ordering::SeqCst) - left
    }

    /// One more enters.
    #[inline]
    pub(crate) fn enter(&self) {
        self.entries.entered.fetch_add(1, Ordering::SeqCst);
    }

    /// One leaves. Whether those who wait are to be told.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        if is(Mutant::LooksBeforeLeaving) {
            let told = self.is_called() && self.answer();
            self.exits.add();
            return told;
        }
        self.exits.add();
        self.is_called() && self.answer()
    }

    #[inline]
    fn is_called(&self) -> bool {
        self.called.load(Ordering::SeqCst) > 0
    }

    /// Takes the call back, where it is time for who has called.
    #[cold]
    fn answer(&self) -> bool {
        let now = self.now() < self.called.load(Ordering::SeqCst);
        if now && !is(Mutant::KeepsCall) {
            self.called.store(0, Ordering::SeqCst);
        }
        now
    }

    /// Calls for when fewer than so many are there. Whether there are not already.
    pub(crate) fn call_below(&self, number: u64) -> bool {
        self.called.fetch_max(number, Ordering::SeqCst);
        self.now() >= number || is(Mutant::CallsUnlooked)
    }
}
