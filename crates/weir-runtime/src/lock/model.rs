//! The model check of the lock: every interleaving of two or three that take it, wait for it and leave its queue, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant leaves
//! out one step of the protocol, and must be caught.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::cell::UnsafeCell;
use loom::thread;
use weir_host::Mode;

use fair::{Asked, Lock, Ticket};
use sync::{MUTANT, Mutant};

#[path = "fair.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod fair;

/// Loom's primitives, with the faces of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use loom::sync::atomic::AtomicUsize;

    pub(crate) use super::super::sync::Mutant;
    pub(crate) use crate::modelled::Mutex;

    thread_local! {
        /// All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: Mutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// A lock, and a number that only its holders touch: loom sees who does so beside a writer.
struct World {
    lock: Lock,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched by holders of the lock only; that this is so is what the model checks.
#[expect(unsafe_code, reason = "the model shares what the lock protects")]
unsafe impl Sync for World {}

/// Wakes a thread of the model.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World { lock: Lock::default(), number: UnsafeCell::new(0) })
    }

    fn take(&self, mode: Mode) {
        if !self.lock.try_take(mode)
            && let Asked::Queued(ticket) = self.lock.ask(mode)
        {
            self.wait(ticket);
        }
    }

    fn wait(&self, ticket: Ticket) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while self.lock.poll(ticket, &mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }

    #[expect(unsafe_code, reason = "the model shares what the lock protects")]
    fn write(&self) {
        self.take(Mode::Write);
        // SAFETY: a writer holds the lock alone.
        self.number.with_mut(|number| unsafe { *number += 1 });
        self.lock.give_back(Mode::Write);
    }

    #[expect(unsafe_code, reason = "the model shares what the lock protects")]
    fn read(&self) -> u32 {
        self.take(Mode::Read);
        // SAFETY: readers hold the lock with readers only.
        let number = self.number.with(|number| unsafe { *number });
        self.lock.give_back(Mode::Read);
        number
    }

    /// Asks for the lock, and gives up before it is there.
    fn give_up(&self, mode: Mode) {
        match self.lock.ask(mode) {
            Asked::Granted => self.lock.give_back(mode),
            Asked::Queued(ticket) => match self.lock.poll(ticket, &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(()) => self.lock.give_back(mode),
                Poll::Pending => self.lock.leave(ticket, mode),
            },
        }
    }
}

/// Checks three parties, each of which is interrupted where it could go on so many times at most in all: more take hours.
fn interleaved(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A writer and a reader, with every interleaving that there is.
fn a_writer_and_a_reader() {
    loom::model(|| {
        let world = World::new();
        let other = Arc::clone(&world);
        let writer = thread::spawn(move || other.write());
        assert!(world.read() <= 1);
        writer.join().unwrap();
        assert_eq!(world.read(), 1, "what was written is seen");
    });
}

/// Nobody is with a writer, everybody comes to his turn, and sees what was written before.
fn writers_and_a_reader() {
    interleaved(|| {
        let world = World::new();
        let [one, other] = [Arc::clone(&world), Arc::clone(&world)];
        let threads = [thread::spawn(move || one.write()), thread::spawn(move || other.write())];
        assert!(world.read() <= 2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(world.read(), 2, "nothing that was written is lost");
    });
}

/// Who leaves the queue holds up nobody.
fn one_that_leaves() {
    interleaved(|| {
        let world = World::new();
        let [one, other] = [Arc::clone(&world), Arc::clone(&world)];
        let threads = [thread::spawn(move || one.write()), thread::spawn(move || other.give_up(Mode::Write))];
        world.read();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(world.lock.try_take(Mode::Write), "nobody has it any more");
    });
}

/// Who is queued goes before who comes new.
fn nobody_overtakes() {
    loom::model(|| {
        let world = World::new();
        assert!(world.lock.try_take(Mode::Read));
        let Asked::Queued(writer) = world.lock.ask(Mode::Write) else { panic!("a reader has the lock") };
        let other = Arc::clone(&world);
        let new = thread::spawn(move || other.lock.try_take(Mode::Read));
        world.lock.give_back(Mode::Read);
        assert!(!new.join().unwrap(), "the writer came first");
        world.wait(writer);
    });
}

fn caught(mutant: Mutant, model: fn()) -> bool {
    crate::modelled::caught(&MUTANT, mutant, model)
}

#[test]
fn a_lock_keeps_writers_apart_and_loses_nobody_in_its_queue() {
    a_writer_and_a_reader();
    writers_and_a_reader();
    one_that_leaves();
    nobody_overtakes();
}

#[test]
fn every_mutant_of_the_lock_is_caught() {
    assert!(caught(Mutant::ForgetsQueue, a_writer_and_a_reader));
    assert!(caught(Mutant::AnnouncesBlindly, a_writer_and_a_reader));
    assert!(caught(Mutant::WritesLate, a_writer_and_a_reader));
    assert!(caught(Mutant::Overtakes, nobody_overtakes));
}
