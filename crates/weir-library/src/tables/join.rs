//! Descriptions of joins: the tables whose rows a query reads by keys, such as `users[m.from]` for each row `m`.

use weir::{Failure, Value};

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
