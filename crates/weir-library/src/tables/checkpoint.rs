//! Checkpoints: they move the log into the database, so that the log begins anew and stays short.
//!
//! A checkpoint has two steps. The first moves the log while writers go on. The second holds them up while it moves what they
//! have added meanwhile. The next writer then begins at the start of the log, whose file keeps its length: a sync of bytes that
//! replace others takes a third of the time of one that has to note a new length. If a reader or an open transaction needs the
//! log, the next checkpoint follows when the log has grown as much again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection::read_write;
use super::writer::SharedWriter;

/// Number of pages of the log from which it is moved into the database: that of SQLite's own checkpoints.
pub(super) const LOG_PAGES_MAX: u32 = 1_000;
/// Length of the log's file, in bytes, that it keeps at most when it begins anew after a reader has made it grow.
pub(super) const LOG_KEPT_MAX: u32 = 16_384_000;
/// Time for which a checkpoint that holds up writers waits for the readers of the log.
const READERS_TIMEOUT: Duration = Duration::from_millis(20);

/// The number of pages in the log as of the last commit.
#[derive(Clone, Debug, Default)]
pub(super) struct LogPages(Arc<AtomicU32>);

impl LogPages {
    /// Has the connection that writes note the pages of the log, and leave checkpoints to others.
    pub(super) fn count(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let pages_now = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            pages_now.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
    }
}

/// The checkpoints of a running program.
pub(super) struct Checkpoints {
    path: PathBuf,
    writer: Arc<SharedWriter>,
    connection: Option<Connection>,
    pages: LogPages,
    /// The number of pages of the log from which the next checkpoint is made.
    due: u32,
}

impl Checkpoints {
    pub(super) fn new(path: &Path, writer: Arc<SharedWriter>, pages: LogPages) -> Checkpoints {
        Checkpoints { path: path.to_owned(), writer, connection: None, pages, due: LOG_PAGES_MAX }
    }

    /// Makes a checkpoint if the log is long. One that fails is made later.
    pub(super) fn bound(&mut self) {
        let pages = self.pages.0.load(Ordering::Relaxed);
        if pages < self.due {
            return;
        }
        let is_moved = self.make().unwrap_or(false);
        self.due = if is_moved { LOG_PAGES_MAX } else { pages.saturating_add(LOG_PAGES_MAX) };
    }

    /// Makes a checkpoint, and returns whether the log begins anew.
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
        let is_moved = checkpoint(connection, "RESTART")?;
        #[cfg(test)]
        super::durable_files::DurableFiles::moved(&self.path);
        if is_moved {
            self.pages.0.store(0, Ordering::Relaxed);
        }
        Ok(is_moved)
    }
}

/// Makes a checkpoint, and returns whether nobody has hindered it.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<bool> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| Ok(row.get::<_, i64>(0)? == 0))
}
