//! The log of an SQLite database: its syncs, and the checkpoints that follow them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir::Failure;

use super::checkpoint::Checkpoints;
use super::group_commit::{LogSync, SyncFailure};
use super::writer::SharedWriter;

/// The log of an SQLite database. If a sync fails, the log may hold anything.
pub(super) struct SqliteLog {
    path: PathBuf,
    log: Option<File>,
    writer: Arc<SharedWriter>,
    checkpoints: Checkpoints,
}

impl SqliteLog {
    pub(super) fn new(path: &Path, writer: Arc<SharedWriter>, checkpoints: Checkpoints) -> SqliteLog {
        SqliteLog { path: path.to_owned(), log: None, writer, checkpoints }
    }

    fn sync_file(&mut self) -> std::io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                let mut name = self.path.clone().into_os_string();
                name.push("-wal");
                let log = File::open(name)?;
                if let Some(folder) = self.path.parent() {
                    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                    File::open(folder)?.sync_all()?;
                }
                log
            }
        };
        let log = self.log.insert(log);
        #[cfg(test)]
        return super::durable_files::DurableFiles::synced(&self.path, || log.sync_data());
        #[cfg(not(test))]
        log.sync_data()
    }
}

impl LogSync for SqliteLog {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        // If the group is lost, its flows know.
        _ = self.writer.end_group();
        self.sync_file().map_err(|error| SyncFailure {
            failure: Failure::function(format!("cannot make the tables durable: {error}; restart the program")),
            is_final: true,
        })
    }

    fn synced(&mut self) {
        let log_bytes = self.log.as_ref().and_then(|log| log.metadata().ok()).map_or(0, |log| log.len());
        self.checkpoints.bound(log_bytes);
    }
}
