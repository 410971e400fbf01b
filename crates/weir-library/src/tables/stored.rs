//! A table of the SQLite database.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, params_from_iter};
use weir::{Failure, Value, Values};

use super::constraint;
use super::database::Database;
use super::dialect::Dialect;
use super::existing_tables;
use super::group_commit::GroupCommit;
use super::grouping::TableGrouping;
use super::insertion::{columns_beside_key, given_columns};
use super::join::{KeyPart, with_joined_rows};
use super::row::fields;
use super::row_replacement::RowReplacement;
use super::rows::TableRows;
use super::schema::{Schema, TableSearch};
use super::sql_value::{Bound, key_parameters};
use super::sqlite_value::sqlite_value;
use super::statements::{TableStatements, parameters};

/// A table of the database.
#[derive(Debug)]
pub(super) struct StoredTable {
    schema: Schema,
    database: Arc<Database>,
    statements: TableStatements,
    /// True if the last number is given: then an insertion takes back its whole group, and gets one of its own.
    is_used_up: AtomicBool,
}

impl StoredTable {
    /// Opens the table: creates it, or adds what the program declares and the database lacks.
    pub(super) fn open(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        database.evolve(&schema)?;
        Ok(StoredTable::new(schema, database))
    }

    fn new(schema: Schema, database: Arc<Database>) -> StoredTable {
        let statements = TableStatements::new(&schema, Dialect::Sqlite);
        StoredTable { schema, database, statements, is_used_up: AtomicBool::new(false) }
    }

    /// Opens a table that other programs have declared.
    pub(super) fn open_existing(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        database.look(|catalog| existing_tables::check(&schema, catalog)?)?;
        Ok(StoredTable::new(schema, database))
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
        row_of(&self.schema, row, 0)
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
            let is_broken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
            match is_broken {
                true if self.schema.existing.is_some() && !is_unique(&error) => {
                    constraint::refused(&self.schema, &error.to_string())
                }
                true if !row.is_empty() => self.taken(&error, row),
                _ => self.database.failure(&error),
            }
        })
    }

    /// Replaces rows one after the other, all or none: other programs may have rules for a deletion.
    fn replace_each(&self, transaction: i64, rows: &[(Value, Value)]) -> Result<i64, Failure> {
        let Some(sql) = &self.statements.replace else { return Ok(rows.len() as i64) };
        let columns = || self.schema.key.iter().copied().chain(columns_beside_key(&self.schema));
        self.write(transaction, rows.first().map_or(&[], |(_, row)| fields(row)), |connection| {
            in_savepoint(connection, || {
                let mut statement = connection.prepare_cached(sql)?;
                for (_, row) in rows {
                    statement.execute(params_from_iter(parameters(&self.schema, columns(), fields(row))))?;
                }
                Ok(rows.len() as i64)
            })
        })
    }

    /// Returns whether an insertion failed because the last number is given, for which the database has the error of a full
    /// disk.
    fn finds_used_up(&self, error: &rusqlite::Error, connection: &Connection) -> bool {
        let is_last = || {
            let sql = "SELECT seq = ?1 FROM sqlite_sequence WHERE name = ?2";
            connection.query_row(sql, (i64::MAX, &self.schema.name), |row| row.get(0)).unwrap_or(false)
        };
        let is_used_up = self.schema.auto && error.sqlite_error_code() == Some(ErrorCode::DiskFull) && is_last();
        self.is_used_up.fetch_or(is_used_up, Ordering::Relaxed);
        is_used_up
    }

    /// Has an insertion that the database would refuse with its whole group begin one.
    fn protect_group(&self) {
        if self.is_used_up.load(Ordering::Relaxed) {
            self.database.end_group();
        }
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
        let row = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(&self.statements.get)?;
            let mut rows = statement.query(params_from_iter(key_parameters(&self.schema, key)))?;
            Ok(rows.next()?.map(|row| self.row(row)))
        });
        row.map_err(|error| self.database.failure(&error))?.transpose()
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let rows = self.database.read(transaction, |connection| {
            // One key needs no transaction, and the connection that writes has one.
            let is_whole = keys.len() < 2 || !connection.is_autocommit();
            let _snapshot = if is_whole { None } else { Some(connection.unchecked_transaction()?) };
            let mut statement = connection.prepare_cached(&self.statements.get)?;
            let found = keys.iter().map(|key| {
                let mut rows = statement.query(params_from_iter(key_parameters(&self.schema, key)))?;
                Ok(rows.next()?.map(|row| self.row(row)).transpose())
            });
            found.collect::<rusqlite::Result<Vec<_>>>()
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.statements.select(&self.schema, search);
        self.query(transaction, &sql, &parameters)
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let (sql, parameters) = self.statements.select_joined(&self.schema, search, joined);
        let rows = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let is_absent = |at: usize| matches!(row.get_ref(at), Ok(ValueRef::Null) | Err(_));
                let whole = |schema: &Schema, at: usize| row_of(schema, row, at);
                found.push(with_joined_rows(&self.schema, joined, is_absent, whole));
            }
            Ok(found)
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (sql, parameters) = self.statements.count(&self.schema, search);
        let counted = self.database.read(transaction, |connection| {
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), |row| row.get(0))
        });
        counted.map_err(|error| self.database.failure(&error))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        let (sql, parameters) = self.statements.sum(&self.schema, search, column);
        let summed = self.database.read(transaction, |connection| {
            let halves = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), halves)
        });
        let (high, low) = summed.map_err(|error| self.database.failure(&error))?;
        Ok((i128::from(high) << 32) + i128::from(low))
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.statements.group(&self.schema, search, grouping);
        let groups = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut groups = Vec::new();
            while let Some(row) = rows.next()? {
                let value = |at, column: &_| sqlite_value(row.get_ref(at).unwrap_or(ValueRef::Null), column);
                groups.push(grouping.group(&self.schema, value));
            }
            Ok(groups)
        });
        let groups = groups.map_err(|error| self.database.failure(&error))?;
        groups
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(|| constraint::unreadable_group(&self.schema, Dialect::Sqlite))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let row = self.schema.stored(row)?;
        let parameters = parameters(&self.schema, given_columns(&self.schema).into_iter(), fields(&row));
        self.protect_group();
        let number = self.write(transaction, fields(&row), |connection| {
            let inserted = connection.prepare_cached(&self.statements.insert)?.execute(params_from_iter(&parameters));
            match inserted {
                Err(error) if self.finds_used_up(&error, connection) => Ok(None),
                inserted => inserted.map(|_| Some(connection.last_insert_rowid())),
            }
        })?;
        let number = number.ok_or_else(|| constraint::no_number_left(&self.schema))?;
        if self.schema.auto && number == i64::MAX {
            self.is_used_up.store(true, Ordering::Relaxed);
        }
        Ok(if self.schema.auto { Value::Int(number) } else { self.schema.key_of(fields(&row)) })
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let row = self.schema.stored(row)?;
        let parameters = parameters(&self.schema, 0..self.schema.columns.len(), fields(&row));
        self.write(transaction, fields(&row), |connection| {
            connection.prepare_cached(&self.statements.upsert)?.execute(params_from_iter(&parameters))
        })?;
        let key = self.schema.key_of(fields(&row));
        if self.schema.auto && key == Value::Int(i64::MAX) {
            self.is_used_up.store(true, Ordering::Relaxed);
        }
        Ok(key)
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<(), Failure> {
        let row = self.schema.replacement(key, row)?;
        let Some(sql) = &self.statements.replace else { return Ok(()) };
        let columns = self.schema.key.iter().copied().chain(columns_beside_key(&self.schema));
        let parameters = parameters(&self.schema, columns, fields(&row));
        self.write(transaction, fields(&row), |connection| {
            connection.prepare_cached(sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(())
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let rows = self.schema.replacements(old, new)?;
        if self.schema.existing.is_some() {
            return self.replace_each(transaction, &rows);
        }
        let failed = Cell::new(None);
        self.database.check()?;
        let replaced = self.database.write(transaction, |connection| {
            in_savepoint(connection, || {
                let replacement = RowReplacement::new(&self.schema, &self.statements.has_key, connection)?;
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
        let parameters = key_parameters(&self.schema, key);
        let deleted = self.write(transaction, &[], |connection| {
            connection.prepare_cached(&self.statements.delete)?.execute(params_from_iter(&parameters))
        })?;
        Ok(deleted > 0)
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (sql, parameters) = self.statements.delete_all(&self.schema, search);
        let deleted = self.write(transaction, &[], |connection| {
            connection.prepare_cached(&sql)?.execute(params_from_iter(&parameters))
        })?;
        Ok(deleted as i64)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let keys: Vec<Value> = rows.iter().map(|row| self.schema.key_of(fields(row))).collect();
        let deleted = self.write(transaction, &[], |connection| {
            in_savepoint(connection, || {
                let mut statement = connection.prepare_cached(&self.statements.delete)?;
                keys.iter()
                    .map(|key| statement.execute(params_from_iter(key_parameters(&self.schema, key))))
                    .sum::<rusqlite::Result<usize>>()
            })
        })?;
        Ok(deleted as i64)
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        if last { self.database.commit(transaction) } else { Ok(()) }
    }

    fn roll_back(&self, transaction: i64) {
        self.database.roll_back(transaction);
    }

    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.database.commits()
    }

    fn show(&self, commit: u64) {
        self.database.show(commit);
    }
}

/// Returns the row whose columns begin at a position.
fn row_of(schema: &Schema, row: &rusqlite::Row<'_>, begin: usize) -> Result<Value, Failure> {
    let value = |(at, column)| sqlite_value(row.get_ref(begin + at).unwrap_or(ValueRef::Null), column);
    let columns = || schema.columns.iter().enumerate();
    // Collected without a list in between, as their number is known.
    let mut is_whole = true;
    let values: Values = columns()
        .map(|column| {
            value(column).unwrap_or_else(|| {
                is_whole = false;
                Value::Absent
            })
        })
        .collect();
    if is_whole {
        return Ok(Value::Record(values));
    }
    Err(constraint::unreadable(schema, columns().map(value).collect(), Dialect::Sqlite))
}

/// Returns whether a row breaks a key or a unique index.
fn is_unique(error: &rusqlite::Error) -> bool {
    error.to_string().starts_with("UNIQUE ")
}

/// Runs statements that take effect together or not at all, in a transaction or as one.
fn in_savepoint<T>(connection: &Connection, statements: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    connection.execute_batch("SAVEPOINT rows")?;
    let result = statements();
    connection.execute_batch(if result.is_ok() { "RELEASE rows" } else { "ROLLBACK TO rows; RELEASE rows" })?;
    result
}
