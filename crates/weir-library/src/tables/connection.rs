//! Connections to the database of a program.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Time for which a statement waits for another program that writes the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of prepared statements that a connection keeps.
const PREPARED_MAX: usize = 256;

/// Opens a connection that reads and writes.
pub(super) fn read_write(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens a connection that reads.
pub(super) fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_MAX);
    Ok(connection)
}
