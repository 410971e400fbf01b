//! Values of columns as the database stores them.
//!
//! Values of an enum are stored as the names of their variants, a `Time` as nanoseconds since 1970, a `Duration` as
//! nanoseconds, a `Size` as bytes, and a `Bool` as 0 or 1.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use weir::Value;

use super::schema::{ColumnSchema, Schema};

/// A value as a parameter of a statement.
pub(super) struct Bound<'v>(pub(super) &'v Value, pub(super) &'v ColumnSchema);

/// Returns the parameters of the condition that a row has this key.
pub(super) fn key_parameters<'s>(schema: &'s Schema, key: &'s Value) -> Vec<Bound<'s>> {
    let columns = schema.key.iter().map(|at| &schema.columns[*at]);
    match key {
        Value::Record(parts) if schema.key.len() > 1 => {
            parts.iter().zip(columns).map(|(part, column)| Bound(part, column)).collect()
        }
        only => columns.map(|column| Bound(only, column)).collect(),
    }
}

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let Bound(value, column) = self;
        let value = match value {
            Value::Variant(Value::SOME, Some(held)) if column.optional => held.first().unwrap_or(&Value::Absent),
            Value::Variant(Value::NONE, None) if column.optional => &Value::Absent,
            other => other,
        };
        let stored = match value {
            Value::Bool(value) => ValueRef::Integer((*value).into()),
            Value::Int(value) | Value::Time(value) | Value::Duration(value) => ValueRef::Integer(*value),
            Value::Size(value) => ValueRef::Integer(*value as i64),
            Value::Float(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::Variant(tag, None) => match column.variants.get(*tag as usize) {
                Some(variant) => ValueRef::Text(variant.as_bytes()),
                None => ValueRef::Null,
            },
            _ => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(stored))
    }
}

/// Returns the value of a column; `None` if another program has stored something else there.
pub(super) fn value_of(stored: ValueRef<'_>, column: &ColumnSchema) -> Option<Value> {
    if let (ValueRef::Null, true) = (stored, column.optional) {
        return Some(Value::none());
    }
    let value = match (stored, &*column.kind) {
        (ValueRef::Integer(number @ (0 | 1)), "Bool") => Value::Bool(number == 1),
        (ValueRef::Integer(number), "Int") => Value::Int(number),
        (ValueRef::Integer(number), "Time") => Value::Time(number),
        (ValueRef::Integer(number), "Duration") => Value::Duration(number),
        (ValueRef::Integer(number), "Size") => Value::Size(u64::try_from(number).ok()?),
        (ValueRef::Real(number), "Float") => Value::Float(number),
        (ValueRef::Text(text), "Text") => Value::text(std::str::from_utf8(text).ok()?),
        (ValueRef::Blob(bytes), "Bytes") => Value::bytes(bytes.to_vec()),
        (ValueRef::Text(text), "Enum") => {
            let tag = column.variants.iter().position(|variant| variant.as_bytes() == text)?;
            Value::Variant(tag as u32, None)
        }
        _ => return None,
    };
    Some(if column.optional { Value::some(value) } else { value })
}
