//! Descriptions of joins: the tables whose rows a query reads by keys, such as `users[m.from]` for each row `m`.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use weir::{Failure, Value};

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

impl KeyPart<'_> {
    /// Returns the key of the joined row of a row.
    pub(super) fn key_in(parts: &[KeyPart<'_>], row: &[Value]) -> Value {
        let part = |part: &KeyPart<'_>| match part {
            KeyPart::Column(column) => row[*column].clone(),
            KeyPart::Value(value) => (*value).clone(),
        };
        match parts {
            [only] => part(only),
            several => Value::Record(several.iter().map(part).collect()),
        }
    }
}

/// Reads the rows of a query, each with its joined rows, whose columns follow. A joined row that several rows name is held once.
pub(super) struct JoinedColumns<'s> {
    schema: &'s Schema,
    joined: &'s [(&'s Schema, &'s [KeyPart<'s>])],
    /// The joined rows that were found, by the positions of their columns and their keys.
    found: IndexMap<(usize, Value), Value, RandomState>,
}

impl<'s> JoinedColumns<'s> {
    pub(super) fn new(schema: &'s Schema, joined: &'s [(&'s Schema, &'s [KeyPart<'s>])]) -> JoinedColumns<'s> {
        JoinedColumns { schema, joined, found: IndexMap::default() }
    }

    /// Returns a row and the `Option` of each joined row. `is_absent` returns whether the value at a position is absent, `row` the row
    /// that begins there.
    pub(super) fn rows(
        &mut self,
        is_absent: impl Fn(usize) -> bool,
        row: impl Fn(&Schema, usize) -> Result<Value, Failure>,
    ) -> Result<Vec<Value>, Failure> {
        let mut rows = vec![row(self.schema, 0)?];
        let mut begin = self.schema.columns.len();
        for (other, parts) in self.joined {
            // A row has a value in each column of its key.
            let key = other.key.first().map_or(begin, |at| begin + at);
            rows.push(match is_absent(key) {
                true => Value::none(),
                false => match self.found.entry((begin, KeyPart::key_in(parts, fields(&rows[0])))) {
                    Entry::Occupied(found) => found.get().clone(),
                    Entry::Vacant(place) => place.insert(Value::some(row(other, begin)?)).clone(),
                },
            });
            begin += other.columns.len();
        }
        Ok(rows)
    }
}
