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

use super::connection::{read_only, read_write};
use super::database_files::LOG_PAGES_MAX;
use super::held_read::{BETWEEN, HELD_MAX};
use super::log_note::LogNote;
use super::writer::{SharedWriter, Writer};

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
    /// Is locked while the thread makes a checkpoint, which SQLite refuses to wait for.
    checkpoints: Arc<Mutex<()>>,
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
        (pages, note): (LogPages, Arc<LogNote>),
    ) -> Result<LogThread, Failure> {
        let due = Arc::new(AtomicU32::new(LOG_PAGES_MAX));
        let checkpoints = Arc::default();
        let (requests, requested) = mpsc::sync_channel(0);
        let mut log = LogMover {
            path: path.to_owned(),
            writer,
            connections: None,
            pages: pages.clone(),
            due: Arc::clone(&due),
            checkpoints: Arc::clone(&checkpoints),
            note,
        };
        let thread = thread::Builder::new().name("weir-log".to_owned());
        thread.spawn(move || requested.iter().for_each(|request| log.serve(&request)))?;
        Ok(LogThread { pages, due, requests, checkpoints })
    }

    /// Waits for a checkpoint that is under way, and keeps the thread from the next one.
    pub(super) fn without_checkpoints(&self) -> MutexGuard<'_, ()> {
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
    /// The connection that moves the log, and the one that holds back its last number.
    connections: Option<(Connection, Connection)>,
    pages: LogPages,
    due: Arc<AtomicU32>,
    checkpoints: Arc<Mutex<()>>,
    note: Arc<LogNote>,
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
        let _held = checkpoints.lock();
        let is_moved = self.make().unwrap_or(false);
        let due = if is_moved { LOG_PAGES_MAX } else { self.pages.now().saturating_add(LOG_PAGES_MAX) };
        self.due.store(due, Ordering::Relaxed);
    }

    /// Makes a checkpoint, and returns whether the log begins anew.
    fn make(&mut self) -> Result<bool, MoveError> {
        let (mover, reader) = match self.connections.take() {
            Some(connections) => connections,
            None => (read_write(&self.path)?, read_only(&self.path)?),
        };
        mover.busy_timeout(READERS_TIMEOUT)?;
        for _ in 0..MOVES_MAX {
            let Some(writer) = self.idle_writer()? else { return Ok(false) };
            self.note.hold_back(&writer.connection, &reader)?;
            drop(writer);
            let moved = moved_before(&self.note, &mover, &reader)?;
            if self.pages.now().saturating_sub(moved.pages) <= REST_MAX {
                break;
            }
        }
        let Some(writer) = self.idle_writer()? else { return Ok(false) };
        let is_moved = move_all(&self.note, &writer.connection, (&mover, &reader), "RESTART")?;
        #[cfg(test)]
        super::durable_files::DurableFiles::moved(&self.path);
        if is_moved {
            self.pages.0.store(0, Ordering::Relaxed);
        }
        self.note.raise(&writer.connection)?;
        drop(writer);
        self.connections = Some((mover, reader));
        Ok(is_moved)
    }

    /// Locks the connection that writes, which has no transaction; `None` if one takes long.
    fn idle_writer(&self) -> rusqlite::Result<Option<MutexGuard<'_, Writer>>> {
        let mut writer = self.writer.lock_between_transactions();
        if writer.transaction != 0 {
            return Ok(None);
        }
        writer.end_group()?;
        writer.end_held_read()?;
        Ok(Some(writer))
    }
}

/// Reasons why the log is not moved.
#[derive(Debug)]
pub(super) enum MoveError {
    Database(rusqlite::Error),
    /// The log could not be synced, or its note not be written. Without that nothing is moved.
    Note(std::io::Error),
}

impl From<rusqlite::Error> for MoveError {
    fn from(error: rusqlite::Error) -> MoveError {
        MoveError::Database(error)
    }
}

impl From<std::io::Error> for MoveError {
    fn from(error: std::io::Error) -> MoveError {
        MoveError::Note(error)
    }
}

/// Moves all of the log, and returns whether nobody has hindered it. The thread has the connection that writes for itself.
pub(super) fn move_all(
    note: &LogNote,
    writer: &Connection,
    (mover, reader): (&Connection, &Connection),
    mode: &str,
) -> Result<bool, MoveError> {
    note.hold_back(writer, reader)?;
    moved_before(note, mover, reader)?;
    Ok(checkpoint(mover, mode)?.is_whole)
}

/// Moves what is in the log before the number that the reader holds back.
pub(super) fn moved_before(note: &LogNote, mover: &Connection, reader: &Connection) -> Result<MovedPages, MoveError> {
    let moved = note.sync_log().map_err(MoveError::Note).and_then(|()| Ok(checkpoint(mover, "PASSIVE")?));
    reader.execute_batch("COMMIT")?;
    moved
}

/// The outcome of a checkpoint.
pub(super) struct MovedPages {
    /// True if nobody has hindered it.
    is_whole: bool,
    /// The number of pages at the start of the log that are in the database.
    pages: u32,
}

/// Makes a checkpoint.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<MovedPages> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let pages = u32::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
        Ok(MovedPages { is_whole: row.get::<_, i64>(0)? == 0, pages })
    })
}
