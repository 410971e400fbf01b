//! Threads that have nothing to do, and how they are woken without a wake-up being lost.
//!
//! Protocol between a sleeper and one who makes work (an event count, of which only the waking is counted):
//! 1. The sleeper registers: it puts its unparker into `sleepers` and raises `count`, under the lock.
//! 2. It looks for work once more. If there is some, it takes its registration back and works.
//! 3. Else it parks. A parker remembers an unpark that came first.
//! 4. Who makes work makes it visible first, then reads `count`; where that is not zero it takes one sleeper off and
//!    unparks it.
//!
//! `count` is raised in 1 and read in 4 by read-modify-writes that are `SeqCst`, so that one of the two is first: either
//! the maker sees the sleeper in 4, or the sleeper's second look in 2 comes after the work was made visible. (A plain load
//! in 4 could be ordered before the making; a stand-alone fence would do as well, but ThreadSanitizer knows none.)

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::sync::{Parker, Unparker};
use parking_lot::Mutex;

/// The sleeping threads of one crew.
#[derive(Default)]
pub(crate) struct Idle {
    count: AtomicUsize,
    sleepers: Mutex<Vec<(usize, Unparker)>>,
}

impl Idle {
    /// Sleeps until woken, unless `has_work` finds some after the thread has registered. `thread` tells sleepers apart.
    pub(crate) fn sleep(&self, thread: usize, parker: &Parker, has_work: impl FnOnce() -> bool) {
        self.register(thread, parker);
        if has_work() {
            self.withdraw(thread);
            return;
        }
        parker.park();
        // Woken by name (`Idle::wake`) it is off the list already; woken otherwise (`Idle::wake_all`) too. A spurious
        // return leaves it listed, and a listed thread that works would swallow a wake-up.
        self.withdraw(thread);
    }

    fn register(&self, thread: usize, parker: &Parker) {
        let mut sleepers = self.sleepers.lock();
        sleepers.push((thread, parker.unparker().clone()));
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes a registration back. Where a waker has taken it already, the thread goes to work all the same, and looks for
    /// more before it sleeps again.
    fn withdraw(&self, thread: usize) {
        let mut sleepers = self.sleepers.lock();
        if let Some(at) = sleepers.iter().position(|(other, _)| *other == thread) {
            sleepers.swap_remove(at);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Wakes one sleeper, where there is one. Call it after the work is visible.
    pub(crate) fn wake(&self) {
        if self.count.fetch_add(0, Ordering::SeqCst) == 0 {
            return;
        }
        let sleeper = {
            let mut sleepers = self.sleepers.lock();
            let sleeper = sleepers.pop();
            if sleeper.is_some() {
                self.count.fetch_sub(1, Ordering::SeqCst);
            }
            sleeper
        };
        if let Some((_, unparker)) = sleeper {
            unparker.unpark();
        }
    }

    /// Wakes every sleeper.
    pub(crate) fn wake_all(&self) {
        let sleepers = std::mem::take(&mut *self.sleepers.lock());
        self.count.fetch_sub(sleepers.len(), Ordering::SeqCst);
        sleepers.iter().for_each(|(_, unparker)| unparker.unpark());
    }
}
