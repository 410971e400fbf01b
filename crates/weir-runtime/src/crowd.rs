//! A crowd: how many are in a place, how many may be, and who waits for that to change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A counter with a bound. The bound is exact where one thread enters, and passed by at most one for each further thread.
pub(crate) struct Crowd {
    count: AtomicUsize,
    max: usize,
    left: Notify,
}

/// One of a crowd; dropping it leaves.
pub(crate) struct Member(Arc<Crowd>);

impl Crowd {
    /// An empty place for so many.
    pub(crate) fn new(max: usize) -> Arc<Crowd> {
        Arc::new(Crowd { count: AtomicUsize::new(0), max, left: Notify::new() })
    }

    /// Whether one more may enter.
    pub(crate) fn has_room(&self) -> bool {
        self.count.load(Ordering::Acquire) < self.max
    }

    /// How many are there, and how many may be.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.count.load(Ordering::Relaxed) as u64, self.max as u64)
    }

    /// Enters, also where the place is full: the caller has asked.
    pub(crate) fn enter(self: &Arc<Self>) -> Member {
        self.count.fetch_add(1, Ordering::AcqRel);
        Member(Arc::clone(self))
    }

    /// Waits until one more may enter.
    pub(crate) async fn room(self: Arc<Self>) {
        self.until(|crowd| crowd.has_room()).await;
    }

    /// Waits until nobody is there.
    pub(crate) async fn empty(self: Arc<Self>) {
        self.until(|crowd| crowd.count.load(Ordering::Acquire) == 0).await;
    }

    async fn until(&self, holds: impl Fn(&Crowd) -> bool) {
        loop {
            // Made before the check, so that who leaves between check and wait is not missed.
            let left = self.left.notified();
            if holds(self) {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let left = self.0.count.fetch_sub(1, Ordering::AcqRel) - 1;
        // Those are the two changes that somebody may wait for; who has entered beyond the bound leaves before them.
        if left == 0 || left + 1 == self.0.max {
            self.0.left.notify_waiters();
        }
    }
}
