//! Units of statements on tables: a statement that would hold up the thread of its flow, because it waits for another process
//! or reads much, declares more units than a call may take there, and any other one declares none.

use weir::macros::unique_in_place;
use weir::{HostType, Value};

use super::Table;
use super::query_site::DecodedQuery;
use super::rows::{ReadSize, TableRows};

/// Number of rows from which on a change of them takes long.
const CHANGED_MAX: usize = 256;

/// Returns the units of a change: one that waits for another process, or for the disk, leaves the thread of its flow.
pub(super) fn units_of(table: &Value) -> u64 {
    units(table, |rows| rows.is_shared() || rows.waits_to_write())
}

/// Returns the units of a change of all these rows.
pub(super) fn units_of_changed(table: &Value, changed: &Value) -> u64 {
    let are_many = matches!(changed, Value::List(rows) if rows.len() > CHANGED_MAX);
    units(table, |rows| rows.is_shared() || are_many || rows.waits_to_write())
}

/// Returns the units of a change of the rows that a query finds.
pub(super) fn units_of_found(table: &Value, query: &Value) -> u64 {
    units_of_search(table, query).max(units_of(table))
}

/// Returns the units of a read of a row. The answer of another process may be there already, in a transaction.
pub(super) fn units_of_row((table, transaction): (&Value, &Value), key: &Value) -> u64 {
    units(table, |rows| match transaction {
        Value::Int(transaction) if *transaction != 0 && rows.is_shared() => !rows.has_row(*transaction, key),
        _ => takes_long(rows, 1),
    })
}

/// Returns the units of a read of so many rows by their keys.
pub(super) fn units_of_rows(table: &Value, keys: usize) -> u64 {
    units(table, |rows| takes_long(rows, keys))
}

fn takes_long(rows: &dyn TableRows, keys: usize) -> bool {
    rows.is_shared() || rows.takes_long(ReadSize::Rows(keys))
}

/// Returns the units of a search.
pub(super) fn units_of_search(table: &Value, query: &Value) -> u64 {
    let search = || DecodedQuery::from_value(query.clone());
    units(table, |rows| rows.is_shared() || search().is_ok_and(|query| rows.takes_long(ReadSize::Search(&query.0))))
}

/// Returns the units of the commit of a table.
pub(super) fn ending_units(table: &Value, last: &Value) -> u64 {
    units(table, |rows| *last == Value::Bool(true) && rows.is_shared())
}

/// Returns the units of a commit that may be placed.
pub(super) fn placed_ending_units(table: &Value, transaction: &Value) -> u64 {
    units(table, |rows| match transaction {
        Value::Int(transaction) => rows.is_shared() && !rows.may_place_commit(*transaction),
        _ => false,
    })
}

/// Returns the units of a statement that takes back a table.
pub(super) fn taking_back_units(table: &Value, transaction: &Value, last: &Value) -> u64 {
    units(table, |rows| match (transaction, last) {
        (Value::Int(transaction), Value::Bool(true)) => rows.is_shared() && rows.has_placed(*transaction),
        _ => false,
    })
}

/// Returns the units of a change that may be placed.
pub(super) fn placing_units(table: &Value, transaction: &Value) -> u64 {
    units(table, |rows| match transaction {
        Value::Int(transaction) if rows.is_shared() => !rows.may_place(*transaction),
        Value::Int(_) => rows.waits_to_write(),
        _ => false,
    })
}

fn units(table: &Value, leaves_thread: impl FnOnce(&dyn TableRows) -> bool) -> u64 {
    let table = unique_in_place::<Table>(table);
    if table.is_some_and(|table| leaves_thread(&*table.0.rows)) { u64::MAX } else { 0 }
}
