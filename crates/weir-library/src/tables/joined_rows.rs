//! Queries together with the rows that their rows name by keys.
//!
//! Tables of one database are joined by it, so that a query and its keyed reads are one statement and see one moment. A table
//! that is kept elsewhere is read by the keys of the rows behind the query: the step around both holds its lock.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use weir::{Failure, Value};

use super::join::KeyPart;
use super::open_table::OpenTable;
use super::row::fields;
use super::schema::{Schema, TableSearch};

/// A table that is joined to a query.
pub(super) struct JoinedTable<'s> {
    pub(super) table: Arc<OpenTable>,
    pub(super) parts: Vec<KeyPart<'s>>,
}

impl JoinedTable<'_> {
    /// Returns the joined row of each row, as an `Option`. One that several rows name is read and held once.
    fn rows_of<'r>(&self, transaction: i64, rows: impl Iterator<Item = &'r Value>) -> Result<Vec<Value>, Failure> {
        let mut keys: IndexSet<Value, RandomState> = IndexSet::default();
        let places: Vec<usize> =
            rows.map(|row| keys.insert_full(KeyPart::key_in(&self.parts, fields(row))).0).collect();
        let keys: Vec<Value> = keys.into_iter().collect();
        let found = self.table.rows.get_all(transaction, &keys)?;
        let found: Vec<Value> = found.into_iter().map(|row| row.map_or_else(Value::none, Value::some)).collect();
        Ok(places.into_iter().map(|at| found[at].clone()).collect())
    }
}

impl OpenTable {
    /// Returns the rows that fulfil the conditions, each paired with the joined rows: `((row, first), second)`.
    pub(super) fn join(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[JoinedTable<'_>],
    ) -> Result<Vec<Value>, Failure> {
        let is_stored = self.rows.is_stored();
        let in_database = |of: &&JoinedTable<'_>| {
            is_stored && of.table.rows.is_stored() && self.schema.shares_database(&of.table.schema)
        };
        let together: Vec<&JoinedTable<'_>> = joined.iter().filter(in_database).collect();
        let rows = match &together[..] {
            [] => self.rows.select(transaction, search)?.into_iter().map(|row| vec![row]).collect(),
            several => {
                let several: Vec<(&Schema, &[KeyPart<'_>])> =
                    several.iter().map(|of| (&of.table.schema, &of.parts[..])).collect();
                self.rows.select_joined(transaction, search, &several)?
            }
        };
        let mut rows: Vec<std::vec::IntoIter<Value>> = rows.into_iter().map(Vec::into_iter).collect();
        let found = rows.iter_mut().map(|parts| parts.next().unwrap_or(Value::Unit));
        let mut pairs: Vec<(Value, Value)> = found.map(|row| (row.clone(), row)).collect();
        for of in joined {
            let others = if in_database(&of) {
                rows.iter_mut().map(|parts| parts.next().unwrap_or_else(Value::none)).collect::<Vec<Value>>()
            } else {
                of.rows_of(transaction, pairs.iter().map(|(row, _)| row))?
            };
            for ((_, pair), other) in pairs.iter_mut().zip(others) {
                *pair = Value::Record([std::mem::replace(pair, Value::Unit), other].into());
            }
        }
        Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
    }
}
