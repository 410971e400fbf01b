//! Idle set: the sleeping workers of a pool, and a wake-up protocol that loses no wake-up (an event count).
//!
//! ```text
//!              register            no work found
//!    Working -----------> Registered -----------> Parked
//!       ^                     |                     |
//!       +---- work found -----+                     |
//!       +-------------- woken (wake, wake_all) -----+
//! ```
//!
//! Protocol between a worker that goes to sleep and a producer, a thread that makes work:
//! 1. *Register* (worker). Push the thread to `sleepers` and add 1 to `count`, acquire and release, with the mutex
//!    held.
//! 2. *Check again* (worker). If there is work, withdraw the registration and work.
//! 3. *Park* (worker). An unpark that came first makes this return at once.
//! 4. *Wake* (producer). Make the work visible. Then read `count` by adding 0, acquire and release. If it is not 0,
//!    take one sleeper off the list and unpark it.
//!
//! These orderings suffice: steps 1 and 4 are read-modify-writes of `count`, and all read-modify-writes of one word
//! have one total order. Either step 4 comes later and sees the sleeper; or step 1 comes later and synchronises with
//! step 4, so that the check in step 2 sees the work. A plain load in step 4 could read an old count: the producer
//! would see no sleeper, and the sleeper no work. The mutex orders all accesses to `sleepers`.

use super::sync::{AtomicUsize, Mutex, Ordering, SchedulerMutant, Thread, current, is, park};

/// The sleeping workers of one pool.
pub(crate) struct IdleSet {
    /// The length of `sleepers`. Written with the mutex held, read without it.
    count: AtomicUsize,
    /// The worker slot and the thread of every sleeper.
    sleepers: Mutex<Vec<(usize, Thread)>>,
}

impl IdleSet {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        IdleSet { count: AtomicUsize::new(0), sleepers: Mutex::new(Vec::new()) }
    }

    /// Sleeps until woken, unless `has_work` finds work after the worker has been registered. `slot` identifies the
    /// worker. It may return spuriously.
    pub(crate) fn sleep(&self, slot: usize, has_work: impl FnOnce() -> bool) {
        self.register(slot);
        if is(SchedulerMutant::NoSecondLook) || !has_work() {
            park();
        }
        // A waker has already taken a woken worker off the list. Any other one has to leave it: a registered worker
        // that works would receive the wake-up that another one needs.
        self.withdraw(slot);
    }

    fn register(&self, slot: usize) {
        let mut sleepers = self.sleepers.lock();
        sleepers.push((slot, current()));
        let order = if is(SchedulerMutant::RelaxedRegistration) { Ordering::Relaxed } else { Ordering::AcqRel };
        self.count.fetch_add(1, order);
    }

    /// Withdraws a registration. If a waker has taken it already, this worker goes to work all the same, and checks for
    /// work before it sleeps again, so that the wake-up is not lost.
    fn withdraw(&self, slot: usize) {
        let mut sleepers = self.sleepers.lock();
        if let Some(at) = sleepers.iter().position(|(other, _)| *other == slot) {
            sleepers.swap_remove(at);
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns whether some worker sleeps, as a hint: the load is relaxed.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Wakes one sleeper, if there is one. To be called after the work is visible.
    pub(crate) fn wake(&self) {
        let count = if is(SchedulerMutant::PlainLoad) {
            self.count.load(Ordering::Acquire)
        } else {
            self.count.fetch_add(0, Ordering::AcqRel)
        };
        if count == 0 {
            return;
        }
        if let Some(thread) = self.take_one() {
            thread.unpark();
        }
    }

    fn take_one(&self) -> Option<Thread> {
        let (_, thread) = self.sleepers.lock().pop()?;
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(thread)
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self) {
        while let Some(thread) = self.take_one() {
            thread.unpark();
        }
    }
}
