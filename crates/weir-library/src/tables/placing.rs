//! Units of the statements of transactions: as a statement of another process leaves the thread of its flow if it waits for an
//! answer, it needs none if it does not wait.

use weir::Value;
use weir::macros::unique_in_place;

use super::Table;
use super::rows::TableRows;

/// Returns the units of a read of a row, whose answer may be there already.
pub(super) fn reading_units(table: &Value, transaction: &Value, key: &Value) -> u64 {
    match transaction {
        Value::Int(transaction) if *transaction != 0 => waiting(table, |rows| !rows.has_row(*transaction, key)),
        _ => waiting(table, |_| true),
    }
}

/// Returns the units of the commit of a table.
pub(super) fn ending_units(table: &Value, last: &Value) -> u64 {
    if *last == Value::Bool(true) { waiting(table, |_| true) } else { 0 }
}

/// Returns the units of a statement that takes back a table.
pub(super) fn taking_back_units(table: &Value, transaction: &Value, last: &Value) -> u64 {
    match (transaction, last) {
        (Value::Int(transaction), Value::Bool(true)) => waiting(table, |rows| rows.has_placed(*transaction)),
        _ => 0,
    }
}

/// Returns the units of a change that may be placed.
pub(super) fn placing_units(table: &Value, transaction: &Value) -> u64 {
    match transaction {
        Value::Int(transaction) => waiting(table, |rows| !rows.may_place(*transaction)),
        _ => 0,
    }
}

fn waiting(table: &Value, waits: impl FnOnce(&dyn TableRows) -> bool) -> u64 {
    let rows = unique_in_place::<Table>(table).map(|table| &*table.0.rows);
    if rows.is_some_and(|rows| rows.is_shared() && waits(rows)) { u64::MAX } else { 0 }
}
