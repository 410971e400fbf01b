//! The sessions of one resource: the lock of each, and where each has a value of its own, that value.
//!
//! Words: a session is *in use* while a flow waits for its lock or holds it, and *idle* otherwise. A value of its own is
//! *kept* while the session is idle, within [`Limits`]; without one, an idle session is forgotten at once.
//!
//! 1. A use begins ([`Sessions::begin_use`]) before the lock is asked for, and ends ([`Sessions::end_use`]) when it was given
//!    back. Both happen under the table's mutex, so a session that a use is about to begin on is never freed.
//! 2. The value is made under the session's own mutex, by the first step that holds the lock ([`Session::value`]). What
//!    makes it returns at once, so the mutex is held for no longer than the making takes.
//! 3. Whoever begins or ends a use frees what has been idle for too long, and while there are too many, what has been idle
//!    for longest. Values are dropped outside of the table's mutex: what that does is the host's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir_host::{Failure, Shared, Value};

use super::Lock;
use crate::machine::Machine;

/// The most sessions of which a value is kept, for each shared value: a limit on memory. Only sessions in use can be more.
pub const SESSIONS_MAX: usize = 100_000;

/// How long a value is kept of a session that no flow uses.
pub const SESSION_IDLE_MAX: Duration = Duration::from_mins(30);

/// How much is kept of sessions that no flow uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of how many sessions, those in use included.
    pub sessions: usize,
    /// For how long.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { sessions: SESSIONS_MAX, idle: SESSION_IDLE_MAX }
    }
}

/// What keeping values needs.
pub(crate) struct Keeping {
    /// How many and how long.
    pub limits: Limits,
    /// Whose clock counts.
    pub machine: Arc<dyn Machine>,
}

/// The sessions of one resource.
#[derive(Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    /// Set where each session has a value of its own.
    keeping: Option<Keeping>,
}

/// One session.
#[derive(Default)]
pub(crate) struct Session {
    /// Its constraint.
    pub lock: Lock,
    /// Its own value, once it is made.
    own: Mutex<Option<Shared>>,
}

#[derive(Default)]
struct Table {
    known: IndexMap<Value, Known>,
    /// Those that are idle and kept, by when they became so.
    idle: BTreeMap<Since, Value>,
    /// How often a session has become idle.
    rests: u64,
}

#[derive(Default)]
struct Known {
    session: Arc<Session>,
    idle: Option<Since>,
}

/// When a session became idle: the time, and a number that tells those of one moment apart.
type Since = (u64, u64);

impl Session {
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

impl Sessions {
    /// Sessions that have values of their own.
    pub(crate) fn keeping(keeping: Keeping) -> Sessions {
        Sessions { table: Mutex::default(), keeping: Some(keeping) }
    }

    /// The session of this key, from now on in use by the caller as well.
    pub(crate) fn begin_use(&self, key: &Value) -> Arc<Session> {
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
    pub(crate) fn end_use(&self, key: &Value, session: Arc<Session>) {
        let mut table = self.table.lock();
        // Under the mutex, so that of two that end at once one sees that it is the last.
        drop(session);
        let forgotten = self.rest(&mut table, key);
        let freed = self.free(&mut table);
        drop(table);
        drop((forgotten, freed));
    }

    /// A session of which this was the last use is kept, or taken out of the table.
    fn rest(&self, table: &mut Table, key: &Value) -> Option<Known> {
        let known = table.known.get_mut(key).filter(|known| Arc::strong_count(&known.session) == 1)?;
        match &self.keeping {
            Some(keeping) if known.session.made().is_some() => {
                let since = (keeping.machine.now_ns(), table.rests);
                known.idle = Some(since);
                table.rests += 1;
                table.idle.insert(since, key.clone());
                None
            }
            _ => table.known.swap_remove(key),
        }
    }

    /// Takes out of the table what is not kept any longer.
    fn free(&self, table: &mut Table) -> Vec<Known> {
        let Some(Keeping { limits, machine }) = &self.keeping else { return Vec::new() };
        let now_ns = u128::from(machine.now_ns());
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
