//! Locks of resources: fair readers–writer locks that suspend flows and never block a thread.
//!
//! Each lock is a [`FairRwLock`], whose protocol is in `fair_rwlock.rs`; the locks of sessions are in a
//! [`SessionTable`]. This file contains the guards of held locks, and the acquisition of several locks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Mode, Value};

use fair_rwlock::{AcquireOutcome, LockTicket};

pub(crate) use fair_rwlock::FairRwLock;
pub use sessions::{SESSION_IDLE_MAX, SESSIONS_MAX, SessionLimits};
pub(crate) use sessions::{SessionRetention, SessionState, SessionTable};

mod fair_rwlock;
#[cfg(test)]
mod model;
mod sessions;
mod sync;

/// A reference to a lock of the program or of a session.
pub(crate) enum LockHandle {
    /// A lock of the program.
    Whole(Arc<FairRwLock>),
    /// The lock of one session; the state is absent only while the handle is dropped.
    Session(Arc<SessionTable>, Value, Option<Arc<SessionState>>),
}

impl LockHandle {
    /// Returns the lock of one session, which is in use from now on.
    pub(crate) fn session(sessions: &Arc<SessionTable>, key: Value) -> LockHandle {
        let session = sessions.begin_use(&key);
        LockHandle::Session(Arc::clone(sessions), key, Some(session))
    }

    /// Returns the lock of one session with a value of its own, and the mode in which to acquire it: the flow that makes the
    /// value needs the session for itself.
    pub(crate) fn of_own(sessions: &Arc<SessionTable>, key: Value, mode: Mode) -> (LockHandle, Mode) {
        let session = sessions.begin_use(&key);
        let mode = if session.made().is_some() { mode } else { Mode::Write };
        (LockHandle::Session(Arc::clone(sessions), key, Some(session)), mode)
    }

    /// Returns true if it is the lock of this session.
    pub(crate) fn is_session(&self, sessions: &Arc<SessionTable>, session: &Value) -> bool {
        matches!(self, LockHandle::Session(own, key, _) if Arc::ptr_eq(own, sessions) && key == session)
    }

    fn lock(&self) -> &FairRwLock {
        match self {
            LockHandle::Whole(lock) => lock,
            LockHandle::Session(_, _, session) => &session.as_ref().expect("present until the drop").lock,
        }
    }
}

impl Drop for LockHandle {
    fn drop(&mut self) {
        if let LockHandle::Session(sessions, key, session) = self
            && let Some(session) = session.take()
        {
            sessions.end_use(key, session);
        }
    }
}

/// A lock that is held; dropping it releases the lock.
pub(crate) struct HeldLock {
    handle: LockHandle,
    mode: Mode,
}

impl HeldLock {
    /// Returns true if it is the lock of this session.
    pub(crate) fn is_session(&self, sessions: &Arc<SessionTable>, session: &Value) -> bool {
        self.handle.is_session(sessions, session)
    }

    /// Returns the session, if it belongs to this table.
    pub(crate) fn session_of(&self, sessions: &Arc<SessionTable>) -> Option<&SessionState> {
        match &self.handle {
            LockHandle::Session(own, _, session) if Arc::ptr_eq(own, sessions) => session.as_deref(),
            _ => None,
        }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.handle.lock().release(self.mode);
    }
}

/// A lock of the program that is held for one call which does not wait; dropping it releases the lock.
pub(crate) struct BorrowedLock<'a> {
    lock: &'a FairRwLock,
    mode: Mode,
}

impl<'a> BorrowedLock<'a> {
    /// Acquires the lock if it is free and its queue is empty.
    #[inline]
    pub(crate) fn try_acquire(lock: &'a FairRwLock, mode: Mode) -> Option<BorrowedLock<'a>> {
        lock.try_acquire(mode).then(|| BorrowedLock { lock, mode })
    }

    /// Keeps the lock longer than the call. `lock` is the one that is held.
    pub(crate) fn keep(self, lock: &Arc<FairRwLock>) -> HeldLock {
        debug_assert!(std::ptr::eq(self.lock, &**lock), "it is the lock that was acquired");
        let mode = self.mode;
        // It is not released.
        std::mem::forget(self);
        HeldLock { handle: LockHandle::Whole(Arc::clone(lock)), mode }
    }
}

impl Drop for BorrowedLock<'_> {
    fn drop(&mut self) {
        self.lock.release(self.mode);
    }
}

/// The acquisition of several locks, one after the other in the order of the argument, which is the canonical one.
pub(crate) struct LockAcquisition {
    wanted: VecDeque<(LockHandle, Mode)>,
    ticket: Option<LockTicket>,
    held: Vec<HeldLock>,
}

impl LockAcquisition {
    /// Returns the acquisition of these locks.
    pub(crate) fn new(wanted: impl IntoIterator<Item = (LockHandle, Mode)>) -> Self {
        LockAcquisition { wanted: wanted.into_iter().collect(), ticket: None, held: Vec::new() }
    }

    /// Acquires as many locks as are free; returns all of them when all are held.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<HeldLock>> {
        while let Some((handle, mode)) = self.wanted.front() {
            let outcome = match self.ticket {
                None => handle.lock().acquire(*mode),
                Some(ticket) => AcquireOutcome::Queued(ticket),
            };
            if let AcquireOutcome::Queued(ticket) = outcome {
                self.ticket = Some(ticket);
                if handle.lock().poll(ticket, context).is_pending() {
                    return Poll::Pending;
                }
                self.ticket = None;
            }
            let Some((handle, mode)) = self.wanted.pop_front() else { break };
            self.held.push(HeldLock { handle, mode });
        }
        Poll::Ready(std::mem::take(&mut self.held))
    }
}

impl Drop for LockAcquisition {
    fn drop(&mut self) {
        if let (Some(ticket), Some((handle, mode))) = (self.ticket, self.wanted.front()) {
            handle.lock().cancel(ticket, *mode);
        }
    }
}

#[cfg(test)]
mod tests;
