//! The pool of connections that read.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::connection::PostgresConnection;
use super::errors::StatementError;
use super::spare_connections::{ConnectionPermit, SpareConnections};
use super::unused_connections::{ConnectionPurpose, UnusedConnections};

/// Maximum number of connections that read.
const READERS_MAX: usize = 16;

/// The pool of connections that read. Each serves one statement at a time; a statement waits if all are busy.
pub(super) struct Readers {
    /// The number of connections that need no permit.
    needed: usize,
    pool: Mutex<ReaderPool>,
    returned: Condvar,
}

#[derive(Default)]
struct ReaderPool {
    idle: Vec<PostgresConnection>,
    busy: usize,
}

impl Readers {
    /// Returns a pool in which so many connections need no permit.
    pub(super) fn new(needed: usize) -> Readers {
        Readers { needed, pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Takes a connection out of the pool, or makes one, which needs a permit if there are as many as need none. Returns `None` if the
    /// server has no further connection, and the pool has none.
    pub(super) fn take(
        &self,
        limit: Duration,
        spare: &SpareConnections,
        connect: impl Fn(ConnectionPermit) -> Result<PostgresConnection, StatementError>,
    ) -> Result<Option<PostgresConnection>, StatementError> {
        let deadline = Instant::now() + limit;
        let mut pool = self.pool.lock();
        loop {
            pool.idle.retain(|idle| !idle.is_closed());
            if let Some(idle) = pool.idle.pop() {
                pool.busy += 1;
                return Ok(Some(idle));
            }
            let permit = match pool.busy {
                busy if busy < self.needed => spare.needed(),
                READERS_MAX.. => None,
                _ => spare.take(),
            };
            if let Some(permit) = permit {
                pool.busy += 1;
                drop(pool);
                match connect(permit) {
                    // It uses one that another statement gives back.
                    Err(error) if error.has_no_connection_left() => pool = self.ended(),
                    connected => return connected.map(Some).inspect_err(|_| drop(self.ended())),
                }
                continue;
            }
            if pool.busy == 0 {
                return Ok(None);
            }
            let until = spare.refused_until().map_or(deadline, |until| until.min(deadline));
            if self.returned.wait_until(&mut pool, until).timed_out() && Instant::now() >= deadline {
                return Err(StatementError::NoAnswer);
            }
        }
    }

    /// Notes that a connection was not made, or cannot be used any more. All look whether they can make one, or find that there is none.
    fn ended(&self) -> MutexGuard<'_, ReaderPool> {
        let mut pool = self.pool.lock();
        pool.busy -= 1;
        self.returned.notify_all();
        pool
    }

    /// Puts a connection back, unless it cannot be used any more, or keeps too much memory.
    pub(super) fn put(&self, reader: Option<PostgresConnection>) {
        let Some(reader) = reader.filter(|reader| !reader.keeps_too_much()) else { return drop(self.ended()) };
        let mut pool = self.pool.lock();
        pool.busy -= 1;
        pool.idle.push(reader);
        drop(pool);
        self.returned.notify_one();
    }
}

impl UnusedConnections for Readers {
    fn give_back(&self, refused: ConnectionPurpose) -> bool {
        let mut pool = self.pool.lock();
        let needed = if refused == ConnectionPurpose::Indispensable { 0 } else { self.needed };
        let kept = needed.saturating_sub(pool.busy).min(pool.idle.len());
        let unused = pool.idle.split_off(kept);
        drop(pool);
        !unused.is_empty()
    }
}
