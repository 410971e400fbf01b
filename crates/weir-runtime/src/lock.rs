//! Constraints: readers-writer locks, first come first served, that suspend a flow and never hold a thread.
//!
//! One lock is a [`Lock`], and its protocol is in `fair.rs`; locks per session live in [`Sessions`]. Here is what flows
//! have in their hands: locks that are held, and several that are being taken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Mode, Value};

use fair::{Asked, Ticket};

pub(crate) use fair::Lock;
pub(crate) use sessions::{Keeping, Session, Sessions};
pub use sessions::{Limits, SESSION_IDLE_MAX, SESSIONS_MAX};

mod fair;
#[cfg(test)]
mod model;
mod sessions;
mod sync;

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
