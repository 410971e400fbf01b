//! A readers-writer lock, first come first served.
//!
//! A flow *asks* ([`FairRwLock::acquire`]) and is *granted* the lock at once, or gets a [`LockTicket`] with a place in the queue. What
//! is given back goes straight to the front of the queue, so nobody overtakes: a writer, or all readers up to the next
//! writer. Waiting flows *poll* with their ticket; a flow that is given up *leaves* the queue, or gives back what it was
//! granted in the meantime.
//!
//! Who holds the lock is one word, and so is whether anybody is queued:
//! 1. Where nobody is queued, the lock is taken and given back by one exchange of the word.
//! 2. Who finds it held, under the mutex of the queue, *announces* the queue in the word, by an exchange with the very word
//!    that it looked at, and stands in the queue before the mutex is free.
//! 3. While the queue is announced, only who has the mutex changes the word: everybody else's exchange fails, and goes
//!    round by the mutex. Who empties the queue takes the announcement back.
//!
//! What is taken acquires, what is given back releases, and all changes of the word are exchanges or made while no other
//! is: so whoever holds the lock has seen what those did who held it before. The mutex is held for a few instructions only.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use weir_host::Mode;

use super::sync::{AtomicUsize, LockMutant, Mutex, is};

/// The word of a lock that a writer holds.
const WRITER: usize = 1;
/// Somebody is queued.
const QUEUED: usize = 2;
/// One reader; the word counts them from here on.
const READER: usize = 4;

/// One constraint.
pub(crate) struct FairRwLock {
    word: AtomicUsize,
    queue: Mutex<LockQueue>,
}

#[derive(Default)]
struct LockQueue {
    tickets: u64,
    waiting: VecDeque<LockWaiter>,
    /// Those who left the queue with the lock, and have not polled since.
    granted: Vec<LockTicket>,
}

struct LockWaiter {
    ticket: LockTicket,
    mode: Mode,
    waker: Option<Waker>,
}

/// A place in a lock's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockTicket(u64);

/// The answer to who asks for a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AcquireOutcome {
    /// It is held.
    Granted,
    /// Others are first.
    Queued(LockTicket),
}

fn weight(mode: Mode) -> usize {
    match mode {
        Mode::Read => READER,
        Mode::Write => WRITER,
    }
}

/// Whether a lock with this word, of which nobody is queued or who asks is first, may be taken.
fn is_free(word: usize, mode: Mode) -> bool {
    match mode {
        Mode::Read => word & WRITER == 0,
        Mode::Write => word & !QUEUED == 0,
    }
}

impl LockQueue {
    /// Whether the ticket was granted; it is not any more afterwards.
    fn take_grant(&mut self, ticket: LockTicket) -> bool {
        let found = self.granted.iter().position(|granted| *granted == ticket);
        found.map(|index| self.granted.swap_remove(index)).is_some()
    }
}

impl Default for FairRwLock {
    fn default() -> Self {
        FairRwLock { word: AtomicUsize::new(0), queue: Mutex::new(LockQueue::default()) }
    }
}

impl FairRwLock {
    /// Takes the lock where nobody is before us, and tells whether it did.
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

    /// Gives the lock back.
    #[inline]
    pub(crate) fn release(&self, mode: Mode) {
        if !self.try_release(mode) {
            self.release_contended(mode);
        }
    }

    /// Gives the lock back where nobody is queued, and tells whether it did.
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

    /// Gives the lock back to the queue, if it is still there.
    fn release_locked(&self, queue: &mut LockQueue, mode: Mode) {
        if !self.try_release(mode) {
            self.word.fetch_sub(weight(mode), Ordering::AcqRel);
            self.hand_over(queue);
        }
    }

    /// Takes the lock, or a place in its queue.
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

    /// Announces the queue, unless the lock can be taken: then it is, and false comes back. Under the queue's mutex.
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

    /// Hands the lock to the front of the queue, as far as it may be held together. Under the queue's mutex, while the queue
    /// is announced.
    fn hand_over(&self, queue: &mut LockQueue) {
        while let Some(waiter) =
            queue.waiting.pop_front_if(|front| is_free(self.word.load(Ordering::Acquire), front.mode))
        {
            self.word.fetch_add(weight(waiter.mode), Ordering::AcqRel);
            queue.granted.push(waiter.ticket);
            if let Some(waker) = waiter.waker {
                waker.wake();
            }
        }
        if queue.waiting.is_empty() {
            self.word.fetch_and(!QUEUED, Ordering::AcqRel);
        }
    }

    /// Whether the ticket's turn has come; if so the lock is held and the ticket used up.
    pub(crate) fn poll(&self, ticket: LockTicket, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.queue.lock();
        if queue.take_grant(ticket) {
            return Poll::Ready(());
        }
        let waiter = queue.waiting.iter_mut().find(|waiter| waiter.ticket == ticket);
        waiter.expect("a ticket is granted or queued").waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Gives up a ticket, and what it may have been granted.
    pub(crate) fn cancel(&self, ticket: LockTicket, mode: Mode) {
        let mut queue = self.queue.lock();
        if queue.take_grant(ticket) {
            return self.release_locked(&mut queue, mode);
        }
        queue.waiting.retain(|waiter| waiter.ticket != ticket);
        // Who stood behind a writer that left may now be free to go.
        self.hand_over(&mut queue);
    }
}
