//! Threads that have nothing to do, and how they are woken without a wake-up being lost.
//!
//! Protocol between a sleeper and one who makes work (an event count, of which only the waking is counted):
//! 1. The sleeper registers: it puts its handle into `sleepers` and raises `count`, under the lock.
//! 2. It looks for work once more. If there is some, it takes its registration back and works.
//! 3. Else it parks. A thread remembers an unpark that came first.
//! 4. Who makes work makes it visible first, then reads `count`; where that is not zero it takes one sleeper off and
//!    unparks it.
//!
//! `count` is raised in 1 and read in 4 by read-modify-writes that acquire and release, and read-modify-writes of one
//! word are in one order. Either 4 comes after 1 and sees the sleeper; or 1 comes after 4 and synchronises with it, so
//! that the second look in 2 sees the work. A plain load in 4 could see an old count, and both would miss each other; the
//! model check in `model.rs` shows it.

use super::sync::{AtomicUsize, Mutex, Ordering, SchedulerMutant, Thread, current, is, park};

/// The sleeping threads of one crew.
pub(crate) struct IdleSet {
    count: AtomicUsize,
    sleepers: Mutex<Vec<(usize, Thread)>>,
}

impl IdleSet {
    pub(crate) fn new() -> Self {
        IdleSet { count: AtomicUsize::new(0), sleepers: Mutex::new(Vec::new()) }
    }

    /// Sleeps until woken, unless `has_work` finds some after the thread has registered. `slot` tells sleepers apart. It
    /// may return without a reason.
    pub(crate) fn sleep(&self, slot: usize, has_work: impl FnOnce() -> bool) {
        self.register(slot);
        if is(SchedulerMutant::NoSecondLook) || !has_work() {
            park();
        }
        // Who was woken is off the list already. Who was not must leave it: a listed thread that works would swallow the
        // wake-up of another.
        self.withdraw(slot);
    }

    fn register(&self, slot: usize) {
        let mut sleepers = self.sleepers.lock();
        sleepers.push((slot, current()));
        let order = if is(SchedulerMutant::RelaxedRegistration) { Ordering::Relaxed } else { Ordering::AcqRel };
        self.count.fetch_add(1, order);
    }

    /// Takes a registration back. Where a waker has taken it already, the thread goes to work all the same, and looks for
    /// more before it sleeps again.
    fn withdraw(&self, slot: usize) {
        let mut sleepers = self.sleepers.lock();
        if let Some(at) = sleepers.iter().position(|(other, _)| *other == slot) {
            sleepers.swap_remove(at);
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether some thread sleeps, as a hint.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Wakes one sleeper, where there is one. Call it after the work is visible.
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

    /// Wakes every sleeper.
    pub(crate) fn wake_all(&self) {
        while let Some(thread) = self.take_one() {
            thread.unpark();
        }
    }
}
