//! Tables: rows with a key, which queries search by columns.
//!
//! A program declares tables, and the compiler calls these functions for its statements; no program names the module. A
//! table is kept in memory (`memory`), or stored in a database (`database`). Both give the same answers: rows come in
//! the order of their keys unless a query orders them, a query sees the table as it is when it is executed, and the
//! constraints are the same.
//!
//! Each statement carries the number of its transaction, or 0. A table that finds another transaction unfinished takes it
//! back first: the locks of the program ensure that nobody works on it any more. One of a database is taken back before the locks of
//! its step are released.

mod aggregates;
mod catalog;
mod change_notes;
mod changes;
mod constraint;
mod cursor;
mod database_constraints;
mod database_steps;
mod database_threads;
mod dialect;
mod each_row;
mod escaped_text;
mod evolution;
mod expecting;
mod failure_site;
mod gathered_rows;
mod group_commit;
mod group_statement;
mod grouping;
mod in_flight_writes;
mod insertion;
mod join;
mod joined_rows;
mod later;
mod memory;
mod noted_writes;
mod open_table;
mod own_commits;
mod page_statement;
mod postgres;
mod program_end;
mod program_owned;
mod published_rows;
mod query;
mod query_plans;
mod query_site;
mod read_notes;
mod read_work;
mod reads_to_change;
mod recent_writes;
mod references;
mod referencing_rows;
mod refusing_rows;
mod report;
mod row;
mod row_change;
mod rows;
mod schema;
mod search_statements;
mod seen_reads;
mod sql;
mod sql_value;
mod sqlite;
mod statement_units;
mod statements;
mod storage;
mod table_databases;
mod table_log;
mod table_read;
#[cfg(test)]
mod tests;
mod transaction_number;
mod undeclared;
mod write_sets;

use std::num::NonZeroUsize;
use std::sync::Arc;

use weir::{Elements, Environment, Failure, FailureKind, Generic, SeenCommits, Value};

use self::cursor::{cursor, page_start};
use self::each_row::{get_each_later, rows_of_each};
use self::gathered_rows::TableHandle;
use self::join::key_parts;
use self::joined_rows::JoinedTable;
use self::later::{commit_later, get_all_later, get_later, roll_back_later, search_later};
use self::query_site::DecodedQuery;
use self::row::fields;
use self::rows::TableRead;
use self::statement_units::{
    ending_units, placed_ending_units, taking_back_units, units_of_join, units_of_row, units_of_rows, units_of_search,
};
use crate::Limited;
pub use database_constraints::is_database;
pub use expecting::ExpectedKeyPart;
pub use failure_site::{FailureSite, PassedPlace};
pub use grouping::{TableAggregate, TableGrouping};
pub use join::TableJoin;
use open_table::OpenTable;
pub use postgres::{PostgresAddress, ScratchSchema, ScratchSchemas};
pub use query_plans::{PlacedStatement, SearchStatement, StatementCall};
pub use report::{TableReport, check_others, check_start, report, undeclared_tables};
use schema::TableSearch;
pub use schema::{
    ColumnSchema, ExistingTable, IndexSchema, RowOrder, Schema, SoftTable, TableCondition, TableMigration, TableQuery,
    TableReference,
};
pub use sqlite::backup::backup;
pub use storage::TableStorage;
pub use table_databases::{ExistingDatabases, TableLocation};
pub use table_log::TableLog;
pub use write_sets::{TableWrite, WriteSet};

weir::library! {
    /// Statements on tables. Programs call them on a declared table.
    pub(crate) tables: open, begin, commit, place_commit, committed, roll_back, settle, expecting::expect, expecting::expect_each,
        expecting::expect_select, expecting::expect_count, get,
        reads_to_change::get_to_change, reads_to_change::select_to_change, gathered_rows::row, get_all, get_each,
        select, column, joined_table, join, count,
        aggregates::sum, aggregates::average, aggregates::distinct, aggregates::group, check_cursor, next_page,
        aggregates::whole_sum, aggregates::whole_average, changes::insert, changes::upsert, changes::replace,
        changes::replace_rows, changes::place_insert, changes::place_upsert, changes::place_replace, changes::delete,
        changes::delete_all, changes::delete_rows, old_rows, not_converted, store_converted
}

/// A table of the program.
#[derive(weir::Type)]
#[weir(opaque, unique, handle = TableHandle::of, snapshots = Table::snapshots, name = "tables.Table")]
pub struct Table(Arc<OpenTable>);

impl Table {
    /// Returns the number of the database, if its statements see snapshots.
    fn snapshots(&self) -> Option<NonZeroUsize> {
        self.0.rows.snapshots()
    }
}

/// The key of a row: the value of its column, or a tuple.
type RowKey = Generic<'k'>;
/// A record.
type Row = Generic<'r'>;
/// A record of the type that the rows of a table had before.
type OldRow = Generic<'o'>;
/// The limit of a query, `()`, and the values that its conditions compare with.
type QueryArguments = Generic<'p'>;

/// Opens a table, and creates it if it is new.
///
/// # Errors
/// Fails if the table cannot be opened; the message says why and what to do.
#[weir::function(internal)]
pub fn open(schema: Schema, #[environment] storage: &TableStorage) -> Result<Table, Failure> {
    storage.prepare(schema).map(Table)
}

/// Returns the next rows of the old type of a table that the program converts; none if there are none.
///
/// # Errors
/// Fails if the database does.
#[weir::function(internal)]
pub fn old_rows(schema: Schema, #[environment] storage: &TableStorage) -> Result<Vec<OldRow>, Failure> {
    Ok(storage.old_rows(&schema)?.into_iter().map(Generic).collect())
}

/// Returns the failure of a row that the `fn` of a migration has not converted, with the key of the row, and how to go on if others are
/// converted.
#[weir::function(internal)]
pub fn not_converted(schema: Schema, row: OldRow, failure: Failure, #[environment] storage: &TableStorage) -> Failure {
    storage.not_converted(&schema, &row.0, failure)
}

/// Stores converted rows, and returns whether more are left.
///
/// # Errors
/// Fails if the database does, if another program has written the rows, or if one cannot be stored.
#[weir::function(internal)]
pub fn store_converted(
    schema: Schema,
    old: Vec<OldRow>,
    new: Vec<Row>,
    #[environment] storage: &TableStorage,
) -> Result<bool, Failure> {
    let old: Vec<Value> = old.into_iter().map(|row| row.0).collect();
    storage.store_converted(&schema, &old, new.into_iter().map(|row| row.0).collect())
}

/// Begins a transaction, and returns its number. Unless this `is_last` of its attempts, a refusal of the database is no failure of
/// the program: the transaction is executed again. Its step `restores` shared values, or does not, unless it commits. One that `only_reads` tables
/// keeps nobody from writing them.
#[weir::function(internal)]
pub fn begin(is_last: bool, restores: bool, only_reads: bool, #[environment] storage: &TableStorage) -> i64 {
    let transaction = match restores {
        true => storage.begin_restoring(!is_last),
        false => storage.begin(!is_last),
    };
    if only_reads { transaction_number::only_reading(transaction) } else { transaction }
}

/// Commits what the transaction has done to the table; if `last`, to all stored tables, and if `at_once`, so that nothing can take
/// that back: tables in memory follow. Returns its number.
///
/// # Errors
/// Fails if the database cannot commit: then nothing of the transaction takes effect.
#[weir::function(
    internal,
    reads,
    units = ending_units(table, last),
    later = commit_later(table, transaction)
)]
pub fn commit(#[changes_inside] table: &Table, transaction: i64, at_once: bool, last: bool) -> Result<i64, Failure> {
    match at_once {
        true => table.0.rows.commit_at_once(transaction)?,
        false => table.0.rows.commit(transaction, last)?,
    }
    if at_once {
        table.0.steps.committed(transaction);
    }
    Ok(transaction)
}

/// Commits what the transaction has done to all stored tables. The database may not have done that yet: others follow it, and
/// `committed` waits for it, so that it is not `at_once`. Returns the number of the transaction.
///
/// # Errors
/// Fails like `commit`, if that is known at once.
#[weir::function(
    internal,
    reads,
    units = placed_ending_units(table, transaction),
    later = commit_later(table, transaction)
)]
pub fn place_commit(
    #[changes_inside] table: &Table,
    transaction: i64,
    _at_once: bool,
    last: bool,
) -> Result<i64, Failure> {
    if !table.0.rows.place_commit(transaction, Box::new(|_| ())) {
        table.0.rows.commit(transaction, last)?;
    }
    Ok(transaction)
}

/// Waits for the commit of a transaction that was placed.
///
/// # Errors
/// Fails if the database cannot commit, or has refused a change that was placed before: then nothing of the transaction takes
/// effect.
#[weir::function(internal, awaits_peer)]
pub async fn committed(transaction: i64, #[environment] storage: &TableStorage) -> Result<(), Failure> {
    storage.committed(transaction).await
}

/// Takes back what the transaction has done to the table; if `last`, to all stored tables. Returns its number. If a change was
/// refused that was placed before, the flow ends with its failure.
#[weir::function(
    internal,
    reads,
    units = taking_back_units(table, transaction, last),
    later = roll_back_later(table, transaction)
)]
pub fn roll_back(#[changes_inside] table: &Table, transaction: i64, last: bool) -> Limited<i64> {
    if last || !table.0.rows.is_stored() {
        table.0.rows.roll_back(transaction);
    }
    let refused = if last { table.0.rows.refused(transaction) } else { None };
    Limited(refused.map_or(Ok(transaction), Err))
}

/// Waits until what the flow has read is durable; if `all`, until everything that was written before is.
///
/// # Errors
/// Fails if the database cannot make it durable.
#[weir::function(internal, awaits_peer, at_once = settled_at_once(all, storage))]
pub async fn settle(all: bool, #[environment] storage: &TableStorage) -> Result<(), Failure> {
    storage.settled(all).await
}

/// Returns the result of `settle`, if nothing has to be waited for: mostly, a flow that only reads has seen nothing that is not durable.
fn settled_at_once(all: &Value, environment: &Environment) -> Option<Result<(), Failure>> {
    match all {
        Value::Bool(false) if SeenCommits::current().last == 0 => Some(Ok(())),
        all => environment.get::<TableStorage>()?.settled_at_once(*all == Value::Bool(true)),
    }
}

/// Returns the row with the key.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_row((table, transaction), key),
    later = get_later(table, transaction, key)
)]
pub fn get(table: &Table, transaction: i64, key: &RowKey) -> Limited<Option<Row>> {
    Limited(table.0.rows.get(transaction, &key.0).map(|row| row.map(Generic)))
}

/// Returns the row of each key, all as they are at one moment.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_rows((table, transaction), keys),
    later = get_all_later(table, transaction, keys)
)]
pub fn get_all(table: &Table, transaction: i64, keys: Vec<RowKey>) -> Limited<Vec<Option<Row>>> {
    let keys: Vec<Value> = keys.into_iter().map(|key| key.0).collect();
    let rows = table.0.rows.get_all(transaction, &keys);
    Limited(rows.map(|rows| rows.into_iter().map(|row| row.map(Generic)).collect()))
}

/// Returns the row of each key, all as they are at one moment; for a row that cannot be read, and for all behind it, the failure.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    units = units_of_rows((table, transaction), keys),
    later = get_each_later(table, transaction, keys)
)]
pub fn get_each(table: &Table, transaction: i64, keys: Vec<RowKey>) -> Vec<Result<Option<Row>, Failure>> {
    let keys: Vec<Value> = keys.into_iter().map(|key| key.0).collect();
    let rows = rows_of_each(&*table.0.rows, transaction, &keys);
    rows.into_iter().map(|row| row.map(|row| row.map(Generic))).collect()
}

/// Returns the rows that fulfil the conditions, in order.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = search_later((table, transaction), (query, arguments), TableRead::Search)
)]
pub fn select(table: &Table, transaction: i64, query: DecodedQuery, arguments: QueryArguments) -> Limited<Elements> {
    let search = TableSearch::for_rows(&table.0.schema, query.0, arguments.0);
    let rows = search.and_then(|search| table.0.rows.select(transaction, &search));
    Limited(rows.map(Elements::from))
}

/// Returns the values of a column of the rows that fulfil the conditions, in order.
#[weir::function(internal, reads, sees_snapshot, may_end, units = units_of_search((table, transaction), (query, arguments)))]
pub fn column(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    column: usize,
) -> Limited<Elements> {
    let search = TableSearch::new(query.0, arguments.0);
    Limited(table.0.rows.column(transaction, &search, column).map(Elements::from))
}

/// A table that a query reads by keys.
#[derive(weir::Type, Clone)]
#[weir(opaque, name = "tables.Joined")]
pub struct JoinInput(Arc<OpenTable>);

/// A row, paired with the rows of other tables that it names by their keys.
type JoinedRow = Generic<'j'>;

/// Names a table for `join`, so that the query counts as a read of it.
#[weir::function(internal, reads, sees_snapshot)]
pub fn joined_table(table: &Table) -> JoinInput {
    table.0.rows.saw_all();
    JoinInput(Arc::clone(&table.0))
}

/// Returns the rows that fulfil the conditions, in order, each with the rows that it names by keys, all as they are at one
/// moment.
#[weir::function(internal, reads, sees_snapshot, may_end, units = units_of_join((table, transaction), (query, arguments), joined))]
pub fn join(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    joins: Vec<TableJoin>,
    joined: Vec<JoinInput>,
) -> Limited<Vec<JoinedRow>> {
    let rows = TableSearch::for_rows(&table.0.schema, query.0, arguments.0).and_then(|search| {
        let parts = key_parts(&joins, &search).into_iter();
        let joined = joined.into_iter().zip(parts).map(|(joined, parts)| JoinedTable { table: joined.0, parts });
        let joined: Vec<JoinedTable<'_>> = joined.collect();
        let rows = table.0.join(transaction, &search, &joined);
        joined.iter().for_each(|joined| joined.table.rows.saw_all_meanwhile());
        rows
    });
    Limited(rows.map(|rows| rows.into_iter().map(Generic).collect()))
}

/// Returns if a page has a limit of at least one row, and the cursor, if there is one, is that of a row in the order of the query.
///
/// # Errors
/// Fails if it does not.
#[weir::function(internal, reads, sees_snapshot)]
pub fn check_cursor(
    table: &Table,
    _transaction: i64,
    query: DecodedQuery,
    cursor: Option<String>,
    limit: i64,
) -> Result<(), Failure> {
    if limit < 1 {
        let message = format!("the limit of a page is {limit}, and a page has at least one row");
        return Err(Failure::new(FailureKind::Argument, message));
    }
    cursor.map_or(Ok(()), |cursor| page_start(&table.0.schema, &query.0, &cursor).map(|_| ()))
}

/// Returns the cursor of the last row of a page with this limit, if there are rows behind it.
#[weir::function(internal, reads, sees_snapshot)]
pub fn next_page(table: &Table, _transaction: i64, query: DecodedQuery, rows: &Elements, limit: i64) -> Option<String> {
    let last = usize::try_from(limit).ok().filter(|limit| *limit < rows.len())?.checked_sub(1)?;
    Some(cursor(&table.0.schema, &query.0, fields(&rows.get(last)?)))
}

/// Returns the number of rows that fulfil the conditions.
#[weir::function(
    internal,
    reads,
    sees_snapshot,
    may_end,
    units = units_of_search((table, transaction), (query, arguments)),
    later = search_later((table, transaction), (query, arguments), TableRead::Count)
)]
pub fn count(table: &Table, transaction: i64, query: DecodedQuery, arguments: QueryArguments) -> Limited<i64> {
    let search = TableSearch::new(query.0, arguments.0);
    Limited(table.0.rows.count(transaction, &search))
}
