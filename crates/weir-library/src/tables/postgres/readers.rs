//! The pool of connections that read.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::connection::PostgresConnection;
use super::errors::StatementError;
use super::spare_connections::{ConnectionPermit, SpareConnections};

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

    /// Takes a connection out of the pool, or makes one, which needs a permit if there are as many as need none.
    pub(super) fn take(
        &self,
        limit: Duration,
        spare: &SpareConnections,
        connect: impl FnOnce(Option<ConnectionPermit>) -> Result<PostgresConnection, StatementError>,
    ) -> Result<PostgresConnection, StatementError> {
        let deadline = Instant::now() + limit;
        let mut pool = self.pool.lock();
        let permit = loop {
            pool.idle.retain(|idle| !idle.is_closed());
            if let Some(idle) = pool.idle.pop() {
                pool.busy += 1;
                return Ok(idle);
            }
            match pool.busy {
                busy if busy < self.needed => break None,
                READERS_MAX.. => {}
                _ => {
                    if let Some(permit) = spare.take() {
                        break Some(permit);
                    }
                }
            }
            if self.returned.wait_until(&mut pool, deadline).timed_out() {
                return Err(StatementError::NoAnswer);
            }
        };
        pool.busy += 1;
        drop(pool);
        let connected = connect(permit);
        if connected.is_err() {
            self.put(None);
        }
        connected
    }

    /// Puts a connection back, unless it cannot be used any more.
    pub(super) fn put(&self, reader: Option<PostgresConnection>) {
        let mut pool = self.pool.lock();
        pool.busy -= 1;
        pool.idle.extend(reader);
        drop(pool);
        self.returned.notify_one();
    }
}
