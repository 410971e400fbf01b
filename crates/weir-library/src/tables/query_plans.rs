//! The statements of a program that search a table, as SQL, and the plans by which the database executes them.

use std::fmt::Write as _;

use rusqlite::Connection;
use weir::{Value, Values};

use super::catalog::{Catalog, Read};
use super::database_error::explain;
use super::dialect::Dialect;
use super::new_table;
use super::schema::{Schema, TableQuery, TableSearch};
use super::sqlite_catalog::SqliteCatalog;
use super::statements::TableStatements;

/// A statement that searches a table.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchStatement {
    /// Reads the row with a key.
    Row,
    /// Reads the rows that fulfil conditions.
    Rows(TableQuery),
    /// Counts them.
    Count(TableQuery),
    /// Adds the values of a column.
    Sum(TableQuery, usize),
    /// Deletes them.
    Delete(TableQuery),
}

/// A statement that searches a table, and the places where the program executes it.
#[derive(Clone, Debug)]
pub struct PlacedStatement {
    /// The statement.
    pub statement: SearchStatement,
    /// The places in the text of the program.
    pub places: Vec<String>,
}

impl SearchStatement {
    /// Returns the statement that a call of a function of `tables` executes; `None` if it searches nothing. `query` and
    /// `column` are those of its arguments.
    #[must_use]
    pub fn of(function: &str, query: Option<TableQuery>, column: Option<usize>) -> Option<SearchStatement> {
        Some(match (function, query) {
            ("tables.get" | "tables.get_all", None) => SearchStatement::Row,
            ("tables.count", Some(query)) => SearchStatement::Count(query),
            ("tables.sum", Some(query)) => SearchStatement::Sum(query, column?),
            ("tables.delete_all", Some(query)) => SearchStatement::Delete(query),
            (_, query) => SearchStatement::Rows(query?),
        })
    }

    /// Returns the statement in SQL, and the number of its parameters.
    fn sql(&self, schema: &Schema, dialect: Dialect) -> (String, usize) {
        let statements = TableStatements::new(schema, dialect);
        let searched = |query: &TableQuery| TableSearch::new(query.clone(), any_values(query));
        let counted = |(sql, parameters): (String, Vec<_>)| (sql, parameters.len());
        match self {
            SearchStatement::Row => (statements.get, schema.key.len()),
            SearchStatement::Rows(query) => counted(statements.select(schema, &searched(query))),
            SearchStatement::Count(query) => counted(statements.count(schema, &searched(query))),
            SearchStatement::Sum(query, column) => counted(statements.sum(schema, &searched(query), *column)),
            SearchStatement::Delete(query) => counted(statements.delete_all(schema, &searched(query))),
        }
    }
}

/// Returns arguments of a query none of which is absent.
fn any_values(query: &TableQuery) -> Value {
    let fixed = [Value::Int(i64::MAX), Value::Unit];
    Value::Record(fixed.into_iter().chain(query.conditions.iter().map(|_| Value::Int(0))).collect::<Values>())
}

/// Describes statements with their places, SQL, and the plans of the database; without plans if it does not have the table.
pub(super) fn described(
    schema: &Schema,
    statements: &[PlacedStatement],
    (dialect, catalog): (Dialect, Option<&dyn Catalog>),
) -> Read<String> {
    let mut text = String::new();
    for PlacedStatement { statement, places } in statements {
        let (sql, parameters) = statement.sql(schema, dialect);
        _ = writeln!(text, "  at {}\n    {sql}", places.join(", "));
        let plan = catalog.map_or(Ok(Vec::new()), |catalog| catalog.plan(&sql, parameters))?;
        plan.iter().for_each(|line| _ = writeln!(text, "      {line}"));
    }
    Ok(text)
}

/// Describes statements as an SQLite database executes them after a start has created the table.
pub(super) fn described_after_start(schema: &Schema, statements: &[PlacedStatement]) -> Read<String> {
    let path = ":memory:".as_ref();
    let created = Connection::open_in_memory().and_then(|connection| {
        let mut changes = new_table::created(schema, Dialect::Sqlite).into_iter();
        changes.try_for_each(|change| connection.execute_batch(&change.sql)).map(|()| connection)
    });
    let connection = created.map_err(|error| explain(path, &error))?;
    described(schema, statements, (Dialect::Sqlite, Some(&SqliteCatalog { connection: &connection, path })))
}
