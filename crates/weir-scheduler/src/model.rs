//! The model check of the waking protocol: every interleaving of a worker and those who bring it work, by loom.
//!
//! The files under test are compiled a second time here, over loom's primitives instead of the system's, so that the check
//! is part of the ordinary tests. Every mutant leaves out or weakens one step of the protocol, and must be caught.

use std::collections::VecDeque;

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

use idle::Idle;
use inbox::{Inbox, Rest};
use sync::Mutant;

#[path = "idle.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model needs only what the waking protocol uses")]
mod idle;
#[path = "inbox.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model needs only what the waking protocol uses")]
mod inbox;

/// Loom's primitives, with the faces of those in `crate::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
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
    ready: sync::Mutex<VecDeque<usize>>,
    /// What the list holds, readable without its lock as the real list's is.
    listed: sync::AtomicUsize,
    idle: Idle,
}

impl Crew {
    fn new() -> Self {
        let ready = sync::Mutex::new(VecDeque::new());
        Crew { inbox: Inbox::new(4), ready, listed: sync::AtomicUsize::new(0), idle: Idle::new() }
    }

    fn bring(&self, item: u32) {
        if self.inbox.offer(item).expect("there is room").hand {
            self.hand();
        }
    }

    fn hand(&self) {
        let mut ready = self.ready.lock();
        ready.push_back(0);
        self.listed.fetch_add(1, Ordering::Release);
        drop(ready);
        self.idle.wake();
    }

    fn look(&self) -> Option<usize> {
        let mut ready = self.ready.lock();
        let port = ready.pop_front()?;
        self.listed.fetch_sub(1, Ordering::Relaxed);
        Some(port)
    }

    /// Works until so many items have come. A lost wake-up leaves it asleep, which loom reports as a deadlock.
    fn work(&self, items: usize) {
        let (mut batch, mut released) = (Vec::new(), Vec::new());
        while batch.len() < items {
            match self.look() {
                Some(_) => {
                    self.inbox.take(1, &mut batch, &mut released);
                    if self.inbox.rest() == Rest::More {
                        self.hand();
                    }
                }
                None => self.idle.sleep(0, || self.listed.load(Ordering::Acquire) > 0),
            }
        }
    }
}

fn check(mutant: Option<Mutant>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        sync::MUTANT.set(mutant);
        let crew = Arc::new(Crew::new());
        let other = crew.clone();
        let worker = thread::spawn(move || other.work(2));
        crew.bring(1);
        crew.bring(2);
        worker.join().unwrap();
    });
}

/// Names the mutant for a process of its own: loom cannot clean up after a model that failed.
const MUTANT: &str = "WEIR_SCHEDULER_MUTANT";
const MUTANTS: [Mutant; 4] = [Mutant::NoSecondLook, Mutant::RelaxedRegistration, Mutant::PlainLoad, Mutant::BlindRest];

fn is_caught(mutant: Mutant) -> bool {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let command = command.args(["--exact", "model::no_wake_up_is_lost"]).env(MUTANT, format!("{mutant:?}"));
    !command.output().unwrap().status.success()
}

#[test]
fn no_wake_up_is_lost() {
    let named = std::env::var(MUTANT).ok();
    check(MUTANTS.into_iter().find(|mutant| named == Some(format!("{mutant:?}"))));
}

#[test]
fn every_mutant_is_caught() {
    for mutant in MUTANTS {
        assert!(is_caught(mutant), "{mutant:?} passes the model");
    }
}
