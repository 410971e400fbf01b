//! Checkpoints: they move the log into the database and empty it, so that it stays short.
//!
//! A checkpoint has two steps. The first moves the log while writers go on. The second holds them up while it moves what they
//! have added meanwhile, and empties the log. If a reader or an open transaction needs the log, the next checkpoint follows
//! when the log has grown as much again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::connection::read_write;
use super::writer::SharedWriter;

/// Size of the log, in bytes, from which it is moved into the database: that of SQLite's own checkpoints, 1,000 pages.
pub(super) const LOG_MAX: u64 = 4_096_000;
/// Time for which a checkpoint that holds up writers waits for the readers of the log.
const READERS_TIMEOUT: Duration = Duration::from_millis(20);

/// The checkpoints of a running program.
pub(super) struct Checkpoints {
    path: PathBuf,
    writer: Arc<SharedWriter>,
    connection: Option<Connection>,
    /// The size of the log, in bytes, from which the next checkpoint is made.
    due: u64,
}

impl Checkpoints {
    pub(super) fn new(path: &Path, writer: Arc<SharedWriter>) -> Checkpoints {
        Checkpoints { path: path.to_owned(), writer, connection: None, due: LOG_MAX }
    }

    /// Makes a checkpoint if the log is long. One that fails is made later.
    pub(super) fn bound(&mut self, log_bytes: u64) {
        if log_bytes < self.due {
            return;
        }
        let is_empty = self.make().unwrap_or(false);
        self.due = if is_empty { LOG_MAX } else { log_bytes + LOG_MAX };
    }

    /// Makes a checkpoint, and returns whether it has emptied the log.
    fn make(&mut self) -> rusqlite::Result<bool> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => read_write(&self.path)?,
        };
        connection.busy_timeout(READERS_TIMEOUT)?;
        let connection = self.connection.insert(connection);
        checkpoint(connection, "PASSIVE")?;
        let mut writer = self.writer.lock_between_transactions();
        if writer.transaction != 0 {
            return Ok(false);
        }
        writer.end_group()?;
        checkpoint(connection, "TRUNCATE")
    }
}

/// Makes a checkpoint, and returns whether nobody has hindered it.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<bool> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| Ok(row.get::<_, i64>(0)? == 0))
}
