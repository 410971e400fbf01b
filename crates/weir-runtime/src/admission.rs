//! Admission limits: a counting semaphore that refuses work at its bound, and notifies tasks that wait for room or for
//! the end of all work.

#[cfg(test)]
mod model;
mod occupancy;
mod sync;

use std::sync::Arc;

use tokio::sync::Notify;

use occupancy::OccupancyCounter;

/// An admission limiter: a bounded counter of permits. The bound is exact if one thread acquires permits, and exceeded
/// by at most one for each further thread, because checking for room and acquiring are two steps.
pub(crate) struct AdmissionLimiter {
    count: OccupancyCounter,
    changed: Notify,
}

/// A permit of an admission limiter; dropping it releases the permit.
pub(crate) struct Permit(Arc<AdmissionLimiter>);

impl AdmissionLimiter {
    /// Returns a limiter of this many permits, all of them free.
    pub(crate) fn new(max: usize) -> Arc<AdmissionLimiter> {
        Arc::new(AdmissionLimiter { count: OccupancyCounter::new(max as u64), changed: Notify::new() })
    }

    /// Returns true if a permit is free.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.count.is_below(self.count.max())
    }

    /// Returns the bound that leaves a quarter of the permits to others.
    fn three_quarters(&self) -> u64 {
        self.count.max() - self.count.max() / 4
    }

    /// Returns true if a permit is free, and a quarter of them is left to others.
    #[inline]
    pub(crate) fn has_room_beside_others(&self) -> bool {
        self.count.is_below(self.three_quarters())
    }

    /// Waits until a permit is free, and a quarter of them is left to others.
    pub(crate) async fn wait_for_room_beside_others(self: Arc<Self>) {
        self.wait_until_below(self.three_quarters()).await;
    }

    /// Returns the number of permits in use, and the bound.
    pub(crate) fn occupancy(&self) -> (u64, u64) {
        (self.count.occupied(), self.count.max())
    }

    /// Acquires a permit, even beyond the bound: the caller has checked for room.
    pub(crate) fn acquire(self: &Arc<Self>) -> Permit {
        self.acquire_unguarded();
        Permit(Arc::clone(self))
    }

    /// Acquires a permit without a guard; [`AdmissionLimiter::release`] releases it.
    #[inline]
    pub(crate) fn acquire_unguarded(&self) {
        self.count.acquire();
    }

    /// Releases a permit that was acquired without a guard.
    #[inline]
    pub(crate) fn release(&self) {
        if self.count.release() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until a permit is free.
    pub(crate) async fn wait_for_room(self: Arc<Self>) {
        self.wait_until_below(self.count.max()).await;
    }

    /// Waits until no permit is in use.
    pub(crate) async fn wait_until_empty(self: Arc<Self>) {
        self.wait_until_below(1).await;
    }

    /// Waits until fewer than this many permits are in use.
    async fn wait_until_below(&self, awaited: u64) {
        while self.count.occupied() >= awaited {
            // Created before the request, so that a release that clears the request notifies this waiter too.
            let changed = self.changed.notified();
            if self.count.request_notice_below(awaited) {
                changed.await;
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}
