//! Statements that change one row of a table in SQLite. They own what they need, so that a transaction can repeat them.

use std::sync::Arc;

use rusqlite::{Connection, params_from_iter};
use weir::Value;

use super::broken_rule::first_broken;
use super::sql_table::SqlTable;
use crate::tables::row::fields;
use crate::tables::row_change::RowChange;
use crate::tables::sql_value::Bound;

/// A statement that changes one row.
pub(in crate::tables) struct RowStatement {
    pub(in crate::tables) table: Arc<SqlTable>,
    pub(in crate::tables) change: RowChange,
}

/// The effect of a change of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tables) enum RowChanged {
    /// The row was inserted, and the table has given it this number.
    Numbered(i64),
    /// Nothing was inserted, because no number is left for a further row.
    NoNumberLeft,
    /// The number of rows that were changed.
    Rows(usize),
}

impl RowStatement {
    /// Returns the statement with rows of its own, which share nothing.
    pub(super) fn unshared_copy(&self) -> RowStatement {
        RowStatement { table: Arc::clone(&self.table), change: self.change.unshared_copy() }
    }

    /// Executes the statement. If its row breaks several rules, the error names the first one.
    pub(super) fn execute(&self, connection: &Connection) -> rusqlite::Result<RowChanged> {
        self.changed(connection).map_err(|error| first_broken(&self.table, error, &self.change, connection))
    }

    fn changed(&self, connection: &Connection) -> rusqlite::Result<RowChanged> {
        let table = &*self.table;
        let rows = match &self.change {
            RowChange::Insert(row) => {
                return Ok(match table.insert(fields(row), connection)? {
                    // A trigger has kept the row out.
                    Some(_) if connection.changes() == 0 => RowChanged::Rows(0),
                    Some(number) if table.schema.auto => RowChanged::Numbered(number),
                    Some(_) => RowChanged::Rows(1),
                    None => RowChanged::NoNumberLeft,
                });
            }
            RowChange::Upsert(row) => {
                let row = fields(row);
                let parameters = row.iter().zip(&table.schema.columns).map(|(value, column)| Bound::new(value, column));
                let rows =
                    connection.prepare_cached(&table.statements.upsert)?.execute(params_from_iter(parameters))?;
                if let ([only], true) = (&table.schema.key[..], table.schema.auto)
                    && let Value::Int(number) = row[*only]
                {
                    table.note_number(number);
                }
                rows
            }
            RowChange::Replace(_, row) => {
                let Some(sql) = &table.statements.replace else { return Ok(RowChanged::Rows(0)) };
                let parameters = table.bound(&table.replaced, fields(row));
                connection.prepare_cached(sql)?.execute(params_from_iter(parameters))?
            }
            RowChange::Delete(key) => {
                connection.prepare_cached(&table.statements.delete)?.execute(params_from_iter(table.key(key)))?
            }
        };
        Ok(RowChanged::Rows(rows))
    }
}
