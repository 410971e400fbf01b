//! Requests for what a transaction is about to read: the database has the answer on its way when the flow comes to the read.

use std::sync::Arc;

use weir::{Elements, Generic, Value};

use super::query_site::DecodedQuery;
use super::row::fields;
use super::rows::TableRead;
use super::schema::TableSearch;
use super::{QueryArguments, RowKey, Table};

/// Maximum number of rows that a transaction asks for beforehand.
pub(super) const EXPECTED_MAX: usize = 1_024;

/// A part of the keys of rows that are read for the elements of a list.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.ExpectedKeyPart")]
pub struct ExpectedKeyPart {
    /// The number of the value outside of the list; `None` if the part belongs to the element.
    pub outside: Option<usize>,
    /// The field of the element, of that field, and so on.
    pub path: Vec<usize>,
}

/// The values of keys that are no fields of elements, as a tuple, and `()` behind them; `()` if there are none.
type OutsideValues = Generic<'u'>;

/// Asks for the row with the key, which the transaction is about to read. Returns whether it is asked for.
#[weir::function(internal, reads)]
pub(super) fn expect(table: &Table, transaction: i64, key: &RowKey) -> bool {
    table.0.rows.expect(transaction, &mut std::iter::once(key.0.clone()))
}

/// Asks for the rows that the transaction is about to read for each element of a list. A part of their keys is a field of the
/// element, or one of the values outside.
#[weir::function(internal, reads)]
pub(super) fn expect_each(
    table: &Table,
    transaction: i64,
    list: &Elements,
    key: Vec<ExpectedKeyPart>,
    outside: OutsideValues,
) {
    if table.0.rows.is_shared() {
        let mut keys = list.iter().take(EXPECTED_MAX).filter_map(|element| key_of(&element, &key, &outside.0));
        table.0.rows.expect(transaction, &mut keys);
    }
}

/// Asks for the rows that fulfil the conditions, which the transaction is about to read, if it `follows` a read that was asked for.
/// Returns whether they are asked for.
#[weir::function(internal, reads)]
pub(super) fn expect_select(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    follows: bool,
) -> bool {
    follows && expect_found((table, transaction), (query, arguments), TableRead::Search)
}

/// Asks for the number of rows that fulfil the conditions, like `expect_select`.
#[weir::function(internal, reads)]
pub(super) fn expect_count(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    follows: bool,
) -> bool {
    follows && expect_found((table, transaction), (query, arguments), TableRead::Count)
}

fn expect_found(
    (table, transaction): (&Table, i64),
    (query, arguments): (DecodedQuery, QueryArguments),
    read: fn(Arc<TableSearch>) -> TableRead,
) -> bool {
    let rows = &table.0.rows;
    rows.is_shared()
        && TableSearch::for_rows(&table.0.schema, query.0, arguments.0)
            .is_ok_and(|search| rows.expect_found(transaction, &read(Arc::new(search))))
}

/// Returns the key for an element.
fn key_of(element: &Value, key: &[ExpectedKeyPart], outside: &Value) -> Option<Value> {
    let mut parts = key.iter().map(|part| match part.outside {
        Some(at) => fields(outside).get(at).cloned(),
        None => part.path.iter().try_fold(element.clone(), |of, field| fields(&of).get(*field).cloned()),
    });
    match key.len() {
        1 => parts.next()?,
        _ => parts.collect::<Option<Vec<Value>>>().map(|parts| Value::Record(parts.into())),
    }
}
