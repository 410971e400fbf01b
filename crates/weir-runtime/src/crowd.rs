//! A crowd: how many are in a place, how many may be, and who waits for that to change.
//!
//! Who enters and who leaves are different threads most often, and a word that both write would go over and back with each.
//! So those who have entered are counted apart from those who have left, and these by stripes:
//! 1. Who asks for room compares with those who had left when it last looked, and looks again only where that is not enough.
//! 2. Who waits says down to how many it waits for, and then looks. Who leaves is counted, and then looks whether somebody
//!    waits. All four are in the one order of sequentially consistent operations, so that one of them sees the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use crate::striped::Striped;

/// A counter with a bound. The bound is exact where one thread enters, and passed by at most one for each further thread.
pub(crate) struct Crowd {
    entries: CachePadded<Entries>,
    exits: Striped,
    max: u64,
    /// Down to how many somebody waits for it to come, and one more; 0 where nobody waits.
    awaited: CachePadded<AtomicU64>,
    changed: Notify,
}

/// What those write who enter.
#[derive(Default)]
struct Entries {
    /// How many have entered.
    entered: AtomicU64,
    /// How many have left at least.
    left: AtomicU64,
}

/// One of a crowd; dropping it leaves.
pub(crate) struct Member(Arc<Crowd>);

impl Crowd {
    /// An empty place for so many.
    pub(crate) fn new(max: usize) -> Arc<Crowd> {
        let (entries, exits, awaited) = (CachePadded::default(), Striped::default(), CachePadded::default());
        Arc::new(Crowd { entries, exits, max: max as u64, awaited, changed: Notify::new() })
    }

    /// Whether one more may enter.
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
    fn count(&self) -> u64 {
        // Those who have left have entered: so they are looked at first.
        let left = self.exits.sum();
        self.entries.entered.load(Ordering::SeqCst) - left
    }

    /// How many are there, and how many may be.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.count(), self.max)
    }

    /// Enters, also where the place is full: the caller has asked.
    pub(crate) fn enter(self: &Arc<Self>) -> Member {
        self.add();
        Member(Arc::clone(self))
    }

    /// Enters as one who will leave by [`Crowd::leave`].
    #[inline]
    pub(crate) fn add(&self) {
        self.entries.entered.fetch_add(1, Ordering::SeqCst);
    }

    /// One of those who were added leaves.
    #[inline]
    pub(crate) fn leave(&self) {
        self.exits.add();
        if self.awaited.load(Ordering::SeqCst) > 0 {
            self.tell();
        }
    }

    /// Tells those who wait, where it is time for one of them; the others say again what they wait for.
    #[cold]
    fn tell(&self) {
        if self.count() < self.awaited.load(Ordering::SeqCst) {
            self.awaited.store(0, Ordering::SeqCst);
            self.changed.notify_waiters();
        }
    }

    /// Waits until one more may enter.
    pub(crate) async fn room(self: Arc<Self>) {
        self.until(self.max).await;
    }

    /// Waits until nobody is there.
    pub(crate) async fn empty(self: Arc<Self>) {
        self.until(1).await;
    }

    /// Waits until fewer than so many are there.
    async fn until(&self, awaited: u64) {
        while self.count() >= awaited {
            // Made first, so that who takes down what is said here tells this one too.
            let changed = self.changed.notified();
            self.awaited.fetch_max(awaited, Ordering::SeqCst);
            if self.count() >= awaited {
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
