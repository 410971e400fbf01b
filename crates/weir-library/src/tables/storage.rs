//! The place where a program keeps its tables.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use weir::{Failure, HostType, SeenCommits, Text, Value};

use super::catalog::{Catalog, StartCheck};
use super::database_constraints::{self, is_database};
use super::database_steps::DatabaseSteps;
use super::memory::{MemoryTable, TableClock};
use super::open_table::OpenTable;
use super::own_commits::OwnCommits;
use super::postgres::{PostgresDatabase, PostgresTable};
use super::program_end::ProgramEnd;
use super::published_rows::PublishedRows;
use super::recent_writes::OpenWrites;
use super::refusing_rows::{Refusals, RefusingRows};
use super::rows::TableRows;
use super::schema::{ExistingTable, Schema};
use super::table_databases::{ExistingDatabases, OpenDatabase, TableLocation};
use super::table_log::TableLog;
use super::transaction_number;
use super::write_sets::{WriteSet, WriteSets};
use crate::tables::evolution::converted_rows::{self, ConvertedRows};
use crate::tables::evolution::migration;
use crate::tables::evolution::start_changes::{self, StartingTable};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;

/// The place where a program keeps its tables: by default, all in memory.
#[derive(Debug)]
pub struct TableStorage {
    place: TableLocation,
    database: Mutex<Option<OpenDatabase>>,
    existing: ExistingDatabases,
    /// The log of the program; `None` in tests.
    log: Option<TableLog>,
    end: ProgramEnd,
    /// The open databases of other programs, by their addresses.
    attached: Mutex<BTreeMap<String, OpenDatabase>>,
    /// The number of transactions that have begun.
    transactions: Arc<AtomicI64>,
    /// The steps that write each database, by its constraint.
    steps: Mutex<BTreeMap<String, Arc<DatabaseSteps>>>,
    /// The stored tables that are open, and whose changes wait for those of the others.
    starting: Mutex<Vec<StartingTable>>,
    /// The open tables, by name.
    tables: Mutex<BTreeMap<String, Arc<OpenTable>>>,
    write_sets: Arc<WriteSets>,
    open_writes: Arc<OpenWrites>,
    own_commits: Arc<OwnCommits>,
    /// True if the commits of other programs are published.
    listens: Mutex<bool>,
    /// The clock by which rows of soft tables expire.
    clock: TableClock,
    /// The transactions that are refused at random, for tests.
    refusals: Option<Arc<Refusals>>,
}

impl Default for TableStorage {
    fn default() -> Self {
        TableStorage {
            place: TableLocation::Memory,
            database: Mutex::default(),
            existing: ExistingDatabases::default(),
            log: None,
            end: ProgramEnd::default(),
            attached: Mutex::default(),
            transactions: Arc::default(),
            steps: Mutex::default(),
            starting: Mutex::default(),
            tables: Mutex::default(),
            write_sets: Arc::default(),
            open_writes: Arc::default(),
            own_commits: Arc::default(),
            listens: Mutex::default(),
            clock: Instant::now,
            refusals: None,
        }
    }
}

impl weir::Closing for TableStorage {
    fn close(&self) -> Result<(), Failure> {
        self.open_databases().into_iter().map(|database| database.close()).fold(Ok(()), Result::and)
    }
}

impl weir::PlacedCalls for TableStorage {
    fn failed(&self, group: i64) -> Pin<Box<dyn Future<Output = Option<Failure>> + Send>> {
        let open = self.open_databases();
        Box::pin(async move {
            for database in open {
                if let OpenDatabase::Postgres(database) = database
                    && let Some(refused) = database.placed_refused(group).await
                {
                    return Some(refused);
                }
            }
            None
        })
    }
}

impl weir::DurableCommits for TableStorage {
    fn settled(&self, seen: SeenCommits) -> Option<weir::Settling> {
        if seen.last == 0 {
            return None;
        }
        let database = self.database.lock();
        let commits = Arc::clone(database.as_ref().and_then(OpenDatabase::commits)?);
        (!commits.is_settled_to(seen))
            .then(|| Box::pin(async move { commits.settled_to(seen).await }) as weir::Settling)
    }
}

impl weir::StepEnds for TableStorage {
    fn of(&self, constraint: &str) -> Option<Arc<dyn weir::StepEnd>> {
        is_database(constraint).then(|| self.steps_of(constraint) as Arc<dyn weir::StepEnd>)
    }
}

impl weir::Starting for TableStorage {
    fn check_start(&self, tables: &[Value]) -> Result<(), (Text, Failure)> {
        let tables: Vec<Schema> = tables.iter().filter_map(|table| Schema::from_value(table.clone()).ok()).collect();
        let converts = |schema: &Schema| schema.is_stored() && schema.converts_in_batches();
        if matches!(self.place, TableLocation::Memory) || !tables.iter().any(converts) {
            return Ok(());
        }
        self.check_tables(&tables).map_err(|(table, failure)| (table.name.as_str().into(), failure))
    }

    fn complete_start(&self) -> Result<(), (Text, Failure)> {
        let tables = std::mem::take(&mut *self.starting.lock());
        let Some(first) = tables.first() else { return Ok(()) };
        let failed = |table: &StartingTable, failure| (table.schema.name.as_str().into(), failure);
        let database = self.open_database().map_err(|failure| failed(first, failure))?;
        let change = || {
            let at = Cell::new(0);
            let changed = match &database {
                OpenDatabase::Sqlite(database) => {
                    database.changing(|catalog| start_changes::make(&tables, &at, catalog))
                }
                OpenDatabase::Postgres(database) => {
                    database.evolve(|catalog| start_changes::make(&tables, &at, catalog))
                }
            };
            changed.map_err(|failure| (&tables[at.get()], failure))
        };
        let changed = change();
        let changed = match (&changed, &database) {
            (Err((table, why)), OpenDatabase::Postgres(database)) if database.may_start_now(why, &table.schema) => {
                change()
            }
            _ => changed,
        };
        let changes = changed.map_err(|(table, failure)| failed(table, failure))?;
        if let Some(log) = &self.log {
            changes.iter().for_each(|change| log.info(format!("the start has changed the database: {}", change.sql)));
        }
        Ok(())
    }
}

impl TableStorage {
    /// Returns a storage that keeps stored tables at this place.
    #[must_use]
    pub fn at(place: TableLocation) -> TableStorage {
        TableStorage { place, ..TableStorage::default() }
    }

    /// Finds databases of other programs in this way.
    #[must_use]
    pub fn with_existing(self, existing: ExistingDatabases) -> TableStorage {
        TableStorage { existing, ..self }
    }

    /// Writes warnings to this log.
    #[must_use]
    pub fn with_log(self, log: TableLog) -> TableStorage {
        TableStorage { log: Some(log), ..self }
    }

    /// Refuses statements of transactions at random, as a database does in which other programs write: for tests of programs in memory
    /// and in SQLite, which never refuse one.
    #[must_use]
    pub fn refusing(self, seed: u64) -> TableStorage {
        TableStorage { refusals: Some(Arc::new(Refusals::new(seed))), ..self }
    }

    /// Calls this when the program must not go on with its tables until it starts again, with the reason; at once if that is known.
    pub fn on_end(&self, end: impl Fn(Failure) + Send + Sync + 'static) {
        self.end.on_failure(end);
    }

    /// Returns a storage that keeps tables in memory, whose rows expire by this clock.
    #[cfg(test)]
    pub(super) fn with_clock(clock: TableClock) -> TableStorage {
        TableStorage { clock, ..TableStorage::default() }
    }

    /// Returns the database, which is one of PostgreSQL.
    #[cfg(test)]
    pub(super) fn postgres(&self) -> Arc<PostgresDatabase> {
        match self.open_database() {
            Ok(OpenDatabase::Postgres(database)) => database,
            other => panic!("{other:?}"),
        }
    }

    /// Opens the table of a program that has no other.
    #[cfg(test)]
    pub(super) fn open(&self, schema: Schema) -> Result<Arc<OpenTable>, Failure> {
        let table = self.prepare(schema)?;
        weir::Starting::complete_start(self).map_err(|(_, failure)| failure)?;
        Ok(table)
    }

    /// Opens a table. When all are open, the start makes them as they are declared ([`weir::Starting`]).
    pub(super) fn prepare(&self, schema: Schema) -> Result<Arc<OpenTable>, Failure> {
        let rows = self.rows_of(schema.clone())?;
        let rows = match self.refusals.clone() {
            Some(refusals) => Box::new(RefusingRows { rows, refusals }),
            None => rows,
        };
        let (write_sets, open_writes) = (Arc::clone(&self.write_sets), Arc::clone(&self.open_writes));
        let own = self.is_in_own_database(&schema).then(|| Arc::clone(&self.own_commits));
        let rows = Box::new(PublishedRows::new((schema.clone(), rows), own, open_writes, write_sets));
        let steps = self.steps_of(schema.constraint());
        let table = Arc::new(OpenTable { schema, rows, steps });
        self.tables.lock().insert(table.schema.name.clone(), Arc::clone(&table));
        Ok(table)
    }

    /// Checks the tables of a program before rows of one are converted in batches.
    fn check_tables<'s>(&self, tables: &'s [Schema]) -> Result<(), (&'s Schema, Failure)> {
        let at = Cell::new(tables.iter().position(Schema::is_stored).unwrap_or_default());
        let check = || {
            let check = |catalog: &dyn Catalog| start_changes::check(tables, &at, catalog);
            match self.open_database()? {
                OpenDatabase::Sqlite(database) => database.changing(check),
                OpenDatabase::Postgres(database) => match database.changing(check) {
                    Err(why) if database.may_start_now(&why, &tables[at.get()]) => database.changing(check),
                    checked => checked,
                },
            }
        };
        let converts = check().map_err(|failure| (&tables[at.get()], failure))?;
        let mut existing = tables.iter().filter(|table| converts && table.existing.is_some());
        existing.try_for_each(|table| self.rows_of(table.clone()).map(drop).map_err(|failure| (table, failure)))
    }

    /// Returns the steps that write the database with this constraint.
    fn steps_of(&self, constraint: &str) -> Arc<DatabaseSteps> {
        let mut steps = self.steps.lock();
        let new = || Arc::new(DatabaseSteps::new(Arc::clone(&self.transactions)));
        Arc::clone(steps.entry(constraint.to_owned()).or_insert_with(new))
    }

    /// Returns the next rows of the old type of a table that the program converts; none if there are none.
    pub(super) fn old_rows(&self, schema: &Schema) -> Result<Vec<Value>, Failure> {
        let read = || self.changing(schema, |catalog| migration::old_rows(schema, catalog), Vec::new());
        if !self.is_shared(schema) {
            return read();
        }
        let OpenDatabase::Postgres(database) = self.open_database()? else { return read() };
        if schema.converts_in_batches() {
            database.begin_conversion(schema)?;
        }
        let rows = match read() {
            Err(why) if database.may_start_now(&why, schema) => read(),
            rows => rows,
        };
        if !rows.as_ref().is_ok_and(|rows| !rows.is_empty()) {
            database.end_conversion(schema)?;
        }
        rows
    }

    /// Returns the failure of a row that the `fn` of a migration has not converted, with what is known about it and the others.
    pub(super) fn not_converted(&self, schema: &Schema, row: &Value, failure: Failure) -> Failure {
        let explained =
            |catalog: &dyn Catalog| Ok(Ok(migration::not_converted(schema, row, failure.clone(), catalog)?));
        self.changing(schema, explained, failure.clone()).unwrap_or_else(|_| failure.clone())
    }

    /// Stores converted rows, and returns whether more are left. All rows of a table are stored when all tables are open, so that a failure
    /// in one leaves the others as they are.
    pub(super) fn store_converted(&self, schema: &Schema, old: &[Value], new: Vec<Value>) -> Result<bool, Failure> {
        if self.is_in_memory(schema) {
            return Ok(false);
        }
        if !schema.converts_in_batches() {
            converted_rows::check_unique(schema, &new)?;
            let converted = ConvertedRows { old: old.to_vec(), new };
            self.starting.lock().push(StartingTable { schema: schema.clone(), converted: Some(converted) });
            return Ok(false);
        }
        let stored = self.changing(schema, |catalog| migration::store(schema, old, &new, catalog), false);
        if !matches!(stored, Ok(true))
            && self.is_shared(schema)
            && let OpenDatabase::Postgres(database) = self.open_database()?
        {
            database.end_conversion(schema)?;
        }
        stored
    }

    fn is_in_memory(&self, schema: &Schema) -> bool {
        schema.soft.is_some() || matches!(self.place, TableLocation::Memory)
    }

    /// Returns whether a table is in the program's own database, also if the program reads it as one of another program.
    fn is_in_own_database(&self, schema: &Schema) -> bool {
        let place = || schema.existing.as_ref().map(|existing| self.existing.place(&existing.database));
        !self.is_in_memory(schema) && place().is_none_or(|place| place.is_ok_and(|place| place.may_be(&self.place)))
    }

    /// Returns whether other programs may convert the rows of a table as well.
    fn is_shared(&self, schema: &Schema) -> bool {
        schema.soft.is_none() && matches!(self.place, TableLocation::Postgres(_))
    }

    /// Changes the database in one transaction, unless the table is kept in memory.
    fn changing<T>(
        &self,
        schema: &Schema,
        change: impl Fn(&dyn Catalog) -> StartCheck<T>,
        in_memory: T,
    ) -> Result<T, Failure> {
        if self.is_in_memory(schema) {
            return Ok(in_memory);
        }
        match self.open_database()? {
            OpenDatabase::Sqlite(database) => database.changing(change),
            OpenDatabase::Postgres(database) => database.changing(change),
        }
    }

    /// Returns an open table.
    pub(super) fn table(&self, name: &str) -> Result<Arc<OpenTable>, Failure> {
        let table = self.tables.lock().get(name).cloned();
        table.ok_or_else(|| Failure::function(format!("the table `{name}` is not open")))
    }

    fn rows_of(&self, schema: Schema) -> Result<Box<dyn TableRows>, Failure> {
        if self.is_in_memory(&schema) {
            return Ok(Box::new(Mutex::new(MemoryTable::new(schema, self.clock))));
        }
        if let Some(existing) = schema.existing.clone() {
            // Tests never use data that somebody has named.
            if matches!(self.place, TableLocation::Scratch(_)) {
                return Ok(Box::new(Mutex::new(MemoryTable::new(schema, self.clock))));
            }
            return Ok(match self.attached(&existing)? {
                OpenDatabase::Sqlite(database) => Box::new(StoredTable::open_existing(schema, database)?),
                OpenDatabase::Postgres(database) => Box::new(PostgresTable::open_existing(schema, database)?),
            });
        }
        let database = self.open_database()?;
        let mut starting = self.starting.lock();
        if starting.last().is_none_or(|last| last.schema.name != schema.name) {
            starting.push(StartingTable { schema: schema.clone(), converted: None });
        }
        Ok(match database {
            OpenDatabase::Sqlite(database) => Box::new(StoredTable::new(schema, database)),
            OpenDatabase::Postgres(database) => Box::new(PostgresTable::new(schema, database)),
        })
    }

    /// Returns a database of other programs, and opens it before the first of its tables.
    fn attached(&self, ExistingTable { database, constraint, .. }: &ExistingTable) -> Result<OpenDatabase, Failure> {
        let mut attached = self.attached.lock();
        if let Some(open) = attached.get(database) {
            return Ok(open.clone());
        }
        let open = self.existing.open(database, self.log.clone())?;
        self.steps_of(constraint).opened(open.clone());
        attached.insert(database.clone(), open.clone());
        Ok(open)
    }

    /// Returns the databases that are open.
    fn open_databases(&self) -> Vec<OpenDatabase> {
        let database = self.database.lock().clone();
        database.into_iter().chain(self.attached.lock().values().cloned()).collect()
    }

    /// Returns the database of stored tables, and opens it before the first one.
    fn open_database(&self) -> Result<OpenDatabase, Failure> {
        let mut database = self.database.lock();
        if let Some(open) = &*database {
            return Ok(open.clone());
        }
        let opened = match &self.place {
            TableLocation::Memory => return Err(Failure::function("the tables are kept in memory")),
            TableLocation::File(file) => {
                OpenDatabase::Sqlite(Arc::new(Database::open(file, self.log.clone(), self.end.clone())?))
            }
            TableLocation::Postgres(address) => {
                OpenDatabase::Postgres(PostgresDatabase::open(address.clone(), self.log.clone(), self.end.clone())?)
            }
            TableLocation::Scratch(schema) => {
                OpenDatabase::Postgres(PostgresDatabase::open(schema.create()?, None, self.end.clone())?)
            }
        };
        self.steps_of(database_constraints::OWN).opened(opened.clone());
        Ok(database.insert(opened).clone())
    }

    /// Returns the write sets of the commits from now on: those of this program, and in PostgreSQL those of the programs that
    /// share its tables. A reader that is too slow learns that it has missed some.
    ///
    /// # Errors
    /// Fails if the program cannot listen to the others.
    pub fn write_sets(&self) -> Result<broadcast::Receiver<WriteSet>, Failure> {
        let watched = self.write_sets.watch();
        let mut listens = self.listens.lock();
        if !*listens && matches!(self.place, TableLocation::Postgres(_)) {
            let OpenDatabase::Postgres(database) = self.open_database()? else { return Ok(watched) };
            let sets = Arc::downgrade(&self.write_sets);
            database.listen(move |set| sets.upgrade().map(|sets| sets.publish(set)).is_some())?;
            *listens = true;
        }
        drop(listens);
        Ok(watched)
    }

    /// Begins a transaction that is executed once.
    pub(super) fn next_transaction(&self) -> i64 {
        self.begin(false)
    }

    /// Begins a transaction, and returns its number.
    pub(super) fn begin(&self, is_repeated: bool) -> i64 {
        transaction_number::number(self.transactions.fetch_add(1, Ordering::Relaxed) + 1, is_repeated)
    }

    /// Begins a transaction whose step restores shared values unless it commits, and returns its number.
    pub(super) fn begin_restoring(&self, is_repeated: bool) -> i64 {
        transaction_number::restoring(self.begin(is_repeated))
    }

    /// Waits for the commit of a transaction that was placed. Fails if it has failed.
    pub(super) async fn committed(&self, transaction: i64) -> Result<(), Failure> {
        for database in self.open_databases() {
            if let OpenDatabase::Postgres(database) = database {
                database.placed_commit(transaction).await?;
            }
        }
        Ok(())
    }

    /// Returns the result of [`TableStorage::settled`], if nothing has to be waited for.
    pub(super) fn settled_at_once(&self, all: bool) -> Option<Result<(), Failure>> {
        let commits = awaited(all);
        if commits.last > 0 {
            let database = self.database.lock();
            if let Some(of_database) = database.as_ref().and_then(OpenDatabase::commits) {
                of_database.is_settled_to(commits).then_some(())?;
            }
            SeenCommits::forget();
        }
        Some(Ok(()))
    }

    /// Waits until what the flow has seen is durable; if `all`, until everything that was committed before is.
    pub(super) async fn settled(&self, all: bool) -> Result<(), Failure> {
        let commits = awaited(all);
        if commits.last == 0 {
            return Ok(());
        }
        let database = self.database.lock().clone();
        if let Some(of_database) = database.as_ref().and_then(OpenDatabase::commits) {
            of_database.settled_to(commits).await?;
        }
        SeenCommits::forget();
        Ok(())
    }
}

/// Returns the commits for which the flow on this thread has to wait; if `all`, those of others, too.
fn awaited(all: bool) -> SeenCommits {
    let seen = SeenCommits::current();
    if all { SeenCommits { last: SeenCommits::ALL, ..seen } } else { seen }
}
