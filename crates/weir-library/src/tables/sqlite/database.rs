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

mod opening;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use weir::{Failure, FailureKind, may_block};

use super::catalog::SqliteCatalog;
use super::checkpoint::{LogThread, move_all};
use super::connection::read_only;
use super::counted_memory::reading;
use super::database_error::{explain, explain_read};
use super::disk_waits::DiskWaits;
use super::existing_files::ExistingFiles;
use super::group_log::Redo;
use super::log_note::LogNote;
use super::row_statement::{RowChanged, RowStatement};
use super::shared_writer::SharedWriter;
use super::writer::Writer;
use crate::tables::catalog::{Catalog, StartCheck};
use crate::tables::group_commit::GroupCommit;
use crate::tables::transaction_number::{only_reads, refused as refused_in};

/// Maximum number of readers that wait for their next use.
const IDLE_READERS_MAX: usize = 16;
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
    /// The files of a database of other programs. Closed after the connections.
    existing: Option<Arc<ExistingFiles>>,
    /// Keeps other programs out. Closed last: closing any descriptor of the file would release SQLite's locks.
    _lock: Option<File>,
}

/// The database as it was at one moment: a connection that reads in a transaction.
#[derive(Debug)]
pub(super) struct Snapshot(Connection);

impl Database {
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
        let written = match &self.existing {
            Some(files) if transaction == 0 => files.around(|| execute(&statement, &writer)),
            _ => execute(&statement, &writer),
        };
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
        let value = self.disk_waits.during(|| reading(|| statement(&reader)))?;
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
        let value = self.disk_waits.during(|| reading(|| read(&reader)))?;
        reader.prepare_cached("COMMIT")?.execute([])?;
        self.keep_reader(reader);
        Ok(value)
    }

    /// Returns a connection that sees the last commit.
    fn reader(&self) -> rusqlite::Result<Connection> {
        // Otherwise a new reader would see another file than those that are open.
        self.existing.as_ref().map_or(Ok(()), |files| files.check())?;
        let idle = self.readers.lock().pop();
        idle.map_or_else(|| self.new_reader(), Ok)
    }

    fn new_reader(&self) -> rusqlite::Result<Connection> {
        match &self.log {
            Some((_, note)) => note.files().connect(read_only),
            None => read_only(&self.path),
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
        self.check()?;
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

    /// Fails if the log could not be synced: then nobody knows what is durable, and nothing more is written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.group_commit.as_ref().map_or(Ok(()), |group_commit| group_commit.check())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let mut writer = self.writer.lock();
        // Nobody waits for it any more.
        _ = writer.be_idle();
        if let Some((_, note)) = &self.log {
            note.files().close_safely(&writer.connection);
        }
        if let Some(files) = &self.existing {
            files.close_safely(&writer.connection);
        }
        drop(writer);
        if let Some(group_commit) = &self.group_commit {
            group_commit.end();
        }
    }
}
