//! The rows of a table that reference rows of another one by their keys.
//!
//! Each key is a search by an index, which every reference has. A database that is another process finds the rows of many keys in
//! one statement, because each statement is a round trip.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir::{Failure, Value};

use super::open_table::OpenTable;
use super::row::fields;
use super::schema::TableReference;

/// Number of keys of a statement.
const KEYS_MAX: usize = 1_000;

/// A search for the rows of a table that reference others.
pub(super) struct Referencing<'r> {
    /// The table whose rows are sought.
    pub(super) source: &'r Arc<OpenTable>,
    pub(super) reference: &'r TableReference,
    pub(super) transaction: i64,
}

impl Referencing<'_> {
    /// Returns the rows that reference the rows with these keys, in the order of the keys; at most so many for each.
    pub(super) fn rows(&self, keys: &[Value], limit: usize) -> Result<Vec<Value>, Failure> {
        let mut rows = Vec::new();
        for keys in keys.chunks(KEYS_MAX) {
            rows.append(&mut self.of_chunk(keys, limit)?);
        }
        Ok(rows)
    }

    fn of_chunk(&self, keys: &[Value], limit: usize) -> Result<Vec<Value>, Failure> {
        if let Some(found) = self.together(keys)? {
            return Ok(self.in_order(keys, found, limit));
        }
        let mut rows = Vec::new();
        for key in keys {
            rows.extend(self.source.rows.select(self.transaction, &self.reference.search(key, limit))?);
        }
        Ok(rows)
    }

    /// Returns the rows that reference one of the rows with these keys, in any order; `None` if each key needs a statement.
    fn together(&self, keys: &[Value]) -> Result<Option<Vec<Value>>, Failure> {
        if keys.len() < 2 {
            return Ok(None);
        }
        let TableReference { columns, optional, .. } = self.reference;
        let value = |key: &Value, at: usize| {
            let part = match key {
                Value::Record(parts) if columns.len() > 1 => &parts[at],
                only => only,
            };
            if optional[at] { Value::some(part.clone()) } else { part.clone() }
        };
        let parts: Vec<Vec<Value>> =
            (0..columns.len()).map(|at| keys.iter().map(|key| value(key, at)).collect()).collect();
        self.source.rows.rows_with(self.transaction, columns, &parts).transpose()
    }

    /// Returns the rows as a search for each key finds them.
    fn in_order(&self, keys: &[Value], found: Vec<Value>, limit: usize) -> Vec<Value> {
        let mut of_keys: BTreeMap<Value, BTreeMap<Value, Value>> = BTreeMap::new();
        for row in found {
            if let Some(key) = self.reference.key_in(fields(&row)) {
                of_keys.entry(key).or_default().insert(self.source.schema.key_of(fields(&row)), row);
            }
        }
        let each = keys.iter().filter_map(|key| of_keys.remove(key));
        each.flat_map(|rows| rows.into_values().take(limit)).collect()
    }
}
