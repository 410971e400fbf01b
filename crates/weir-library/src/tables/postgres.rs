//! The database of a program's stored tables in PostgreSQL: the first schema of the search path of its address.
//!
//! *Turns.* Several programs may share the tables, such as the instances of a service. They take turns to write: each
//! transaction locks the table `weir_database` before its first statement (`writer`). A program has one connection that
//! writes, as its steps that write stored tables exclude each other, and a bounded pool of connections that read.
//!
//! *Durability.* A program that is alone commits without waiting for the disk, and syncs for all commits that were executed
//! meanwhile (`durability`); beside other programs, each commit is durable when its statement is through.
//!
//! *Faults.* A statement has a time limit. A statement that reads, and one that has not been sent, is tried again when the
//! connection is lost; the failure of one that may have taken effect says so.

mod address;
mod beginning;
mod catalog;
mod changes;
mod changes_script;
mod commit_ends;
mod commit_numbers;
mod connection;
mod connector;
mod durability;
mod errors;
mod expected_rows;
mod expecting;
mod group_execution;
mod group_statements;
mod io;
mod layout;
mod notifications;
mod pipelines;
mod placed_change;
mod placed_commits;
mod placed_statements;
mod publications;
mod queued_change;
mod readers;
mod reads;
#[cfg(test)]
mod recovery_tests;
mod replacement;
mod rows_by_keys;
mod running_programs;
mod scratch;
mod script;
mod sent_statement;
mod table;
mod table_layout;
mod time_limits;
mod tls;
mod transaction_statements;
mod transactions;
mod value;
mod write_groups;
mod writer;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use weir::{Failure, assert_may_block};

use super::catalog::{Catalog, StartCheck};
use super::group_commit::GroupCommit;
use super::migration;
use super::schema::Schema;
use super::table_log::TableLog;
pub use address::PostgresAddress;
use beginning::Turns;
use catalog::PostgresCatalog;
use commit_ends::PlacedCommits;
use connection::{Executed, PostgresConnection, SNAPSHOT, SqlStatement};
use connector::{PostgresConnector, RECONNECT_PAUSE, RECONNECT_TIMEOUT};
use durability::{PostgresLog, UnsyncedCommits};
use errors::{StatementError, explain, failure};
pub(super) use io::wait;
use pipelines::Pipelines;
use readers::Readers;
pub use scratch::{ScratchSchema, ScratchSchemas};
pub(super) use table::PostgresTable;
use time_limits::{TimeIsUp, TimeLimits};
use write_groups::WriteGroups;
use writer::{ATTEMPTS_MAX, PostgresWriter, execute_alone, pause};

/// Maximum number of times that what is sent is tried again because the connection was lost. A statement may be what ends the
/// database.
const LOST_MAX: u32 = 3;

/// Time that the end of a program leaves to what is still under way.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The database of a program.
pub(super) struct PostgresDatabase {
    connector: PostgresConnector,
    writer: Mutex<PostgresWriter>,
    /// Is told when a statement of the writer that waits without a thread is answered.
    landed: Condvar,
    unsynced: Arc<UnsyncedCommits>,
    /// The syncs; none for an existing database, and while one is only examined.
    group_commit: OnceLock<Arc<GroupCommit>>,
    readers: Readers,
    pipelines: Arc<Pipelines>,
    /// The connections on which event loops execute groups of changes.
    group_connections: Arc<Pipelines>,
    groups: WriteGroups,
    /// The log of the program.
    log: Option<TableLog>,
    /// True if the log says that a group is no valid statement.
    is_invalid_group_logged: AtomicBool,
    placed_commits: PlacedCommits,
    time_limits: TimeLimits,
    /// The statements that note what this program declares ([`running_programs`]).
    declared: Mutex<Vec<String>>,
    /// A number by which this program knows its own notifications.
    program: u64,
    /// The number of the last transaction of a statement that is one of its own. These are below 0.
    own_transactions: AtomicI64,
}

impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PostgresDatabase({})", self.connector.address)
    }
}

impl PostgresDatabase {
    /// Connects to a database whose tables other programs have declared.
    pub(super) fn open_existing(address: PostgresAddress) -> Result<PostgresDatabase, Failure> {
        let database = PostgresDatabase::unprepared(address)?;
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        let mut writer = database.writer.lock();
        writer.turns = Turns::None;
        writer.connect(connection);
        drop(writer);
        Ok(database)
    }

    /// Reads the tables of the database as they are.
    pub(super) fn look<T>(&self, read: impl FnOnce(&dyn Catalog) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut writer = self.writer.lock();
        let connection = self.connected(&mut writer).map_err(|error| self.failure(&error))?;
        self.command(connection, SNAPSHOT)?;
        let found = read(&PostgresCatalog { connection, database: self });
        self.command(connection, "ROLLBACK")?;
        found
    }

    /// Connects to the database, and prepares its schema for tables. Warnings are written to the log.
    pub(super) fn open(address: PostgresAddress, log: Option<TableLog>) -> Result<Arc<PostgresDatabase>, Failure> {
        let mut database = PostgresDatabase::unprepared(address)?;
        database.log = log;
        let database = Arc::new(database);
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        database.waited(layout::prepare(&connection, &database.connector.address))??;
        let failed = |error| database.failure(&error);
        durability::join(&connection, &database.connector, &database.unsynced).map_err(failed)??;
        database.writer.lock().connect(connection);
        let log = PostgresLog::open(&database).map_err(failed)?;
        let syncs = log.without_thread();
        let group_commit = GroupCommit::begin(log)?;
        group_commit.sync_without_thread(syncs);
        _ = database.group_commit.set(group_commit);
        Ok(database)
    }

    fn unprepared(address: PostgresAddress) -> Result<PostgresDatabase, Failure> {
        Ok(PostgresDatabase {
            connector: PostgresConnector::new(address)?,
            writer: Mutex::default(),
            landed: Condvar::new(),
            unsynced: Arc::default(),
            group_commit: OnceLock::new(),
            readers: Readers::default(),
            pipelines: Arc::default(),
            group_connections: Arc::default(),
            groups: WriteGroups::default(),
            log: None,
            is_invalid_group_logged: AtomicBool::new(false),
            placed_commits: PlacedCommits::default(),
            time_limits: TimeLimits::default(),
            declared: Mutex::default(),
            // Another random number for each state, also of one process.
            program: RandomState::new().build_hasher().finish(),
            own_transactions: AtomicI64::new(0),
        })
    }

    /// Reads the tables of a database as they are, without changing it.
    pub(super) fn examine<T>(
        address: &PostgresAddress,
        read: impl FnOnce(&PostgresCatalog<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let database = PostgresDatabase::unprepared(address.clone())?;
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        database.waited(layout::check(&connection, address))??;
        let catalog = PostgresCatalog { connection: &connection, database: &database };
        database.command(&connection, SNAPSHOT)?;
        read(&catalog)
    }

    /// Makes the changes that a start of a program with this table needs, all or none.
    fn evolve(&self, schema: &Schema) -> Result<(), Failure> {
        self.changing(|catalog| migration::apply(schema, catalog))
    }

    /// Returns whether no program hinders a start with this table any more. No transaction is open, so that those which are running write
    /// as before.
    pub(super) fn hindering_have_ended(&self, schema: &Schema) -> bool {
        let query = running_programs::hindering(schema);
        let looking = self.connect().map(|connection| {
            self.connector.io.handle.spawn(async move { running_programs::end_soon(&connection, &query).await })
        });
        let ended = looking.ok().and_then(|looking| wait(self.connector.limit(), looking));
        matches!(ended, Some(Ok(Ok(true))))
    }

    /// Makes changes of a start, all or none.
    pub(super) fn changing<T>(&self, change: impl FnOnce(&dyn Catalog) -> StartCheck<T>) -> Result<T, Failure> {
        let mut writer = self.writer.lock();
        let connection = self.connected(&mut writer).map_err(|error| failure(&self.connector.address, &error))?;
        self.command(connection, "BEGIN; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE")?;
        let changed = change(&PostgresCatalog { connection, database: self });
        let is_changed = matches!(changed, Ok(Ok(_)));
        self.command(connection, if is_changed { "COMMIT" } else { "ROLLBACK" })?;
        changed?
    }

    /// Executes statements that write: in the transaction, or as one of their own if the number is 0; all or none. Changes of other
    /// flows that wait come before. Nobody queues another one meanwhile, because this flow holds the constraint `tables`.
    fn write(&self, transaction: i64, statements: &[SqlStatement<'_>]) -> Result<Vec<Executed>, StatementError> {
        self.check()?;
        self.groups.wait_idle();
        let mut writer = self.lock_writer();
        self.again(|| self.execute(&mut writer, transaction, statements, false))
    }

    /// Runs several statements that write, which take effect together or not at all: in the transaction, or as one of their
    /// own if the number is 0.
    fn write_together<T>(
        &self,
        transaction: i64,
        statements: impl Fn(i64) -> Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        if transaction != 0 {
            return self.in_savepoint(transaction, || statements(transaction));
        }
        self.again(|| {
            let number = self.own_transactions.fetch_sub(1, Ordering::Relaxed) - 1;
            let value = statements(number).inspect_err(|_| _ = self.roll_back(number))?;
            self.commit_once(number)?;
            Ok(value)
        })
    }

    fn in_savepoint<T>(
        &self,
        transaction: i64,
        statements: impl FnOnce() -> Result<T, StatementError>,
    ) -> Result<T, StatementError> {
        let command = |sql| {
            let command = [SqlStatement { sql, parameters: Vec::new() }];
            self.read(transaction, &command).map(|_| ())
        };
        command("SAVEPOINT rows")?;
        let before = self.writer.lock().redo.len();
        let value = statements();
        if value.is_err() {
            command("ROLLBACK TO SAVEPOINT rows")?;
            let mut writer = self.writer.lock();
            writer.redo.truncate(before);
            // The lock that keeps programs from listening may be one of those that were taken back.
            writer.is_unheard = false;
        }
        command("RELEASE SAVEPOINT rows")?;
        value
    }

    /// Executes statements that read, all as the tables are at one moment.
    fn read(&self, transaction: i64, statements: &[SqlStatement<'_>]) -> Result<Vec<Executed>, StatementError> {
        if transaction != 0 {
            self.groups.wait_idle();
            let mut writer = self.lock_writer();
            return self.again(|| self.execute(&mut writer, transaction, statements, true));
        }
        while_lost(|| self.read_once(statements))
    }

    fn read_once(&self, statements: &[SqlStatement<'_>]) -> Result<Vec<Executed>, StatementError> {
        let reader = self.readers.take(self.limit(), || {
            let reader = self.connect()?;
            self.recovered()?;
            Ok(reader)
        })?;
        let read = self.answered(async {
            let prepared = reader.prepare(statements).await?;
            reader.read_at_one_moment(statements, &prepared).await
        });
        let is_usable = !matches!(read, Err(StatementError::NoAnswer)) && !reader.is_closed();
        self.readers.put(is_usable.then_some(reader));
        read
    }

    /// Executes once more what a crash of the database has taken back, which a connection that is new would not see.
    fn recovered(&self) -> Result<(), StatementError> {
        match self.group_commit.get() {
            Some(group_commit) if !self.unsynced.is_empty() => wait(self.limit(), group_commit.settled())
                .map_or(Err(StatementError::NoAnswer), |settled| settled.map_err(StatementError::TakenBack)),
            _ => Ok(()),
        }
    }

    fn execute(
        &self,
        writer: &mut PostgresWriter,
        transaction: i64,
        statements: &[SqlStatement<'_>],
        reads: bool,
    ) -> Result<Vec<Executed>, StatementError> {
        self.answered(writer.enter(transaction))?;
        let turns = writer.turns;
        let connection = self.connected(writer)?;
        let executed = match transaction {
            0 => self
                .answered(execute_alone((connection, turns), statements))
                .and_then(|(executed, unsynced)| self.committed(unsynced).map(|()| executed)),
            number => self.answered(writer.execute(number, statements, reads)),
        };
        if matches!(executed, Err(StatementError::NoAnswer)) {
            writer.cut();
        }
        executed
    }

    /// Commits a transaction. If that fails, nothing of it takes effect, unless the failure says that this is unknown.
    fn commit(&self, transaction: i64) -> Result<(), Failure> {
        self.commit_once(transaction).map_err(|error| self.failure(&error))
    }

    fn commit_once(&self, transaction: i64) -> Result<(), StatementError> {
        let mut writer = self.lock_writer();
        let committed = self.answered(writer.commit(transaction));
        if matches!(committed, Err(StatementError::NoAnswer)) {
            writer.cut();
        }
        let noted = committed.and_then(|unsynced| self.committed(unsynced));
        drop(writer);
        self.await_placed_commits()?;
        noted
    }

    /// Connects the writer anew, after a crash of the database.
    fn reconnect(&self) -> Result<(), StatementError> {
        self.writer.lock().cut();
        // A commit that was answered before is noted first.
        let mut writer = self.lock_writer();
        self.connected(&mut writer).map(|_| ())
    }

    /// Returns the commits that become durable in groups; `None` if each is durable when it is executed.
    pub(super) fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.group_commit.get()
    }

    /// Fails if the database has lost what flows may have seen.
    fn check(&self) -> Result<(), StatementError> {
        let lost = self.group_commit.get().and_then(|group_commit| group_commit.check().err());
        lost.map_or(Ok(()), |failure| Err(StatementError::TakenBack(failure)))
    }

    /// Takes back a transaction, if it is open. Fails if a placed statement was refused.
    fn roll_back(&self, transaction: i64) -> Result<(), Failure> {
        if self.take_back(transaction) {
            return Ok(());
        }
        let mut writer = self.lock_writer();
        let placed = self.answered(writer.placed_answered(transaction));
        if writer.transaction == transaction && wait(self.limit(), writer.roll_back()).is_none() {
            writer.cut();
        }
        match placed.and_then(|()| writer.check(transaction)) {
            Err(StatementError::TakenBack(failure)) if failure.place().is_some() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Locks the writer, while no statement of it waits for its answer without a thread.
    fn lock_writer(&self) -> MutexGuard<'_, PostgresWriter> {
        let mut writer = self.writer.lock();
        let deadline = Instant::now() + self.limit();
        while writer.is_in_flight() {
            assert_may_block();
            if self.landed.wait_until(&mut writer, deadline).timed_out() {
                // Its flow is not run any more.
                writer.give_up_flight();
            }
        }
        writer
    }

    /// Takes back what is open. What does not end soon is left to the database, which takes it back when the connection ends: no
    /// flow waits for it any more.
    pub(super) fn close(&self) {
        let deadline = Instant::now() + CLOSE_WITHIN;
        let Some(mut writer) = self.writer.try_lock_until(deadline) else { return };
        while writer.is_in_flight() {
            if self.landed.wait_until(&mut writer, deadline).timed_out() {
                writer.give_up_flight();
            }
        }
        if wait(deadline.saturating_duration_since(Instant::now()), writer.roll_back()).is_none() {
            writer.cut();
        }
    }

    fn failure(&self, error: &StatementError) -> Failure {
        failure(&self.connector.address, error)
    }

    /// Tries what is a transaction of its own, or begins one, again as long as others hinder it, and a few times if the connection
    /// is lost before anything of it could take effect: a database that ends or begins may also cut the next connections.
    fn again<T>(&self, mut attempt: impl FnMut() -> Result<T, StatementError>) -> Result<T, StatementError> {
        let mut lost = 0;
        for number in 1..ATTEMPTS_MAX {
            match attempt() {
                Err(error) if error.is_conflict() => pause(number),
                Err(error) if error.is_lost() && lost < LOST_MAX => {
                    if lost > 0 {
                        std::thread::sleep(RECONNECT_PAUSE);
                    }
                    lost += 1;
                }
                tried => return tried,
            }
        }
        attempt()
    }

    /// Returns the connection that writes, and makes it if there is none. No statement of the writer may be in flight: a commit that
    /// is answered and not noted would not be executed once more.
    fn connected<'w>(&self, writer: &'w mut PostgresWriter) -> Result<&'w PostgresConnection, StatementError> {
        let open = writer.connection.take().filter(|connection| !connection.is_closed());
        Ok(match open {
            Some(open) => &**writer.connection.insert(open),
            None => {
                // One that is not noted in time fails.
                _ = self.await_placed_commits();
                let connected = while_lost(|| self.joined());
                writer.connect(connected.map_err(|error| match error {
                    StatementError::Database(error, _) => StatementError::Unreachable(error),
                    other => other,
                })?)
            }
        })
    }

    /// Connects the writer, and executes once more what a crash of the database has taken back.
    fn joined(&self) -> Result<PostgresConnection, StatementError> {
        let connection = self.connect()?;
        // Other databases know nothing of the programs of this one.
        if let Some(group_commit) = self.group_commit.get()
            && let Err(lost) = durability::join(&connection, &self.connector, &self.unsynced)?
        {
            group_commit.give_up(lost.clone());
            return Err(StatementError::TakenBack(lost));
        }
        let declared = self.declared.lock().join("; ");
        if !declared.is_empty() {
            let noted =
                async { connection.command(&declared).await.map_err(|error| StatementError::Database(error, 0)) };
            self.connector.answered(noted)?;
        }
        Ok(connection)
    }

    fn connect(&self) -> Result<PostgresConnection, StatementError> {
        self.connector.connect()
    }

    fn command(&self, connection: &PostgresConnection, sql: &str) -> Result<(), Failure> {
        self.waited(connection.command(sql))?.map_err(|error| explain(&self.connector.address, &error))
    }

    /// Returns the rows of a query, with their values as texts.
    fn texts(&self, connection: &PostgresConnection, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.waited(connection.texts(sql))?.map_err(|error| explain(&self.connector.address, &error))
    }

    /// Blocks the thread until the answer is there.
    fn waited<T>(&self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        wait(self.limit(), answer).ok_or_else(|| failure(&self.connector.address, &StatementError::NoAnswer))
    }

    fn answered<T>(&self, answer: impl Future<Output = Result<T, StatementError>>) -> Result<T, StatementError> {
        self.connector.answered(answer)
    }

    fn limit(&self) -> Duration {
        self.connector.limit()
    }
}

/// Tries what needs a connection until it succeeds, fails for another reason than a lost connection, or the time to connect again
/// is over.
fn while_lost<T>(attempt: impl Fn() -> Result<T, StatementError>) -> Result<T, StatementError> {
    let deadline = Instant::now() + RECONNECT_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if error.is_lost() && Instant::now() < deadline => std::thread::sleep(RECONNECT_PAUSE),
            tried => return tried,
        }
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        if let Some(group_commit) = self.group_commit.get() {
            group_commit.end();
        }
    }
}
