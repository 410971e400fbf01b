//! The sessions of one resource: the lock of each, and where each has a value of its own, that value.
//!
//! Words: a session is *in use* while a flow waits for its lock or holds it, and *idle* otherwise. A value of its own is
//! *kept* while the session is idle, within [`SessionLimits`]; without one, an idle session is forgotten at once.
//!
//! 1. A use begins ([`SessionTable::begin_use`]) before the lock is asked for, and ends ([`SessionTable::end_use`]) when it was given
//!    back. Both happen under the table's mutex, so a session that a use is about to begin on is never freed.
//! 2. The value is made under the session's own mutex, by the first step that holds the lock ([`SessionState::value`]). What
//!    makes it returns at once, so the mutex is held for no longer than the making takes.
//! 3. Whoever begins or ends a use frees what has been idle for too long, and while there are too many, what has been idle
//!    for longest. Values are dropped outside of the table's mutex: what that does is the host's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir_host::{Failure, Shared, Value};

use super::FairRwLock;
use crate::platform::Platform;

/// The most sessions of which a value is kept, for each shared value: a limit on memory. Only sessions in use can be more.
pub const SESSIONS_MAX: usize = 100_000;

/// How long a value is kept of a session that no flow uses.
pub const SESSION_IDLE_MAX: Duration = Duration::from_mins(30);

/// How much is kept of sessions that no flow uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Of how many sessions, those in use included.
    pub sessions: usize,
    /// For how long.
    pub idle: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits { sessions: SESSIONS_MAX, idle: SESSION_IDLE_MAX }
    }
}

/// What keeping values needs.
pub(crate) struct SessionRetention {
    /// How many and how long.
    pub limits: SessionLimits,
    /// Whose clock counts.
    pub platform: Arc<dyn Platform>,
}

/// The sessions of one resource.
#[derive(Default)]
pub(crate) struct SessionTable {
    table: Mutex<TableState>,
    /// Set where each session has a value of its own.
    keeping: Option<SessionRetention>,
}

/// One session.
#[derive(Default)]
pub(crate) struct SessionState {
    /// Its constraint.
    pub lock: FairRwLock,
    /// Its own value, once it is made.
    own: Mutex<Option<Shared>>,
}

#[derive(Default)]
struct TableState {
    known: IndexMap<Value, SessionEntry>,
    /// Those that are idle and kept, by when they became so.
    idle: BTreeMap<IdleSince, Value>,
    /// How often a session has become idle.
    rests: u64,
}

#[derive(Default)]
struct SessionEntry {
    session: Arc<SessionState>,
    idle: Option<IdleSince>,
}

/// When a session became idle: the time, and a number that tells those of one moment apart.
type IdleSince = (u64, u64);

impl SessionState {
    /// Its own value; `make` makes it where nobody has yet.
    pub(crate) fn value(&self, make: impl FnOnce() -> Result<Value, Box<Failure>>) -> Result<Shared, Box<Failure>> {
        let mut own = self.own.lock();
        if let Some(made) = &*own {
            return Ok(made.clone());
        }
        let made = Shared::new(make()?);
        *own = Some(made.clone());
        Ok(made)
    }

    /// Its own value, where it is made.
    pub(crate) fn made(&self) -> Option<Shared> {
        self.own.lock().clone()
    }
}

impl SessionTable {
    /// SessionTable that have values of their own.
    pub(crate) fn keeping(keeping: SessionRetention) -> SessionTable {
        SessionTable { table: Mutex::default(), keeping: Some(keeping) }
    }

    /// The session of this key, from now on in use by the caller as well.
    pub(crate) fn begin_use(&self, key: &Value) -> Arc<SessionState> {
        let mut table = self.table.lock();
        let known = table.known.entry(key.clone()).or_default();
        let (session, rested) = (Arc::clone(&known.session), known.idle.take());
        rested.map(|since| table.idle.remove(&since));
        let freed = self.free(&mut table);
        drop(table);
        drop(freed);
        session
    }

    /// Ends the caller's use of the session.
    pub(crate) fn end_use(&self, key: &Value, session: Arc<SessionState>) {
        let mut table = self.table.lock();
        // Under the mutex, so that of two that end at once one sees that it is the last.
        drop(session);
        let forgotten = self.rest(&mut table, key);
        let freed = self.free(&mut table);
        drop(table);
        drop((forgotten, freed));
    }

    /// A session of which this was the last use is kept, or taken out of the table.
    fn rest(&self, table: &mut TableState, key: &Value) -> Option<SessionEntry> {
        let known = table.known.get_mut(key).filter(|known| Arc::strong_count(&known.session) == 1)?;
        match &self.keeping {
            Some(keeping) if known.session.made().is_some() => {
                let since = (keeping.platform.now_ns(), table.rests);
                known.idle = Some(since);
                table.rests += 1;
                table.idle.insert(since, key.clone());
                None
            }
            _ => table.known.swap_remove(key),
        }
    }

    /// Takes out of the table what is not kept any longer.
    fn free(&self, table: &mut TableState) -> Vec<SessionEntry> {
        let Some(SessionRetention { limits, platform }) = &self.keeping else { return Vec::new() };
        let now_ns = u128::from(platform.now_ns());
        let mut freed = Vec::new();
        while let Some(longest) = table.idle.first_entry() {
            let is_over = u128::from(longest.key().0) + limits.idle.as_nanos() <= now_ns;
            if !is_over && table.known.len() <= limits.sessions {
                break;
            }
            let key = longest.remove();
            freed.extend(table.known.swap_remove(&key));
        }
        freed
    }

    /// How many sessions there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.lock().known.len()
    }
}

#[cfg(test)]
mod tests;
