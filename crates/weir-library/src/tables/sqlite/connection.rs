//! Connections to the database of a program.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use weir::memory;

use super::counted_memory;

/// Time for which a statement waits for another program that writes the database.
pub(in crate::tables) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// The same at least, also if a statement has just waited in vain.
pub(in crate::tables) const HELD_TIMEOUT: Duration = Duration::from_millis(10);
/// Number of prepared statements that a connection keeps.
const PREPARED_MAX: usize = 256;
/// The part of the program's memory that SQLite takes at most for its caches, which no account of the program counts. Chosen by judgement:
/// each connection has a cache of 2 MB, and there is one for each read that is under way.
const CACHES_PART: u64 = 8;

/// Opens a connection that reads and writes.
pub(in crate::tables) fn read_write(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens a connection that reads.
pub(in crate::tables) fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens the file of a database without its log, which may be lost.
pub(super) fn without_log(path: &Path) -> rusqlite::Result<Connection> {
    let mut name = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => name.push(char::from(*byte)),
            other => name += &format!("%{other:02x}"),
        }
    }
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open(Path::new(&format!("file:{name}?immutable=1")), access)
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    counted_memory::begin();
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_MAX);
    limit_caches(&connection)?;
    // Otherwise a statement with a parameter in its limit is prepared again for each execution, in case another plan fits the value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Bounds the memory of SQLite in the whole process: beyond the limit, caches release their pages before anything is allocated.
fn limit_caches(connection: &Connection) -> rusqlite::Result<()> {
    let Some(limit) = memory::program_limit() else { return Ok(()) };
    connection.query_row(&format!("PRAGMA soft_heap_limit={}", limit / CACHES_PART), [], |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_prepared_once_whatever_its_limit_is() {
        let path = std::env::temp_dir().join(format!("weir-prepared-once-{}.db", std::process::id()));
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = open(&path, access).expect("a database");
        connection
            .execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t (b, a)")
            .expect("a table");
        let mut statement =
            connection.prepare("SELECT a FROM t WHERE b = ?1 ORDER BY a DESC LIMIT ?2").expect("a query");
        for limit in 1..4 {
            let found = statement.query_map(("b", limit), |row| row.get::<_, i64>(0)).expect("a result");
            assert_eq!(found.count(), 0);
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        drop(statement);
        drop(connection);
        std::fs::remove_file(&path).expect("the file is there");
    }
}
