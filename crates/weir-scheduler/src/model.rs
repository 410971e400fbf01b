//! The model check of the protocols between threads: every interleaving of a few, by loom.
//!
//! *Waking*: a worker and one who brings it work; no wake-up is lost. *Claiming*: two who run an item at a port that may be
//! free; never both at once, and what one leaves behind is done. *Places*: one works alone, by the lock or as the favourite,
//! and another joins or works alone as well; who comes later sees what was done. *Ready ports*: some put in, some take; each
//! gets what no other gets, and all that was done before. *Resting*: who steers would rest, and an item or the end comes; it
//! does not sleep through it.
//!
//! The files under test are compiled a second time here, over loom's primitives instead of the system's, so that the check
//! is part of the ordinary tests. Every mutant leaves out or weakens one step of the protocol, and must be caught.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

use idle::Idle;
use inbox::{Inbox, Released, Rest};
use places::Places;
use ready::Ready;
use rest::Rest as Steering;
use sync::{AtomicBool, AtomicUsize, Mutant};

#[path = "bias.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod bias;
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
#[expect(dead_code, reason = "the model says itself when a thread becomes the favourite")]
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

    pub(crate) use loom::sync::MutexGuard;
    use loom::sync::atomic::fence;
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
    pub(crate) fn lock_within<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        mutex.0.try_lock().ok()
    }

    pub(crate) fn has_fence_of_all() -> bool {
        true
    }

    /// The two halves of a fence: loom knows none that one thread makes for another.
    pub(crate) fn fence_of_all() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn fence_of_compiler() {
        fence(Ordering::SeqCst);
    }

    #[derive(Default)]
    pub(crate) struct Patience(());

    impl Patience {
        #[expect(clippy::unused_self, reason = "the system's counts")]
        pub(crate) fn pause(&mut self) {
            loom::thread::yield_now();
        }

        /// A model has no time to wait.
        #[expect(clippy::unused_self, reason = "the system's counts")]
        pub(crate) fn is_over(&self) -> bool {
            true
        }
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
        let (mut batch, mut released) = (Vec::new(), Released::default());
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

/// A port that never runs on two threads at once, and counts how often it did in a word that only who runs it uses.
struct Exclusive {
    runs: AtomicBool,
    count: AtomicUsize,
}

impl Exclusive {
    fn new() -> Self {
        Exclusive { runs: AtomicBool::new(false), count: AtomicUsize::new(0) }
    }

    fn run(&self) {
        assert!(!self.runs.swap(true, Ordering::Relaxed), "the port runs on two threads at once");
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.runs.store(false, Ordering::Relaxed);
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
            self.crew.inbox.take(2, &mut batch, &mut Released::default());
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

/// The numbers of two threads.
const SOURCE: usize = 1;
const OTHER: usize = 2;

/// A source works alone, and meanwhile a thread joins.
fn places(times_of_favourite: Option<u32>) {
    let shared = Arc::new((Places::leaning_after(times_of_favourite), Exclusive::new()));
    let alone = || {
        let alone = shared.0.alone_again(SOURCE);
        alone.iter().for_each(|_| shared.1.run());
        usize::from(alone.is_some())
    };
    let before = alone();
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.join();
        other.1.run();
        other.0.leave();
    });
    let runs = before + alone();
    thread.join().unwrap();
    assert!(shared.0.alone().is_some(), "nobody works any more");
    assert_eq!(shared.1.count.load(Ordering::Relaxed), runs + 1, "who comes later sees what was done");
}

/// Two threads work alone, and either may become the favourite.
fn favourites() {
    let shared = Arc::new((Places::leaning_after(Some(1)), Exclusive::new()));
    let other = shared.clone();
    let alone = |shared: &(Places, Exclusive), thread| {
        let alone = shared.0.alone_again(thread);
        alone.iter().for_each(|_| shared.1.run());
        usize::from(alone.is_some())
    };
    let first = alone(&shared, SOURCE);
    let thread = thread::spawn(move || alone(&other, OTHER));
    let runs = first + alone(&shared, SOURCE) + thread.join().unwrap();
    assert!(shared.0.alone().is_some(), "nobody works any more");
    assert_eq!(shared.1.count.load(Ordering::Relaxed), runs, "who comes later sees what was done");
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
const MUTANTS: [(Mutant, &str); 19] = [
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
    (Mutant::AnyFavourite, "model::who_works_alone_as_the_favourite_is_alone"),
    (Mutant::EntersUnfenced, "model::who_works_alone_as_the_favourite_is_alone"),
    (Mutant::EntersUnlooked, "model::who_works_alone_as_the_favourite_is_alone"),
    (Mutant::LeavesUnreleased, "model::who_works_alone_as_the_favourite_is_alone"),
    (Mutant::EndsUnfenced, "model::who_works_alone_as_the_favourite_is_alone"),
    (Mutant::InsideUnlooked, "model::who_works_alone_as_the_favourite_is_alone"),
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
    check(asked(), || places(None));
}

#[test]
fn who_works_alone_as_the_favourite_is_alone() {
    check(asked(), || places(Some(1)));
    check(asked(), favourites);
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
