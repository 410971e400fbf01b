//! The connections that a start needs, for a program that looks whether one would fail.

use std::time::{Duration, Instant};

use weir::Failure;

use super::PostgresDatabase;
use super::address::PostgresAddress;
use super::connection::PostgresConnection;
use super::connector::RECONNECT_PAUSE;

/// The number of connections of a start to the database of the program: one that writes, and one that waits for the disk. Without a
/// further one it goes on.
pub(in crate::tables) const CONNECTIONS_OF_START: usize = 2;
/// The number of connections of a start to an existing database.
pub(in crate::tables) const CONNECTIONS_OF_EXISTING: usize = 1;
/// Time after which the server has noticed the end of the connections that this process has had before. Chosen by judgement.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// Connections to a database that are open at the same time.
pub(in crate::tables) struct PostgresConnections {
    _open: Vec<PostgresConnection>,
    _database: PostgresDatabase,
}

impl PostgresConnections {
    /// Makes so many connections.
    ///
    /// # Errors
    /// Fails if the server does not have so many.
    pub(in crate::tables) fn open(address: PostgresAddress, count: usize) -> Result<PostgresConnections, Failure> {
        let database = PostgresDatabase::unprepared(address, (None, 1))?;
        let open = (0..count).map(|_| database.connect_to_look()).collect::<Result<_, Failure>>()?;
        Ok(PostgresConnections { _open: open, _database: database })
    }
}

impl PostgresDatabase {
    /// Makes a connection of a program that only looks at the database, and has looked before.
    pub(super) fn connect_to_look(&self) -> Result<PostgresConnection, Failure> {
        let deadline = Instant::now() + ENDED_WITHIN;
        loop {
            match self.connect() {
                Err(error) if error.has_no_connection_left() && Instant::now() < deadline => {
                    std::thread::sleep(RECONNECT_PAUSE);
                }
                connected => return connected.map_err(|error| self.failure(&error)),
            }
        }
    }
}
