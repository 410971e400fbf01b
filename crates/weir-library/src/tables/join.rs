//! Queries together with the rows that their rows name by keys, such as `users[m.from]` for each row `m`.
//!
//! Tables of one database are joined by it, so that a query and its keyed reads are one statement and see one moment. A table
//! that is kept elsewhere is read by the keys of the rows behind the query: the step around both holds its lock.

use std::sync::Arc;

use weir::{Failure, Value};

use super::open_table::OpenTable;
use super::row::fields;
use super::schema::{Schema, TableSearch};

/// A table whose rows a query reads by keys, and the parts of these keys.
#[derive(weir::Type, Clone, Debug, PartialEq)]
#[weir(name = "tables.Join")]
pub struct TableJoin {
    /// The name of the table.
    pub table: String,
    /// For each column of its key the column of the query's rows that has the value; `None` if it is the next of the values
    /// behind those of the conditions.
    pub key: Vec<Option<usize>>,
}

/// A table that is joined to a query.
pub(super) struct JoinedTable<'s> {
    pub(super) table: Arc<OpenTable>,
    pub(super) parts: Vec<KeyPart<'s>>,
}

/// A part of the key of a joined row.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyPart<'s> {
    /// The value of a column of the query's row.
    Column(usize),
    /// The same value for all rows.
    Value(&'s Value),
}

/// Returns the parts of the keys of joined tables. Their values follow those of the conditions.
pub(super) fn key_parts<'s>(joins: &[TableJoin], search: &'s TableSearch) -> Vec<Vec<KeyPart<'s>>> {
    let mut values = search.values.iter().skip(2 + search.query.conditions.len());
    let mut part = |column: &Option<usize>| match column {
        Some(column) => KeyPart::Column(*column),
        None => KeyPart::Value(values.next().unwrap_or(&Value::Absent)),
    };
    joins.iter().map(|join| join.key.iter().map(&mut part).collect()).collect()
}

/// Returns the row of a query and the `Option` of each joined row, whose columns follow. `is_absent` returns whether the value at
/// a position is absent, `row` the row that begins there.
pub(super) fn with_joined_rows(
    schema: &Schema,
    joined: &[(&Schema, &[KeyPart<'_>])],
    is_absent: impl Fn(usize) -> bool,
    row: impl Fn(&Schema, usize) -> Result<Value, Failure>,
) -> Result<Vec<Value>, Failure> {
    let mut rows = vec![row(schema, 0)?];
    let mut begin = schema.columns.len();
    for (other, _) in joined {
        // A row has a value in each column of its key.
        let key = other.key.first().map_or(begin, |at| begin + at);
        rows.push(if is_absent(key) { Value::none() } else { Value::some(row(other, begin)?) });
        begin += other.columns.len();
    }
    Ok(rows)
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
