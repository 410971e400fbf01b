//! Durable files: for tests of power cuts, the contents of a database and its log as of the last sync.
//!
//! A power cut forgets what was written and not synced: for each sector behind the synced part of the log, the disk has the old
//! or the new contents. The log grows until a checkpoint empties it; SQLite itself syncs the database before that. A VFS would
//! see the writes of SQLite, but not the syncs of the log, which are Weir's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of bytes that a disk writes as a whole.
const SECTOR: usize = 512;
/// Length of the header of a log, which differs after each checkpoint.
const HEADER: usize = 32;

/// The files whose syncs are noted.
static NOTED: Mutex<BTreeMap<PathBuf, Arc<Mutex<DurableFiles>>>> = Mutex::new(BTreeMap::new());

/// The contents of a database and its log that a power cut leaves at least.
#[derive(Clone, Default)]
pub(super) struct DurableFiles {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl DurableFiles {
    /// Begins to note the syncs of a database.
    pub(super) fn note(database: &Path) -> Arc<Mutex<DurableFiles>> {
        let files = Arc::new(Mutex::new(DurableFiles::default()));
        NOTED.lock().insert(database.to_owned(), Arc::clone(&files));
        files
    }

    /// Runs a sync of the log. What was written before is durable afterwards.
    pub(super) fn synced(database: &Path, sync: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        let noted = NOTED.lock().get(database).cloned();
        let Some(noted) = noted else { return sync() };
        let written = noted.lock().clone().followed_by(database)?;
        sync()?;
        *noted.lock() = written;
        Ok(())
    }

    /// Returns the contents as they are written now.
    fn followed_by(mut self, database: &Path) -> std::io::Result<DurableFiles> {
        let log = std::fs::read(log_of(database))?;
        if self.log.is_empty() || !is_continued(&self.log, &log) {
            self.database = std::fs::read(database)?;
        }
        Ok(DurableFiles { log, ..self })
    }

    /// Writes what a power cut leaves. `is_kept` decides for each sector that is written, but not synced.
    pub(super) fn cut(&self, database: &Path, copy: &Path, mut is_kept: impl FnMut() -> bool) -> std::io::Result<()> {
        std::fs::write(copy, &self.database)?;
        let (mut log, written) = (self.log.clone(), std::fs::read(log_of(database))?);
        if is_continued(&log, &written) {
            for at in (log.len()..written.len()).step_by(SECTOR) {
                let sector = &written[at..written.len().min(at + SECTOR)];
                if is_kept() { log.extend(sector) } else { log.resize(log.len() + sector.len(), 0) }
            }
        }
        std::fs::write(log_of(copy), log)
    }
}

/// Returns whether the second content of a log continues the first one.
fn is_continued(before: &[u8], after: &[u8]) -> bool {
    after.len() >= before.len() && before.len() >= HEADER && before[..HEADER] == after[..HEADER]
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.to_owned().into_os_string();
    name.push("-wal");
    name.into()
}
