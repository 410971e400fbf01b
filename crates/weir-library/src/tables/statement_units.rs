//! Units of statements on tables: a statement that would hold up the thread of its flow, because it waits for another process
//! or reads much, declares more units than a call may take there, and any other one declares none.
//!
//! A statement also waits if only another table needs that at which it looks, such as one of a soft table whose rows reference
//! rows of PostgreSQL. It must not do so on the thread of its flow: what it waits for may be a task of this very thread.

use std::borrow::Cow;

use weir::macros::unique_in_place;
use weir::{Environment, HostType, Value};

use super::later::search_of;
use super::query_site::DecodedQuery;
use super::rows::{ReadSize, RowChange, TableRead, TableRows};
use super::storage::TableStorage;
use super::{JoinInput, Table};

/// Number of rows from which on a change of them takes long.
const CHANGED_MAX: usize = 256;

/// Returns the units of a write of a row, which looks up the rows that this references.
pub(super) fn units_of_write(table: &Value, environment: &Environment) -> u64 {
    units_of_deletion(table).max(units_of_references(table, environment))
}

/// Returns the units of a deletion of a row. Rows that reference it are in its store: no stored row references one of a soft table.
pub(super) fn units_of_deletion(table: &Value) -> u64 {
    units(table, |rows| rows.is_shared() || rows.waits_to_write())
}

/// Returns the units of a replacement of all these rows.
pub(super) fn units_of_replaced(table: &Value, environment: &Environment, rows: &Value) -> u64 {
    units_of_deleted(table, rows).max(units_of_references(table, environment))
}

/// Returns the units of a deletion of all these rows.
pub(super) fn units_of_deleted(table: &Value, rows: &Value) -> u64 {
    let are_many = matches!(rows, Value::List(rows) if rows.len() > CHANGED_MAX);
    units(table, |rows| rows.is_shared() || are_many || rows.waits_to_write())
}

/// Returns the units of a deletion of the rows that a query finds.
pub(super) fn units_of_found((table, transaction): (&Value, &Value), query: &Value) -> u64 {
    units(table, |rows| is_long_search(rows, transaction, query)).max(units_of_deletion(table))
}

/// Returns the units of the look-ups of referenced rows.
fn units_of_references(table: &Value, environment: &Environment) -> u64 {
    let waits = unique_in_place::<Table>(table).is_some_and(|table| {
        let schema = &table.0.schema;
        // Most tables have none.
        !schema.references.is_empty()
            && environment.find::<TableStorage>().is_some_and(|storage| table.0.references_shared(storage))
    });
    if waits { u64::MAX } else { 0 }
}

/// Returns the units of a read of a row. The answer of another process may be there already, in a transaction.
pub(super) fn units_of_row((table, transaction): (&Value, &Value), key: &Value) -> u64 {
    units(table, |rows| match transaction {
        Value::Int(transaction) if *transaction != 0 && rows.is_shared() => !rows.has_row(*transaction, key),
        transaction => {
            let read = || Some(TableRead::Row(key.clone()));
            takes_long(rows, (transaction, 1)) || waits_to_see(rows, transaction, &read)
        }
    })
}

/// Returns the units of a read of rows by a list of their keys.
pub(super) fn units_of_rows((table, transaction): (&Value, &Value), keys: &Value) -> u64 {
    let count = if let Value::List(keys) = keys { keys.len() } else { 0 };
    let read = || match keys {
        Value::List(keys) => Some(TableRead::Rows(keys.iter().map(Cow::into_owned).collect())),
        _ => None,
    };
    units(table, |rows| takes_long(rows, (transaction, count)) || waits_to_see(rows, transaction, &read))
}

fn takes_long(rows: &dyn TableRows, (transaction, keys): (&Value, usize)) -> bool {
    rows.is_shared() || rows.takes_long(ReadSize::Rows(keys)) || waits_to_begin(rows, transaction)
}

/// Returns whether a read of no transaction waits for one that is open.
fn waits_to_see(rows: &dyn TableRows, transaction: &Value, read: &dyn Fn() -> Option<TableRead>) -> bool {
    *transaction == Value::Int(0) && rows.waits_to_see(read)
}

/// Returns whether a read waits for the beginning of its transaction.
fn waits_to_begin(rows: &dyn TableRows, transaction: &Value) -> bool {
    matches!(transaction, Value::Int(transaction) if rows.waits_to_begin(*transaction))
}

/// Returns the units of a search.
pub(super) fn units_of_search((table, transaction): (&Value, &Value), (query, arguments): (&Value, &Value)) -> u64 {
    let read = || search_of(table, query, arguments).map(TableRead::Search);
    units(table, |rows| is_long_search(rows, transaction, query) || waits_to_see(rows, transaction, &read))
}

fn is_long_search(rows: &dyn TableRows, transaction: &Value, query: &Value) -> bool {
    let is_long = || {
        let query = DecodedQuery::of(query);
        query.is_ok_and(|query| rows.takes_long(ReadSize::Search(&query.0)))
    };
    rows.is_shared() || is_long() || waits_to_begin(rows, transaction)
}

/// Returns the units of a search together with the rows of these tables that it reads by keys.
pub(super) fn units_of_join((table, transaction): (&Value, &Value), search: (&Value, &Value), joined: &Value) -> u64 {
    let joined = Vec::<JoinInput>::from_value(joined.clone());
    let waits = joined.is_ok_and(|joined| joined.iter().any(|joined| joined.0.rows.is_shared()));
    if waits { u64::MAX } else { units_of_search((table, transaction), search) }
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
pub(super) fn placing_units(
    (table, transaction): (&Value, &Value),
    change: impl FnOnce() -> RowChange,
    environment: &Environment,
) -> u64 {
    let Value::Int(transaction) = transaction else { return 0 };
    let Some(opened) = unique_in_place::<Table>(table) else { return 0 };
    let rows = &opened.0.rows;
    if !rows.is_shared() {
        let waits = units(table, |rows| rows.waits_to_write());
        return waits.max(units_of_references(table, environment));
    }
    let change = change();
    // Most tables have none.
    let knows_references = opened.0.schema.references.is_empty()
        || environment
            .find::<TableStorage>()
            .is_some_and(|storage| opened.0.knows_references(storage, *transaction, &change));
    if knows_references && rows.may_place(*transaction, &change) { 0 } else { u64::MAX }
}

fn units(table: &Value, leaves_thread: impl FnOnce(&dyn TableRows) -> bool) -> u64 {
    let table = unique_in_place::<Table>(table);
    if table.is_some_and(|table| leaves_thread(&*table.0.rows)) { u64::MAX } else { 0 }
}
