//! Parking of the controller thread while the scheduler is idle, without a lost wake-up.
//!
//! Two words: `in_flight`, the number of items that were submitted and are not finished (of `SchedulerState`), and
//! `parked`.
//!
//! ```text
//!             park_unless: parked = true,
//!             no item in flight, not ended
//!   Running ------------------------------> Parked
//!      ^                                      |
//!      +---- unpark, unpark_parked: ----------+
//!            parked = false, Thread::unpark
//! ```
//!
//! Protocol:
//! 1. *Submit* (producer). Add to `in_flight`, acquire and release; then put the item into a queue.
//! 2. *Park* (controller, after a period without items). Set `parked` by a swap, acquire and release. Read `in_flight`
//!    by adding 0, acquire and release. If an item is in flight, clear `parked` and go on. Otherwise park the thread
//!    until `parked` is false; the loads of that loop acquire.
//! 3. *Unpark* (worker that took up a port). Load `parked`, relaxed. If it is true, clear it by a swap, acquire and
//!    release, and unpark the thread.
//! 4. *End* (thread that closes the scheduler). Store the end flag, then swap `parked` to false, acquire and release,
//!    and unpark the thread if it was true.
//!
//! These orderings suffice:
//! * *Steps 1 and 2* are read-modify-writes of `in_flight`, and all read-modify-writes of one word have one total
//!   order. Either step 2 comes later and reads the item; or step 1 comes later and synchronises with step 2. Then step
//!   3 happens after step 1 (the queue hands the item over), hence after the swap of step 2, and even its relaxed load
//!   sees `parked == true`. A plain load in step 2 could read an old count, and the controller would sleep although an
//!   item is in flight.
//! * *Steps 2 and 4* are read-modify-writes of `parked`. Either step 4 comes later and unparks the thread; or step 2
//!   comes later, synchronises with step 4 and sees the end flag when it checks for work.
//!
//! A caller that executes items inline never counts them as in flight, and may therefore miss a controller that is
//! about to park. The next item unparks it.

use super::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, SchedulerMutant, Thread, current, is, park};

/// Parking place of the controller thread.
pub(crate) struct ControllerParking {
    /// True while the controller is parked or about to park. Set by the controller, cleared by anyone.
    parked: AtomicBool,
    /// The controller's thread, once it has parked for the first time.
    controller: Mutex<Option<Thread>>,
}

impl ControllerParking {
    pub(crate) fn new() -> Self {
        ControllerParking { parked: AtomicBool::new(false), controller: Mutex::new(None) }
    }

    /// Parks the calling thread until it is unparked. Returns at once if `has_work` returns true after `parked` has
    /// been set.
    pub(crate) fn park_unless(&self, has_work: impl FnOnce() -> bool) {
        *self.controller.lock() = Some(current());
        let order = if is(SchedulerMutant::RelaxedPark) { Ordering::Relaxed } else { Ordering::AcqRel };
        self.parked.swap(true, order);
        if !is(SchedulerMutant::ParkUnchecked) && has_work() {
            self.parked.swap(false, Ordering::AcqRel);
        }
        while self.parked.load(Ordering::Acquire) {
            park();
        }
    }

    /// Reads the number of items in flight by a read-modify-write, which has one total order with the submissions.
    pub(crate) fn read_in_flight(in_flight: &AtomicUsize) -> usize {
        if is(SchedulerMutant::PlainInFlight) {
            in_flight.load(Ordering::Acquire)
        } else {
            in_flight.fetch_add(0, Ordering::AcqRel)
        }
    }

    /// Unparks the controller if it is parked. To be called after taking up an item.
    #[inline]
    pub(crate) fn unpark(&self) {
        if self.parked.load(Ordering::Relaxed) {
            self.unpark_parked();
        }
    }

    /// Unparks the controller if it is parked or about to park. Everything that the caller did before happens before
    /// the controller continues.
    #[cold]
    pub(crate) fn unpark_parked(&self) {
        if self.parked.swap(false, Ordering::AcqRel) {
            self.controller.lock().iter().for_each(Thread::unpark);
        }
    }
}
