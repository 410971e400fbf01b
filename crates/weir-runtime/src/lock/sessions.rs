//! The sessions of one resource: a lock for each, and a value for each if the shared value is declared `per session`.
//!
//! A session is *in use* while a flow holds its lock or waits for it, and, if it has a value of its own, until each flow has ended
//! that has done so (`flow_sessions`); it is *idle* otherwise. The value of an idle session is *retained* within [`SessionLimits`]; an idle session without a value is forgotten at once.
//!
//! 1. A use begins ([`SessionTable::begin_use`]) before the lock is acquired, and ends ([`SessionTable::end_use`]) when
//!    it was released. Both happen under the table's mutex, so that a session is never freed while a use begins.
//! 2. The value is created by the first atomic step that holds the lock, which acquires it for writing while there is none
//!    ([`LockHandle::of_own`](super::LockHandle::of_own)). A session in use keeps its value, so that a step that sees one
//!    may acquire the lock for reading.
//! 3. Each begin and end of a use frees sessions that have been idle for too long, the one that is about to be used
//!    included. While there are too many, or they take too many bytes, or the memory of the program is full, those of the
//!    lowest [`SessionRank`] go first, and of these the one that has been idle longest; but those that never came back have
//!    a part of the places ([`NEW_PART`]). A client that makes up identifiers therefore takes the places of other
//!    identifiers that were made up. Values are dropped outside the table's mutex, because dropping runs host code.
//! 4. The bytes of a value are measured when a use ends, but only if it was used often enough since the last time that
//!    measuring takes little of the time of its uses ([`BYTES_PER_USE`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir_host::{IssuedIds, Shared, Value, memory};

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

/// The part of the program's memory that the values of a table may take. Chosen by judgement: flows need the larger part.
const BYTES_PART: u64 = 4;
/// The part of the idle sessions that those have at least that never came back (segmented LRU; Karedla, Love and Wherry,
/// Caching Strategies to Improve Disk System Performance, 1994): otherwise a new session would lose its value at once.
const NEW_PART: usize = 4;
/// The bytes for which a value has to be used once more before it is measured again. Chosen by calculation: measuring them
/// takes about a microsecond.
const BYTES_PER_USE: u64 = 4_096;

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
    /// The check for identifiers that the program has issued, if there is one.
    pub issued: Option<Arc<IssuedIds>>,
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
    /// The idle sessions that are retained, of each rank by the moment when they became idle.
    idle: [BTreeMap<IdleSince, Value>; SessionRank::COUNT],
    /// The number of times that a session has become idle.
    rests: u64,
    /// The bytes of the values of all sessions, as last measured.
    bytes: u64,
}

#[derive(Default)]
struct SessionEntry {
    session: Arc<SessionState>,
    idle: Option<IdleSince>,
    rank: SessionRank,
    /// The bytes of the value, as last measured, and the uses since then.
    measured: Option<(u64, u64)>,
}

/// The rank by which sessions are kept.
#[derive(Clone, Copy, Debug, Default)]
struct SessionRank {
    /// True if the program has issued the identifier of the session. Nobody can make up such a one.
    issued: bool,
    /// True if the session *came back*, that is, was used again after it had been idle.
    came_back: bool,
}

impl SessionRank {
    const COUNT: usize = 4;

    fn index(self) -> usize {
        2 * usize::from(self.issued) + usize::from(self.came_back)
    }
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

impl SessionEntry {
    fn bytes(&self) -> u64 {
        self.measured.map_or(0, |(bytes, _)| bytes)
    }
}

impl TableState {
    /// Returns the rank of the issued or the other sessions of which one goes next: those that never came back, unless they
    /// are few; `None` if none is idle.
    fn rank_to_free(&self, issued: bool) -> Option<usize> {
        let rank = |came_back| SessionRank { issued, came_back }.index();
        let (new, returned) = (self.idle[rank(false)].len(), self.idle[rank(true)].len());
        if new + returned == 0 {
            return None;
        }
        Some(rank(new * NEW_PART < new + returned))
    }

    /// Takes the session of this rank out of the table that has been idle longest.
    fn free_first(&mut self, rank: usize) -> Option<SessionEntry> {
        let (_, key) = self.idle[rank].pop_first()?;
        let entry = self.known.swap_remove(&key)?;
        self.bytes -= entry.bytes();
        Some(entry)
    }

    /// Measures the value of a session whose use ends, if that is due. Reading it does not wait for a flow that changes it:
    /// the use of that flow ends, too.
    fn measure(&mut self, key: &Value, session: &SessionState) {
        let Some(entry) = self.known.get_mut(key) else { return };
        if let Some((bytes, uses)) = &mut entry.measured
            && *uses < *bytes / BYTES_PER_USE
        {
            *uses += 1;
            return;
        }
        let made = session.made();
        if let Some(value) = made.as_ref().and_then(Shared::try_read) {
            let bytes = value.approximate_bytes();
            self.bytes = self.bytes - entry.bytes() + bytes;
            entry.measured = Some((bytes, 0));
        }
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
        let known = table.known.entry(key.clone()).or_insert_with(|| self.new_entry(key));
        let session = Arc::clone(&known.session);
        if let Some(since) = known.idle.take() {
            let rank = known.rank;
            known.rank.came_back = true;
            table.idle[rank.index()].remove(&since);
        }
        let freed = if table.known.len() > self.sessions_max() { self.free(&mut table) } else { Vec::new() };
        drop(table);
        drop((expired, freed));
        session
    }

    /// Ends the caller's use of the session.
    pub(crate) fn end_use(&self, key: &Value, session: Arc<SessionState>) {
        let mut table = self.table.lock();
        if memory::program_limit().is_some() {
            table.measure(key, &session);
        }
        // Under the mutex, so that of two uses that end at once, one sees that it is the last.
        drop(session);
        let forgotten = self.rest(&mut table, key);
        if let Some(entry) = &forgotten {
            table.bytes -= entry.bytes();
        }
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
                let rank = known.rank;
                table.rests += 1;
                table.idle[rank.index()].insert(since, key.clone());
                None
            }
            _ => table.known.swap_remove(key),
        }
    }

    /// Takes the sessions out of the table that are not retained any longer.
    fn free(&self, table: &mut TableState) -> Vec<SessionEntry> {
        let Some(SessionRetention { limits, platform, .. }) = &self.keeping else { return Vec::new() };
        let now_ns = u128::from(platform.now_ns());
        let bytes_max = memory::program_limit().map_or(u64::MAX, |limit| limit / BYTES_PART);
        let mut freed = Vec::new();
        for rank in 0..SessionRank::COUNT {
            while let Some((since, _)) = table.idle[rank].first_key_value()
                && u128::from(since.0) + limits.idle.as_nanos() <= now_ns
            {
                freed.extend(table.free_first(rank));
            }
        }
        for issued in [false, true] {
            loop {
                let fits = table.known.len() <= limits.sessions && table.bytes <= bytes_max;
                if fits && (freed.len() >= FREED_FOR_MEMORY_MAX || !memory::is_full()) {
                    return freed;
                }
                let Some(rank) = table.rank_to_free(issued) else { break };
                freed.extend(table.free_first(rank));
            }
        }
        freed
    }

    fn new_entry(&self, key: &Value) -> SessionEntry {
        let issued = self.keeping.as_ref().and_then(|keeping| keeping.issued.as_ref());
        let rank = SessionRank { issued: issued.is_some_and(|issued| issued.includes(key)), came_back: false };
        SessionEntry { rank, ..SessionEntry::default() }
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
