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
//! connection is lost; the failure of one that may have taken effect says so. A transaction whose commit has no answer learns from the
//! database whether it has taken effect (`unanswered_commits`).

mod address;
mod beginning;
mod blocking_statement;
mod catalog;
mod changes;
mod changes_script;
mod commit_ends;
mod commit_marks;
mod commit_numbers;
mod commit_outcome;
mod connecting;
mod connection;
mod connector;
mod durability;
mod errors;
mod executing;
mod expected_rows;
mod expecting;
#[cfg(test)]
mod failover_tests;
mod flights;
mod group_execution;
mod group_statements;
mod held_up_starts;
mod io;
mod join_answer;
mod kept_room;
#[cfg(test)]
mod kept_room_tests;
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
mod received_row;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod refused_connection_tests;
mod rejoining;
mod replacement;
mod rights;
mod row_triggers;
mod rows_by_keys;
mod running_programs;
mod scratch;
mod script;
mod search_path;
mod sent_statement;
mod spare_connections;
mod start_connections;
mod start_rights;
mod syncs;
mod table;
mod table_layout;
mod time_limits;
mod tls;
mod transaction_rows;
mod transaction_statements;
mod transactions;
#[cfg(test)]
mod unanswered_commit_tests;
mod unanswered_commits;
mod unused_connections;
mod value;
mod whole_transactions;
mod write_groups;
mod writer;
mod writes_since_crash;

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use weir::Failure;

use super::catalog::{Catalog, StartCheck};
use super::database_threads::DatabaseThreads;
use super::evolution::migration_notes::MigrationProgress;
use super::evolution::past_migrations::MigrationHistory;
use super::group_commit::GroupCommit;
use super::program_end::ProgramEnd;
use super::schema::Schema;
use super::table_log::TableLog;
pub use address::PostgresAddress;
use beginning::Turns;
use blocking_statement::BlockingStatement;
use catalog::PostgresCatalog;
use commit_ends::PlacedCommits;
use connection::{PostgresConnection, SNAPSHOT};
use connector::PostgresConnector;
use durability::UnsyncedCommits;
use errors::{StatementError, explain, failure};
use held_up_starts::HELD_UP_PAUSE;
pub(super) use io::wait;
use pipelines::Pipelines;
use readers::Readers;
use row_triggers::{HAS_TRIGGERS, TABLES_WITH_TRIGGERS, TriggersOfTables};
pub use scratch::{ScratchSchema, ScratchSchemas};
pub(super) use start_connections::{CONNECTIONS_OF_EXISTING, CONNECTIONS_OF_START, PostgresConnections};
use syncs::{PostgresLog, SyncConnection};
pub(super) use table::PostgresTable;
use time_limits::AnswerTimeLimits;
use unused_connections::UnusedConnections;
use write_groups::WriteGroups;
use writer::PostgresWriter;

/// Time that the end of a program leaves to what is still under way: less than the runtime leaves to the end of all outputs.
const CLOSE_WITHIN: Duration = Duration::from_millis(300);

/// Period in which a start says that it still waits for another program.
const STILL_WAITING_PERIOD: Duration = Duration::from_secs(10);

/// The database of a program.
pub(super) struct PostgresDatabase {
    connector: PostgresConnector,
    writer: Mutex<PostgresWriter>,
    /// The statement that keeps the writer locked.
    blocking: BlockingStatement,
    /// Is told when a statement of the writer that waits without a thread is answered.
    landed: Condvar,
    unsynced: Arc<UnsyncedCommits>,
    /// The syncs; none for an existing database, and while one is only examined.
    group_commit: OnceLock<Arc<GroupCommit>>,
    /// The connection for the syncs.
    sync_connection: SyncConnection,
    readers: Arc<Readers>,
    threads: DatabaseThreads,
    pipelines: Arc<Pipelines>,
    /// The connections on which event loops execute groups of changes.
    group_connections: Arc<Pipelines>,
    groups: WriteGroups,
    /// True if the log says that a group is no valid statement.
    is_invalid_group_logged: AtomicBool,
    placed_commits: PlacedCommits,
    time_limits: AnswerTimeLimits,
    /// The tables that this program declares ([`running_programs`]).
    declared: Mutex<Vec<Schema>>,
    /// The triggers, rules and policies of the tables.
    triggers: TriggersOfTables,
    /// The names of the tables whose rows this program converts in batches.
    converting: Mutex<BTreeSet<String>>,
    /// This database, once the program is to join again when its connection is lost ([`rejoining`]).
    watched: OnceLock<Weak<PostgresDatabase>>,
    /// Ends the program if it must not go on.
    end: ProgramEnd,
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
    /// Connects to a database whose tables other programs have declared. Warnings are written to the log.
    pub(super) fn open_existing(address: PostgresAddress, log: Option<TableLog>) -> Result<PostgresDatabase, Failure> {
        // The second reader is the one that waits for the disk elsewhere: commits of an existing database wait themselves.
        let database = PostgresDatabase::unprepared(address, (log, 2))?;
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        let mut writer = database.writer.lock();
        writer.turns = Turns::None;
        writer.connect(connection);
        drop(writer);
        database.begin_reading();
        Ok(database)
    }

    /// Makes the first connection that reads, so that a start says in the log if it cannot have one.
    fn begin_reading(&self) {
        // If it fails, the first statement that reads says why.
        if let Ok(Some(reader)) = self.take_reader() {
            self.readers.put(Some(reader));
        }
    }

    /// Reads the tables of the database as they are.
    pub(super) fn look<T>(&self, read: impl FnOnce(&dyn Catalog) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut writer = self.writer.lock();
        let connection = self.connected(&mut writer).map_err(|error| self.failure(&error))?;
        self.command(connection, SNAPSHOT)?;
        let found = read(&PostgresCatalog::new(connection, self));
        self.command(connection, "ROLLBACK")?;
        found
    }

    /// Connects to the database, and prepares its schema for tables. Warnings are written to the log.
    pub(super) fn open(
        address: PostgresAddress,
        log: Option<TableLog>,
        end: ProgramEnd,
    ) -> Result<Arc<PostgresDatabase>, Failure> {
        let mut database = PostgresDatabase::unprepared(address, (log, 1))?;
        database.end = end;
        let database = Arc::new(database);
        let connection = database.connect().map_err(|error| database.failure(&error))?;
        database.waited(layout::prepare(&connection, &database.connector.address))??;
        let failed = |error| database.failure(&error);
        durability::join(&connection, &database.connector, &database.unsynced).map_err(failed)??;
        _ = database.watched.set(Arc::downgrade(&database));
        database.watch(&connection);
        let mut writer = database.writer.lock();
        writer.connect(connection);
        writer.marks = Some(database.unsynced.marks());
        drop(writer);
        let log = PostgresLog::open(&database).map_err(failed)?;
        let syncs = log.without_thread();
        let group_commit = GroupCommit::begin(log)?;
        group_commit.sync_without_thread(syncs);
        _ = database.group_commit.set(group_commit);
        Ok(database)
    }

    /// Returns a database without connections, with this log and the number of connections that it needs to read.
    fn unprepared(
        address: PostgresAddress,
        (log, readers): (Option<TableLog>, usize),
    ) -> Result<PostgresDatabase, Failure> {
        let (readers, pipelines, group_connections) = (Arc::new(Readers::new(readers)), Arc::default(), Arc::default());
        let server = address.server();
        let unused: [Weak<dyn UnusedConnections>; 3] =
            [Arc::downgrade(&readers) as _, Arc::downgrade(&pipelines) as _, Arc::downgrade(&group_connections) as _];
        unused.into_iter().for_each(|connections| unused_connections::note(&server, connections));
        let connector = PostgresConnector::new(address, log)?;
        Ok(PostgresDatabase {
            threads: DatabaseThreads::new(connector.io.handle.clone()),
            connector,
            writer: Mutex::default(),
            blocking: BlockingStatement::default(),
            landed: Condvar::new(),
            unsynced: Arc::default(),
            group_commit: OnceLock::new(),
            sync_connection: SyncConnection::default(),
            readers,
            pipelines,
            group_connections,
            groups: WriteGroups::default(),
            is_invalid_group_logged: AtomicBool::new(false),
            placed_commits: PlacedCommits::default(),
            time_limits: AnswerTimeLimits::default(),
            declared: Mutex::default(),
            triggers: TriggersOfTables::default(),
            converting: Mutex::default(),
            watched: OnceLock::new(),
            end: ProgramEnd::default(),
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
        let database = PostgresDatabase::unprepared(address.clone(), (None, 1))?;
        let connection = database.connect_to_look()?;
        database.waited(layout::check(&connection, address))??;
        database.command(&connection, SNAPSHOT)?;
        read(&PostgresCatalog::of_start(&connection, &database)?)
    }

    /// Makes the changes of the tables of a program that starts, all or none.
    pub(super) fn evolve<T>(&self, change: impl Fn(&dyn Catalog) -> StartCheck<T>) -> Result<T, Failure> {
        let applied = self.changing(|catalog| {
            let applied = change(catalog)?;
            if applied.is_err() {
                return Ok(applied);
            }
            self.look_for_triggers(catalog)?;
            let declared = self.declared.lock().clone();
            Ok(self.lacking_on_tables(|sql| catalog.query(sql), &declared)?.map_or(applied, Err))
        })?;
        self.begin_reading();
        Ok(applied)
    }

    /// Notes the triggers, rules and policies that the tables have.
    fn look_for_triggers(&self, catalog: &dyn Catalog) -> Result<(), Failure> {
        self.triggers.note(&catalog.query(TABLES_WITH_TRIGGERS)?);
        if catalog.query(HAS_TRIGGERS)?.concat() == [Some("t".to_owned())] {
            self.commits().iter().for_each(|commits| commits.found_triggers());
        }
        Ok(())
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

    /// Waits until no other program converts the rows of a table in batches, and keeps others from it until [`Self::end_conversion`].
    pub(super) fn begin_conversion(&self, schema: &Schema) -> Result<(), Failure> {
        if self.converting.lock().contains(&schema.name) {
            return Ok(());
        }
        let query = running_programs::conversion_begun(schema);
        let mut said_at: Option<Instant> = None;
        while self.look(|catalog| catalog.query(&query))?.concat() != [Some("t".to_owned())] {
            if said_at.is_none_or(|said_at| said_at.elapsed() >= STILL_WAITING_PERIOD) {
                said_at = Some(Instant::now());
                self.say_who_converts(schema)?;
            }
            std::thread::sleep(HELD_UP_PAUSE);
        }
        self.converting.lock().insert(schema.name.clone());
        Ok(())
    }

    /// Says in the log that this start waits for another program that converts the rows of a table.
    fn say_who_converts(&self, schema: &Schema) -> Result<(), Failure> {
        let Some(log) = &self.connector.log else { return Ok(()) };
        let (others, history) = self.look(|catalog| {
            let others = catalog.query(&running_programs::converting(schema))?;
            Ok((others, MigrationHistory::of(schema, catalog)?))
        })?;
        // It may have ended at this moment.
        let Some([Some(process), from]) = others.first().map(Vec::as_slice) else { return Ok(()) };
        let from = from.as_ref().map_or_else(String::new, |from| format!(" from {from}"));
        let progress = match history.begun.map(|begun| begun.progress) {
            Some(MigrationProgress::Behind(Some(last))) => {
                format!("up to the row with the key {}", last.replace("::bigint", ""))
            }
            _ => "none so far".to_owned(),
        };
        log.info(format!(
            "waiting for another program, which converts the rows of `{}`: the process {process} of the database{from}; converted: \
             {progress}",
            schema.name
        ));
        Ok(())
    }

    /// Lets other programs convert the rows of a table.
    pub(super) fn end_conversion(&self, schema: &Schema) -> Result<(), Failure> {
        if self.converting.lock().remove(&schema.name) {
            let sql = running_programs::conversion_ended(schema);
            self.look(|catalog| catalog.query(&sql).map(|_| ()))?;
        }
        Ok(())
    }

    /// Returns the commits that become durable in groups; `None` if each is durable when it is executed.
    pub(super) fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.group_commit.get()
    }

    /// Keeps the program from connecting again until the result is dropped.
    #[cfg(test)]
    pub(super) fn hold_writer(&self) -> impl Sized + '_ {
        self.lock_writer()
    }

    /// Fails if the database has lost what flows may have seen.
    fn check(&self) -> Result<(), StatementError> {
        let lost = self.group_commit.get().and_then(|group_commit| group_commit.check().err());
        lost.map_or(Ok(()), |failure| Err(StatementError::TakenBack(failure)))
    }

    /// Takes back what is open. What does not end soon is left to the database, which takes it back when the connection ends: no
    /// flow waits for it any more.
    ///
    /// # Errors
    /// Fails if a thread still waits for the answer of a statement.
    pub(super) fn close(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + CLOSE_WITHIN;
        let Some(mut writer) = self.writer.try_lock_until(deadline) else {
            return Err(self.blocking.left(&self.connector.address));
        };
        while writer.is_in_flight() {
            if self.landed.wait_until(&mut writer, deadline).timed_out() {
                writer.give_up_flight();
            }
        }
        if wait(deadline.saturating_duration_since(Instant::now()), writer.roll_back()).is_none() {
            writer.cut();
        }
        Ok(())
    }

    fn failure(&self, error: &StatementError) -> Failure {
        failure(&self.connector.address, error)
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

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        if let Some(group_commit) = self.group_commit.get() {
            group_commit.end();
        }
    }
}
