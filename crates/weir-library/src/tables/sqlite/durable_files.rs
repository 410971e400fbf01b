//! Durable files: for tests of power cuts, the contents of a database and its log as of the last sync.
//!
//! A power cut forgets what was written and not synced: for each sector of the log that was written since, the disk has the old or
//! the new contents. A checkpoint moves the log into the database. SQLite itself syncs both for it, and then writes the log from its
//! start, beginning with a header that it syncs before anything else. A VFS would see the writes of SQLite, but not the syncs of
//! the log, which are Weir's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of bytes that a disk writes as a whole.
const SECTOR: usize = 512;
/// Length of the header of a log, which differs after each checkpoint.
const HEADER: usize = 32;

/// Number of times that a thread lets others write.
const YIELDS: usize = 100;

/// The files whose syncs are noted.
static NOTED: Mutex<BTreeMap<PathBuf, Arc<Mutex<DurableFiles>>>> = Mutex::new(BTreeMap::new());

/// The databases whose logs cannot be synced, with the number of syncs that fail before the next ones succeed.
static FAILING: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// The contents of a database and its log that a power cut leaves at least.
#[derive(Clone, Default)]
pub(in crate::tables) struct DurableFiles {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl DurableFiles {
    /// Begins to note the syncs of a database.
    pub(in crate::tables) fn note(database: &Path) -> Arc<Mutex<DurableFiles>> {
        let files = Arc::new(Mutex::new(DurableFiles::default()));
        NOTED.lock().insert(database.to_owned(), Arc::clone(&files));
        files
    }

    /// Has the next syncs of the log fail, as on a broken disk.
    pub(in crate::tables) fn fail_syncs(database: &Path, count: usize) {
        FAILING.lock().insert(database.to_owned(), count);
    }

    /// Fails if a sync of the log is to fail.
    pub(super) fn fail(database: &Path) -> std::io::Result<()> {
        match FAILING.lock().get_mut(database) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Err(rustix::io::Errno::IO.into())
            }
            _ => Ok(()),
        }
    }

    /// Runs a sync of the log. What was written before is durable afterwards.
    pub(super) fn synced(database: &Path, sync: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        let noted = NOTED.lock().get(database).cloned();
        let Some(noted) = noted else { return sync() };
        let log = std::fs::read(log_of(database))?;
        let first = noted.lock().log.is_empty().then(|| std::fs::read(database)).transpose()?;
        sync()?;
        let mut noted = noted.lock();
        noted.log = log;
        first.into_iter().for_each(|database| noted.database = database);
        Ok(())
    }

    /// Notes that a checkpoint has moved the log, or a part of it, into the database. Nobody has written since.
    pub(super) fn moved(database: &Path) {
        let noted = NOTED.lock().get(database).cloned();
        if let Some(noted) = noted {
            let mut noted = noted.lock();
            let read = |path: &Path| std::fs::read(path).expect("a checkpoint needs both files");
            *noted = DurableFiles { database: read(database), log: read(&log_of(database)) };
        }
    }

    /// Lets other threads write the log before what is done with its length.
    pub(super) fn let_others_write(database: &Path) {
        if NOTED.lock().contains_key(database) {
            (0..YIELDS).for_each(|_| std::thread::yield_now());
        }
    }

    /// Writes what a power cut leaves. `is_kept` decides for each sector that is written, but not synced.
    pub(in crate::tables) fn cut(
        &self,
        database: &Path,
        copy: &Path,
        mut is_kept: impl FnMut() -> bool,
    ) -> std::io::Result<()> {
        std::fs::write(copy, &self.database)?;
        let (mut log, written) = (self.log.clone(), std::fs::read(log_of(database))?);
        let begins_anew = log.len() < HEADER || log[..HEADER] != written[..HEADER.min(written.len())];
        if begins_anew && written.len() >= HEADER && written[HEADER..] != log[HEADER.min(log.len())..] {
            // Nothing is written behind a header that is not durable.
            log.resize(log.len().max(HEADER), 0);
            log[..HEADER].copy_from_slice(&written[..HEADER]);
        }
        log.resize(log.len().max(written.len()), 0);
        for at in (0..written.len()).step_by(SECTOR) {
            let sector = at..written.len().min(at + SECTOR);
            if log[sector.clone()] != written[sector.clone()] && is_kept() {
                log[sector.clone()].copy_from_slice(&written[sector]);
            }
        }
        std::fs::write(log_of(copy), log)
    }
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.to_owned().into_os_string();
    name.push("-wal");
    name.into()
}
