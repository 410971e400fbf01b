//! The beginning of a database: its lock, its settings, and the threads and notes of its log.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::Connection;
use rustix::fs::FlockOperation;
use weir::Failure;

use super::Database;
use crate::tables::group_commit::GroupCommit;
use crate::tables::program_end::ProgramEnd;
use crate::tables::sqlite::checkpoint::{LogPages, LogThread};
use crate::tables::sqlite::connection::{BUSY_TIMEOUT, read_write};
use crate::tables::sqlite::database_error::{explain, in_use, is_busy};
use crate::tables::sqlite::database_files::LOG_KEPT_MAX;
use crate::tables::sqlite::database_format::{
    APPLICATION_ID, CONVERT_EXISTING, CONVERT_OWN, LAYOUT, has_utf8, is_ours,
};
use crate::tables::sqlite::disk_waits::DiskWaits;
use crate::tables::sqlite::existing_files::ExistingFiles;
use crate::tables::sqlite::log::SqliteLog;
use crate::tables::sqlite::log_note::{LogNote, Noted};
use crate::tables::sqlite::shared_writer::SharedWriter;
use crate::tables::sqlite::start_access::{not_opened, without_links};
use crate::tables::sqlite::writer::Writer;
use crate::tables::table_log::TableLog;

/// Size of the cache of the connection that writes, in KiB: pages of a group that do not fit are written more than once.
const WRITER_CACHE_KIB: u32 = 16_000;
/// Maximum time that a start waits for the lock of a program that is ending.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

impl Database {
    /// Opens the database, and creates it if it is new.
    pub(in crate::tables) fn open(path: &Path, log: Option<TableLog>, end: ProgramEnd) -> Result<Database, Failure> {
        let (name, path) = (path, &*without_links(path)?);
        let lock = locked(path)?;
        let (pages, noted) = (LogPages::default(), Noted::before_start(path)?);
        let connection = connect(path, &pages).map_err(|error| explain(path, &error))?;
        let note = Arc::new(LogNote::begin(path, &connection, noted)?.named(name));
        let writer = Arc::new(SharedWriter::new(Writer::new(connection)));
        let log_thread = LogThread::begin(path, Arc::clone(&writer), (pages, Arc::clone(&note)), log.clone())?;
        let log = SqliteLog::new(Arc::clone(&writer), (log_thread.clone(), Arc::clone(&note)), (log, end));
        let group_commit = GroupCommit::begin(log)?;
        writer.lock().commits = Some(Arc::clone(&group_commit));
        Ok(Database {
            path: path.to_owned(),
            writer,
            readers: Mutex::default(),
            has_snapshots: true,
            disk_waits: DiskWaits::none(),
            group_commit: Some(group_commit),
            log: Some((log_thread, note)),
            existing: None,
            _lock: Some(lock),
        })
    }

    /// Opens a database that other programs have made and may use meanwhile, and leaves its settings as they are.
    pub(in crate::tables) fn open_existing(path: &Path, log: Option<TableLog>) -> Result<Database, Failure> {
        if !path.exists() || path.is_dir() {
            let found = if path.is_dir() { "a folder instead of the" } else { "no" };
            let path = path.display();
            return Err(Failure::function(format!(
                "there is {found} database {path}, which the program names as an existing one; correct its path"
            )));
        }
        let opened = read_write(path).and_then(|connection| {
            connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON")?;
            // A file that is no database is noticed when it is read first.
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
            has_utf8(&connection, CONVERT_EXISTING)?;
            Ok(connection)
        });
        let connection = opened.map_err(|error| explain(path, &error))?;
        // No program changes the mode from now on: it would need the database for itself.
        let mode = connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        let has_snapshots = mode.is_ok_and(|mode| mode == "wal");
        let files = ExistingFiles::open(path, (&connection, has_snapshots), log);
        let files = Arc::new(files.map_err(|error| not_opened(path, &error))?);
        let writer = Arc::new(SharedWriter::new(Writer::new(connection)));
        writer.lock().existing = Some(Arc::clone(&files));
        Ok(Database {
            path: path.to_owned(),
            writer,
            readers: Mutex::default(),
            has_snapshots,
            disk_waits: DiskWaits::none(),
            group_commit: None,
            log: None,
            existing: Some(files),
            _lock: None,
        })
    }
}

/// Opens the file, and takes the lock that keeps other Weir programs out. It waits a moment for one that is ending: its lock
/// lasts until the last process that has the file open is gone, and a process that it starts has it open until it executes
/// its program.
fn locked(path: &Path) -> Result<File, Failure> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| not_opened(path, &error))?;
    let begin = Instant::now();
    while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if begin.elapsed() > LOCK_PATIENCE {
            return Err(in_use(path));
        }
        thread::sleep(LOCK_PATIENCE / 100);
    }
    Ok(file)
}

/// Opens the connection that writes. Tries again while another program has a lock for which SQLite does not wait, such as at the change
/// of the journal mode.
fn connect(path: &Path, pages: &LogPages) -> rusqlite::Result<Connection> {
    let begin = Instant::now();
    loop {
        match connect_at_once(path, pages) {
            Err(error) if is_busy(&error) && begin.elapsed() < BUSY_TIMEOUT => thread::sleep(BUSY_TIMEOUT / 100),
            connected => return connected,
        }
    }
}

fn connect_at_once(path: &Path, pages: &LogPages) -> rusqlite::Result<Connection> {
    let mut connection = read_write(path)?;
    is_ours(&connection)?;
    has_utf8(&connection, CONVERT_OWN)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=OFF;
         PRAGMA cache_size=-{WRITER_CACHE_KIB}; PRAGMA journal_size_limit={LOG_KEPT_MAX};
         PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={LAYOUT};"
    ))?;
    pages.count(&mut connection)?;
    Ok(connection)
}
