//! Rows of tables: their keys, and the form in which they are stored.

use std::collections::BTreeMap;

use weir::{Failure, Value, Values};

use super::constraint;
use super::dialect::Dialect;
use super::schema::{ColumnSchema, Schema};
use super::sql_value::is_too_large;

/// Returns the fields of a row.
pub(super) fn fields(row: &Value) -> &[Value] {
    if let Value::Record(fields) = row { fields } else { &[] }
}

impl Schema {
    /// Returns the key of a row.
    pub(super) fn key_of(&self, row: &[Value]) -> Value {
        match &self.key[..] {
            [only] => row[*only].clone(),
            several => Value::Record(several.iter().map(|at| row[*at].clone()).collect()),
        }
    }

    /// Returns a row that a database has stored, with the value of each column; `None` for one that another program has stored and that
    /// cannot be read.
    ///
    /// # Errors
    /// Fails if there is such a value.
    pub(super) fn read_row(
        &self,
        dialect: Dialect,
        value: impl Fn(usize, &ColumnSchema) -> Option<Value>,
    ) -> Result<Value, Failure> {
        let columns = || self.columns.iter().enumerate();
        // Collected without a list in between, as their number is known.
        let mut is_whole = true;
        let values: Values = columns()
            .map(|(at, column)| {
                value(at, column).unwrap_or_else(|| {
                    is_whole = false;
                    Value::Absent
                })
            })
            .collect();
        match is_whole {
            true => Ok(Value::Record(values)),
            false => {
                let values = columns().map(|(at, column)| value(at, column)).collect();
                Err(constraint::unreadable(self, values, dialect))
            }
        }
    }

    /// Returns the row as it is stored: a negative zero is a zero.
    ///
    /// # Errors
    /// Fails if a number is NaN.
    pub(super) fn stored(&self, row: Value) -> Result<Value, Failure> {
        let may_be_number =
            |value: &Value| matches!(value, Value::Float(_) | Value::Size(_) | Value::Variant(Value::SOME, _));
        if !fields(&row).iter().any(may_be_number) {
            return Ok(row);
        }
        let number = |value: &Value| match value {
            Value::Float(number) => Some(*number),
            Value::Variant(Value::SOME, Some(held)) => match held.first() {
                Some(Value::Float(number)) => Some(*number),
                _ => None,
            },
            _ => None,
        };
        let numbers = fields(&row).iter().map(number);
        if let Some(column) = numbers.clone().position(|number| number.is_some_and(f64::is_nan)) {
            return Err(constraint::not_a_number(self, column));
        }
        if let Some(column) = fields(&row).iter().position(is_too_large) {
            return Err(constraint::too_large(self, column));
        }
        if !numbers.flatten().any(|number| number == 0.0 && number.is_sign_negative()) {
            return Ok(row);
        }
        let positive = |value: &Value| match number(value) {
            Some(0.0) => match value {
                Value::Float(_) => Value::Float(0.0),
                _ => Value::some(Value::Float(0.0)),
            },
            _ => value.clone(),
        };
        Ok(Value::Record(fields(&row).iter().map(positive).collect::<Values>()))
    }

    /// Returns the row that replaces the one with this key as it is stored.
    ///
    /// # Errors
    /// Fails if it cannot be stored, or has another key.
    pub(super) fn replacement(&self, key: &Value, new: Value) -> Result<Value, Failure> {
        let new = self.stored(new)?;
        let is_same = self.key_of(fields(&new)) == *key;
        if is_same { Ok(new) } else { Err(constraint::changed_key(self, key, fields(&new))) }
    }

    /// Returns the rows that replace these as they are stored, with their keys.
    ///
    /// # Errors
    /// Fails if a row cannot be stored, or has another key than the one that it replaces.
    pub(super) fn replacements(&self, old: &[Value], new: Vec<Value>) -> Result<Vec<(Value, Value)>, Failure> {
        let each = old.iter().zip(new).map(|(old, new)| {
            let key = self.key_of(fields(old));
            let new = self.replacement(&key, new)?;
            Ok((key, new))
        });
        each.collect()
    }

    /// Returns whether a unique value moves from one of these rows to another when they are replaced by rows with the same keys.
    pub(super) fn moves_unique_values(&self, old: &[Value], new: &[(Value, Value)]) -> bool {
        self.indexes.iter().filter(|index| index.unique).any(|index| {
            let values = |row: &'_ Value| -> Option<Vec<Value>> {
                let row = fields(row);
                let is_whole = !self.has_absent(&index.columns, row);
                is_whole.then(|| index.columns.iter().map(|at| row[*at].clone()).collect())
            };
            let owners: BTreeMap<Vec<Value>, usize> =
                old.iter().enumerate().filter_map(|(at, row)| Some((values(row)?, at))).collect();
            let mut new = new.iter().enumerate().filter_map(|(at, (_, row))| Some((values(row)?, at)));
            new.any(|(values, at)| owners.get(&values).is_some_and(|owner| *owner != at))
        })
    }

    /// Returns the row with this number as its key.
    pub(super) fn numbered(&self, row: &Value, number: i64) -> Value {
        let field = |(at, value): (usize, &Value)| if self.key == [at] { Value::Int(number) } else { value.clone() };
        Value::Record(fields(row).iter().enumerate().map(field).collect::<Values>())
    }

    /// Does the same with a row, in place if nobody else has it.
    pub(super) fn renumbered(&self, mut row: Value, number: i64) -> Value {
        if let (Value::Record(parts), [key]) = (&mut row, &self.key[..])
            && let Some(parts) = parts.unshared()
        {
            parts[*key] = Value::Int(number);
            return row;
        }
        self.numbered(&row, number)
    }

    /// Returns whether a value is absent in one of the columns. TableRows with absent values break no `unique`.
    pub(super) fn has_absent(&self, columns: &[usize], row: &[Value]) -> bool {
        columns.iter().any(|at| self.columns[*at].optional && matches!(row[*at], Value::Variant(Value::NONE, _)))
    }
}
