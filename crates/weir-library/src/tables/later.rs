//! Statements of a table in another process, which wait for its answers without a thread.
//!
//! Each function begins a statement that is no part of a transaction, and returns the rest of the call; `None` if a thread has to
//! execute it.

use std::pin::pin;
use std::sync::Arc;

use weir::macros::{answer, catch_panic_async, unique_in_place};
use weir::{AwaitedCall, Generic, HostType, Outcome, SeenCommits, Settled, Value};

use super::rows::{RowChange, TableRead};
use super::schema::{TableQuery, TableSearch};
use super::{RowKey, Table};
use crate::Limited;

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
    let schema = &unique_in_place::<Table>(table)?.0.schema;
    read_later(table, transaction, || {
        let query = TableQuery::from_value(query.clone()).ok()?;
        TableSearch::for_rows(schema, query, arguments.clone()).ok().map(|search| read(Arc::new(search)))
    })
}

/// Begins a statement that reads without a thread, if it can.
fn read_later(table: &Value, transaction: &Value, read: impl FnOnce() -> Option<TableRead>) -> Option<AwaitedCall> {
    let table = shared_table(table)?;
    if !matches!(transaction, Value::Int(0)) {
        return None;
    }
    let found = table.0.rows.read_later(&read()?)?;
    let pending = Box::pin(async move {
        let answered = pin!(async { Ok(answer(Limited(found.await.map(Generic::<'r'>)))) });
        Settled { outcome: catch_panic_async(answered).await, restored: Vec::new() }
    });
    // Other flows may write meanwhile: the statement sees the table at one moment between its begin and its end.
    Some(AwaitedCall { pending, keeps_locks: false })
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
    Some(AwaitedCall { pending, keeps_locks: false })
}

/// Returns a table whose statements are answered by another process.
fn shared_table(table: &Value) -> Option<&Table> {
    unique_in_place::<Table>(table).filter(|table| table.0.rows.is_shared())
}
