//! Reads of statements that write what they have read, such as `update`: their failure is that of the statement.

use weir::{Failure, Generic};

use super::later::{read_to_change_later, search_of};
use super::query_site::DecodedQuery;
use super::rows::TableRead;
use super::schema::TableSearch;
use super::statement_units::{units_of_row, units_of_search};
use super::{QueryArguments, Row, RowKey, Table};

/// Returns the row with the key.
///
/// # Errors
/// Fails if the database does.
#[weir::function(
    internal,
    reads,
    units = units_of_row((table, transaction), key),
    later = read_to_change_later((table, transaction), || Some(TableRead::Row(key.clone())))
)]
pub(super) fn get_to_change(table: &Table, transaction: i64, key: &RowKey) -> Result<Option<Row>, Failure> {
    table.0.rows.get(transaction, &key.0).map(|row| row.map(Generic))
}

/// Returns the rows that fulfil the conditions, in order.
///
/// # Errors
/// Fails if the database does.
#[weir::function(
    internal,
    reads,
    units = units_of_search((table, transaction), (query, arguments)),
    later = read_to_change_later((table, transaction), || {
        search_of(table, query, arguments).map(TableRead::Search)
    })
)]
pub(super) fn select_to_change(
    table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
) -> Result<Vec<Row>, Failure> {
    let search = TableSearch::for_rows(&table.0.schema, query.0, arguments.0)?;
    let rows = table.0.rows.select(transaction, &search)?;
    Ok(rows.into_iter().map(Generic).collect())
}
