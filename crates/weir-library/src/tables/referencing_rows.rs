//! The rows of a table that reference rows of another one by their keys.
//!
//! Each key is a search, unless no index serves it: then the table is read once for all keys, in pages, because a search would
//! read it once for each.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir::{Failure, Value};

use super::open_table::OpenTable;
use super::row::fields;
use super::schema::{PageStart, Schema, TableQuery, TableReference, TableSearch};

/// Number of keys from which on the table is read as a whole: a search in the database is faster than reading its rows here.
const KEYS_MAX: usize = 16;
/// Number of rows of a page.
const PAGE: usize = 1_000;

/// A search for the rows of a table that reference others.
pub(super) struct Referencing<'r> {
    /// The table whose rows are sought.
    pub(super) source: &'r Arc<OpenTable>,
    pub(super) reference: &'r TableReference,
    pub(super) transaction: i64,
}

impl Referencing<'_> {
    /// Returns the rows that reference one of the rows with these keys; at most so many for each key.
    pub(super) fn rows(&self, keys: &[Value], limit: usize) -> Result<Vec<Value>, Failure> {
        if keys.len() > KEYS_MAX && !has_index(&self.source.schema, &self.reference.columns) {
            return self.scanned(&keys.iter().collect());
        }
        let mut rows = Vec::new();
        for key in keys {
            rows.extend(self.source.rows.select(self.transaction, &self.reference.search(key, limit))?);
        }
        Ok(rows)
    }

    /// Returns the rows that reference one of the rows with these keys, from all rows of the table.
    fn scanned(&self, keys: &BTreeSet<&Value>) -> Result<Vec<Value>, Failure> {
        let query = TableQuery::of_all();
        let mut search = TableSearch::new(query, Value::Record([Value::Int(PAGE as i64), Value::Unit].into()));
        let mut found = Vec::new();
        loop {
            let page = self.source.rows.select(self.transaction, &search)?;
            let is_last = page.len() < PAGE;
            search.after = page.last().map(|row| behind(&self.source.schema, fields(row)));
            let references = |row: &Value| self.reference.key_in(fields(row)).is_some_and(|key| keys.contains(&key));
            found.extend(page.into_iter().filter(references));
            if is_last {
                return Ok(found);
            }
        }
    }
}

/// Returns the place behind a row in the order of the keys.
fn behind(schema: &Schema, row: &[Value]) -> Vec<PageStart> {
    let start = |column: &usize| PageStart { column: *column, descending: false, value: row[*column].clone() };
    schema.key.iter().map(start).collect()
}

/// Returns whether the key or an index begins with one of these columns, so that a search reads few rows.
fn has_index(schema: &Schema, columns: &[usize]) -> bool {
    let of_indexes = schema.indexes.iter().map(|index| &index.columns);
    std::iter::once(&schema.key)
        .chain(of_indexes)
        .any(|index| index.first().is_some_and(|first| columns.contains(first)))
}
