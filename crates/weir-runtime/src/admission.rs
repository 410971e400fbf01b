//! A crowd: how many are in a place, how many may be, and who waits for that to change.

#[cfg(test)]
mod model;
mod occupancy;
mod sync;

use std::sync::Arc;

use tokio::sync::Notify;

use occupancy::OccupancyCounter;

/// A counter with a bound. The bound is exact where one thread enters, and passed by at most one for each further thread.
pub(crate) struct AdmissionLimiter {
    count: OccupancyCounter,
    changed: Notify,
}

/// One of a crowd; dropping it leaves.
pub(crate) struct Permit(Arc<AdmissionLimiter>);

impl AdmissionLimiter {
    /// An empty place for so many.
    pub(crate) fn new(max: usize) -> Arc<AdmissionLimiter> {
        Arc::new(AdmissionLimiter { count: OccupancyCounter::new(max as u64), changed: Notify::new() })
    }

    /// Whether one more may enter.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.count.has_room()
    }

    /// How many are there, and how many may be.
    pub(crate) fn occupancy(&self) -> (u64, u64) {
        (self.count.occupied(), self.count.max())
    }

    /// Enters, also where the place is full: the caller has asked.
    pub(crate) fn acquire(self: &Arc<Self>) -> Permit {
        self.acquire_unguarded();
        Permit(Arc::clone(self))
    }

    /// Enters as one who will leave by [`AdmissionLimiter::release`].
    #[inline]
    pub(crate) fn acquire_unguarded(&self) {
        self.count.acquire();
    }

    /// One of those who were added leaves.
    #[inline]
    pub(crate) fn release(&self) {
        if self.count.release() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until one more may enter.
    pub(crate) async fn wait_for_room(self: Arc<Self>) {
        self.wait_until_below(self.count.max()).await;
    }

    /// Waits until nobody is there.
    pub(crate) async fn wait_until_empty(self: Arc<Self>) {
        self.wait_until_below(1).await;
    }

    /// Waits until fewer than so many are there.
    async fn wait_until_below(&self, awaited: u64) {
        while self.count.occupied() >= awaited {
            // Made first, so that who answers the call tells this one too.
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
