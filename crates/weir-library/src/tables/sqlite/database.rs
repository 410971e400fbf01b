//! The database of a program's stored tables: one SQLite file, with one writer and a pool of readers.
//!
//! *Durability.* The file is in WAL mode with `synchronous=NORMAL`: a commit writes to the log and is visible at once, but is
//! not yet durable. A thread syncs the log for all commits that were executed meanwhile ([`GroupCommit`]), and
//! [`GroupCommit::settled_to`] waits for it. Together that is `synchronous=FULL` with one sync for a group. Checkpoints, which
//! another thread makes when the log is long, sync the log before the database and the database before the log is used again. The
//! last one is made when the program ends ([`Database::close`]).
//!
//! *Readers* have connections of their own and see the last commit; they never wait for the writer. Statements of a
//! transaction read by the connection that writes, on which it begins with the first of them: so it sees one moment, and what is not
//! committed yet, and nobody else writes before its end. So does any short read that finds this connection idle: a reader has to read its
//! pages again after each commit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use rustix::fs::FlockOperation;
use weir::{Failure, FailureKind, may_block};

use super::catalog::SqliteCatalog;
use super::checkpoint::{LogPages, LogThread, move_all};
use super::connection::{BUSY_TIMEOUT, read_only, read_write};
use super::database_error::{explain, explain_read, in_use, is_busy};
use super::database_file_names::DatabaseFileNames;
use super::database_files::LOG_KEPT_MAX;
use super::database_format::{APPLICATION_ID, LAYOUT, has_ordered_texts, is_ours};
use super::disk_waits::DiskWaits;
use super::group_log::Redo;
use super::log::SqliteLog;
use super::log_note::{LogNote, Noted};
use super::row_statement::{RowChanged, RowStatement};
use super::shared_writer::SharedWriter;
use super::start_access::{not_opened, without_links};
use super::writer::Writer;
use crate::tables::catalog::{Catalog, StartCheck};
use crate::tables::group_commit::GroupCommit;
use crate::tables::table_log::TableLog;
use crate::tables::transaction_number::{only_reads, refused as refused_in};

/// Size of the cache of the connection that writes, in KiB: pages of a group that do not fit are written more than once.
const WRITER_CACHE_KIB: u32 = 16_000;
/// Maximum number of readers that wait for their next use.
const IDLE_READERS_MAX: usize = 16;
/// Maximum time that a start waits for the lock of a program that is ending.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The database of a program.
#[derive(Debug)]
pub(in crate::tables) struct Database {
    path: PathBuf,
    writer: Arc<SharedWriter>,
    readers: Mutex<Vec<Connection>>,
    /// True if readers see the last commit while another connection writes. False for a database of other programs with a rollback
    /// journal: there, readers and the writer wait for each other.
    pub(super) has_snapshots: bool,
    /// The reads that wait for the disk.
    pub(in crate::tables) disk_waits: DiskWaits,
    /// Makes commits durable in groups; `None` if each commit is durable when it is executed.
    group_commit: Option<Arc<GroupCommit>>,
    /// The thread that makes checkpoints and ends held reads, and the note of the log; `None` for a database of other programs.
    log: Option<(LogThread, Arc<LogNote>)>,
    /// The files of a database of other programs.
    names: Option<DatabaseFileNames>,
    /// Keeps other programs out. Closed last: closing any descriptor of the file would release SQLite's locks.
    _lock: Option<File>,
}

/// The database as it was at one moment: a connection that reads in a transaction.
#[derive(Debug)]
pub(super) struct Snapshot(Connection);

impl Database {
    /// Opens the database, and creates it if it is new.
    pub(in crate::tables) fn open(path: &Path, log: Option<TableLog>) -> Result<Database, Failure> {
        let path = &*without_links(path)?;
        let lock = locked(path)?;
        let (pages, noted) = (LogPages::default(), Noted::before_start(path)?);
        let connection = connect(path, &pages).map_err(|error| explain(path, &error))?;
        let note = Arc::new(LogNote::begin(path, &connection, noted)?);
        let writer = Arc::new(SharedWriter::new(Writer::new(connection)));
        let log_thread = LogThread::begin(path, Arc::clone(&writer), (pages, Arc::clone(&note)), log.clone())?;
        let log = SqliteLog::new(Arc::clone(&writer), (log_thread.clone(), Arc::clone(&note)), log);
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
            names: None,
            _lock: Some(lock),
        })
    }

    /// Opens a database that other programs have made and may use meanwhile, and leaves its settings as they are.
    pub(in crate::tables) fn open_existing(path: &Path) -> Result<Database, Failure> {
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
            has_ordered_texts(&connection)?;
            Ok(connection)
        });
        let connection = opened.map_err(|error| explain(path, &error))?;
        // No program changes the mode from now on: it would need the database for itself.
        let mode = connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        let has_snapshots = mode.is_ok_and(|mode| mode == "wal");
        // SQLite makes the log beside the file to which links lead.
        let resolved = connection.path().map_or_else(|| path.to_owned(), PathBuf::from);
        let writer = Arc::new(SharedWriter::new(Writer::new(connection)));
        Ok(Database {
            path: path.to_owned(),
            writer,
            readers: Mutex::default(),
            has_snapshots,
            disk_waits: DiskWaits::none(),
            group_commit: None,
            log: None,
            names: DatabaseFileNames::of_existing(&resolved, has_snapshots).ok(),
            _lock: None,
        })
    }

    /// Reads the tables of the database as they are.
    pub(in crate::tables) fn look<T>(
        &self,
        read: impl FnOnce(&dyn Catalog) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut writer = self.writer.lock();
        writer.end_held_read().map_err(|error| self.failure(&error))?;
        let snapshot = writer.connection.unchecked_transaction().map_err(|error| self.failure(&error))?;
        read(&SqliteCatalog { connection: &snapshot, path: &self.path })
    }

    /// Makes changes of a start, all or none.
    pub(in crate::tables) fn changing<T>(
        &self,
        change: impl FnOnce(&dyn Catalog) -> StartCheck<T>,
    ) -> Result<T, Failure> {
        let mut writer = self.writer.lock();
        writer.be_idle().map_err(|error| self.failure(&error))?;
        // One that reads first would not wait for another program before it writes.
        let begun = Transaction::new_unchecked(&writer.connection, TransactionBehavior::Immediate);
        let changes = begun.map_err(|error| self.failure(&error))?;
        let changed = change(&SqliteCatalog { connection: &changes, path: &self.path })??;
        changes.commit().map_err(|error| self.failure(&error))?;
        self.executed();
        Ok(changed)
    }

    /// Runs a statement that writes at most these rows of a table: in the transaction, or as one of its own if the number is 0. It may
    /// be executed again (`writer`), and then has the same result. If it fails, nothing of it takes effect.
    pub(in crate::tables) fn write<T, S>(
        &self,
        (transaction, rows): (i64, usize),
        table: &str,
        statement: S,
    ) -> rusqlite::Result<T>
    where
        S: Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let again = |statement: S, _: &T| Redo::Other(Box::new(move |connection| statement(connection).map(|_| ())));
        self.execute((transaction, rows), statement, |statement, writer| writer.run(table, statement), again)
    }

    /// Runs a command that writes no rows, such as one for a savepoint, like [`Database::write`].
    pub(super) fn command(&self, transaction: i64, sql: &'static str) -> rusqlite::Result<()> {
        let again = |(), (): &()| Redo::Other(Box::new(move |connection| connection.execute_batch(sql)));
        self.execute((transaction, 0), (), |(), writer| writer.connection.execute_batch(sql), again)
    }

    /// Runs a statement that changes one row, like [`Database::write`].
    pub(super) fn change_row(&self, transaction: i64, statement: &RowStatement) -> rusqlite::Result<RowChanged> {
        let again = |statement: &RowStatement, changed: &RowChanged| Redo::Row(statement.unshared_copy(), *changed);
        let execute = |statement: &&RowStatement, writer: &Writer| {
            writer.run(&statement.table.schema.name, |connection| statement.execute(connection))
        };
        self.execute((transaction, 1), statement, execute, again)
    }

    fn execute<S, T>(
        &self,
        (transaction, rows): (i64, usize),
        statement: S,
        execute: impl FnOnce(&S, &Writer) -> rusqlite::Result<T>,
        again: impl FnOnce(S, &T) -> Redo,
    ) -> rusqlite::Result<T> {
        let mut writer = self.writer.lock();
        writer.enter(transaction)?;
        writer.bound_group(rows)?;
        let written = execute(&statement, &writer);
        match &written {
            Ok(answer) => writer.executed(transaction, rows, || again(statement, answer)),
            Err(error) => writer.refused(transaction, error),
        }
        if transaction == 0 {
            drop(writer);
            self.begin_sync();
        }
        written
    }

    /// Begins the group of the change that comes next, if that is possible without waiting. Returns whether the change has to wait:
    /// for another program that writes the database, or for the disk.
    pub(super) fn waits_to_write(&self) -> bool {
        let begins_group = || self.writer.try_lock().is_none_or(|mut writer| writer.begins_group_at_once());
        self.group_commit.is_none() || self.is_waited_for() || !begins_group()
    }

    /// Begins the transaction whose first statement reads next, if that is possible without waiting. Returns whether the read has to wait.
    pub(super) fn waits_to_begin(&self, transaction: i64) -> bool {
        let is_open = || self.writer.try_lock().is_some_and(|writer| writer.transaction == transaction);
        transaction != 0 && !only_reads(transaction) && !is_open() && self.waits_to_write()
    }

    /// Returns whether a thread waits, or has waited in vain, for another program that writes the database.
    pub(super) fn is_waited_for(&self) -> bool {
        self.writer.is_waited_for()
    }

    /// Has the open group end when the sync before it does, however long its flows take.
    fn begin_sync(&self) {
        if let Some(group_commit) = &self.group_commit {
            group_commit.begin_sync();
        }
    }

    /// Runs a statement that reads, and is short or not.
    pub(in crate::tables) fn read<T>(
        &self,
        (transaction, is_short): (i64, bool),
        statement: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        if transaction != 0 {
            let mut writer = self.writer.lock();
            writer.enter_to_read(transaction)?;
            if !is_short {
                // The readers that wait for the group would wait for the statement.
                writer.set_apart()?;
            }
            return statement(&writer.connection).inspect_err(|error| writer.refused(transaction, error));
        }
        if is_short && let Some(mut writer) = self.idle_writer() {
            writer.hold_read(|| self.log.as_ref().is_some_and(|(thread, _)| thread.ends_held_read()))?;
            let value = self.disk_waits.during(|| statement(&writer.connection));
            if let Err(error) = &value {
                writer.refused(0, error);
            }
            return value;
        }
        let reader = self.reader()?;
        let value = self.disk_waits.during(|| statement(&reader))?;
        self.keep_reader(reader);
        Ok(value)
    }

    /// Returns the connection that writes for a short read outside of transactions, if it sees what a reader would see, or more of the
    /// commits that are executed: no transaction of the program is open. Its cache outlives commits, because it makes them; that of a
    /// reader does not. `None` if the read would wait for it. A read that takes long would hold up those that write.
    fn idle_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        self.group_commit.as_ref()?;
        self.writer.try_lock().filter(|writer| writer.transaction == 0)
    }

    /// Returns the database as other connections see it now; `None` if it is one of other programs, whose journal may be one with
    /// which a writer waits for readers.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        self.group_commit.as_ref()?;
        // If it fails, the read that needs it reports why.
        self.begin_snapshot().ok()
    }

    fn begin_snapshot(&self) -> rusqlite::Result<Snapshot> {
        let reader = self.reader()?;
        reader.prepare_cached("BEGIN")?.execute([])?;
        // The first read takes the snapshot.
        reader.prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?.query_row([], |_| Ok(()))?;
        Ok(Snapshot(reader))
    }

    /// Reads a snapshot, and gives it up.
    pub(super) fn read_snapshot<T>(
        &self,
        Snapshot(reader): Snapshot,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let value = self.disk_waits.during(|| read(&reader))?;
        reader.prepare_cached("COMMIT")?.execute([])?;
        self.keep_reader(reader);
        Ok(value)
    }

    /// Returns a connection that sees the last commit.
    fn reader(&self) -> rusqlite::Result<Connection> {
        let idle = self.readers.lock().pop();
        idle.map_or_else(|| self.new_reader(), Ok)
    }

    fn new_reader(&self) -> rusqlite::Result<Connection> {
        match &self.log {
            Some((_, note)) => note.names().connect(read_only),
            // Without a log, nothing of the old file is taken for a part of the new one.
            None => match self.names.as_ref().filter(|names| names.has_log()) {
                Some(names) => names.connect(read_only),
                None => read_only(&self.path),
            },
        }
    }

    /// Keeps a connection for the next read.
    fn keep_reader(&self, reader: Connection) {
        let mut readers = self.readers.lock();
        if readers.len() < IDLE_READERS_MAX {
            readers.push(reader);
        }
    }

    /// Has reads see a commit, and those before it. A thread that may wait gives an open transaction a moment to end.
    pub(super) fn show(&self, commit: u64) {
        if !self.shows(commit) {
            // If the group is lost, its flows know, and reads do not see it.
            _ = if may_block() { self.writer.end_group() } else { self.writer.lock().end_group() };
        }
    }

    /// Commits the open group, if there is one.
    #[cfg(test)]
    pub(in crate::tables) fn end_group(&self) {
        _ = self.writer.lock().end_group();
    }

    /// Has reads see a commit, and those before it, unless a transaction is open that has joined its group. Returns whether they do.
    pub(super) fn shows(&self, commit: u64) -> bool {
        if self.group_commit.as_ref().is_none_or(|commits| commits.is_visible(commit)) {
            return true;
        }
        let mut writer = self.writer.lock();
        let is_shown = writer.member_rows.is_none();
        if is_shown {
            _ = writer.end_group();
        }
        is_shown
    }

    /// Commits a transaction. If that fails, nothing of it takes effect.
    pub(in crate::tables) fn commit(&self, transaction: i64) -> Result<(), Failure> {
        self.writer.commit(transaction).map_err(|error| self.failure_in(transaction, &error))?;
        self.begin_sync();
        Ok(())
    }

    /// Commits a transaction, and the group of which it is a member. If that fails, nothing of it takes effect.
    pub(super) fn commit_at_once(&self, transaction: i64) -> Result<(), Failure> {
        self.writer.commit_at_once(transaction).map_err(|error| self.failure_in(transaction, &error))?;
        self.begin_sync();
        Ok(())
    }

    /// Takes back a transaction, if it is open.
    pub(super) fn roll_back(&self, transaction: i64) {
        // A transaction that cannot be taken back is not committed either.
        _ = self.writer.roll_back(transaction);
    }

    /// Takes back the transaction that is open, if there is one.
    pub(in crate::tables) fn take_back_unfinished(&self) {
        // One that cannot be taken back is not committed either.
        _ = self.writer.roll_back_open();
    }

    /// Returns the commits that become durable in groups; `None` if each is durable when it is executed.
    pub(in crate::tables) fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.group_commit.as_ref()
    }

    /// Notes that a commit was executed.
    fn executed(&self) {
        if let Some(group_commit) = &self.group_commit {
            group_commit.executed();
            group_commit.noted();
        }
    }

    /// Moves the log into the database, so that the file alone holds all rows.
    pub(in crate::tables) fn close(&self) -> Result<(), Failure> {
        self.check_durable()?;
        // What is left of a log that was cut must not be moved.
        self.log.as_ref().map_or(Ok(()), |(_, note)| note.check_files())?;
        self.readers.lock().clear();
        // Before the writer: a checkpoint waits for that.
        let last = self.log.as_ref().map(|(thread, note)| (thread.without_checkpoints(), note));
        let mut writer = self.writer.lock();
        let Some((_held, note)) = last else {
            return writer.roll_back().map_err(|error| self.failure(&error));
        };
        let reader = writer.be_idle().and_then(|()| self.new_reader()).map_err(|error| self.failure(&error))?;
        match move_all(note, &writer.connection, (&writer.connection, &reader), "TRUNCATE") {
            Err(error) if !error.is_busy() => Err(error.explain(&self.path)),
            // If another program reads or writes the database, the log stays, and the next start finds it.
            _ => Ok(()),
        }
    }

    /// Keeps checkpoints from being made.
    #[cfg(test)]
    pub(in crate::tables) fn without_checkpoints(&self) -> Option<MutexGuard<'_, ()>> {
        self.log.as_ref().map(|(thread, _)| thread.without_checkpoints())
    }

    pub(in crate::tables) fn failure(&self, error: &rusqlite::Error) -> Failure {
        explain(&self.path, error)
    }

    /// Returns the failure for an error of a read, which is one of a transaction unless the number is 0.
    pub(super) fn failure_of_read(&self, transaction: i64, error: &rusqlite::Error) -> Failure {
        // The cache of a transaction may have to write what was changed before.
        if transaction == 0 { explain_read(&self.path, error) } else { self.failure_in(transaction, error) }
    }

    /// Returns the failure for an error of a statement of a transaction, or of its end. One that another program has hindered is executed
    /// again.
    pub(super) fn failure_in(&self, transaction: i64, error: &rusqlite::Error) -> Failure {
        let failure = self.failure(error);
        if failure.kind == FailureKind::Conflict { refused_in(transaction, failure) } else { failure }
    }

    /// Fails if the log could not be synced: then nobody knows what is durable, and nothing more is written. So if the file of a database of
    /// other programs was removed or replaced.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(Err(error)) = self.names.as_ref().map(DatabaseFileNames::check) {
            return Err(Failure::function(format!("nothing more is written: {error}; restart the program")));
        }
        self.check_durable()
    }

    fn check_durable(&self) -> Result<(), Failure> {
        self.group_commit.as_ref().map_or(Ok(()), |group_commit| group_commit.check())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let mut writer = self.writer.lock();
        // Nobody waits for it any more.
        _ = writer.be_idle();
        if let Some((_, note)) = &self.log {
            note.names().close_safely(&writer.connection);
        }
        if let Some(names) = &self.names {
            // What it finds is noted.
            _ = names.check();
            names.close_safely(&writer.connection);
        }
        drop(writer);
        if let Some(group_commit) = &self.group_commit {
            group_commit.end();
        }
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
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=OFF;
         PRAGMA cache_size=-{WRITER_CACHE_KIB}; PRAGMA journal_size_limit={LOG_KEPT_MAX};
         PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={LAYOUT};"
    ))?;
    pages.count(&mut connection)?;
    Ok(connection)
}
