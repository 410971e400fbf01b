//! Durable files: for tests of power cuts, the contents of a database, its log and its note as of the last sync.
//!
//! A power cut forgets what was written and not synced: for each sector of a file that was written since, the disk has the old or
//! the new contents. A checkpoint moves the log into the database. SQLite syncs the log before it writes the database, and that before it
//! writes the log from its start, beginning with a header that it syncs before anything else. A VFS would see the writes of SQLite, but
//! not the syncs of the log, which are Weir's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::database_files::{LOG, NOTE, beside};

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

/// The contents of a database, its log and its note that a power cut leaves at least.
#[derive(Clone, Default)]
pub(in crate::tables) struct DurableFiles {
    database: Vec<u8>,
    log: Vec<u8>,
    note: Vec<u8>,
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
        // Locked, so that an older content does not follow a newer one.
        let mut noted = noted.lock();
        let log = std::fs::read(beside(database, LOG))?;
        if noted.log.is_empty() {
            noted.database = std::fs::read(database)?;
        }
        sync()?;
        noted.log = log;
        Ok(())
    }

    /// Runs a sync of the note. What was written before is durable afterwards.
    pub(super) fn synced_note(database: &Path, sync: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        let noted = NOTED.lock().get(database).cloned();
        let Some(noted) = noted else { return sync() };
        let mut noted = noted.lock();
        let note = std::fs::read(beside(database, NOTE))?;
        sync()?;
        noted.note = note;
        Ok(())
    }

    /// Notes that a checkpoint by this connection has moved the log, or a part of it, into the database. Nobody has written since.
    pub(super) fn moved(database: &Path, mover: &Connection) {
        let noted = NOTED.lock().get(database).cloned();
        if let Some(noted) = noted {
            let synchronous: i64 = mover.pragma_query_value(None, "synchronous", |row| row.get(0)).expect("a setting");
            assert!(synchronous > 0, "SQLite syncs nothing for a checkpoint of this connection");
            let mut noted = noted.lock();
            let read = |path: &Path| std::fs::read(path).expect("a checkpoint needs both files");
            (noted.database, noted.log) = (read(database), read(&beside(database, LOG)));
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
        let moved = std::fs::read(database)?;
        if moved == self.database {
            let log = self.log_after_cut(&std::fs::read(beside(database, LOG))?, &mut is_kept);
            std::fs::write(beside(copy, LOG), log)?;
        } else {
            // A checkpoint has begun to write the database, so that it has synced the log.
            std::fs::copy(beside(database, LOG), beside(copy, LOG))?;
        }
        std::fs::write(copy, with_sectors(&self.database, &moved, &mut is_kept))?;
        // The note is one sector.
        let note = std::fs::read(beside(database, NOTE))?;
        std::fs::write(beside(copy, NOTE), if is_kept() { &note } else { &self.note })
    }

    /// Returns the log that a power cut leaves of one with these contents.
    fn log_after_cut(&self, written: &[u8], is_kept: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut log = self.log.clone();
        let begins_anew = log.len() < HEADER || log[..HEADER] != written[..HEADER.min(written.len())];
        if begins_anew && written.len() >= HEADER && written[HEADER..] != log[HEADER.min(log.len())..] {
            // Nothing is written behind a header that is not durable.
            log.resize(log.len().max(HEADER), 0);
            log[..HEADER].copy_from_slice(&written[..HEADER]);
        }
        with_sectors(&log, written, is_kept)
    }
}

/// Returns durable contents with some of the sectors that were written since. The file is not longer than the last of them needs.
fn with_sectors(durable: &[u8], written: &[u8], is_kept: &mut impl FnMut() -> bool) -> Vec<u8> {
    let mut left = durable.to_vec();
    for at in (0..written.len()).step_by(SECTOR) {
        let sector = at..written.len().min(at + SECTOR);
        let is_new = left.get(sector.clone()).is_none_or(|durable| *durable != written[sector.clone()]);
        if is_new && is_kept() {
            left.resize(left.len().max(sector.end), 0);
            left[sector.clone()].copy_from_slice(&written[sector]);
        }
    }
    left
}
