//! Statements that would hold up the thread of their flow: those of a table in another process, which wait for its answers without
//! a thread or on one of its database, and long reads of a table in SQLite, which another thread executes.
//!
//! Each function begins a statement, and returns the rest of the call. If that is no part of a transaction, it needs no locks: others
//! may write the table meanwhile. `None` if a thread has to execute all of it.

use std::pin::pin;
use std::sync::Arc;

use weir::macros::{answer, catch_panic_async, unique_in_place};
use weir::{AwaitedCall, CallRest, Failure, Generic, HostType, Outcome, SeenCommits, Settled, Value};

use super::grouping::{TableGrouping, average_in, distinct_in};
use super::open_table::OpenTable;
use super::query_site::DecodedQuery;
use super::rows::{LaterAnswer, RowChange, TableRead, TableSnapshot};
use super::schema::TableSearch;
use super::{RowKey, Table};
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

/// Begins a statement that computes something from the rows that fulfil its conditions, for a thread.
pub(super) fn computed_later(
    (table, transaction): (&Value, &Value),
    (query, arguments): (&Value, &Value),
    compute: impl Computation,
) -> Option<AwaitedCall> {
    let of = unique_in_place::<Table>(table).filter(|_| matches!(transaction, Value::Int(0)))?;
    let search = search_of(table, query, arguments)?;
    if of.0.rows.is_shared() {
        let (thread, table) = (of.0.rows.thread()?, SharedRows(Arc::clone(&of.0)));
        let computed = thread.read(move || compute(Box::new(table), &search));
        return Some(awaited(async { answer(Limited(computed.await.map(Generic::<'r'>))) }));
    }
    let snapshot = of.0.rows.snapshot(&TableRead::Search(Arc::clone(&search)))?;
    Some(on_thread(move || compute(snapshot, &search)))
}

/// A computation from rows of a snapshot.
pub(super) trait Computation:
    FnOnce(Box<dyn TableSnapshot>, &TableSearch) -> Result<Value, Failure> + Send + 'static
{
}

impl<C: FnOnce(Box<dyn TableSnapshot>, &TableSearch) -> Result<Value, Failure> + Send + 'static> Computation for C {}

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

pub(super) fn search_of(table: &Value, query: &Value, arguments: &Value) -> Option<Arc<TableSearch>> {
    let schema = &unique_in_place::<Table>(table)?.0.schema;
    let query = DecodedQuery::of(query).ok()?;
    TableSearch::for_rows(schema, query.0, arguments.clone()).ok().map(Arc::new)
}

/// Begins a statement that reads: without a thread, or on one that reads the table as it is now.
fn read_later(table: &Value, transaction: &Value, read: impl FnOnce() -> Option<TableRead>) -> Option<AwaitedCall> {
    let Value::Int(transaction) = *transaction else { return None };
    let table = &unique_in_place::<Table>(table)?.0;
    let rows = &table.rows;
    let mut sent_on = None;
    let found = match transaction {
        0 if !rows.is_shared() => {
            let read = read()?;
            let snapshot = rows.snapshot(&read)?;
            return Some(on_thread(move || snapshot.read(&read)));
        }
        0 => {
            let read = read()?;
            match rows.read_later(&read, None) {
                Some(sent) => {
                    sent_on = Some(sent.connection);
                    sent.answer
                }
                None => {
                    let (thread, table) = (rows.thread()?, Box::new(SharedRows(Arc::clone(table))));
                    Box::pin(thread.read(move || table.read(&read)))
                }
            }
        }
        _ if rows.is_shared() => rows.read_in_transaction(transaction, &read()?)?,
        _ => return None,
    };
    // Other flows may write meanwhile: the statement sees the table at one moment between its begin and its end.
    let answered = awaited(async { answer(Limited(found.await.map(Generic::<'r'>))) });
    Some(AwaitedCall { sent_on, ..answered })
}

/// The rows of a table whose statements are answered by another process. A statement sees them at the moment at which it is executed.
struct SharedRows(Arc<OpenTable>);

impl TableSnapshot for SharedRows {
    fn read(self: Box<Self>, read: &TableRead) -> Result<Value, Failure> {
        let (rows, option) = (&self.0.rows, |row: Option<Value>| row.map_or_else(Value::none, Value::some));
        Ok(match read {
            TableRead::Row(key) => option(rows.get(0, key)?),
            TableRead::Rows(keys) => Value::list(rows.get_all(0, keys)?.into_iter().map(option).collect()),
            TableRead::Search(search) => Value::list(rows.select(0, search)?),
            TableRead::Count(search) => Value::Int(rows.count(0, search)?),
        })
    }

    fn sum(self: Box<Self>, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        self.0.rows.sum(0, search, column)
    }

    fn group(self: Box<Self>, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        self.0.rows.group(0, search, grouping)
    }
}

/// Begins a read of a transaction that is about to write, without a thread.
pub(super) fn read_to_change_later(
    (table, transaction): (&Value, &Value),
    read: impl FnOnce() -> Option<TableRead>,
) -> Option<AwaitedCall> {
    let Value::Int(transaction) = *transaction else { return None };
    let found = shared_table(table)?.0.rows.read_in_transaction(transaction, &read()?)?;
    Some(awaited(async { outcome(found.await) }))
}

/// Returns a call that waits for its outcome. What it does is ordered before what others begin, by the locks of its step if it
/// is in a transaction.
pub(super) fn awaited(outcome: impl Future<Output = Outcome> + Send + 'static) -> AwaitedCall {
    let pending = Box::pin(async move {
        let answered = pin!(async { Ok(outcome.await) });
        Settled { outcome: catch_panic_async(answered).await, restored: Vec::new() }
    });
    AwaitedCall { rest: CallRest::Awaited(pending), keeps_locks: false, sent_on: None }
}

fn on_thread(read: impl FnOnce() -> Result<Value, Failure> + Send + 'static) -> AwaitedCall {
    let job = move || Settled { outcome: answer(Limited(read().map(Generic::<'r'>))), restored: Vec::new() };
    AwaitedCall { rest: CallRest::Job(Box::new(job)), keeps_locks: false, sent_on: None }
}

/// Returns the outcome of a statement that can fail. The failure of a change that was placed before, or of the transaction, is no
/// answer of the statement.
fn outcome(answer: Result<Value, Failure>) -> Outcome {
    match answer {
        Ok(value) => Outcome::Value(value),
        Err(failure) if failure.is_no_value() => Outcome::Fault(Box::new(failure)),
        Err(failure) => Outcome::Error(Value::Failure(Box::new(failure))),
    }
}

/// Begins to commit a transaction without a thread, if this is the last of its tables.
pub(super) fn commit_later(table: &Value, transaction: &Value) -> Option<AwaitedCall> {
    let Value::Int(transaction) = *transaction else { return None };
    let of = &shared_table(table)?.0;
    let (committing, steps) = (of.rows.commit_later(transaction)?, Arc::clone(&of.steps));
    Some(ended(transaction, async move { committing.await.inspect(|()| steps.committed(transaction)) }))
}

/// Begins to take back a transaction without a thread.
pub(super) fn roll_back_later(table: &Value, transaction: &Value) -> Option<AwaitedCall> {
    let Value::Int(transaction) = *transaction else { return None };
    Some(ended(transaction, shared_table(table)?.0.rows.roll_back_later(transaction)?))
}

fn ended(transaction: i64, ending: impl Future<Output = Result<(), Failure>> + Send + 'static) -> AwaitedCall {
    awaited(async move { outcome(ending.await.map(|()| Value::Int(transaction))) })
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
    let Value::Int(transaction) = *transaction else { return None };
    if transaction != 0 {
        let changing: LaterAnswer = table.0.rows.change_in_transaction(transaction, &change)?;
        return Some(awaited(async { outcome(changing.await) }));
    }
    let changing = table.0.rows.change_later(&change, Box::new(|_| {}))?;
    Some(awaited(async {
        let (changed, commit) = changing.await;
        commit.into_iter().for_each(SeenCommits::wrote);
        outcome(changed)
    }))
}

/// Returns a table whose statements are answered by another process.
fn shared_table(table: &Value) -> Option<&Table> {
    unique_in_place::<Table>(table).filter(|table| table.0.rows.is_shared())
}
