//! The statements of a table in SQL, and their parameters.
//!
//! Rows have the order of the table in memory, because texts are compared by their bytes, numbers are never NaN, an enum by the
//! position of its variant, and each query ends its order with the key.

use std::fmt::Write as _;

use weir::Value;

use super::dialect::Dialect;
use super::insertion::{columns_beside_key, insertion, upsertion};
use super::schema::{ColumnSchema, Schema, TableSearch};
use super::sql::{list, name, quoted};
use super::sql_value::{Bound, SqlValue};

/// The statements of a table.
#[derive(Debug)]
pub(super) struct TableStatements {
    pub(super) dialect: Dialect,
    /// The columns, separated by commas.
    columns: String,
    /// The condition that a row has a key: `"name" = ?1`.
    pub(super) has_key: String,
    /// Reads the row with a key.
    pub(super) get: String,
    /// Inserts a row. The parameters are its columns without one that the table numbers.
    pub(super) insert: String,
    /// Inserts a row, or replaces the one with its key.
    pub(super) upsert: String,
    /// Replaces the row with a key; `None` if all columns are part of the key. The parameters are the key, then the others.
    pub(super) replace: Option<String>,
    /// Deletes the row with a key.
    pub(super) delete: String,
}

impl TableStatements {
    pub(super) fn new(schema: &Schema, dialect: Dialect) -> TableStatements {
        let table = quoted(&schema.name);
        let columns = list(schema.columns.iter().map(|column| quoted(&column.name)), ", ");
        let key = schema.key.iter().zip(1..);
        let key = key.map(|(at, number)| format!("{} = {}", name(schema, *at), dialect.parameter(number)));
        let has_key = list(key, " AND ");
        TableStatements {
            get: format!("SELECT {columns} FROM {table} WHERE {has_key}"),
            insert: insertion(schema, dialect),
            upsert: upsertion(schema, dialect),
            replace: replacement(schema, &has_key, dialect),
            delete: format!("DELETE FROM {table} WHERE {has_key}"),
            dialect,
            columns,
            has_key,
        }
    }

    /// Returns the query for rows, and its parameters.
    pub(super) fn select<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, mut parameters) = self.condition(schema, search);
        parameters.push(Bound(&search.limit_value, &NUMBER));
        let (order, limit) = (order(schema, search), self.dialect.parameter(parameters.len()));
        let table = quoted(&schema.name);
        (format!("SELECT {} FROM {table}{condition}{order} LIMIT {limit}", self.columns), parameters)
    }

    /// Returns the query for the number of rows.
    pub(super) fn count<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        (format!("SELECT count(*) FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the query for the sum of a column, as two numbers, the first of which counts 2^32.
    pub(super) fn sum<'s>(
        &self,
        schema: &'s Schema,
        search: &'s TableSearch,
        column: usize,
    ) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        let halves = self.dialect.sum_in_halves(&name(schema, column));
        (format!("SELECT {halves} FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the statement that deletes rows.
    pub(super) fn delete_all<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (condition, parameters) = self.condition(schema, search);
        (format!("DELETE FROM {}{condition}", quoted(&schema.name)), parameters)
    }

    /// Returns the `WHERE` of a query, and its parameters.
    pub(super) fn condition<'s>(&self, schema: &'s Schema, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for (at, (condition, value)) in search.conditions().enumerate() {
            let column = &schema.columns[condition.column];
            let bound = Bound(value, column);
            let mut named = quoted(&column.name);
            if self.dialect == Dialect::Sqlite && is_behind_cursor(search, condition.column, &condition.comparison) {
                // SQLite searches by one bound of a column, which has to be that of the page: `+` keeps it from this one.
                named.insert(0, '+');
            }
            let word = if at == 0 { "WHERE" } else { "AND" };
            // Only `=` and `IS NULL` are searched by an index in every database.
            let is_absent = column.optional && bound.stored() == SqlValue::Null;
            if is_absent {
                let test = if condition.comparison == "==" { "IS NULL" } else { "IS NOT NULL" };
                _ = write!(sql, " {word} {named} {test}");
                continue;
            }
            parameters.push(bound);
            let parameter = self.dialect.parameter(parameters.len());
            _ = match &*condition.comparison {
                "==" => write!(sql, " {word} {named} = {parameter}"),
                "!=" if column.optional => write!(sql, " {word} ({named} <> {parameter} OR {named} IS NULL)"),
                "!=" => write!(sql, " {word} {named} <> {parameter}"),
                other => write!(sql, " {word} {named} {other} {parameter}"),
            };
        }
        if let Some(after) = &search.after {
            let word = if sql.is_empty() { "WHERE" } else { "AND" };
            _ = write!(sql, " {word} {}", self.dialect.behind(schema, after, &mut parameters));
        }
        (sql, parameters)
    }
}

/// Returns whether a condition bounds the column by which a page begins on the side of its begin.
fn is_behind_cursor(search: &TableSearch, column: usize, comparison: &str) -> bool {
    let first = search.after.as_ref().and_then(|after| after.first());
    first
        .is_some_and(|start| start.column == column && comparison.starts_with(if start.descending { '<' } else { '>' }))
}

fn replacement(schema: &Schema, has_key: &str, dialect: Dialect) -> Option<String> {
    let others = columns_beside_key(schema);
    let first = schema.key.len() + 1;
    let set = others.iter().zip(first..);
    let set = set.map(|(at, number)| format!("{} = {}", name(schema, *at), dialect.parameter(number)));
    let sql = || format!("UPDATE {} SET {} WHERE {has_key}", quoted(&schema.name), list(set, ", "));
    (!others.is_empty()).then(sql)
}

/// Returns these columns of a row as parameters.
pub(super) fn parameters<'s>(
    schema: &'s Schema,
    columns: impl Iterator<Item = usize>,
    row: &'s [Value],
) -> Vec<Bound<'s>> {
    columns.map(|at| Bound(&row[at], &schema.columns[at])).collect()
}

/// Returns the `ORDER BY` of a query: its own order, then the key, without columns that a condition fixes.
fn order(schema: &Schema, search: &TableSearch) -> String {
    let own = search.query.order.iter().map(|order| (order.column, order.descending));
    let keys = schema.key.iter().map(|at| (*at, false));
    let terms = own.chain(keys).filter(|(at, _)| search.equal(*at).is_none());
    let terms = terms.map(|(at, descending)| {
        let direction = if descending { " DESC" } else { "" };
        format!("{}{direction}", ordered(schema, at))
    });
    let terms = list(terms, ", ");
    if terms.is_empty() { terms } else { format!(" ORDER BY {terms}") }
}

/// Returns the value by which rows are ordered by a column. The database has the names of variants, and programs order
/// them as they are declared.
pub(super) fn ordered(schema: &Schema, at: usize) -> String {
    let column = name(schema, at);
    let variants = &schema.columns[at].variants;
    if variants.is_empty() {
        return column;
    }
    let cases = variants.iter().enumerate().map(|(place, variant)| format!("WHEN '{variant}' THEN {place}"));
    format!("CASE {column} {} END", list(cases, " "))
}

/// The column of a limit.
static NUMBER: ColumnSchema =
    ColumnSchema { name: String::new(), kind: String::new(), variants: Vec::new(), optional: false, default: None };
