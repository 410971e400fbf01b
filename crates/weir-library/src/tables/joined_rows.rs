//! Queries together with the rows that their rows name by keys.
//!
//! Tables of one database are joined by it, so that a query and its keyed reads are one statement and see one moment. A table
//! that is kept elsewhere is read by the keys of the rows behind the query: the step around both holds its lock.

use std::sync::Arc;

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
    /// Returns the key of the joined row of a row.
    fn key_in(&self, row: &[Value]) -> Value {
        let part = |part: &KeyPart<'_>| match part {
            KeyPart::Column(column) => row[*column].clone(),
            KeyPart::Value(value) => (*value).clone(),
        };
        match &self.parts[..] {
            [only] => part(only),
            several => Value::Record(several.iter().map(part).collect()),
        }
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
                rows.iter_mut().map(|parts| parts.next().unwrap_or_else(Value::none)).collect()
            } else {
                let keys: Vec<Value> = pairs.iter().map(|(row, _)| of.key_in(fields(row))).collect();
                let found = of.table.rows.get_all(transaction, &keys)?;
                found.into_iter().map(|row| row.map_or_else(Value::none, Value::some)).collect::<Vec<Value>>()
            };
            for ((_, pair), other) in pairs.iter_mut().zip(others) {
                *pair = Value::Record([std::mem::replace(pair, Value::Unit), other].into());
            }
        }
        Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
    }
}
