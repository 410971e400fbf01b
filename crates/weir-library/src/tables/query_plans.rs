//! The statements of a program that search a table, as the SQL that the database gets, and the plans by which it executes them.
//!
//! The SQL comes from [`TableStatements`], as it does when a statement is executed, for each case in which it differs: a page
//! behind a cursor, an absent value, a deletion of rows that others reference.

use std::fmt::Write as _;

use rusqlite::Connection;
use weir::{HostType, Value, Values};

use super::catalog::{Catalog, Read};
use super::cursor::whole_order;
use super::dialect::Dialect;
use super::grouping::{GroupCondition, TableGrouping};
use super::join::{KeyPart, TableJoin};
use super::schema::{ColumnSchema, PageStart, Schema, TableCondition, TableQuery, TableReference, TableSearch};
use super::sql_value::Bound;
use super::sqlite::database_error::explain;
use super::statements::TableStatements;
use crate::tables::evolution::new_table;
use crate::tables::sqlite::catalog::SqliteCatalog;

/// A statement that searches a table.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchStatement {
    form: StatementForm,
    query: TableQuery,
    /// True if the query returns pages.
    is_page: bool,
    /// True if the number of rows has a limit.
    is_limited: bool,
    /// The values that the conditions compare with, where they are known.
    values: Vec<Option<Value>>,
}

/// The form of a statement that searches a table.
#[derive(Clone, Debug, PartialEq)]
enum StatementForm {
    /// Reads the row with a key.
    Row,
    /// Reads the row with a key, together with those of other calls.
    GatheredRow,
    /// Reads the row of each of several keys.
    RowOfEach,
    /// Reads the rows that fulfil conditions.
    Rows,
    /// Reads them together with rows of other tables.
    Joined(Vec<TableJoin>),
    /// Counts them.
    Count,
    /// Adds the values of a column.
    Sum(usize),
    /// Groups them.
    Groups(TableGrouping),
    /// Deletes the row with a key.
    DeleteRow,
    /// Deletes the rows that fulfil conditions.
    Delete,
}

/// A call of a function of `tables` in a program. What only an execution tells is `None`.
#[derive(Clone, Debug, Default)]
pub struct StatementCall {
    /// The path of the function.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<Option<Value>>,
    /// The parts of the argument with the limit, the cursor and the values of a query.
    pub query_arguments: Vec<Option<Value>>,
}

/// A statement that searches a table, and the places where the program executes it.
#[derive(Clone, Debug)]
pub struct PlacedStatement {
    /// The statement.
    pub statement: SearchStatement,
    /// The parts of the query that the program evaluates itself: a sentence for each, without its subject.
    pub rest: Vec<String>,
    /// The places in the text of the program.
    pub places: Vec<String>,
}

/// A statement in SQL.
struct StatementSql {
    /// The case in which it is executed; empty if there is only one.
    case: String,
    sql: String,
    /// The number of its parameters.
    parameters: usize,
}

impl SearchStatement {
    /// Returns the statement that a call executes; `None` if it searches nothing.
    #[must_use]
    pub fn of(call: StatementCall) -> Option<SearchStatement> {
        let StatementCall { function, arguments, query_arguments } = call;
        let argument = |at: usize| arguments.get(at).cloned().flatten();
        let query = argument(2).and_then(|value| TableQuery::from_value(value).ok());
        let column = || argument(4).and_then(|value| usize::from_value(value).ok());
        let form = match (function.strip_prefix("tables.")?, &query) {
            ("get" | "get_to_change", _) => StatementForm::Row,
            ("row", _) => StatementForm::GatheredRow,
            ("get_all" | "get_each", _) => StatementForm::RowOfEach,
            ("delete", _) => StatementForm::DeleteRow,
            (_, None) => return None,
            ("select" | "select_to_change", _) => StatementForm::Rows,
            ("join", _) => StatementForm::Joined(Vec::from_value(argument(4)?).ok()?),
            ("count", _) => StatementForm::Count,
            ("sum", _) => StatementForm::Sum(column()?),
            ("average", _) => StatementForm::Groups(TableGrouping::average(column()?)),
            ("distinct", _) => StatementForm::Groups(TableGrouping::distinct(column()?)),
            ("group", _) => StatementForm::Groups(TableGrouping::from_value(argument(4)?).ok()?),
            ("delete_all", _) => StatementForm::Delete,
            _ => return None,
        };
        let is_page = query_arguments.get(1).is_some_and(|cursor| *cursor != Some(Value::Unit));
        let is_limited = query_arguments.first().is_some_and(|limit| *limit != Some(Value::Int(i64::MAX)));
        let query = query.unwrap_or_else(TableQuery::of_all);
        Some(SearchStatement {
            form,
            query,
            is_page,
            is_limited,
            values: query_arguments.into_iter().skip(2).collect(),
        })
    }

    /// Returns the names of the other tables that it names.
    pub(super) fn other_tables<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s str> {
        let (joined, deletes) = match &self.form {
            StatementForm::Joined(joins) => (&joins[..], false),
            StatementForm::DeleteRow | StatementForm::Delete => (&[][..], true),
            _ => (&[][..], false),
        };
        let referencing = schema.referenced_by.iter().filter(move |_| deletes).map(|reference| &*reference.source);
        joined.iter().map(|join| &*join.table).chain(referencing)
    }

    /// Returns the statements in SQL.
    fn sql(&self, schema: &Schema, schemas: &[Schema], dialect: Dialect) -> Vec<StatementSql> {
        let statements = TableStatements::new(schema, dialect);
        let by_key =
            |case: &str, sql: String| vec![StatementSql { case: case.to_owned(), sql, parameters: schema.key.len() }];
        match &self.form {
            StatementForm::Row => by_key("", statements.get),
            StatementForm::GatheredRow => {
                by_key("once for each key of the calls that gather, together and in one snapshot", statements.get)
            }
            StatementForm::RowOfEach => by_key("once for each key, together and in one snapshot", statements.get),
            StatementForm::DeleteRow if schema.referenced_by.is_empty() => by_key("", statements.delete),
            StatementForm::DeleteRow => {
                let found = by_key("finds the row", statements.get);
                found.into_iter().chain(deletion(schema, schemas, dialect)).collect()
            }
            StatementForm::Rows => self.each_case(schema, |search| counted(statements.select(schema, search))),
            StatementForm::Joined(joins) => self.joined_sql(joins, (schema, schemas), &statements),
            StatementForm::Count => self.each_case(schema, |search| counted(statements.count(schema, search))),
            StatementForm::Sum(column) => {
                self.each_case(schema, |search| counted(statements.sum(schema, search, *column)))
            }
            StatementForm::Groups(grouping) => {
                self.each_case(schema, |search| counted(statements.group(schema, search, grouping)))
            }
            StatementForm::Delete if schema.referenced_by.is_empty() => {
                self.each_case(schema, |search| counted(statements.delete_all(schema, search)))
            }
            StatementForm::Delete => {
                let found = self.each_case(schema, |search| counted(statements.select(schema, search)));
                found.into_iter().chain(deletion(schema, schemas, dialect)).collect()
            }
        }
    }

    /// Returns the SQL of a query with joined tables. Those that are kept in memory are read behind it.
    fn joined_sql(
        &self,
        joins: &[TableJoin],
        (schema, schemas): (&Schema, &[Schema]),
        statements: &TableStatements,
    ) -> Vec<StatementSql> {
        let part = |column: &Option<usize>| column.map_or(KeyPart::Value(&Value::Unit), KeyPart::Column);
        let parts: Vec<Vec<KeyPart<'_>>> = joins.iter().map(|join| join.key.iter().map(part).collect()).collect();
        let stored = joins.iter().zip(&parts).filter_map(|(join, parts)| {
            let other = schemas.iter().find(|schema| schema.name == join.table)?;
            schema.shares_database(other).then_some((other, &parts[..]))
        });
        let stored: Vec<(&Schema, &[KeyPart<'_>])> = stored.collect();
        self.each_case(schema, |search| match &stored[..] {
            [] => counted(statements.select(schema, search)),
            joined => counted(statements.select_joined(schema, search, joined)),
        })
    }

    /// Returns the SQL of a query for each case in which it differs.
    fn each_case(&self, schema: &Schema, sql: impl Fn(&TableSearch) -> (String, usize)) -> Vec<StatementSql> {
        let of = |case: String, search: &TableSearch| {
            let (sql, parameters) = sql(search);
            StatementSql { case, sql, parameters }
        };
        let mut found = Vec::new();
        let usual = self.search(schema, None);
        found.push(of(if self.is_page { "the first page".to_owned() } else { String::new() }, &usual));
        if self.is_page {
            let mut behind = self.search(schema, None);
            behind.after = Some(self.page_start(schema, &behind));
            found.push(of("a page behind a cursor".to_owned(), &behind));
        }
        for (at, condition) in self.query.conditions.iter().enumerate() {
            let column = &schema.columns[condition.column];
            // What is less or greater is there.
            let is_equality = matches!(&*condition.comparison, "==" | "!=");
            if column.optional && is_equality && self.values.get(at).is_none_or(Option::is_none) {
                let absent = self.search(schema, Some(at));
                found.push(of(format!("if the value for `{}` is absent", column.name), &absent));
            }
        }
        found
    }

    /// Returns the query with values that are present, except for the one at a position.
    fn search(&self, schema: &Schema, absent: Option<usize>) -> TableSearch {
        let value = |(at, condition): (usize, &TableCondition)| {
            let known = self.values.get(at).cloned().flatten();
            if absent == Some(at) {
                Value::none()
            } else {
                known.unwrap_or_else(|| example(&schema.columns[condition.column]))
            }
        };
        let fixed = [Value::Int(if self.is_limited { 1 } else { i64::MAX }), Value::Unit];
        let of_groups = match &self.form {
            StatementForm::Groups(grouping) => grouping.examples(schema),
            _ => Vec::new(),
        };
        let of_rows = self.query.conditions.iter().enumerate().map(value);
        let values = fixed.into_iter().chain(of_rows).chain(of_groups).collect::<Values>();
        TableSearch::new(self.query.clone(), Value::Record(values))
    }

    /// Returns the row before a page.
    fn page_start(&self, schema: &Schema, search: &TableSearch) -> Vec<PageStart> {
        let order = whole_order(schema, &self.query).into_iter();
        let order = order.filter(|(column, _)| search.equal(*column).is_none());
        order
            .map(|(column, descending)| PageStart { column, descending, value: example(&schema.columns[column]) })
            .collect()
    }
}

/// Returns a statement with the number of its parameters.
fn counted((sql, parameters): (String, Vec<Bound<'_>>)) -> (String, usize) {
    (sql, parameters.len())
}

impl TableGrouping {
    /// Returns values of the parts that the conditions compare.
    fn examples(&self, schema: &Schema) -> Vec<Value> {
        let of = |condition: &GroupCondition| {
            let column = self.columns.get(condition.part);
            column.map_or(Value::Int(0), |column| example(&schema.columns[*column]))
        };
        self.conditions.iter().map(of).collect()
    }
}

/// Returns a value of a column that is present.
fn example(column: &ColumnSchema) -> Value {
    match (column.variants.is_empty(), column.optional) {
        (true, _) => Value::Int(0),
        (false, false) => Value::Variant(0, None),
        // As it stands, the first variant would be an absent value.
        (false, true) => Value::some(Value::Variant(0, None)),
    }
}

/// Returns the statements that delete rows which were found, when other rows may reference them.
fn deletion(schema: &Schema, schemas: &[Schema], dialect: Dialect) -> Vec<StatementSql> {
    let of_reference = |reference: &TableReference| {
        let source = schemas.iter().find(|schema| schema.name == reference.source && schema.soft.is_none())?;
        let key = match &reference.columns[..] {
            [_] => Value::Int(0),
            several => Value::Record(several.iter().map(|_| Value::Int(0)).collect()),
        };
        let search = reference.search(&key, usize::MAX);
        let (sql, parameters) = TableStatements::new(source, dialect).select(source, &search);
        let what = if reference.cascade { "that go with each" } else { "that reference each" };
        let case = format!("finds the rows of `{}` {what}", reference.source);
        Some(StatementSql { case, parameters: parameters.len(), sql })
    };
    let mut found: Vec<StatementSql> = schema.referenced_by.iter().filter_map(of_reference).collect();
    let sql = TableStatements::new(schema, dialect).delete;
    found.push(StatementSql { case: "deletes each row".to_owned(), sql, parameters: schema.key.len() });
    found
}

/// Describes statements with their places, SQL, and the plans of the database; without plans if it does not have the tables.
pub(super) fn described(
    (schema, schemas): (&Schema, &[Schema]),
    statements: &[PlacedStatement],
    (dialect, catalog): (Dialect, Option<&dyn Catalog>),
) -> Read<String> {
    let mut text = String::new();
    for PlacedStatement { statement, rest, places } in statements {
        _ = writeln!(text, "  at {}", places.join(", "));
        for StatementSql { case, sql, parameters } in statement.sql(schema, schemas, dialect) {
            if !case.is_empty() {
                _ = writeln!(text, "    {case}:");
            }
            _ = writeln!(text, "    {sql}");
            let plan = catalog.map_or(Ok(Vec::new()), |catalog| catalog.plan(&sql, parameters))?;
            plan.iter().for_each(|line| _ = writeln!(text, "      {line}"));
        }
        rest.iter().for_each(|part| _ = writeln!(text, "    then the program {part}"));
    }
    Ok(text)
}

/// Describes statements as an SQLite database executes them after a start has created the tables.
pub(super) fn described_after_start(
    (schema, schemas): (&Schema, &[Schema]),
    statements: &[PlacedStatement],
) -> Read<String> {
    let path = ":memory:".as_ref();
    let created = Connection::open_in_memory().and_then(|connection| {
        let stored = schemas.iter().filter(|other| schema.shares_database(other));
        let mut changes = stored.flat_map(|schema| new_table::created(schema, Dialect::Sqlite));
        changes.try_for_each(|change| connection.execute_batch(&change.sql)).map(|()| connection)
    });
    let connection = created.map_err(|error| explain(path, &error))?;
    described((schema, schemas), statements, (Dialect::Sqlite, Some(&SqliteCatalog { connection: &connection, path })))
}
