//! The model check of the lock: every interleaving of two or three flows that acquire it, wait for it and leave its
//! queue, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant
//! leaves out one step of the protocol, and must be caught.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::cell::UnsafeCell;
use loom::thread;
use weir_host::Mode;

use fair_rwlock::{AcquireOutcome, FairRwLock, LockTicket};
use sync::{LockMutant, MUTANT};

#[path = "fair_rwlock.rs"]
#[expect(
    clippy::duplicate_mod,
    dead_code,
    reason = "this copy is over loom's primitives, and nobody's steps end in it"
)]
mod fair_rwlock;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use loom::sync::atomic::AtomicUsize;

    pub(crate) use super::super::sync::LockMutant;
    pub(crate) use crate::loom_support::ModelMutex as Mutex;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<LockMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: LockMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// A lock, and a number that only its holders access: loom reports an access concurrent with that of a writer.
struct LockModel {
    lock: FairRwLock,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched by holders of the lock only; the model checks that this holds.
#[expect(unsafe_code, reason = "the model shares what the lock protects")]
unsafe impl Sync for LockModel {}

/// Wakes a thread of the model.
struct UnparkWaker(thread::Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl LockModel {
    fn new() -> Arc<LockModel> {
        Arc::new(LockModel { lock: FairRwLock::default(), number: UnsafeCell::new(0) })
    }

    fn take(&self, mode: Mode) {
        if !self.lock.try_acquire(mode)
            && let AcquireOutcome::Queued(ticket) = self.lock.acquire(mode)
        {
            self.wait(ticket);
        }
    }

    fn wait(&self, ticket: LockTicket) {
        let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
        while self.lock.poll(ticket, &mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }

    #[expect(unsafe_code, reason = "the model shares what the lock protects")]
    fn write(&self) {
        self.take(Mode::Write);
        // SAFETY: a writer holds the lock alone.
        self.number.with_mut(|number| unsafe { *number += 1 });
        self.lock.release(Mode::Write);
    }

    #[expect(unsafe_code, reason = "the model shares what the lock protects")]
    fn read(&self) -> u32 {
        self.take(Mode::Read);
        // SAFETY: readers hold the lock with readers only.
        let number = self.number.with(|number| unsafe { *number });
        self.lock.release(Mode::Read);
        number
    }

    /// Begins to acquire the lock, and cancels before it is granted.
    fn give_up(&self, mode: Mode) {
        match self.lock.acquire(mode) {
            AcquireOutcome::Granted => self.lock.release(mode),
            AcquireOutcome::Queued(ticket) => match self.lock.poll(ticket, &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(()) => self.lock.release(mode),
                Poll::Pending => self.lock.cancel(ticket, mode),
            },
        }
    }
}

/// Checks a model of three threads. The number of preemptions is bounded, because more would take hours.
fn interleaved(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A writer and a reader, in every interleaving.
fn a_writer_and_a_reader() {
    loom::model(|| {
        let model = LockModel::new();
        let other = Arc::clone(&model);
        let writer = thread::spawn(move || other.write());
        assert!(model.read() <= 1);
        writer.join().unwrap();
        assert_eq!(model.read(), 1, "what was written is seen");
    });
}

/// Writers have exclusive access, and every flow is granted the lock and sees all earlier writes.
fn writers_and_a_reader() {
    interleaved(|| {
        let model = LockModel::new();
        let [one, other] = [Arc::clone(&model), Arc::clone(&model)];
        let threads = [thread::spawn(move || one.write()), thread::spawn(move || other.write())];
        assert!(model.read() <= 2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(model.read(), 2, "nothing that was written is lost");
    });
}

/// A flow that leaves the queue delays no other.
fn one_that_leaves() {
    interleaved(|| {
        let model = LockModel::new();
        let [one, other] = [Arc::clone(&model), Arc::clone(&model)];
        let threads = [thread::spawn(move || one.write()), thread::spawn(move || other.give_up(Mode::Write))];
        model.read();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(model.lock.try_acquire(Mode::Write), "nobody has it any more");
    });
}

/// A queued flow goes before a new one.
fn nobody_overtakes() {
    loom::model(|| {
        let model = LockModel::new();
        assert!(model.lock.try_acquire(Mode::Read));
        let AcquireOutcome::Queued(writer) = model.lock.acquire(Mode::Write) else { panic!("a reader has the lock") };
        let other = Arc::clone(&model);
        let new = thread::spawn(move || other.lock.try_acquire(Mode::Read));
        model.lock.release(Mode::Read);
        assert!(!new.join().unwrap(), "the writer came first");
        model.wait(writer);
    });
}

fn caught(mutant: LockMutant, model: fn()) -> bool {
    crate::loom_support::caught(&MUTANT, mutant, model)
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
    assert!(caught(LockMutant::ForgetsQueue, a_writer_and_a_reader));
    assert!(caught(LockMutant::AnnouncesBlindly, a_writer_and_a_reader));
    assert!(caught(LockMutant::ReleasesRelaxed, a_writer_and_a_reader));
    assert!(caught(LockMutant::Overtakes, nobody_overtakes));
}
