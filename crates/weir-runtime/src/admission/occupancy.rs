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

use super::sync::{AdmissionMutant, AtomicU64, CachePadded, Ordering, StripedCounter, is};

/// The count.
pub(crate) struct OccupancyCounter {
    admitted: CachePadded<Admitted>,
    released_total: StripedCounter,
    /// Below which number somebody waits for the count to come; 0 where nobody waits.
    notice_below: CachePadded<AtomicU64>,
    max: u64,
}

/// What those write who enter.
struct Admitted {
    /// How many have entered.
    total: AtomicU64,
    /// How many have left at least.
    released: AtomicU64,
}

impl OccupancyCounter {
    /// Nobody in a place for so many.
    pub(crate) fn new(max: u64) -> Self {
        let admitted = Admitted { total: AtomicU64::new(0), released: AtomicU64::new(0) };
        let (admitted, notice_below) = (CachePadded::new(admitted), CachePadded::new(AtomicU64::new(0)));
        OccupancyCounter { admitted, released_total: StripedCounter::default(), notice_below, max }
    }

    /// For how many the place is.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Whether there is room for one more.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let Admitted { total, released } = &*self.admitted;
        total.load(Ordering::Relaxed).saturating_sub(released.load(Ordering::Relaxed)) < self.max || self.has_room_now()
    }

    #[cold]
    fn has_room_now(&self) -> bool {
        let released = self.released_total.sum();
        self.admitted.released.store(released, Ordering::Relaxed);
        self.admitted.total.load(Ordering::Relaxed).saturating_sub(released) < self.max
    }

    /// How many are there.
    pub(crate) fn occupied(&self) -> u64 {
        // Those who have left have entered: so they are looked at first.
        let released = self.released_total.sum();
        self.admitted.total.load(Ordering::SeqCst) - released
    }

    /// One more enters.
    #[inline]
    pub(crate) fn acquire(&self) {
        self.admitted.total.fetch_add(1, Ordering::SeqCst);
    }

    /// One leaves. Whether those who wait are to be told.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        if is(AdmissionMutant::ChecksBeforeReleasing) {
            let told = self.is_notice_requested() && self.take_request();
            self.released_total.add();
            return told;
        }
        self.released_total.add();
        self.is_notice_requested() && self.take_request()
    }

    #[inline]
    fn is_notice_requested(&self) -> bool {
        self.notice_below.load(Ordering::SeqCst) > 0
    }

    /// Takes the call back, where it is time for who has called.
    #[cold]
    fn take_request(&self) -> bool {
        let now = self.occupied() < self.notice_below.load(Ordering::SeqCst);
        if now && !is(AdmissionMutant::KeepsRequest) {
            self.notice_below.store(0, Ordering::SeqCst);
        }
        now
    }

    /// Calls for when fewer than so many are there. Whether there are not already.
    pub(crate) fn request_notice_below(&self, number: u64) -> bool {
        self.notice_below.fetch_max(number, Ordering::SeqCst);
        self.occupied() >= number || is(AdmissionMutant::RequestsWithoutCheck)
    }
}
