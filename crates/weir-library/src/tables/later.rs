//! Statements that would hold up the thread of their flow: those of a table in another process, which wait for its answers without
//! a thread, and long reads of a table in SQLite, which another thread executes.
//!
//! Each function begins a statement that is no part of a transaction, and returns the rest of the call, which needs no locks: others
//! may write the table meanwhile. `None` if a thread has to execute all of it.

use std::pin::pin;
use std::sync::Arc;

use weir::macros::{answer, catch_panic_async, unique_in_place};
use weir::{AwaitedCall, CallRest, Failure, Generic, HostType, Outcome, SeenCommits, Settled, Value};

use super::grouping::TableGrouping;
use super::query_site::DecodedQuery;
use super::rows::{RowChange, TableRead};
use super::schema::TableSearch;
use super::stored_reads::TableSnapshot;
use super::{RowKey, Table, average_in, distinct_in};
use crate::{Limited, list};

/// Begins `get` without a thread.
pub(super) fn get_later(table: &Value, transaction: &Value, key: &Value) -> Option<AwaitedCall> {
    read_later(table, transaction, || Some(TableRead::Row(key.clone())))
}

/// Begins `get_all` without a thread.
pub(super) fn get_all_later(table: &Value, transaction: &Value, keys: &Value) -> Option<AwaitedCall> {
    read_later(table, transaction, || {
        let keys = Vec::<RowKey>::from_value(keys.clone()).ok()?;
        Some(TableRead::Rows(keys.into_iter().map(|key| key.0).collect()))
    })
}

/// Begins a statement with conditions without a thread.
pub(super) fn search_later(
    (table, transaction): (&Value, &Value),
    (query, arguments): (&Value, &Value),
    read: impl FnOnce(Arc<TableSearch>) -> TableRead,
) -> Option<AwaitedCall> {
    read_later(table, transaction, || search_of(table, query, arguments).map(read))
}

/// Begins a statement that computes something from the rows that fulfil its conditions: for a thread, if the table is one in SQLite.
pub(super) fn computed_later(
    (table, transaction): (&Value, &Value),
    (query, arguments): (&Value, &Value),
    compute: impl Computation,
) -> Option<AwaitedCall> {
    let of = unique_in_place::<Table>(table).filter(|_| matches!(transaction, Value::Int(0)))?;
    let search = search_of(table, query, arguments)?;
    let snapshot = of.0.rows.snapshot(&TableRead::Search(Arc::clone(&search)))?;
    Some(on_thread(move || compute(snapshot, &search)))
}

/// A computation from rows of a snapshot.
pub(super) trait Computation:
    FnOnce(TableSnapshot, &TableSearch) -> Result<Value, Failure> + Send + 'static
{
}

impl<C: FnOnce(TableSnapshot, &TableSearch) -> Result<Value, Failure> + Send + 'static> Computation for C {}

pub(super) fn sum_of_snapshot(column: &Value) -> impl Computation {
    let column = column_of(column);
    move |table, search| table.sum(search, column).and_then(list::whole_sum).map(Value::Int)
}

pub(super) fn average_of_snapshot(column: &Value) -> impl Computation {
    let grouping = TableGrouping::average(column_of(column));
    move |table, search| average_in(&table.group(search, &grouping)?).into_value()
}

pub(super) fn distinct_of_snapshot(column: &Value) -> impl Computation {
    let grouping = TableGrouping::distinct(column_of(column));
    move |table, search| Ok(Value::Int(distinct_in(&table.group(search, &grouping)?)))
}

pub(super) fn groups_of_snapshot(grouping: &Value) -> impl Computation {
    let grouping = TableGrouping::from_value(grouping.clone());
    move |table, search| table.group(search, &grouping?).map(Value::list)
}

/// Returns the column that a constant names.
fn column_of(column: &Value) -> usize {
    usize::from_value(column.clone()).unwrap_or_default()
}

fn search_of(table: &Value, query: &Value, arguments: &Value) -> Option<Arc<TableSearch>> {
    let schema = &unique_in_place::<Table>(table)?.0.schema;
    let query = DecodedQuery::from_value(query.clone()).ok()?;
    TableSearch::for_rows(schema, query.0, arguments.clone()).ok().map(Arc::new)
}

/// Begins a statement that reads: without a thread, or on one that reads the table as it is now.
fn read_later(table: &Value, transaction: &Value, read: impl FnOnce() -> Option<TableRead>) -> Option<AwaitedCall> {
    let table = unique_in_place::<Table>(table).filter(|_| matches!(transaction, Value::Int(0)))?;
    if !table.0.rows.is_shared() {
        let read = read()?;
        let snapshot = table.0.rows.snapshot(&read)?;
        return Some(on_thread(move || snapshot.read(&read)));
    }
    let found = table.0.rows.read_later(&read()?)?;
    let pending = Box::pin(async move {
        let answered = pin!(async { Ok(answer(Limited(found.await.map(Generic::<'r'>)))) });
        Settled { outcome: catch_panic_async(answered).await, restored: Vec::new() }
    });
    // The statement sees the table at one moment between its begin and its end.
    Some(AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks: false })
}

fn on_thread(read: impl FnOnce() -> Result<Value, Failure> + Send + 'static) -> AwaitedCall {
    let job = move || Settled { outcome: answer(Limited(read().map(Generic::<'r'>))), restored: Vec::new() };
    AwaitedCall { rest: CallRest::Job(Box::new(job)), keeps_locks: false }
}

/// Begins a change of a row without a thread, unless the row references others.
pub(super) fn change_later(
    (table, transaction): (&Value, &Value),
    row: &Value,
    change: impl FnOnce(Value) -> RowChange,
) -> Option<AwaitedCall> {
    let table = shared_table(table).filter(|table| table.0.schema.references.is_empty())?;
    table_change_later(table, transaction, change(row.clone()))
}

/// Begins a deletion without a thread, unless other rows reference the row.
pub(super) fn deletion_later((table, transaction): (&Value, &Value), key: &Value) -> Option<AwaitedCall> {
    let table = shared_table(table).filter(|table| table.0.schema.referenced_by.is_empty())?;
    table_change_later(table, transaction, RowChange::Delete(key.clone()))
}

fn table_change_later(table: &Table, transaction: &Value, change: RowChange) -> Option<AwaitedCall> {
    if !matches!(transaction, Value::Int(0)) {
        return None;
    }
    let changing = table.0.rows.change_later(&change, Box::new(|_| {}))?;
    let pending = Box::pin(async move {
        let answered = pin!(async {
            let (changed, commit) = changing.await;
            commit.into_iter().for_each(SeenCommits::wrote);
            Ok(changed.map_or_else(|failure| Outcome::Error(Value::Failure(Box::new(failure))), Outcome::Value))
        });
        Settled { outcome: catch_panic_async(answered).await, restored: Vec::new() }
    });
    Some(AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks: false })
}

/// Returns a table whose statements are answered by another process.
fn shared_table(table: &Value) -> Option<&Table> {
    unique_in_place::<Table>(table).filter(|table| table.0.rows.is_shared())
}
