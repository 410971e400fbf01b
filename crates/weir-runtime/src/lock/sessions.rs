//! The sessions of one resource: a lock for each, and a value for each if the shared value is declared `per session`.
//!
//! A session is *in use* while a flow holds its lock or waits for it, and *idle* otherwise. The value of an idle
//! session is *retained* within [`SessionLimits`]; an idle session without a value is forgotten at once.
//!
//! 1. A use begins ([`SessionTable::begin_use`]) before the lock is acquired, and ends ([`SessionTable::end_use`]) when
//!    it was released. Both happen under the table's mutex, so that a session is never freed while a use begins.
//! 2. The value is created by the first atomic step that holds the lock, which acquires it for writing while there is none
//!    ([`LockHandle::of_own`](super::LockHandle::of_own)). A session in use keeps its value, so that a step that sees one
//!    may acquire the lock for reading.
//! 3. Each begin and end of a use frees sessions that have been idle for too long, the one that is about to be used
//!    included. While there are too many, or the memory of the program is full, those go that have been idle longest:
//!    first of those that never *came back*, that is, were used again after they had been idle. A client that makes up
//!    identifiers therefore takes the places of other identifiers that nobody uses, and not those of sessions in use.
//!    Values are dropped outside the table's mutex, because dropping runs host code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir_host::{Shared, Value, memory};

use super::FairRwLock;
use crate::platform::Platform;

/// The default limit on sessions whose values are retained, for each shared value. It bounds memory; only sessions in
/// use can exceed it.
pub const SESSIONS_MAX: usize = 100_000;

/// The default time for which the value of an idle session is retained.
pub const SESSION_IDLE_MAX: Duration = Duration::from_mins(30);

/// The maximum number of sessions that one use frees because the memory of the program is full: the memory of the first ones
/// may be enough.
const FREED_FOR_MEMORY_MAX: usize = 16;

/// Limits on the values of idle sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// The maximum number of sessions with a value, those in use included.
    pub sessions: usize,
    /// The longest time for which an idle session keeps its value.
    pub idle: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits { sessions: SESSIONS_MAX, idle: SESSION_IDLE_MAX }
    }
}

/// The policy by which values of idle sessions are retained.
pub(crate) struct SessionRetention {
    /// The limits.
    pub limits: SessionLimits,
    /// The platform whose clock measures the idle time.
    pub platform: Arc<dyn Platform>,
}

/// The sessions of one resource.
#[derive(Default)]
pub(crate) struct SessionTable {
    table: Mutex<TableState>,
    /// Present if each session has a value of its own.
    keeping: Option<SessionRetention>,
}

/// The lock and the value of one session.
#[derive(Default)]
pub(crate) struct SessionState {
    /// The lock of the session.
    pub lock: FairRwLock,
    /// The value of the session, once it was made. The lock of the session orders the accesses to what is in it.
    own: Mutex<Option<Shared>>,
}

#[derive(Default)]
struct TableState {
    known: IndexMap<Value, SessionEntry>,
    /// The idle sessions that are retained and never came back, by the moment when they became idle.
    new: BTreeMap<IdleSince, Value>,
    /// The idle sessions that came back.
    returned: BTreeMap<IdleSince, Value>,
    /// The number of times that a session has become idle.
    rests: u64,
}

#[derive(Default)]
struct SessionEntry {
    session: Arc<SessionState>,
    idle: Option<IdleSince>,
    came_back: bool,
}

/// The moment when a session became idle: the time, and a number that distinguishes sessions of one moment.
type IdleSince = (u64, u64);

impl SessionState {
    /// Stores the initial value of the session. The caller holds the lock of the session for writing.
    pub(crate) fn put(&self, value: Value) {
        *self.own.lock() = Some(Shared::new(value));
    }

    /// Returns the value of the session, if it was made.
    pub(crate) fn made(&self) -> Option<Shared> {
        self.own.lock().clone()
    }
}

impl TableState {
    /// Returns the idle sessions that came back, or those that never did.
    fn idle(&mut self, came_back: bool) -> &mut BTreeMap<IdleSince, Value> {
        if came_back { &mut self.returned } else { &mut self.new }
    }
}

impl SessionTable {
    /// Returns a table of sessions with values of their own.
    pub(crate) fn keeping(keeping: SessionRetention) -> SessionTable {
        SessionTable { table: Mutex::default(), keeping: Some(keeping) }
    }

    /// Returns the session of this key, which is in use by the caller from now on.
    pub(crate) fn begin_use(&self, key: &Value) -> Arc<SessionState> {
        let mut table = self.table.lock();
        // Before the session is found, because its own time may be over.
        let expired = self.free(&mut table);
        let known = table.known.entry(key.clone()).or_default();
        let session = Arc::clone(&known.session);
        if let Some(since) = known.idle.take() {
            let was_back = std::mem::replace(&mut known.came_back, true);
            table.idle(was_back).remove(&since);
        }
        let freed = if table.known.len() > self.sessions_max() { self.free(&mut table) } else { Vec::new() };
        drop(table);
        drop((expired, freed));
        session
    }

    /// Ends the caller's use of the session.
    pub(crate) fn end_use(&self, key: &Value, session: Arc<SessionState>) {
        let mut table = self.table.lock();
        // Under the mutex, so that of two uses that end at once, one sees that it is the last.
        drop(session);
        let forgotten = self.rest(&mut table, key);
        let freed = self.free(&mut table);
        drop(table);
        drop((forgotten, freed));
    }

    /// After the last use of a session, retains it as idle, or takes it out of the table.
    fn rest(&self, table: &mut TableState, key: &Value) -> Option<SessionEntry> {
        let known = table.known.get_mut(key).filter(|known| Arc::strong_count(&known.session) == 1)?;
        match &self.keeping {
            Some(keeping) if known.session.made().is_some() => {
                let since = (keeping.platform.now_ns(), table.rests);
                known.idle = Some(since);
                let came_back = known.came_back;
                table.rests += 1;
                table.idle(came_back).insert(since, key.clone());
                None
            }
            _ => table.known.swap_remove(key),
        }
    }

    /// Takes the sessions out of the table that are not retained any longer.
    fn free(&self, table: &mut TableState) -> Vec<SessionEntry> {
        let Some(SessionRetention { limits, platform }) = &self.keeping else { return Vec::new() };
        let now_ns = u128::from(platform.now_ns());
        let mut freed = Vec::new();
        for came_back in [false, true] {
            while let Some((since, _)) = table.idle(came_back).first_key_value() {
                let is_over = u128::from(since.0) + limits.idle.as_nanos() <= now_ns;
                let is_short = freed.len() < FREED_FOR_MEMORY_MAX && memory::is_full();
                if !is_over && !is_short && table.known.len() <= limits.sessions {
                    break;
                }
                let longest = table.idle(came_back).pop_first();
                freed.extend(longest.and_then(|(_, key)| table.known.swap_remove(&key)));
            }
        }
        freed
    }

    fn sessions_max(&self) -> usize {
        self.keeping.as_ref().map_or(usize::MAX, |keeping| keeping.limits.sessions)
    }

    /// Returns the number of sessions.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.lock().known.len()
    }
}

#[cfg(test)]
mod tests;
