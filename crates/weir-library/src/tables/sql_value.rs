//! Values of columns as databases store them.
//!
//! Values of an enum are stored as the names of their variants, a `Time` as nanoseconds since 1970, a `Duration` as
//! nanoseconds, and a `Size` as bytes. A `Bool` is 0 or 1 where the database has no such type.
//!
//! The greatest integer of a database is no `Size` of a row. In a condition it stands for every `Size` from there on, so that a
//! database compares these as programs do.

use weir::Value;

use super::schema::{ColumnSchema, Schema};

/// The bytes that no stored `Size` reaches.
const SIZE_LIMIT: i64 = i64::MAX;

/// Returns true if the value of a column is a `Size` that is not stored.
pub(super) fn is_too_large(value: &Value) -> bool {
    match value {
        Value::Size(size) => i64::try_from(*size).map_or(true, |size| size == SIZE_LIMIT),
        Value::Variant(Value::SOME, Some(held)) => held.first().is_some_and(is_too_large),
        _ => false,
    }
}

/// A value of a column as a parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'v>(pub(super) &'v Value, pub(super) &'v ColumnSchema);

/// A value as a database stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SqlValue<'v> {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
}

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

impl<'v> Bound<'v> {
    /// Returns the value that the database stores.
    pub(super) fn stored(self) -> SqlValue<'v> {
        let Bound(value, column) = self;
        let value = match value {
            Value::Variant(Value::SOME, Some(held)) if column.optional => held.first().unwrap_or(&Value::Absent),
            Value::Variant(Value::NONE, None) if column.optional => &Value::Absent,
            other => other,
        };
        match value {
            Value::Bool(value) => SqlValue::Bool(*value),
            Value::Int(value) | Value::Time(value) | Value::Duration(value) => SqlValue::Integer(*value),
            Value::Size(value) => SqlValue::Integer(i64::try_from(*value).unwrap_or(SIZE_LIMIT)),
            Value::Float(value) => SqlValue::Real(*value),
            Value::Text(text) => SqlValue::Text(text.as_str()),
            Value::Bytes(bytes) => SqlValue::Bytes(bytes),
            Value::Variant(tag, None) => {
                column.variants.get(*tag as usize).map_or(SqlValue::Null, |variant| SqlValue::Text(variant))
            }
            _ => SqlValue::Null,
        }
    }
}

/// Returns the value of a column; `None` if another program has stored something else there.
pub(super) fn value_of(stored: SqlValue<'_>, column: &ColumnSchema) -> Option<Value> {
    if let (SqlValue::Null, true) = (stored, column.optional) {
        return Some(Value::none());
    }
    let value = match (stored, &*column.kind) {
        (SqlValue::Bool(value), "Bool") => Value::Bool(value),
        (SqlValue::Integer(number @ (0 | 1)), "Bool") => Value::Bool(number == 1),
        (SqlValue::Integer(number), "Int") => Value::Int(number),
        (SqlValue::Integer(number), "Time") => Value::Time(number),
        (SqlValue::Integer(number), "Duration") => Value::Duration(number),
        (SqlValue::Integer(number), "Size") => Value::Size(u64::try_from(number).ok()?),
        (SqlValue::Real(number), "Float") => Value::Float(number),
        (SqlValue::Text(text), "Text") => Value::text(text),
        (SqlValue::Bytes(bytes), "Bytes") => Value::bytes(bytes.to_vec()),
        (SqlValue::Text(text), "Enum") => {
            let tag = column.variants.iter().position(|variant| variant == text)?;
            Value::Variant(tag as u32, None)
        }
        _ => return None,
    };
    Some(if column.optional { Value::some(value) } else { value })
}
