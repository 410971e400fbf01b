//! A fair readers–writer lock: first in, first out.
//!
//! A flow *acquires* the lock ([`FairRwLock::acquire`]) and is *granted* it at once, or gets a [`LockTicket`] with a
//! place in the queue. A released lock goes straight to the front of the queue, which is a writer, or all readers up to
//! the next writer, so that no flow overtakes another. Waiting flows *poll* with their ticket; a cancelled flow
//! *cancels* its ticket, and releases the lock if it was granted in the meantime.
//!
//! One word holds the number of readers, the writer's bit, and a bit that is set while flows are queued; the queue
//! itself is behind a mutex, which is held for a few instructions only:
//!
//! ```text
//! word:  │ number of readers … │ QUEUED │ WRITER │
//! ```
//!
//! 1. *Fast path.* While `QUEUED` is clear, the lock is acquired and released by one compare-and-exchange of the word.
//! 2. *Announcement.* A flow that finds the lock held takes the mutex and sets `QUEUED` by a compare-and-exchange that
//!    expects the word that it has read. If the lock was released since, the exchange fails, and the flow tries again
//!    to acquire it. The flow is in the queue before it unlocks the mutex.
//! 3. *Slow path.* While `QUEUED` is set, fast exchanges fail, and only the owner of the mutex changes the word. A
//!    release hands the lock to the front of the queue. The flow that empties the queue clears `QUEUED`.
//!
//! Memory ordering of each access to the word:
//!
//! * `try_acquire`: a relaxed load, whose value is only a guess; then a compare-and-exchange with `Acquire`, which
//!   pairs with every `Release` below. All changes of the word are read-modify-write operations, and so belong to the
//!   release sequences of all earlier releases: the new holder sees everything that all earlier holders did. A failed
//!   exchange is relaxed, because it only supplies the next guess.
//! * `try_release`: a compare-and-exchange with `Release`, which publishes what the holder did.
//! * `announce`: a compare-and-exchange with `AcqRel` under the mutex. Correctness needs its atomicity; the `Acquire`
//!   half passes on, through the mutex, what earlier fast releases published to the flow that is granted the lock.
//! * `release_locked`: a subtraction with `AcqRel` under the mutex. The `Release` half is for fast exchanges after the
//!   queue is gone, which the mutex does not order; the `Acquire` half is for the flow that is granted the lock.
//! * `hand_over`: a load with `Acquire`, and changes with `AcqRel`, under the mutex, for the same two reasons. The
//!   granted flow finds its grant under the mutex, and so sees all of this.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Number, Ordering};
use std::task::{Context, Poll, Waker};

use weir_host::{Mode, StepEnd};

use super::sync::{AtomicUsize, LockMutant, Mutex, is};

/// A writer holds the lock.
const WRITER: usize = 1;
/// Flows are queued.
const QUEUED: usize = 2;
/// One reader; the word counts readers from this bit on.
const READER: usize = 4;

/// A fair readers–writer lock.
pub(crate) struct FairRwLock {
    word: AtomicUsize,
    queue: Mutex<LockQueue>,
    /// Is told before the lock is released.
    step_end: Option<Arc<dyn StepEnd>>,
    /// The number of the store of the value, if it has snapshots, so that single reads need no lock; otherwise 0. Is set before the first
    /// flow begins.
    snapshots: Number,
}

#[derive(Default)]
struct LockQueue {
    tickets: u64,
    /// The waiting flows, first in, first out, and so in the order of their tickets: thousands may wait, and each is found
    /// by a binary search.
    waiting: VecDeque<LockWaiter>,
    /// Tickets that were granted the lock and have not been polled since, in their order.
    granted: VecDeque<LockTicket>,
}

struct LockWaiter {
    ticket: LockTicket,
    mode: Mode,
    waker: Option<Waker>,
}

/// A place in the queue of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockTicket(u64);

/// The outcome of [`FairRwLock::acquire`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AcquireOutcome {
    /// The caller holds the lock.
    Granted,
    /// The caller is queued.
    Queued(LockTicket),
}

fn weight(mode: Mode) -> usize {
    match mode {
        Mode::Read => READER,
        Mode::Write => WRITER,
    }
}

/// Returns true if a lock with this word may be acquired by a caller that no queued flow precedes.
fn is_free(word: usize, mode: Mode) -> bool {
    match mode {
        Mode::Read => word & WRITER == 0,
        Mode::Write => word & !QUEUED == 0,
    }
}

impl LockQueue {
    /// Takes the grant of a ticket, and returns true if there was one.
    fn take_grant(&mut self, ticket: LockTicket) -> bool {
        let found = self.granted.binary_search(&ticket);
        found.is_ok_and(|index| self.granted.remove(index).is_some())
    }

    /// Returns the position of a ticket in the queue.
    fn position(&self, ticket: LockTicket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

impl Default for FairRwLock {
    fn default() -> Self {
        FairRwLock {
            word: AtomicUsize::new(0),
            queue: Mutex::new(LockQueue::default()),
            step_end: None,
            snapshots: Number::new(0),
        }
    }
}

impl FairRwLock {
    /// Returns a lock that ends what its holders have left unfinished.
    pub(crate) fn ending(step_end: Arc<dyn StepEnd>) -> FairRwLock {
        FairRwLock { step_end: Some(step_end), ..FairRwLock::default() }
    }

    /// Returns the end of the steps that hold the lock, if it takes back what they have left unfinished.
    pub(crate) fn step_end(&self) -> Option<&Arc<dyn StepEnd>> {
        self.step_end.as_ref()
    }

    /// Notes that the value behind the lock has snapshots, together with others of its store.
    pub(crate) fn note_snapshots(&self, store: NonZeroUsize) {
        self.snapshots.store(store.get(), Ordering::Relaxed);
    }

    /// Returns the number of the store whose snapshots a single read of the value behind the lock sees, so that it needs no lock.
    #[inline]
    pub(crate) fn snapshots(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.snapshots.load(Ordering::Relaxed))
    }

    /// Acquires the lock if it is free and no flow is queued; returns true if it did.
    #[inline]
    pub(crate) fn try_acquire(&self, mode: Mode) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while (word & QUEUED == 0 || is(LockMutant::Overtakes)) && is_free(word, mode) {
            match self.word.compare_exchange_weak(word, word + weight(mode), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Releases the lock.
    #[inline]
    pub(crate) fn release(&self, mode: Mode) {
        if let Some(step_end) = &self.step_end {
            step_end.take_back_unfinished();
        }
        if !self.try_release(mode) {
            self.release_contended(mode);
        }
    }

    /// Releases the lock if no flow is queued; returns true if it did.
    #[inline]
    fn try_release(&self, mode: Mode) -> bool {
        let order = if is(LockMutant::ReleasesRelaxed) { Ordering::Relaxed } else { Ordering::Release };
        let mut word = self.word.load(Ordering::Relaxed);
        while word & QUEUED == 0 || is(LockMutant::ForgetsQueue) {
            assert!(word >= weight(mode), "who gives a lock back holds it");
            match self.word.compare_exchange_weak(word, word - weight(mode), order, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[cold]
    fn release_contended(&self, mode: Mode) {
        let mut queue = self.queue.lock();
        self.release_locked(&mut queue, mode);
    }

    /// Releases the lock under the queue's mutex, to the front of the queue if it is not empty.
    fn release_locked(&self, queue: &mut LockQueue, mode: Mode) {
        if !self.try_release(mode) {
            self.word.fetch_sub(weight(mode), Ordering::AcqRel);
            self.hand_over(queue);
        }
    }

    /// Acquires the lock, or a place in its queue.
    pub(crate) fn acquire(&self, mode: Mode) -> AcquireOutcome {
        let mut queue = self.queue.lock();
        if !self.announce(mode) {
            return AcquireOutcome::Granted;
        }
        queue.tickets += 1;
        let ticket = LockTicket(queue.tickets);
        queue.waiting.push_back(LockWaiter { ticket, mode, waker: None });
        AcquireOutcome::Queued(ticket)
    }

    /// Announces the queue, and returns true; if the lock is free, acquires it instead, and returns false. Under the
    /// queue's mutex.
    fn announce(&self, mode: Mode) -> bool {
        loop {
            if self.try_acquire(mode) {
                return false;
            }
            let word = self.word.load(Ordering::Relaxed);
            if word & QUEUED != 0 {
                return true;
            }
            if is(LockMutant::AnnouncesBlindly) {
                self.word.fetch_or(QUEUED, Ordering::AcqRel);
                return true;
            }
            let held = !is_free(word, mode);
            let announced = || self.word.compare_exchange(word, word | QUEUED, Ordering::AcqRel, Ordering::Relaxed);
            if held && announced().is_ok() {
                return true;
            }
        }
    }

    /// Grants the lock to the front of the queue: a writer, or all readers up to the next writer. Under the queue's
    /// mutex, while the queue is announced.
    fn hand_over(&self, queue: &mut LockQueue) {
        while let Some(waiter) =
            queue.waiting.pop_front_if(|front| is_free(self.word.load(Ordering::Acquire), front.mode))
        {
            self.word.fetch_add(weight(waiter.mode), Ordering::AcqRel);
            queue.granted.push_back(waiter.ticket);
            if let Some(waker) = waiter.waker {
                waker.wake();
            }
        }
        if queue.waiting.is_empty() {
            self.word.fetch_and(!QUEUED, Ordering::AcqRel);
        }
    }

    /// Returns ready if the ticket was granted: the lock is held then, and the ticket used up.
    pub(crate) fn poll(&self, ticket: LockTicket, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.queue.lock();
        if queue.take_grant(ticket) {
            return Poll::Ready(());
        }
        let position = queue.position(ticket).expect("a ticket is granted or queued");
        match &mut queue.waiting[position].waker {
            Some(waker) => waker.clone_from(context.waker()),
            waker => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Cancels a ticket, and releases the lock if the ticket was granted.
    pub(crate) fn cancel(&self, ticket: LockTicket, mode: Mode) {
        let mut queue = self.queue.lock();
        if queue.take_grant(ticket) {
            return self.release_locked(&mut queue, mode);
        }
        if let Some(position) = queue.position(ticket) {
            queue.waiting.remove(position);
        }
        // Readers behind a writer that left the queue may be free to go.
        self.hand_over(&mut queue);
    }
}
