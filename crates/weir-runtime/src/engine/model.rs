//! The model check of parking: every interleaving of a thread that polls, one that wakes and one that cancels, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant
//! leaves out one step of the protocol, and must be caught.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use parking::{ParkOutcome, Parking};
use sync::{MUTANT, Mutex, ParkingMutant, is};

#[path = "parking.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod parking;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use super::super::sync::ParkingMutant;
    pub(crate) use crate::loom_support::ModelMutex as Mutex;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<ParkingMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: ParkingMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// The condition that an item waits for, and whether its waker is registered.
#[derive(Default)]
struct ReadySource {
    ready: bool,
    registered: bool,
}

struct ParkingModel {
    parking: Parking<ModelItem>,
    source: Mutex<ReadySource>,
    /// True if the item is in an atomic step until it is ready.
    is_bound: bool,
    done: AtomicUsize,
    dropped: AtomicUsize,
}

struct ModelItem;

impl ParkingModel {
    fn new() -> Arc<ParkingModel> {
        ParkingModel::with(false)
    }

    fn with(is_bound: bool) -> Arc<ParkingModel> {
        let source = Mutex::new(ReadySource::default());
        let (done, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(ParkingModel { parking: Parking::new(), source, is_bound, done, dropped })
    }

    /// Runs the thread that has the item.
    fn work(&self, mut item: ModelItem) {
        loop {
            if !is(ParkingMutant::WipesLate) {
                self.parking.begin();
            }
            if self.poll() {
                self.done.fetch_add(1, Ordering::AcqRel);
                return;
            }
            if is(ParkingMutant::WipesLate) {
                self.parking.begin();
            }
            match self.parking.park(item, self.is_bound) {
                ParkOutcome::Waits => return,
                ParkOutcome::Again(again) => item = again,
                ParkOutcome::GivenUp(ModelItem) => {
                    self.dropped.fetch_add(1, Ordering::AcqRel);
                    return;
                }
            }
        }
    }

    /// Runs the thread that has the item, which first yields. From then on it is in the queue of this thread.
    fn yield_once(&self, item: ModelItem) {
        self.parking.begin();
        if self.poll() {
            self.done.fetch_add(1, Ordering::AcqRel);
        } else if is(ParkingMutant::ParksYielded) {
            _ = self.parking.park(item, self.is_bound);
        } else if self.parking.is_given_up() && !self.is_bound {
            self.dropped.fetch_add(1, Ordering::AcqRel);
        } else {
            self.work(item);
        }
    }

    fn poll(&self) -> bool {
        let mut source = self.source.lock();
        source.registered = true;
        source.ready
    }

    fn make_ready(&self) {
        let mut source = self.source.lock();
        source.ready = true;
        let registered = source.registered;
        drop(source);
        if registered && let Some(item) = self.parking.wake() {
            self.work(item);
        }
    }

    /// Wakes the item spuriously, as wakers may.
    fn disturb(&self) {
        if let Some(item) = self.parking.wake() {
            self.work(item);
        }
    }

    fn give_up(&self) {
        if let Some(ModelItem) = self.parking.give_up(|_| self.is_bound) {
            self.dropped.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn through(&self) -> usize {
        self.done.load(Ordering::Acquire) + self.dropped.load(Ordering::Acquire)
    }
}

/// The item is completed exactly once, whichever thread comes first.
fn woken() {
    loom::model(|| {
        let model = ParkingModel::new();
        let [worker, waker, other] = [Arc::clone(&model), Arc::clone(&model), Arc::clone(&model)];
        let threads = [
            thread::spawn(move || worker.work(ModelItem)),
            thread::spawn(move || waker.make_ready()),
            thread::spawn(move || other.disturb()),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(model.done.load(Ordering::Acquire), 1, "the item is done once");
    });
}

/// An item that nothing wakes is dropped exactly once when it is cancelled.
fn given_up() {
    loom::model(|| {
        let model = ParkingModel::new();
        let [worker, other] = [Arc::clone(&model), Arc::clone(&model)];
        let threads = [thread::spawn(move || worker.work(ModelItem)), thread::spawn(move || other.give_up())];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(model.through(), 1, "the item is dropped once");
    });
}

/// An item that yields is completed or dropped exactly once, beside a wake-up or a cancellation.
fn yielded() {
    for other in [ParkingModel::make_ready, ParkingModel::give_up] {
        loom::model(move || {
            let model = ParkingModel::new();
            let [worker, beside] = [Arc::clone(&model), Arc::clone(&model)];
            let threads = [thread::spawn(move || worker.yield_once(ModelItem)), thread::spawn(move || other(&beside))];
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(model.through(), 1, "the item is done or dropped once");
        });
    }
}

/// A bound item that is cancelled is completed exactly once when it is woken.
fn bound() {
    loom::model(|| {
        let model = ParkingModel::with(true);
        let [worker, waker, other] = [Arc::clone(&model), Arc::clone(&model), Arc::clone(&model)];
        let threads = [
            thread::spawn(move || worker.work(ModelItem)),
            thread::spawn(move || waker.make_ready()),
            thread::spawn(move || other.give_up()),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((model.done.load(Ordering::Acquire), model.through()), (1, 1), "the item is done once");
    });
}

fn caught(mutant: ParkingMutant, model: fn()) -> bool {
    crate::loom_support::caught(&MUTANT, mutant, model)
}

#[test]
fn an_item_that_waits_comes_back_exactly_once() {
    woken();
    given_up();
    yielded();
    bound();
}

#[test]
fn every_mutant_is_caught() {
    for mutant in [ParkingMutant::ForgetsWoken, ParkingMutant::LeavesParked, ParkingMutant::WipesLate] {
        assert!(caught(mutant, woken), "{mutant:?} passed the model");
    }
    assert!(caught(ParkingMutant::ForgetsGivenUp, given_up));
    assert!(caught(ParkingMutant::ParksYielded, yielded));
    assert!(caught(ParkingMutant::ForgetsWokenLeaving, bound));
}
