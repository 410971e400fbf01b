//! A table of the SQLite database as its statements need it.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, ErrorCode, ffi, params_from_iter};
use weir::{Failure, Value};

use crate::tables::constraint;
use crate::tables::dialect::Dialect;
use crate::tables::insertion::{columns_beside_key, given_columns};
use crate::tables::schema::Schema;
use crate::tables::sql_value::Bound;
use crate::tables::statements::TableStatements;

/// A table as its statements need it.
#[derive(Debug)]
pub(in crate::tables) struct SqlTable {
    pub(in crate::tables) schema: Schema,
    pub(in crate::tables) statements: TableStatements,
    /// The columns of the parameters of an insertion.
    inserted: Vec<usize>,
    /// The columns of the parameters of a replacement.
    pub(in crate::tables) replaced: Vec<usize>,
    /// True if the last number may be given. Then an insertion looks first, because SQLite would refuse it with its whole group.
    may_be_used_up: AtomicBool,
}

impl SqlTable {
    pub(in crate::tables) fn new(schema: Schema) -> SqlTable {
        let statements = TableStatements::new(&schema, Dialect::Sqlite);
        let inserted = given_columns(&schema);
        let replaced = schema.key.iter().copied().chain(columns_beside_key(&schema)).collect();
        SqlTable { schema, statements, inserted, replaced, may_be_used_up: AtomicBool::new(true) }
    }

    /// Returns these columns of a row as parameters.
    pub(in crate::tables) fn bound<'s>(
        &'s self,
        columns: &'s [usize],
        row: &'s [Value],
    ) -> impl Iterator<Item = Bound<'s>> {
        columns.iter().map(|at| Bound::new(&row[*at], &self.schema.columns[*at]))
    }

    /// Returns the parameters of the condition that a row has this key.
    pub(in crate::tables) fn key<'s>(&'s self, key: &'s Value) -> impl Iterator<Item = Bound<'s>> {
        let parts = match key {
            Value::Record(parts) if self.schema.key.len() > 1 => parts,
            only => std::slice::from_ref(only),
        };
        parts.iter().zip(&self.schema.key).map(|(part, at)| Bound::new(part, &self.schema.columns[*at]))
    }

    /// Inserts a row, and returns its number; `None` if the last number is given. The writer is locked, so that nobody of this program
    /// takes the last number meanwhile.
    pub(super) fn insert(&self, row: &[Value], connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if self.may_be_used_up.load(Ordering::Relaxed) {
            let is_used_up = self.schema.auto && self.has_last_number(connection);
            self.may_be_used_up.store(is_used_up, Ordering::Relaxed);
            if is_used_up {
                return Ok(None);
            }
        }
        let mut insertion = connection.prepare_cached(&self.statements.insert)?;
        let inserted = insertion.execute(params_from_iter(self.bound(&self.inserted, row)));
        inserted.map_err(|error| self.used_up_by_others(error, connection))?;
        let number = connection.last_insert_rowid();
        self.note_number(number);
        Ok(Some(number))
    }

    /// Notes the number of a row that was written.
    pub(super) fn note_number(&self, number: i64) {
        if self.schema.auto && number == i64::MAX {
            self.may_be_used_up.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the error of an insertion. If another program has given the last number meanwhile, SQLite says that the disk is full, and has
    /// taken back the transaction of the database, also what others have written in it.
    fn used_up_by_others(&self, error: rusqlite::Error, connection: &Connection) -> rusqlite::Error {
        let is_full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        if !is_full || !self.schema.auto || !self.has_last_number(connection) {
            return error;
        }
        self.may_be_used_up.store(true, Ordering::Relaxed);
        let code = ffi::Error { code: ErrorCode::ConstraintViolation, extended_code: ffi::SQLITE_FULL };
        rusqlite::Error::SqliteFailure(code, Some(constraint::no_number_left(&self.schema).message.to_string()))
    }

    /// Returns whether the last number is given.
    fn has_last_number(&self, connection: &Connection) -> bool {
        let sql = "SELECT seq = ?1 FROM sqlite_sequence WHERE name = ?2";
        connection.query_row(sql, (i64::MAX, &self.schema.name), |row| row.get(0)).unwrap_or(false)
    }

    /// Returns the failure of a row that breaks the rule which the message of the database names by its columns. It may be one of
    /// another table, which a trigger writes, or of columns that the program does not declare.
    pub(super) fn taken(&self, error: &rusqlite::Error, row: &[Value]) -> Failure {
        let message = error.to_string();
        match self.columns_in(&message) {
            Some(columns) => constraint::taken(&self.schema, &columns, row),
            None => constraint::refused(&self.schema, &message),
        }
    }

    /// Returns the columns that the message about a broken rule names; `None` if not all are columns of the table.
    pub(super) fn columns_in(&self, message: &str) -> Option<Vec<usize>> {
        let (_, named) = message.rsplit_once(": ")?;
        let prefix = format!("{}.", self.schema.name);
        let column = |name: &str| {
            let name = name.trim().strip_prefix(&prefix)?;
            self.schema.columns.iter().position(|column| column.name == name)
        };
        named.split(',').map(column).collect()
    }
}

/// Returns whether the error says that another program has given the last number of a table.
pub(super) fn is_used_up(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_FULL)
        && error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
