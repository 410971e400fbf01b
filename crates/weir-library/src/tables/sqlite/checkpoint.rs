//! Checkpoints: they move the log into the database, so that the log begins anew and stays short.
//!
//! A thread of their own makes them beside the syncs, because one takes as long as many syncs, and flows wait for those. A
//! checkpoint has two steps. The first moves the log while writers go on, and again what they have added meanwhile, until that is
//! little. The second holds them up while it moves the rest. The next writer then begins at the start of the log, whose file
//! keeps its length: a sync of bytes that replace others takes a third of the time of one that has to note a new length. If a
//! reader or an open transaction needs the log, the next checkpoint follows when the log has grown as much again.
//!
//! A checkpoint that fails, such as on a full disk, is made again after a moment, which doubles with each further failure, and when
//! the log has grown a little: what is written meanwhile goes to the log, and must not take the room that the checkpoint needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use weir::Failure;

use super::connection::{read_only, read_write};
use super::database_files::LOG_PAGES_MAX;
use super::held_read::{BETWEEN, HELD_MAX};
use super::log_error::LogError;
use super::log_note::LogNote;
use super::shared_writer::SharedWriter;
use super::writer::Writer;
use crate::tables::table_log::TableLog;

/// Number of pages that a checkpoint moves while it holds up writers, if it can.
const REST_MAX: u32 = 100;
/// Maximum number of times that it moves the log while writers go on.
const MOVES_MAX: u32 = 4;
/// Time for which a checkpoint that holds up writers waits for the readers of the log.
const READERS_TIMEOUT: Duration = Duration::from_millis(20);
/// Time after which a checkpoint that failed is made again, for the first time.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Maximum time between two checkpoints that fail.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// Number of pages by which the log grows at most between two checkpoints that fail.
const RETRY_PAGES: u32 = LOG_PAGES_MAX / 16;

/// The number of pages in the log as of the last commit.
#[derive(Clone, Debug, Default)]
pub(in crate::tables) struct LogPages(Arc<AtomicU32>);

impl LogPages {
    /// Has the connection that writes note the pages of the log, and leave checkpoints to others.
    pub(in crate::tables) fn count(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let pages_now = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            pages_now.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
    }

    pub(in crate::tables) fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The thread that makes the checkpoints of a running program, and ends its held reads.
#[derive(Clone, Debug)]
pub(in crate::tables) struct LogThread {
    pages: LogPages,
    bounds: Arc<LogBounds>,
    /// Takes a request while the thread does nothing.
    requests: SyncSender<LogRequest>,
    /// Is locked while the thread makes a checkpoint, which SQLite refuses to wait for.
    checkpoints: Arc<Mutex<()>>,
}

/// The lengths of the log in pages at which something is done about it.
#[derive(Debug)]
struct LogBounds {
    /// The length from which the next checkpoint is made.
    due: AtomicU32,
    /// The length from which the syncs wait for that checkpoint.
    waits: AtomicU32,
}

impl LogBounds {
    fn new() -> LogBounds {
        LogBounds { due: AtomicU32::new(LOG_PAGES_MAX), waits: AtomicU32::new(2 * LOG_PAGES_MAX) }
    }

    fn set(&self, due: u32, waits: u32) {
        self.due.store(due, Ordering::Relaxed);
        self.waits.store(waits, Ordering::Relaxed);
    }
}

/// A request to the thread. After each of them it makes a checkpoint that is due.
#[derive(Debug)]
enum LogRequest {
    Checkpoint,
    EndOfHeldRead,
}

impl LogThread {
    /// Starts the thread, which ends when the last clone of this value is dropped.
    pub(in crate::tables) fn begin(
        path: &Path,
        writer: Arc<SharedWriter>,
        (pages, note): (LogPages, Arc<LogNote>),
        log: Option<TableLog>,
    ) -> Result<LogThread, Failure> {
        let bounds = Arc::new(LogBounds::new());
        let checkpoints = Arc::default();
        let (requests, requested) = mpsc::sync_channel(0);
        let mut mover = LogMover {
            path: path.to_owned(),
            writer,
            connections: None,
            pages: pages.clone(),
            bounds: Arc::clone(&bounds),
            checkpoints: Arc::clone(&checkpoints),
            note,
            retry: None,
            log,
        };
        let thread = thread::Builder::new().name("weir-log".to_owned());
        thread.spawn(move || while mover.serve(&requested) {})?;
        Ok(LogThread { pages, bounds, requests, checkpoints })
    }

    /// Waits for a checkpoint that is under way, and keeps the thread from the next one.
    pub(super) fn without_checkpoints(&self) -> MutexGuard<'_, ()> {
        self.checkpoints.lock()
    }

    /// Has a checkpoint be made if the log is long. If it has grown as much again meanwhile, or the last one failed, this waits for
    /// the thread, so that the log grows no further.
    pub(in crate::tables) fn bound_log(&self) {
        let pages = self.pages.now();
        if pages >= self.bounds.waits.load(Ordering::Relaxed) {
            _ = self.requests.send(LogRequest::Checkpoint);
        } else if pages >= self.bounds.due.load(Ordering::Relaxed) {
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
    bounds: Arc<LogBounds>,
    checkpoints: Arc<Mutex<()>>,
    note: Arc<LogNote>,
    /// The time of the next checkpoint if the last one failed.
    retry: Option<CheckpointRetry>,
    /// The log of the program; `None` in tests.
    log: Option<TableLog>,
}

/// The time at which a checkpoint that failed is made again.
#[derive(Clone, Copy)]
struct CheckpointRetry {
    at: Instant,
    /// The time between the failure and this one.
    pause: Duration,
}

impl CheckpointRetry {
    fn after(before: Option<CheckpointRetry>) -> CheckpointRetry {
        let pause = before.map_or(RETRY_FIRST, |before| RETRY_MAX.min(before.pause * 2));
        CheckpointRetry { at: Instant::now() + pause, pause }
    }
}

impl LogMover {
    /// Serves the next request, and makes the checkpoint that is due. Returns false at the end.
    fn serve(&mut self, requests: &Receiver<LogRequest>) -> bool {
        let request = match self.retry {
            None => requests.recv().map_err(RecvTimeoutError::from),
            Some(retry) => requests.recv_timeout(retry.at.saturating_duration_since(Instant::now())),
        };
        let ends_held_read = matches!(request, Ok(LogRequest::EndOfHeldRead));
        if ends_held_read {
            thread::sleep(HELD_MAX);
            // If it fails, the next statement does.
            _ = self.writer.lock().end_held_read();
        }
        let is_long = self.pages.now() >= self.bounds.due.load(Ordering::Relaxed);
        if matches!(request, Err(RecvTimeoutError::Disconnected)) {
            return false;
        } else if is_long || self.retry.is_some_and(|retry| retry.at <= Instant::now()) {
            self.bound();
        } else if ends_held_read {
            thread::sleep(BETWEEN);
        }
        true
    }

    /// Makes a checkpoint. One that fails is made later.
    fn bound(&mut self) {
        let checkpoints = Arc::clone(&self.checkpoints);
        let _held = checkpoints.lock();
        let moved = self.make();
        let pages = self.pages.now();
        if matches!(moved, Ok(true)) {
            self.bounds.set(LOG_PAGES_MAX, 2 * LOG_PAGES_MAX);
            return self.succeeded();
        }
        match moved {
            Err(error) if !error.is_busy() => self.failed(&error),
            // Somebody needs the log, or writes.
            _ => self.retry = self.retry.map(|retry| CheckpointRetry::after(Some(retry))),
        }
        match self.retry {
            Some(_) => self.bounds.set(pages.saturating_add(RETRY_PAGES), pages.saturating_add(RETRY_PAGES)),
            None => self.bounds.set(pages.saturating_add(LOG_PAGES_MAX), pages.saturating_add(2 * LOG_PAGES_MAX)),
        }
    }

    /// Notes that a checkpoint has failed, and says so if it is the first one.
    fn failed(&mut self, error: &LogError) {
        if self.retry.is_none()
            && let Some(log) = &self.log
        {
            let why = error.explain(&self.path).message;
            log.warn(format!(
                "the log {}-wal grows, because it cannot be moved into the database; it is tried again until it succeeds: {why}",
                self.path.display()
            ));
        }
        self.retry = Some(CheckpointRetry::after(self.retry));
    }

    /// Notes that a checkpoint has succeeded, and says so if one before has failed.
    fn succeeded(&mut self) {
        if self.retry.take().is_some()
            && let Some(log) = &self.log
        {
            log.info(format!("the log {}-wal was moved into the database, and grows no further", self.path.display()));
        }
    }

    /// Makes a checkpoint, and returns whether the log begins anew.
    fn make(&mut self) -> Result<bool, LogError> {
        let (mover, reader) = match self.connections.take() {
            Some(connections) => connections,
            None => (self.note.files().connect(read_write)?, self.note.files().connect(read_only)?),
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
        let moved = move_all(&self.note, &writer.connection, (&mover, &reader), "RESTART")?;
        #[cfg(test)]
        super::durable_files::DurableFiles::moved(&self.path, &mover);
        if moved.is_whole {
            self.pages.0.store(0, Ordering::Relaxed);
        }
        match moved.is_in_file {
            true => self.note.raise_behind_log(&writer.connection)?,
            false => self.note.raise(&writer.connection)?,
        }
        drop(writer);
        self.connections = Some((mover, reader));
        Ok(moved.is_whole)
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

impl Drop for LogMover {
    fn drop(&mut self) {
        if let Some((mover, _)) = &self.connections {
            self.note.files().close_safely(mover);
        }
    }
}

/// Moves all of the log, unless somebody hinders it. The thread has the connection that writes for itself.
pub(in crate::tables) fn move_all(
    note: &LogNote,
    writer: &Connection,
    (mover, reader): (&Connection, &Connection),
    mode: &str,
) -> Result<MovedPages, LogError> {
    note.hold_back(writer, reader)?;
    moved_before(note, mover, reader)?;
    Ok(checkpoint(mover, mode)?)
}

/// Moves what is in the log before the number that the reader holds back.
pub(in crate::tables) fn moved_before(
    note: &LogNote,
    mover: &Connection,
    reader: &Connection,
) -> Result<MovedPages, LogError> {
    let moved = note.sync_log().map_err(LogError::Log).and_then(|()| Ok(checkpoint(mover, "PASSIVE")?));
    reader.execute_batch("COMMIT")?;
    moved
}

/// The outcome of a checkpoint.
pub(in crate::tables) struct MovedPages {
    /// True if nobody has hindered it: the log begins anew.
    pub(in crate::tables) is_whole: bool,
    /// True if all of the log is in the database.
    is_in_file: bool,
    /// The number of pages at the start of the log that are in the database.
    pages: u32,
}

/// Makes a checkpoint.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<MovedPages> {
    let outcome = |row: &rusqlite::Row<'_>| Ok(MovedPages::of(row.get(0)?, row.get(1)?, row.get(2)?));
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], outcome)
}

impl MovedPages {
    /// Returns the outcome that SQLite tells: whether somebody has hindered it, and the numbers of pages in the log and of those that are in
    /// the database. Both are -1 if another program makes a checkpoint at this moment.
    fn of(hindered: i64, all: i64, moved: i64) -> MovedPages {
        let pages = u32::try_from(moved);
        MovedPages { is_whole: hindered == 0, is_in_file: pages.is_ok() && all == moved, pages: pages.unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::MovedPages;

    #[test]
    fn a_checkpoint_that_another_program_makes_meanwhile_has_moved_nothing() {
        let outcome = |hindered, all, moved| {
            let MovedPages { is_whole, is_in_file, pages } = MovedPages::of(hindered, all, moved);
            (is_whole, is_in_file, pages)
        };
        assert_eq!(outcome(1, -1, -1), (false, false, 0));
        assert_eq!(outcome(1, 40, 30), (false, false, 30));
        assert_eq!(outcome(1, 40, 40), (false, true, 40));
        assert_eq!(outcome(0, 0, 0), (true, true, 0));
    }
}
