//! The rule that a failed change of a row in SQLite names, if the row breaks several.
//!
//! The first rule is the key, and the others follow as they are declared: so it is in memory, and in PostgreSQL. SQLite looks at the
//! index first that was created last, and names it.

use rusqlite::{Connection, ffi, params_from_iter};
use weir::Value;

use super::sql_table::SqlTable;
use crate::tables::dialect::Dialect;
use crate::tables::row::fields;
use crate::tables::row_change::RowChange;
use crate::tables::sql::{list, name, quoted};

/// Returns the error of a change, in which the first rule is named that its row breaks.
pub(in crate::tables) fn first_broken(
    table: &SqlTable,
    error: rusqlite::Error,
    change: &RowChange,
    connection: &Connection,
) -> rusqlite::Error {
    let row = match change {
        RowChange::Insert(row) | RowChange::Upsert(row) | RowChange::Replace(_, row) => fields(row),
        RowChange::Delete(_) => return error,
    };
    let rusqlite::Error::SqliteFailure(code, Some(message)) = &error else { return error };
    // The row is not written then. That of a statement that a trigger has refused may still be there.
    let Some(named) = table.columns_in(message).filter(|_| is_unique(&error)) else { return error };
    let inserts = matches!(change, RowChange::Insert(_));
    let (schema, code) = (&table.schema, *code);
    let is_own = schema.existing.is_none();
    let key = (is_own && inserts && !schema.auto).then_some(&schema.key);
    let unique = schema.indexes.iter().filter(|index| is_own && index.unique).map(|index| &index.columns);
    let is_broken = |columns: &[usize]| is_taken(table, columns, (row, inserts), connection);
    if let Some(columns) = key.into_iter().chain(unique).find(|columns| is_broken(columns).unwrap_or(false)) {
        let names = columns.iter().map(|at| format!("{}.{}", schema.name, schema.columns[*at].name));
        let message = format!("UNIQUE constraint failed: {}", list(names, ", "));
        return rusqlite::Error::SqliteFailure(code, Some(message));
    }
    match is_broken(&named) {
        Ok(false) => {
            let message =
                format!("{message}, by an index for which other values are equal, such as one with `COLLATE NOCASE`");
            rusqlite::Error::SqliteFailure(code, Some(message))
        }
        _ => error,
    }
}

/// Returns whether a row breaks a key or a unique index.
pub(super) fn is_unique(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map_or(0, |error| error.extended_code);
    [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ffi::SQLITE_CONSTRAINT_ROWID].contains(&code)
}

/// Returns whether another row has the values of a row in these columns. If the row was to be inserted, every row is another one.
fn is_taken(
    table: &SqlTable,
    columns: &[usize],
    (row, inserts): (&[Value], bool),
    connection: &Connection,
) -> rusqlite::Result<bool> {
    let schema = &table.schema;
    if schema.has_absent(columns, row) {
        return Ok(false);
    }
    let equal = |columns: &[usize], from: usize| {
        let each = columns.iter().enumerate().map(|(at, column)| {
            Dialect::Sqlite.equality(name(schema, *column), &schema.columns[*column], &format!("?{}", from + at))
        });
        list(each, " AND ")
    };
    let own_key: &[usize] = if inserts { &[] } else { &schema.key };
    let but = if inserts { String::new() } else { format!(" AND NOT ({})", equal(own_key, columns.len() + 1)) };
    let sql = format!("SELECT count(*) FROM {} WHERE {}{but}", quoted(&schema.name), equal(columns, 1));
    let parameters = table.bound(columns, row).chain(table.bound(own_key, row));
    let found: i64 = connection.prepare_cached(&sql)?.query_row(params_from_iter(parameters), |row| row.get(0))?;
    Ok(found > 0)
}
