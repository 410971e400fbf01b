//! Constraints: readers-writer locks, first come first served, that suspend a flow and never hold a thread.
//!
//! A flow *asks* ([`Lock::ask`]) and is *granted* the lock at once, or gets a [`Ticket`] with a place in the queue. What
//! is given back goes straight to the front of the queue, so nobody overtakes: a writer, or all readers up to the next
//! writer. Waiting flows *poll* with their ticket; a flow that is given up *leaves* the queue, or gives back what it was
//! granted in the meantime. The mutex within is held for a few instructions only.
//!
//! Locks per session live in [`Sessions`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use weir_host::{Mode, Value};

pub(crate) use sessions::{Keeping, Session, Sessions};
pub use sessions::{Limits, SESSION_IDLE_MAX, SESSIONS_MAX};

mod sessions;

/// One constraint.
#[derive(Default)]
pub(crate) struct Lock(Mutex<State>);

#[derive(Default)]
struct State {
    readers: u32,
    writer: bool,
    tickets: u64,
    queue: VecDeque<Waiter>,
    /// Those who left the queue with the lock, and have not polled since.
    granted: Vec<Ticket>,
}

struct Waiter {
    ticket: Ticket,
    mode: Mode,
    waker: Option<Waker>,
}

/// A place in a lock's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The answer to who asks for a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It is held.
    Granted,
    /// Others are first.
    Queued(Ticket),
}

impl State {
    fn free_for(&self, mode: Mode) -> bool {
        !self.writer && (mode == Mode::Read || self.readers == 0)
    }

    fn hold(&mut self, mode: Mode) {
        match mode {
            Mode::Read => self.readers += 1,
            Mode::Write => self.writer = true,
        }
    }

    /// Hands the lock to the front of the queue, as far as it may be held together.
    fn hand_over(&mut self) {
        while let Some(front) = self.queue.front() {
            if !self.free_for(front.mode) {
                return;
            }
            let Some(waiter) = self.queue.pop_front() else { return };
            self.hold(waiter.mode);
            self.granted.push(waiter.ticket);
            if let Some(waker) = waiter.waker {
                waker.wake();
            }
        }
    }

    fn give_back(&mut self, mode: Mode) {
        match mode {
            Mode::Read => {
                assert!(self.readers > 0, "a reader gives back what it holds");
                self.readers -= 1;
            }
            Mode::Write => {
                assert!(self.writer, "a writer gives back what it holds");
                self.writer = false;
            }
        }
        self.hand_over();
    }

    /// Whether the ticket was granted; it is not any more afterwards.
    fn take_grant(&mut self, ticket: Ticket) -> bool {
        let found = self.granted.iter().position(|granted| *granted == ticket);
        found.map(|index| self.granted.swap_remove(index)).is_some()
    }
}

impl Lock {
    /// Takes the lock where nobody is before us, and tells whether it did.
    #[inline]
    pub(crate) fn try_take(&self, mode: Mode) -> bool {
        let mut state = self.0.lock();
        let free = state.queue.is_empty() && state.free_for(mode);
        if free {
            state.hold(mode);
        }
        free
    }

    /// Takes the lock, or a place in its queue.
    pub(crate) fn ask(&self, mode: Mode) -> Asked {
        let mut state = self.0.lock();
        if state.queue.is_empty() && state.free_for(mode) {
            state.hold(mode);
            return Asked::Granted;
        }
        state.tickets += 1;
        let ticket = Ticket(state.tickets);
        state.queue.push_back(Waiter { ticket, mode, waker: None });
        Asked::Queued(ticket)
    }

    /// Whether the ticket's turn has come; if so the lock is held and the ticket used up.
    pub(crate) fn poll(&self, ticket: Ticket, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.take_grant(ticket) {
            return Poll::Ready(());
        }
        let waiter = state.queue.iter_mut().find(|waiter| waiter.ticket == ticket);
        waiter.expect("a ticket is granted or queued").waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Gives up a ticket, and what it may have been granted.
    pub(crate) fn leave(&self, ticket: Ticket, mode: Mode) {
        let mut state = self.0.lock();
        if state.take_grant(ticket) {
            return state.give_back(mode);
        }
        state.queue.retain(|waiter| waiter.ticket != ticket);
        // Who stood behind a writer that left may now be free to go.
        state.hand_over();
    }

    /// Gives the lock back.
    #[inline]
    pub(crate) fn give_back(&self, mode: Mode) {
        self.0.lock().give_back(mode);
    }
}

/// A lock in a flow's hand, wherever it lives.
pub(crate) enum Handle {
    /// A lock of the program.
    Whole(Arc<Lock>),
    /// The lock of one session, which is absent only while this is dropped.
    Session(Arc<Sessions>, Value, Option<Arc<Session>>),
}

impl Handle {
    /// The lock of one session.
    pub(crate) fn session(sessions: &Arc<Sessions>, key: Value) -> Handle {
        let session = sessions.begin_use(&key);
        Handle::Session(Arc::clone(sessions), key, Some(session))
    }

    fn lock(&self) -> &Lock {
        match self {
            Handle::Whole(lock) => lock,
            Handle::Session(_, _, session) => &session.as_ref().expect("present until the drop").lock,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Handle::Session(sessions, key, session) = self
            && let Some(session) = session.take()
        {
            sessions.end_use(key, session);
        }
    }
}

/// A lock that is held; dropping it gives it back.
pub(crate) struct Held {
    handle: Handle,
    mode: Mode,
}

impl Held {
    /// Whether it is the lock of this session.
    pub(crate) fn is_session(&self, sessions: &Arc<Sessions>, session: &Value) -> bool {
        matches!(&self.handle, Handle::Session(own, key, _) if Arc::ptr_eq(own, sessions) && key == session)
    }

    /// The session, where it is one of these.
    pub(crate) fn session_of(&self, sessions: &Arc<Sessions>) -> Option<&Session> {
        match &self.handle {
            Handle::Session(own, _, session) if Arc::ptr_eq(own, sessions) => session.as_deref(),
            _ => None,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.handle.lock().give_back(self.mode);
    }
}

/// A lock of the program that is held for one call which does not wait; dropping it gives it back.
pub(crate) struct Borrowed<'a> {
    lock: &'a Lock,
    mode: Mode,
}

impl<'a> Borrowed<'a> {
    /// Takes the lock where nobody is before us.
    #[inline]
    pub(crate) fn try_take(lock: &'a Lock, mode: Mode) -> Option<Borrowed<'a>> {
        lock.try_take(mode).then(|| Borrowed { lock, mode })
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.lock.give_back(self.mode);
    }
}

/// Several locks being taken one after the other, in the order in which they were given: the canonical one.
pub(crate) struct Acquiring {
    wanted: VecDeque<(Handle, Mode)>,
    ticket: Option<Ticket>,
    held: Vec<Held>,
}

impl Acquiring {
    /// Begins to take these.
    pub(crate) fn new(wanted: impl IntoIterator<Item = (Handle, Mode)>) -> Self {
        Acquiring { wanted: wanted.into_iter().collect(), ticket: None, held: Vec::new() }
    }

    /// Goes on; yields all locks when all are held.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<Held>> {
        while let Some((handle, mode)) = self.wanted.front() {
            let asked = match self.ticket {
                None => handle.lock().ask(*mode),
                Some(ticket) => Asked::Queued(ticket),
            };
            if let Asked::Queued(ticket) = asked {
                self.ticket = Some(ticket);
                if handle.lock().poll(ticket, context).is_pending() {
                    return Poll::Pending;
                }
                self.ticket = None;
            }
            let Some((handle, mode)) = self.wanted.pop_front() else { break };
            self.held.push(Held { handle, mode });
        }
        Poll::Ready(std::mem::take(&mut self.held))
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        if let (Some(ticket), Some((handle, mode))) = (self.ticket, self.wanted.front()) {
            handle.lock().leave(ticket, *mode);
        }
    }
}

#[cfg(test)]
mod tests;
