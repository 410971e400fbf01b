//! The occupancy counter: counts the permits in use, with cheap updates, and reads that are rare.
//!
//! Permits are usually acquired on one thread and released on others, and a word that both write would bounce between
//! their caches with every flow. Acquired and released permits are therefore counted separately, and the released ones
//! in stripes ([`StripedCounter`]):
//!
//! 1. *Checking for room* compares the acquired permits with a cached sum of the released ones, and sums the stripes
//!    again only if that is not enough. The cached sum and the acquired permits are read with relaxed ordering: an old
//!    sum is too small, which is safe.
//! 2. *Waiting* is requested: the waiter writes the threshold below which it wants to be notified (`fetch_max`), and
//!    then reads the counters, to see if the threshold has been reached already.
//! 3. *Releasing* is counted in a stripe, and then the releasing thread reads the threshold. If the occupancy is below
//!    it, the thread clears the threshold and notifies all waiters; those that wait for less request again.
//!
//! Memory ordering: steps 2 and 3 each write one word and then read the other (Dekker's pattern), which requires one
//! total order, so all four accesses are `SeqCst`. Either the waiter sees the release, or the releasing thread sees the
//! request. Of several threads that release, the last in that order sees all releases. With weaker orderings both could
//! read old values, and the waiter would sleep forever.
//!
//! Acquiring is `SeqCst` too, so that [`OccupancyCounter::occupied`], which reads the released permits first, never
//! sees more released than acquired.

use super::sync::{AdmissionMutant, AtomicU64, CachePadded, Ordering, StripedCounter, is};

/// The occupancy counter.
pub(crate) struct OccupancyCounter {
    admitted: CachePadded<Admitted>,
    released_total: StripedCounter,
    /// The threshold below which a waiter wants to be notified; 0 if no task waits.
    notice_below: CachePadded<AtomicU64>,
    max: u64,
}

/// The words that acquiring threads write, on a cache line of their own.
struct Admitted {
    /// Permits ever acquired.
    total: AtomicU64,
    /// Permits ever released, as last summed: a lower bound.
    released: AtomicU64,
}

impl OccupancyCounter {
    /// Returns a counter of this many permits, all of them free.
    pub(crate) fn new(max: u64) -> Self {
        let admitted = Admitted { total: AtomicU64::new(0), released: AtomicU64::new(0) };
        let (admitted, notice_below) = (CachePadded::new(admitted), CachePadded::new(AtomicU64::new(0)));
        OccupancyCounter { admitted, released_total: StripedCounter::default(), notice_below, max }
    }

    /// Returns the bound.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Returns true if fewer than this many permits are in use.
    #[inline]
    pub(crate) fn is_below(&self, number: u64) -> bool {
        let Admitted { total, released } = &*self.admitted;
        total.load(Ordering::Relaxed).saturating_sub(released.load(Ordering::Relaxed)) < number
            || self.is_below_now(number)
    }

    #[cold]
    fn is_below_now(&self, number: u64) -> bool {
        let released = self.released_total.sum();
        self.admitted.released.store(released, Ordering::Relaxed);
        self.admitted.total.load(Ordering::Relaxed).saturating_sub(released) < number
    }

    /// Returns the number of permits in use.
    pub(crate) fn occupied(&self) -> u64 {
        // Every released permit was acquired before: reading in this order, the difference is never negative.
        let released = self.released_total.sum();
        self.admitted.total.load(Ordering::SeqCst) - released
    }

    /// Counts an acquired permit.
    #[inline]
    pub(crate) fn acquire(&self) {
        self.admitted.total.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a released permit; returns true if the waiters are to be notified.
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

    /// Clears the threshold if the occupancy has fallen below it, and returns true if so.
    #[cold]
    fn take_request(&self) -> bool {
        let now = self.occupied() < self.notice_below.load(Ordering::SeqCst);
        if now && !is(AdmissionMutant::KeepsRequest) {
            self.notice_below.store(0, Ordering::SeqCst);
        }
        now
    }

    /// Requests a notification when fewer than this many permits are in use; returns false if that is so already.
    pub(crate) fn request_notice_below(&self, number: u64) -> bool {
        self.notice_below.fetch_max(number, Ordering::SeqCst);
        self.occupied() >= number || is(AdmissionMutant::RequestsWithoutCheck)
    }
}
