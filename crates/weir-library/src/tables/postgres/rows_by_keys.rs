//! Reads of rows by several keys. They are one statement if the key of the table is one column.

use std::borrow::Borrow;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use tokio_postgres::Row;
use weir::{Failure, Value};

use super::connection::{Executed, SqlStatement};
use super::value::column_value;
use crate::tables::dialect::Dialect;
use crate::tables::row::fields;
use crate::tables::schema::Schema;
use crate::tables::sql_value::{Bound, key_parameters};
use crate::tables::statements::TableStatements;

/// The parameters of a read of rows by their keys: of a statement for each, or of one for all.
pub(super) enum KeyParameters<'k> {
    Each(&'k str, Vec<Vec<Bound<'k>>>),
    All(&'k str, [Vec<Bound<'k>>; 1]),
}

impl<'k> KeyParameters<'k> {
    /// Returns the parameters of a read of the rows with these keys.
    pub(super) fn of((schema, statements): (&'k Schema, &'k TableStatements), keys: &'k [Value]) -> KeyParameters<'k> {
        match (&statements.get_many, keys.len()) {
            (Some(sql), 2..) => {
                let column = &schema.columns[schema.key[0]];
                KeyParameters::All(sql, [keys.iter().map(|key| Bound::new(key, column)).collect()])
            }
            _ => KeyParameters::Each(&statements.get, keys.iter().map(|key| key_parameters(schema, key)).collect()),
        }
    }

    pub(super) fn statements(&self) -> Vec<SqlStatement<'_>> {
        match self {
            KeyParameters::Each(sql, keys) => keys.iter().map(|key| SqlStatement::new(sql, key)).collect(),
            KeyParameters::All(sql, keys) => vec![SqlStatement::new(sql, keys)],
        }
    }
}

/// Returns the row of each key from the answers to a statement for each, or to one for all.
pub(super) fn rows_of_keys(
    schema: &Schema,
    keys: &[Value],
    executed: &[impl Borrow<Executed>],
) -> Result<Vec<Option<Value>>, Failure> {
    let rows = |executed: &'_ Executed| executed.rows()?.first().map(|row| row_of(schema, row, 0)).transpose();
    if executed.len() == keys.len() {
        return executed.iter().map(|executed| rows(executed.borrow())).collect();
    }
    let mut found: IndexMap<Value, Value, RandomState> = IndexMap::default();
    for executed in executed {
        for row in executed.borrow().rows()? {
            let row = row_of(schema, row, 0)?;
            found.insert(schema.key_of(fields(&row)), row);
        }
    }
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

/// Returns the key of a row, which is one column; `None` if another program has stored something else there.
pub(super) fn key_of_row(schema: &Schema, row: &Row) -> Option<Value> {
    let key = *schema.key.first()?;
    column_value(row, key, &schema.columns[key])
}

/// Returns the row whose columns begin at a position.
pub(super) fn row_of(schema: &Schema, row: &Row, begin: usize) -> Result<Value, Failure> {
    schema.read_row(Dialect::Postgres, |at, column| column_value(row, begin + at, column))
}
