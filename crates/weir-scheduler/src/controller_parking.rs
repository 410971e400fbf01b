//! Steering that rests while there is nothing to steer, and how it is roused.
//!
//! Protocol between the thread that steers and those that work:
//! 1. Who puts an item in counts it as in flight, and then hands its port over.
//! 2. Steering that has seen a period in which nothing was done says that it rests. It looks once more whether something is
//!    in flight; if so, it takes back what it said. Else it parks.
//! 3. A thread that takes a port up reads whether steering rests, and rouses it.
//!
//! The counting in 1 and the look in 2 are read-modify-writes of one word that acquire and release, so that they are in one
//! order. Either the look comes after 1 and sees the item; or 1 comes after it and synchronises with it, and who takes the
//! item up comes after 1, so that the plain load in 3 sees what steering said. Who ends steering says so first, and then
//! takes back that it rests, by a read-modify-write as the one that says it: one of the two sees the other. The model check
//! in `model.rs` shows both.
//!
//! A guest, who works on items that are never in flight, may miss a steering that is just about to rest; that is
//! roused by the next item.

use super::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, SchedulerMutant, Thread, current, is, park};

/// Whether steering rests.
pub(crate) struct ControllerParking {
    parked: AtomicBool,
    /// Who steers, once it has rested.
    controller: Mutex<Option<Thread>>,
}

impl ControllerParking {
    pub(crate) fn new() -> Self {
        ControllerParking { parked: AtomicBool::new(false), controller: Mutex::new(None) }
    }

    /// Rests until roused, unless `has_work` finds some after this thread has said that it rests.
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

    /// How much is in flight, in one order with all that is put in.
    pub(crate) fn read_in_flight(in_flight: &AtomicUsize) -> usize {
        if is(SchedulerMutant::PlainInFlight) {
            in_flight.load(Ordering::Acquire)
        } else {
            in_flight.fetch_add(0, Ordering::AcqRel)
        }
    }

    /// Rouses who rests. Call it after having taken something up.
    #[inline]
    pub(crate) fn unpark(&self) {
        if self.parked.load(Ordering::Relaxed) {
            self.unpark_parked();
        }
    }

    /// The same for one who has taken nothing up: what it did before is seen by who rests, or who was about to.
    #[cold]
    pub(crate) fn unpark_parked(&self) {
        if self.parked.swap(false, Ordering::AcqRel) {
            self.controller.lock().iter().for_each(Thread::unpark);
        }
    }
}
