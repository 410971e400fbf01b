//! A crowd: how many are in a place, how many may be, and who waits for that to change.

mod count;
#[cfg(test)]
mod model;
mod sync;

use std::sync::Arc;

use tokio::sync::Notify;

use count::Count;

/// A counter with a bound. The bound is exact where one thread enters, and passed by at most one for each further thread.
pub(crate) struct Crowd {
    count: Count,
    changed: Notify,
}

/// One of a crowd; dropping it leaves.
pub(crate) struct Member(Arc<Crowd>);

impl Crowd {
    /// An empty place for so many.
    pub(crate) fn new(max: usize) -> Arc<Crowd> {
        Arc::new(Crowd { count: Count::new(max as u64), changed: Notify::new() })
    }

    /// Whether one more may enter.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.count.has_room()
    }

    /// How many are there, and how many may be.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.count.now(), self.count.max())
    }

    /// Enters, also where the place is full: the caller has asked.
    pub(crate) fn enter(self: &Arc<Self>) -> Member {
        self.add();
        Member(Arc::clone(self))
    }

    /// Enters as one who will leave by [`Crowd::leave`].
    #[inline]
    pub(crate) fn add(&self) {
        self.count.enter();
    }

    /// One of those who were added leaves.
    #[inline]
    pub(crate) fn leave(&self) {
        if self.count.leave() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until one more may enter.
    pub(crate) async fn room(self: Arc<Self>) {
        self.until(self.count.max()).await;
    }

    /// Waits until nobody is there.
    pub(crate) async fn empty(self: Arc<Self>) {
        self.until(1).await;
    }

    /// Waits until fewer than so many are there.
    async fn until(&self, awaited: u64) {
        while self.count.now() >= awaited {
            // Made first, so that who answers the call tells this one too.
            let changed = self.changed.notified();
            if self.count.call_below(awaited) {
                changed.await;
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.leave();
    }
}
