//! Statements that change rows.

use weir::{Failure, Generic, Value};

use super::failure_site::FailureSite;
use super::later::{change_later, deletion_later};
use super::query_site::DecodedQuery;
use super::rows::RowChange;
use super::schema::TableSearch;
use super::statement_units::{
    placing_units, units_of_deleted, units_of_deletion, units_of_found, units_of_replaced, units_of_write,
};
use super::storage::TableStorage;
use super::{QueryArguments, Row, RowKey, Table};

/// Inserts a row, and returns its key.
///
/// # Errors
/// Fails if another row has its key, or the values of a unique index, or if a row that it references does not exist.
#[weir::function(
    internal,
    reads,
    units = units_of_write(table, storage),
    later = change_later((table, transaction), row, RowChange::Insert)
)]
pub(super) fn insert(
    #[changes_inside] table: &Table,
    transaction: i64,
    row: Row,
    #[environment] storage: &TableStorage,
) -> Result<RowKey, Failure> {
    table.0.changed(storage, transaction, RowChange::Insert(row.0)).map(Generic)
}

/// Inserts a row in place of the one with its key, if there is one, and returns the key.
///
/// # Errors
/// Fails if another row has the values of a unique index, or if a row that it references does not exist.
#[weir::function(
    internal,
    reads,
    units = units_of_write(table, storage),
    later = change_later((table, transaction), row, RowChange::Upsert)
)]
pub(super) fn upsert(
    #[changes_inside] table: &Table,
    transaction: i64,
    row: Row,
    #[environment] storage: &TableStorage,
) -> Result<RowKey, Failure> {
    table.0.changed(storage, transaction, RowChange::Upsert(row.0)).map(Generic)
}

/// Replaces the row with the key, and returns the new one as it is stored.
///
/// # Errors
/// Fails if the new row has another key, another row has the values of a unique index, or a row that it references does not
/// exist.
#[weir::function(
    internal,
    reads,
    units = units_of_write(table, storage),
    later = change_later((table, transaction), row, |row| RowChange::Replace(key.clone(), row))
)]
pub(super) fn replace(
    #[changes_inside] table: &Table,
    transaction: i64,
    key: RowKey,
    row: Row,
    #[environment] storage: &TableStorage,
) -> Result<Row, Failure> {
    table.0.changed(storage, transaction, RowChange::Replace(key.0, row.0)).map(Generic)
}

/// Inserts a row in a transaction that ends if this fails, and returns its key. The database may not have executed it yet: then its
/// failure, which belongs to the site, ends the flow when it is learned.
///
/// # Errors
/// Fails like `insert`, if that is known at once.
#[weir::function(
    internal,
    reads,
    units = placing_units((table, transaction), || RowChange::Insert(row.clone()), storage),
    later = change_later((table, transaction), row, RowChange::Insert)
)]
pub(super) fn place_insert(
    #[changes_inside] table: &Table,
    transaction: i64,
    row: Row,
    site: Option<FailureSite>,
    #[environment] storage: &TableStorage,
) -> Result<RowKey, Failure> {
    placed((table, transaction), RowChange::Insert(row.0), site, storage).map(Generic)
}

/// Inserts a row in place of the one with its key in a transaction that ends if this fails, like `place_insert`.
///
/// # Errors
/// Fails like `upsert`, if that is known at once.
#[weir::function(
    internal,
    reads,
    units = placing_units((table, transaction), || RowChange::Upsert(row.clone()), storage),
    later = change_later((table, transaction), row, RowChange::Upsert)
)]
pub(super) fn place_upsert(
    #[changes_inside] table: &Table,
    transaction: i64,
    row: Row,
    site: Option<FailureSite>,
    #[environment] storage: &TableStorage,
) -> Result<RowKey, Failure> {
    placed((table, transaction), RowChange::Upsert(row.0), site, storage).map(Generic)
}

/// Replaces a row in a transaction that ends if this fails, like `place_insert`. Without a site, the failure is that of the next
/// statement.
///
/// # Errors
/// Fails like `replace`, if that is known at once.
#[weir::function(
    internal,
    reads,
    units = placing_units((table, transaction), || RowChange::Replace(key.clone(), row.clone()), storage),
    later = change_later((table, transaction), row, |row| RowChange::Replace(key.clone(), row))
)]
pub(super) fn place_replace(
    #[changes_inside] table: &Table,
    transaction: i64,
    key: RowKey,
    row: Row,
    site: Option<FailureSite>,
    #[environment] storage: &TableStorage,
) -> Result<Row, Failure> {
    placed((table, transaction), RowChange::Replace(key.0, row.0), site, storage).map(Generic)
}

/// Replaces these rows by new ones with the same keys, all or none, and returns their number.
///
/// # Errors
/// Fails if a new row has another key, two rows would have the values of a unique index, or a row that one references does
/// not exist.
#[weir::function(internal, reads, units = units_of_replaced(table, storage, new))]
pub(super) fn replace_rows(
    #[changes_inside] table: &Table,
    transaction: i64,
    old: Vec<Row>,
    new: Vec<Row>,
    #[environment] storage: &TableStorage,
) -> Result<i64, Failure> {
    let (old, new): (Vec<Value>, Vec<Value>) = old.into_iter().zip(new).map(|(old, new)| (old.0, new.0)).unzip();
    table.0.with_references(storage, transaction, |transaction| {
        for row in &new {
            table.0.check_references(storage, transaction, (row, false))?;
        }
        table.0.rows.replace_rows(transaction, &old, new)
    })
}

/// Deletes the row with the key, and returns `true` if there was one.
///
/// # Errors
/// Fails if the database does.
#[weir::function(
    internal,
    reads,
    units = units_of_deletion(table),
    later = deletion_later((table, transaction), key)
)]
pub(super) fn delete(
    #[changes_inside] table: &Table,
    transaction: i64,
    key: RowKey,
    #[environment] storage: &TableStorage,
) -> Result<bool, Failure> {
    table.0.delete(storage, transaction, &key.0)
}

/// Deletes the rows that fulfil the conditions, and returns their number.
///
/// # Errors
/// Fails if the database does.
#[weir::function(internal, reads, units = units_of_found((table, transaction), query))]
pub(super) fn delete_all(
    #[changes_inside] table: &Table,
    transaction: i64,
    query: DecodedQuery,
    arguments: QueryArguments,
    #[environment] storage: &TableStorage,
) -> Result<i64, Failure> {
    table.0.delete_all(storage, transaction, &TableSearch::new(query.0, arguments.0))
}

/// Deletes these rows, all or none, and returns their number.
///
/// # Errors
/// Fails if the database does.
#[weir::function(internal, reads, units = units_of_deleted(table, rows))]
pub(super) fn delete_rows(
    #[changes_inside] table: &Table,
    transaction: i64,
    rows: Vec<Row>,
    #[environment] storage: &TableStorage,
) -> Result<i64, Failure> {
    table.0.delete_rows(storage, transaction, rows.into_iter().map(|row| row.0).collect())
}

/// Places a change, or makes it if it has to be waited for.
fn placed(
    (table, transaction): (&Table, i64),
    change: RowChange,
    site: Option<FailureSite>,
    storage: &TableStorage,
) -> Result<Value, Failure> {
    if !table.0.knows_references(storage, transaction, &change) {
        return table.0.changed(storage, transaction, change);
    }
    table.0.check_changed(storage, transaction, &change)?;
    let placed = table.0.rows.place(transaction, &change, site.as_ref());
    placed.unwrap_or_else(|| table.0.changed(storage, transaction, change))
}
