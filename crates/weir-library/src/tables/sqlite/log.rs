//! The log of an SQLite database: its syncs, and the checkpoints that follow them.

use std::fs::{File, Metadata};
use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir::Failure;

use super::checkpoint::LogThread;
use super::database_files::{beside, sync_folder};
use super::log_note::LogNote;
use super::shared_writer::SharedWriter;
use crate::tables::group_commit::{LogSync, SyncFailure};
use crate::tables::table_log::TableLog;

/// The log of an SQLite database. If a sync fails, the log may hold anything.
pub(super) struct SqliteLog {
    path: PathBuf,
    /// The database when it was opened.
    opened: Option<Metadata>,
    log: Option<File>,
    writer: Arc<SharedWriter>,
    thread: LogThread,
    note: Arc<LogNote>,
    /// The log of the program; `None` in tests.
    program_log: Option<TableLog>,
}

impl SqliteLog {
    pub(super) fn new(
        path: &Path,
        writer: Arc<SharedWriter>,
        (thread, note): (LogThread, Arc<LogNote>),
        program_log: Option<TableLog>,
    ) -> SqliteLog {
        let opened = std::fs::metadata(path).ok();
        SqliteLog { path: path.to_owned(), opened, log: None, writer, thread, note, program_log }
    }

    fn log_path(&self) -> PathBuf {
        beside(&self.path, "-wal")
    }

    /// Syncs the log, and notes its number if it has a new one.
    fn sync_file(&mut self) -> std::io::Result<()> {
        let number = self.note.written();
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                let log = File::open(self.log_path())?;
                sync_folder(&self.path)?;
                log
            }
        };
        // What is written to a file without a name ends with the program.
        if self.opened.as_ref().is_some_and(|opened| !is_at(opened, &self.path)) {
            return Err(Error::other(format!("the file {} was removed or replaced", self.path.display())));
        }
        let (log_path, state) = (self.log_path(), log.metadata()?);
        if !is_at(&state, &log_path) {
            return Err(Error::other(format!("the file {} was removed or replaced", log_path.display())));
        }
        let log = self.log.insert(log);
        #[cfg(test)]
        super::durable_files::DurableFiles::synced(&self.path, || log.sync_data())?;
        #[cfg(not(test))]
        log.sync_data()?;
        self.note.confirm(number, state.len())
    }
}

/// Returns whether the path leads to the same file as before.
#[cfg(unix)]
fn is_at(file: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (file.dev(), file.ino()))
}

/// Returns `true`: only Unix lets anybody remove a file that is open.
#[cfg(not(unix))]
fn is_at(_: &Metadata, _: &Path) -> bool {
    true
}

impl LogSync for SqliteLog {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        // If the group is lost, its flows know.
        _ = self.writer.end_group();
        self.sync_file().map_err(|error| {
            let message = format!("cannot make the tables durable: {error}; restart the program");
            if let Some(log) = &self.program_log {
                log.error(format!(
                    "{message}: until then, it fails all writes, and what may depend on rows that are not durable"
                ));
            }
            SyncFailure { failure: Failure::function(message), is_final: true }
        })
    }

    fn synced(&mut self) {
        self.thread.bound_log();
    }
}
