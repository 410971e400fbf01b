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
pub(super) struct Bound<'v> {
    value: &'v Value,
    pub(super) column: &'v ColumnSchema,
    pub(super) place: ParameterPlace,
}

/// The place of a parameter in its statement, for a value that the database cannot store: PostgreSQL stores no text with NUL in a column of
/// another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    /// It is stored: the database refuses the value.
    Stored,
    /// A column is equal to it: no row is.
    Equal,
    /// A column is at most, or greater than, what stands before the first NUL: the order of texts leaves nothing between that and the text.
    Limit,
}

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
            parts.iter().zip(columns).map(|(part, column)| Bound::equal(part, column)).collect()
        }
        only => columns.map(|column| Bound::equal(only, column)).collect(),
    }
}

impl<'v> Bound<'v> {
    /// Returns a value that a statement stores, or that every database can store.
    pub(super) fn new(value: &'v Value, column: &'v ColumnSchema) -> Bound<'v> {
        Bound { value, column, place: ParameterPlace::Stored }
    }

    /// Returns a value to which a column is equal.
    pub(super) fn equal(value: &'v Value, column: &'v ColumnSchema) -> Bound<'v> {
        Bound { value, column, place: ParameterPlace::Equal }
    }

    /// Returns a value that limits a column from above or below.
    pub(super) fn limit(value: &'v Value, column: &'v ColumnSchema) -> Bound<'v> {
        Bound { value, column, place: ParameterPlace::Limit }
    }

    /// Returns whether no row of a table in PostgreSQL can have this value.
    pub(super) fn is_unstorable_in_postgres(self) -> bool {
        self.column.existing && matches!(self.stored(), SqlValue::Text(text) if text.contains('\0'))
    }

    /// Returns the value that the database stores.
    pub(super) fn stored(self) -> SqlValue<'v> {
        let Bound { value, column, .. } = self;
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
