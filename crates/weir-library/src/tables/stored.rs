//! A table of the database: its statements in SQL.
//!
//! Rows have the order of the table in memory, because texts are compared by their bytes (`BINARY`), numbers are never NaN,
//! an enum by the position of its variant, and each query ends its order with the key.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, params_from_iter};
use weir::{Failure, Value, Values};

use super::constraint;
use super::database::Database;
use super::evolution;
use super::row::fields;
use super::row_replacement::RowReplacement;
use super::rows::TableRows;
use super::schema::{ColumnSchema, Schema, TableSearch};
use super::sql::{list, name, quoted};
use super::sql_value::{Bound, key_parameters, value_of};

/// A table of the database.
#[derive(Debug)]
pub(super) struct StoredTable {
    schema: Schema,
    database: Arc<Database>,
    /// The columns, separated by commas.
    columns: String,
    /// The condition that a row has a key: `"name" = ?1`.
    has_key: String,
}

impl StoredTable {
    /// Opens the table: creates it, or adds what the program declares and the database lacks.
    pub(super) fn open(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        let changed = database.write(0, |connection| evolution::apply(&schema, connection));
        changed.map_err(|error| database.failure(&error))??;
        let columns = list(schema.columns.iter().map(|column| quoted(&column.name)), ", ");
        let key = schema.key.iter().zip(1..).map(|(at, number)| format!("{} = ?{number}", name(&schema, *at)));
        let has_key = list(key, " AND ");
        Ok(StoredTable { columns, has_key, schema, database })
    }

    fn name(&self) -> String {
        quoted(&self.schema.name)
    }

    /// Returns `INSERT INTO "users" ("name", "email") VALUES (?1, ?2)`.
    fn insertion(&self, columns: &[usize]) -> String {
        if columns.is_empty() {
            return format!("INSERT INTO {} DEFAULT VALUES", self.name());
        }
        let names = list(columns.iter().map(|at| name(&self.schema, *at)), ", ");
        let values = list((1..=columns.len()).map(|number| format!("?{number}")), ", ");
        format!("INSERT INTO {} ({names}) VALUES ({values})", self.name())
    }

    /// Returns the `WHERE` of a query, and its parameters.
    fn condition<'s>(&'s self, search: &'s TableSearch) -> (String, Vec<Bound<'s>>) {
        let (mut sql, mut parameters) = (String::new(), Vec::new());
        for (condition, value) in search.conditions() {
            let column = &self.schema.columns[condition.column];
            let operator = match (&*condition.comparison, column.optional) {
                ("==", true) => "IS",
                ("!=", true) => "IS NOT",
                ("==", false) => "=",
                ("!=", false) => "<>",
                (other, _) => other,
            };
            parameters.push(Bound(value, column));
            let word = if parameters.len() == 1 { "WHERE" } else { "AND" };
            _ = write!(sql, " {word} {} {operator} ?{}", quoted(&column.name), parameters.len());
        }
        (sql, parameters)
    }

    /// Returns the `ORDER BY` of a query: its own order, then the key, without columns that a condition fixes.
    fn order(&self, search: &TableSearch) -> String {
        let own = search.query.order.iter().map(|order| (order.column, order.descending));
        let keys = self.schema.key.iter().map(|at| (*at, false));
        let terms = own.chain(keys).filter(|(at, _)| search.equal(*at).is_none());
        let terms = terms.map(|(at, descending)| {
            let direction = if descending { " DESC" } else { "" };
            format!("{}{direction}", self.ordered(at))
        });
        let terms = list(terms, ", ");
        if terms.is_empty() { terms } else { format!(" ORDER BY {terms}") }
    }

    /// Returns the value by which rows are ordered by a column. The database has the names of variants, and programs order
    /// them as they are declared.
    fn ordered(&self, at: usize) -> String {
        let column = name(&self.schema, at);
        let variants = &self.schema.columns[at].variants;
        if variants.is_empty() {
            return column;
        }
        let cases = variants.iter().enumerate().map(|(place, variant)| format!("WHEN '{variant}' THEN {place}"));
        format!("CASE {column} {} END", list(cases, " "))
    }

    fn parameters<'s>(&'s self, columns: impl Iterator<Item = usize>, row: &'s [Value]) -> Vec<Bound<'s>> {
        columns.map(|at| Bound(&row[at], &self.schema.columns[at])).collect()
    }

    fn key_parameters<'s>(&'s self, key: &'s Value) -> Vec<Bound<'s>> {
        key_parameters(&self.schema, key)
    }

    fn query(&self, transaction: i64, sql: &str, parameters: &[Bound<'_>]) -> Result<Vec<Value>, Failure> {
        let rows = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params_from_iter(parameters))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(self.row(row));
            }
            Ok(found)
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn row(&self, row: &rusqlite::Row<'_>) -> Result<Value, Failure> {
        let values = self.schema.columns.iter().enumerate().map(|(at, column)| {
            let stored = row.get_ref(at).unwrap_or(ValueRef::Null);
            value_of(stored, column).ok_or_else(|| self.unreadable(row, column))
        });
        values.collect::<Result<Values, Failure>>().map(Value::Record)
    }

    /// Returns the failure of a row that has no value of the column's type in the database.
    fn unreadable(&self, row: &rusqlite::Row<'_>, column: &ColumnSchema) -> Failure {
        let schema = &self.schema;
        let known = schema.columns.iter().enumerate().map(|(at, column)| value_of(row.get_ref(at).ok()?, column));
        let known: Vec<Option<Value>> = known.collect();
        let has_key = schema.key.iter().all(|at| known[*at].is_some());
        let values: Vec<Value> = known.into_iter().map(|value| value.unwrap_or(Value::Absent)).collect();
        let key = constraint::named(schema, &schema.key, &values);
        let which = if has_key { format!("the row with {key}") } else { "a row".to_owned() };
        Failure::function(format!(
            "{which} in the table `{}` of the database has a value of the column `{}` that is no `{}`; correct it with `sqlite3`",
            schema.name,
            column.name,
            column.shown_type()
        ))
    }

    /// Runs a statement that writes a row. A broken rule is a failure that names it.
    fn write<T>(
        &self,
        transaction: i64,
        row: &[Value],
        statement: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        self.database.check()?;
        self.database.write(transaction, statement).map_err(|error| {
            let is_taken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
            if is_taken && !row.is_empty() { self.taken(&error, row) } else { self.database.failure(&error) }
        })
    }

    /// Returns whether an insertion failed because the last number is given, for which the database has the error of a full
    /// disk.
    fn is_used_up(&self, error: &rusqlite::Error, connection: &Connection) -> bool {
        let is_last = || {
            let sql = "SELECT seq = ?1 FROM sqlite_sequence WHERE name = ?2";
            connection.query_row(sql, (i64::MAX, &self.schema.name), |row| row.get(0)).unwrap_or(false)
        };
        self.schema.auto && error.sqlite_error_code() == Some(ErrorCode::DiskFull) && is_last()
    }

    /// Returns the failure of a row that breaks the rule which the message of the database names by its columns.
    fn taken(&self, error: &rusqlite::Error, row: &[Value]) -> Failure {
        let message = error.to_string();
        let named = message.rsplit_once(": ").map_or("", |(_, columns)| columns);
        let prefix = format!("{}.", self.schema.name);
        let column = |name: &str| {
            let name = name.trim().strip_prefix(&prefix)?;
            self.schema.columns.iter().position(|column| column.name == name)
        };
        let columns: Option<Vec<usize>> = named.split(',').map(column).collect();
        constraint::taken(&self.schema, &columns.unwrap_or_else(|| self.schema.key.clone()), row)
    }
}

impl TableRows for StoredTable {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        let rows = self.get_all(transaction, std::slice::from_ref(key))?;
        Ok(rows.into_iter().next().flatten())
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let sql = format!("SELECT {} FROM {} WHERE {}", self.columns, self.name(), self.has_key);
        let rows = self.database.read(transaction, |connection| {
            // One key needs no transaction, and the connection that writes has one.
            let is_whole = keys.len() < 2 || !connection.is_autocommit();
            let _snapshot = if is_whole { None } else { Some(connection.unchecked_transaction()?) };
            let mut statement = connection.prepare_cached(&sql)?;
            let found = keys.iter().map(|key| {
                let mut rows = statement.query(params_from_iter(self.key_parameters(key)))?;
                Ok(rows.next()?.map(|row| self.row(row)).transpose())
            });
            found.collect::<rusqlite::Result<Vec<_>>>()
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        let (condition, mut parameters) = self.condition(search);
        let order = self.order(search);
        let limit = Value::Int(i64::try_from(search.limit).unwrap_or(i64::MAX));
        parameters.push(Bound(&limit, &NUMBER));
        let sql = format!("SELECT {} FROM {}{condition}{order} LIMIT ?{}", self.columns, self.name(), parameters.len());
        self.query(transaction, &sql, &parameters)
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (condition, parameters) = self.condition(search);
        let sql = format!("SELECT count(*) FROM {}{condition}", self.name());
        let counted = self.database.read(transaction, |connection| {
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), |row| row.get(0))
        });
        counted.map_err(|error| self.database.failure(&error))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        let (condition, parameters) = self.condition(search);
        let column = name(&self.schema, column);
        // SQLite fails if a sum overflows on its way; the sums of the halves of the numbers cannot.
        let halves = format!("coalesce(sum({column} >> 32), 0), coalesce(sum({column} & 4294967295), 0)");
        let sql = format!("SELECT {halves} FROM {}{condition}", self.name());
        let summed = self.database.read(transaction, |connection| {
            let halves = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), halves)
        });
        let (high, low) = summed.map_err(|error| self.database.failure(&error))?;
        Ok((i128::from(high) << 32) + i128::from(low))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let row = self.schema.stored(row)?;
        let numbered = |at: &usize| self.schema.auto && self.schema.key == [*at];
        let given: Vec<usize> = (0..self.schema.columns.len()).filter(|at| !numbered(at)).collect();
        let sql = self.insertion(&given);
        let parameters = self.parameters(given.iter().copied(), fields(&row));
        let number = self.write(transaction, fields(&row), |connection| {
            let inserted = connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters));
            match inserted {
                Err(error) if self.is_used_up(&error, connection) => Ok(None),
                inserted => inserted.map(|_| Some(connection.last_insert_rowid())),
            }
        })?;
        let number = number.ok_or_else(|| constraint::no_number_left(&self.schema))?;
        Ok(if self.schema.auto { Value::Int(number) } else { self.schema.key_of(fields(&row)) })
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let row = self.schema.stored(row)?;
        let all: Vec<usize> = (0..self.schema.columns.len()).collect();
        let others = all.iter().filter(|at| !self.schema.key.contains(at));
        let set = list(others.map(|at| format!("{0} = excluded.{0}", name(&self.schema, *at))), ", ");
        let keys = list(self.schema.key.iter().map(|at| name(&self.schema, *at)), ", ");
        let action = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {set}") };
        let sql = format!("{} ON CONFLICT ({keys}) DO {action}", self.insertion(&all));
        let parameters = self.parameters(all.iter().copied(), fields(&row));
        self.write(transaction, fields(&row), |connection| {
            connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(self.schema.key_of(fields(&row)))
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<(), Failure> {
        let row = self.schema.stored(row)?;
        if self.schema.key_of(fields(&row)) != *key {
            return Err(constraint::changed_key(&self.schema));
        }
        let others: Vec<usize> = (0..self.schema.columns.len()).filter(|at| !self.schema.key.contains(at)).collect();
        if others.is_empty() {
            return Ok(());
        }
        let first = self.schema.key.len() + 1;
        let set = others.iter().zip(first..).map(|(at, number)| format!("{} = ?{number}", name(&self.schema, *at)));
        let sql = format!("UPDATE {} SET {} WHERE {}", self.name(), list(set, ", "), self.has_key);
        let keys = self.schema.key.iter().chain(&others).copied();
        let parameters = self.parameters(keys, fields(&row));
        self.write(transaction, fields(&row), |connection| {
            connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(())
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let rows = self.schema.replacements(old, new)?;
        let failed = Cell::new(None);
        self.database.check()?;
        let replaced = self.database.write(transaction, |connection| {
            in_savepoint(connection, || {
                let replacement = RowReplacement::new(&self.schema, &self.has_key, connection)?;
                let kept = replacement.delete(&rows)?;
                for ((_, row), kept) in rows.iter().zip(kept) {
                    failed.set(Some(fields(row)));
                    replacement.insert(row, kept)?;
                }
                Ok(rows.len() as i64)
            })
        });
        replaced.map_err(|error| match failed.get() {
            Some(row) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => self.taken(&error, row),
            _ => self.database.failure(&error),
        })
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        let sql = format!("DELETE FROM {} WHERE {}", self.name(), self.has_key);
        let parameters = self.key_parameters(key);
        let deleted = self.write(transaction, &[], |connection| {
            connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(deleted > 0)
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (condition, parameters) = self.condition(search);
        let sql = format!("DELETE FROM {}{condition}", self.name());
        let deleted = self.write(transaction, &[], |connection| {
            connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(deleted as i64)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let sql = format!("DELETE FROM {} WHERE {}", self.name(), self.has_key);
        let keys: Vec<Value> = rows.iter().map(|row| self.schema.key_of(fields(row))).collect();
        let deleted = self.write(transaction, &[], |connection| {
            in_savepoint(connection, || {
                let mut statement = connection.prepare_cached(&sql)?;
                keys.iter()
                    .map(|key| statement.execute(params_from_iter(self.key_parameters(key))))
                    .sum::<rusqlite::Result<usize>>()
            })
        })?;
        Ok(deleted as i64)
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        if last { self.database.commit(transaction) } else { Ok(()) }
    }
}

/// Runs statements that take effect together or not at all, in a transaction or as one.
fn in_savepoint<T>(connection: &Connection, statements: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    connection.execute_batch("SAVEPOINT rows")?;
    let result = statements();
    connection.execute_batch(if result.is_ok() { "RELEASE rows" } else { "ROLLBACK TO rows; RELEASE rows" })?;
    result
}

/// The column of a limit.
static NUMBER: ColumnSchema =
    ColumnSchema { name: String::new(), kind: String::new(), variants: Vec::new(), optional: false, default: None };
