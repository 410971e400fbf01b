//! Values of columns in SQLite, which has no truth values: it stores 0 and 1.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use weir::Value;

use crate::tables::schema::ColumnSchema;
use crate::tables::sql_value::{Bound, SqlValue, value_of};

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.stored() {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Bool(value) => ValueRef::Integer(value.into()),
            SqlValue::Integer(value) => ValueRef::Integer(value),
            SqlValue::Real(value) => ValueRef::Real(value),
            SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
            SqlValue::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Returns the value of a column; `None` if another program has stored something else there.
pub(super) fn sqlite_value(stored: ValueRef<'_>, column: &ColumnSchema) -> Option<Value> {
    let stored = match stored {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Text(text) => SqlValue::Text(std::str::from_utf8(text).ok()?),
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes),
    };
    value_of(stored, column)
}
