//! The model check of the protocols between threads: every interleaving of a few, by loom.
//!
//! *Waking*: a worker and one who brings it work; no wake-up is lost. *Claiming*: two who run an item at a port that may be
//! free; never both at once, and what one leaves behind is done. *Places*: one works alone, another joins. *Ready ports*:
//! some put in, some take; each gets what no other gets, and all that was done before. *Resting*: who steers would rest, and
//! an item or the end comes; it does not sleep
//! through it.
//!
//! The files under test are compiled a second time here, over loom's primitives instead of the system's, so that the check
//! is part of the ordinary tests. Every mutant leaves out or weakens one step of the protocol, and must be caught.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

use idle::Idle;
use inbox::{Inbox, Rest};
use places::Places;
use ready::Ready;
use rest::Rest as Steering;
use sync::{AtomicBool, AtomicUsize, Mutant};

#[path = "idle.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model needs only what the waking protocol uses")]
mod idle;
#[path = "inbox.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model needs only what the waking protocol uses")]
mod inbox;
#[path = "places.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model has nothing that only one may use")]
mod places;
#[path = "ready.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod ready;
#[path = "rest.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod rest;

/// Loom's primitives, with the faces of those in `crate::sync`.
mod sync {
    use std::cell::Cell;
    use std::time::Duration;

    pub(crate) use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::thread::{Thread, current, park};

    pub(crate) use crate::sync::Mutant;

    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// A model has no time to wait.
    pub(crate) fn lock_within<T>(mutex: &Mutex<T>, _patience: Duration) -> Option<MutexGuard<'_, T>> {
        mutex.0.try_lock().ok()
    }

    pub(crate) fn unlock_fair<T>(guard: MutexGuard<'_, T>) {
        drop(guard);
    }

    thread_local! {
        /// All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: Mutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// One port, its crew's list and its sleepers.
struct Crew {
    inbox: Inbox<u32>,
    ready: Ready,
    idle: Idle,
}

impl Crew {
    fn new() -> Self {
        Crew { inbox: Inbox::new(4, 2), ready: Ready::new(1), idle: Idle::new() }
    }

    fn bring(&self, item: u32) {
        if self.inbox.offer(item).expect("there is room").hand {
            self.hand();
        }
    }

    fn hand(&self) {
        self.ready.push(0);
        self.idle.wake();
    }

    /// Works until so many items have come. A lost wake-up leaves it asleep, which loom reports as a deadlock.
    fn work(&self, items: usize) {
        let (mut batch, mut released) = (Vec::new(), Vec::new());
        while batch.len() < items {
            match self.ready.pop() {
                Some(_) => {
                    self.inbox.take(1, &mut batch, &mut released);
                    if self.inbox.rest() == Rest::More {
                        self.hand();
                    }
                }
                None => {
                    self.idle.sleep(0, || !self.ready.is_empty());
                    thread::yield_now();
                }
            }
        }
    }
}

/// A port that never runs on two threads at once.
struct Exclusive(AtomicBool);

impl Exclusive {
    fn new() -> Self {
        Exclusive(AtomicBool::new(false))
    }

    fn run(&self) {
        assert!(!self.0.swap(true, Ordering::Relaxed), "the port runs on two threads at once");
        self.0.store(false, Ordering::Relaxed);
    }
}

/// One port, which threads that come by with an item run themselves where they may.
struct Fused {
    crew: Crew,
    port: Exclusive,
    done: AtomicUsize,
}

impl Fused {
    fn pass(&self, item: u32) {
        if self.crew.inbox.claim() {
            self.run(1);
        } else {
            self.crew.bring(item);
        }
        while self.crew.ready.pop().is_some() {
            let mut batch = Vec::new();
            self.crew.inbox.take(2, &mut batch, &mut Vec::new());
            self.run(batch.len());
        }
    }

    fn run(&self, items: usize) {
        self.port.run();
        self.done.fetch_add(items, Ordering::Relaxed);
        if self.crew.inbox.rest() == Rest::More {
            self.crew.hand();
        }
    }
}

fn check(mutant: Option<Mutant>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        sync::MUTANT.set(mutant);
        model();
    });
}

fn waking() {
    let crew = Arc::new(Crew::new());
    let other = crew.clone();
    let worker = thread::spawn(move || other.work(2));
    crew.bring(1);
    crew.bring(2);
    worker.join().unwrap();
}

fn claiming() {
    let fused = Arc::new(Fused { crew: Crew::new(), port: Exclusive::new(), done: AtomicUsize::new(0) });
    let other = fused.clone();
    let thread = thread::spawn(move || other.pass(1));
    fused.pass(2);
    thread.join().unwrap();
    assert_eq!(fused.done.load(Ordering::Relaxed), 2, "nothing is left behind");
}

/// Two ports, and how often each was made ready and taken.
struct Listed {
    ready: Ready,
    made: [AtomicUsize; 2],
    taken: [AtomicUsize; 2],
}

impl Listed {
    fn make(&self, port: usize) {
        self.made[port].store(self.made[port].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.ready.push(port);
    }

    /// Who has a port sees what was done by those who had it before.
    fn take(&self) -> Option<usize> {
        let port = self.ready.pop()?;
        let taken = self.taken[port].load(Ordering::Relaxed) + 1;
        assert_eq!(taken, self.made[port].load(Ordering::Relaxed), "a port is taken as often as it is made ready");
        self.taken[port].store(taken, Ordering::Relaxed);
        Some(port)
    }
}

fn listing() {
    let listed = Arc::new(Listed { ready: Ready::new(2), made: Default::default(), taken: Default::default() });
    let other = listed.clone();
    let maker = thread::spawn(move || {
        other.make(0);
        other.make(1);
    });
    let other = listed.clone();
    let taker = thread::spawn(move || other.take().into_iter().for_each(|port| other.make(port)));
    listed.take();
    maker.join().unwrap();
    taker.join().unwrap();
    while listed.take().is_some() {}
    let all = |of: &[AtomicUsize; 2]| of.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    assert_eq!(all(&listed.made), all(&listed.taken), "nothing is left behind");
}

fn places() {
    let shared = Arc::new((Places::new(()), Exclusive::new()));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.join();
        other.1.run();
        other.0.leave();
    });
    let alone = shared.0.alone();
    if alone.is_some() {
        shared.1.run();
    }
    drop(alone);
    thread.join().unwrap();
    assert!(shared.0.alone().is_some(), "nobody works any more");
}

/// Who steers would rest; an item is put in by one thread and taken up by another.
fn resting() {
    let shared = Arc::new((Steering::new(), AtomicUsize::new(0), Ready::new(1)));
    let other = shared.clone();
    let source = thread::spawn(move || {
        other.1.fetch_add(1, Ordering::AcqRel);
        other.2.push(0);
    });
    let other = shared.clone();
    let worker = thread::spawn(move || {
        while other.2.pop().is_none() {
            thread::yield_now();
        }
        other.0.rouse();
    });
    shared.0.rest(|| Steering::look(&shared.1) > 0);
    source.join().unwrap();
    worker.join().unwrap();
}

/// Who steers would rest, and is told to end.
fn ending() {
    let shared = Arc::new((Steering::new(), AtomicBool::new(false)));
    let other = shared.clone();
    let steering = thread::spawn(move || other.0.rest(|| other.1.load(Ordering::Relaxed)));
    shared.1.store(true, Ordering::Relaxed);
    shared.0.rouse_resting();
    steering.join().unwrap();
}

/// Names the mutant for a process of its own: loom cannot clean up after a model that failed.
const MUTANT: &str = "WEIR_SCHEDULER_MUTANT";
/// The mutants, each with the model that must catch it.
const MUTANTS: [(Mutant, &str); 13] = [
    (Mutant::NoSecondLook, "model::no_wake_up_is_lost"),
    (Mutant::RelaxedRegistration, "model::no_wake_up_is_lost"),
    (Mutant::PlainLoad, "model::no_wake_up_is_lost"),
    (Mutant::BlindRest, "model::no_wake_up_is_lost"),
    (Mutant::BlindClaim, "model::a_port_that_is_claimed_runs_on_one_thread"),
    (Mutant::RelaxedPlace, "model::ready_ports_are_taken_once"),
    (Mutant::AnyLap, "model::ready_ports_are_taken_once"),
    (Mutant::HeadUnlooked, "model::ready_ports_are_taken_once"),
    (Mutant::JoinsUncounted, "model::who_works_alone_is_alone"),
    (Mutant::AloneUnlooked, "model::who_works_alone_is_alone"),
    (Mutant::RestUnlooked, "model::an_item_rouses_who_steers"),
    (Mutant::RelaxedRest, "model::the_end_rouses_who_steers"),
    (Mutant::PlainFlight, "model::an_item_rouses_who_steers"),
];

/// The mutant that this process is asked for.
fn asked() -> Option<Mutant> {
    let named = std::env::var(MUTANT).ok();
    MUTANTS.into_iter().map(|(mutant, _)| mutant).find(|mutant| named == Some(format!("{mutant:?}")))
}

fn is_caught(mutant: Mutant, by: &str) -> bool {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let command = command.args(["--exact", by]).env(MUTANT, format!("{mutant:?}"));
    !command.output().unwrap().status.success()
}

#[test]
fn no_wake_up_is_lost() {
    check(asked(), waking);
}

#[test]
fn a_port_that_is_claimed_runs_on_one_thread() {
    check(asked(), claiming);
}

#[test]
fn ready_ports_are_taken_once() {
    check(asked(), listing);
}

#[test]
fn who_works_alone_is_alone() {
    check(asked(), places);
}

#[test]
fn an_item_rouses_who_steers() {
    check(asked(), resting);
}

#[test]
fn the_end_rouses_who_steers() {
    check(asked(), ending);
}

#[test]
fn every_mutant_is_caught() {
    for (mutant, by) in MUTANTS {
        assert!(is_caught(mutant, by), "{mutant:?} passes {by}");
    }
}
