//! Checkpoints: they move the log into the database, so that the log begins anew and stays short.
//!
//! A thread of their own makes them beside the syncs, because one takes as long as many syncs, and flows wait for those. A
//! checkpoint has two steps. The first moves the log while writers go on, and again what they have added meanwhile, until that is
//! little. The second holds them up while it moves the rest. The next writer then begins at the start of the log, whose file
//! keeps its length: a sync of bytes that replace others takes a third of the time of one that has to note a new length. If a
//! reader or an open transaction needs the log, the next checkpoint follows when the log has grown as much again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use weir::Failure;

use super::connection::read_write;
use super::held_read::{BETWEEN, HELD_MAX};
use super::log_note::LogNote;
use super::writer::SharedWriter;

/// Number of pages of the log from which it is moved into the database. A page that was written often is moved once, so
/// that the work for a row falls with this number; a start after a crash reads so many pages.
pub(super) const LOG_PAGES_MAX: u32 = if cfg!(test) { 400 } else { 4_000 };
/// Length of the log's file, in bytes, that it keeps at most when it begins anew after it has grown: room for what is added during a
/// checkpoint.
pub(super) const LOG_KEPT_MAX: u32 = 2 * 4_120 * LOG_PAGES_MAX;
/// Number of pages that a checkpoint moves while it holds up writers, if it can.
const REST_MAX: u32 = 100;
/// Maximum number of times that it moves the log while writers go on.
const MOVES_MAX: u32 = 4;
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

    pub(super) fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The thread that makes the checkpoints of a running program, and ends its held reads.
#[derive(Clone, Debug)]
pub(super) struct LogThread {
    pages: LogPages,
    /// The number of pages of the log from which the next checkpoint is made.
    due: Arc<AtomicU32>,
    /// Takes a request while the thread does nothing.
    requests: SyncSender<LogRequest>,
    /// Is locked while the thread makes a checkpoint, which SQLite refuses to wait for, and holds the note of the log.
    checkpoints: Arc<Mutex<Option<LogNote>>>,
}

/// A request to the thread. After each of them it makes a checkpoint that is due.
#[derive(Debug)]
enum LogRequest {
    Checkpoint,
    EndOfHeldRead,
}

impl LogThread {
    /// Starts the thread, which ends when the last clone of this value is dropped.
    pub(super) fn begin(
        path: &Path,
        writer: Arc<SharedWriter>,
        (pages, note): (LogPages, Option<LogNote>),
    ) -> Result<LogThread, Failure> {
        let due = Arc::new(AtomicU32::new(LOG_PAGES_MAX));
        let checkpoints = Arc::new(Mutex::new(note));
        let (requests, requested) = mpsc::sync_channel(0);
        let mut log = LogMover {
            path: path.to_owned(),
            writer,
            connection: None,
            pages: pages.clone(),
            due: Arc::clone(&due),
            checkpoints: Arc::clone(&checkpoints),
        };
        let thread = thread::Builder::new().name("weir-log".to_owned());
        thread.spawn(move || requested.iter().for_each(|request| log.serve(&request)))?;
        Ok(LogThread { pages, due, requests, checkpoints })
    }

    /// Waits for a checkpoint that is under way, and keeps the thread from the next one. Returns the note of the log.
    pub(super) fn without_checkpoints(&self) -> MutexGuard<'_, Option<LogNote>> {
        self.checkpoints.lock()
    }

    /// Has a checkpoint be made if the log is long. If it has grown as much again meanwhile, this waits for the thread, so that the
    /// log grows no further.
    pub(super) fn bound_log(&self) {
        let (pages, due) = (self.pages.now(), self.due.load(Ordering::Relaxed));
        if pages >= due.saturating_add(LOG_PAGES_MAX) {
            _ = self.requests.send(LogRequest::Checkpoint);
        } else if pages >= due {
            // The thread looks for itself when it has done what it does now.
            _ = self.requests.try_send(LogRequest::Checkpoint);
        }
    }

    /// Has the held read be ended that is about to begin. Returns false if the thread has no time for it.
    pub(super) fn ends_held_read(&self) -> bool {
        self.requests.try_send(LogRequest::EndOfHeldRead).is_ok()
    }
}

/// The state of the thread.
struct LogMover {
    path: PathBuf,
    writer: Arc<SharedWriter>,
    connection: Option<Connection>,
    pages: LogPages,
    due: Arc<AtomicU32>,
    checkpoints: Arc<Mutex<Option<LogNote>>>,
}

impl LogMover {
    fn serve(&mut self, request: &LogRequest) {
        if matches!(request, LogRequest::EndOfHeldRead) {
            thread::sleep(HELD_MAX);
            // If it fails, the next statement does.
            _ = self.writer.lock().end_held_read();
        }
        if self.pages.now() >= self.due.load(Ordering::Relaxed) {
            self.bound();
        } else if matches!(request, LogRequest::EndOfHeldRead) {
            thread::sleep(BETWEEN);
        }
    }

    /// Makes a checkpoint. One that fails is made later.
    fn bound(&mut self) {
        let checkpoints = Arc::clone(&self.checkpoints);
        let mut note = checkpoints.lock();
        // Without its note nothing is moved.
        let is_noted = note.as_mut().is_none_or(|note| note.checkpoint_begins().is_ok());
        let is_moved = is_noted && self.make(note.as_mut()).unwrap_or(false);
        let due = if is_moved { LOG_PAGES_MAX } else { self.pages.now().saturating_add(LOG_PAGES_MAX) };
        self.due.store(due, Ordering::Relaxed);
    }

    /// Makes a checkpoint, and returns whether the log begins anew.
    fn make(&mut self, note: Option<&mut LogNote>) -> rusqlite::Result<bool> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => read_write(&self.path)?,
        };
        connection.busy_timeout(READERS_TIMEOUT)?;
        let connection = self.connection.insert(connection);
        for _ in 0..MOVES_MAX {
            let moved = checkpoint(connection, "PASSIVE")?;
            if self.pages.now().saturating_sub(moved.pages) <= REST_MAX {
                break;
            }
        }
        let mut writer = self.writer.lock_between_transactions();
        if writer.transaction != 0 {
            return Ok(false);
        }
        writer.end_group()?;
        writer.end_held_read()?;
        let is_moved = checkpoint(connection, "RESTART")?.is_whole;
        #[cfg(test)]
        super::durable_files::DurableFiles::moved(&self.path);
        if is_moved {
            self.pages.0.store(0, Ordering::Relaxed);
        }
        note.map_or(Ok(()), |note| note.checkpoint_ended(&writer.connection))?;
        Ok(is_moved)
    }
}

/// The outcome of a checkpoint.
pub(super) struct MovedPages {
    /// True if nobody has hindered it.
    is_whole: bool,
    /// The number of pages at the start of the log that are in the database.
    pages: u32,
}

/// Makes a checkpoint.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<MovedPages> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let pages = u32::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
        Ok(MovedPages { is_whole: row.get::<_, i64>(0)? == 0, pages })
    })
}
