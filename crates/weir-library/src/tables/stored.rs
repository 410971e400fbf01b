//! A table of the SQLite database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
use super::sql_value::Bound;
use super::sqlite_value::sqlite_value;
use super::statements::TableStatements;

/// A table of the database.
#[derive(Debug)]
pub(super) struct StoredTable {
    database: Arc<Database>,
    table: Arc<SqlTable>,
}

/// A table as its statements need it.
#[derive(Debug)]
struct SqlTable {
    schema: Schema,
    statements: TableStatements,
    /// The columns of the parameters of an insertion.
    inserted: Vec<usize>,
    /// The columns of the parameters of a replacement.
    replaced: Vec<usize>,
    /// True if the last number may be given. Then an insertion looks first, because SQLite would refuse it with its whole group.
    may_be_used_up: AtomicBool,
}

impl StoredTable {
    /// Opens the table: creates it, or adds what the program declares and the database lacks.
    pub(super) fn open(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        database.evolve(&schema)?;
        Ok(StoredTable::new(schema, database))
    }

    fn new(schema: Schema, database: Arc<Database>) -> StoredTable {
        let statements = TableStatements::new(&schema, Dialect::Sqlite);
        let inserted = given_columns(&schema);
        let replaced = schema.key.iter().copied().chain(columns_beside_key(&schema)).collect();
        let table = SqlTable { schema, statements, inserted, replaced, may_be_used_up: AtomicBool::new(true) };
        StoredTable { database, table: Arc::new(table) }
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
                found.push(self.table.row(row));
            }
            Ok(found)
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    /// Runs a statement that writes at most these rows. A broken rule is a failure that names it, and the row.
    fn write<T>(
        &self,
        (transaction, rows): (i64, usize),
        row: &[Value],
        statement: impl Fn(&SqlTable, &Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        self.database.check()?;
        let table = Arc::clone(&self.table);
        let written = self.database.write((transaction, rows), move |connection| statement(&table, connection));
        written.map_err(|error| {
            let is_broken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
            match is_broken {
                true if self.table.schema.existing.is_some() && !is_unique(&error) => {
                    constraint::refused(&self.table.schema, &error.to_string())
                }
                true if !row.is_empty() => self.table.taken(&error, row),
                _ => self.database.failure(&error),
            }
        })
    }

    /// Replaces rows one after the other, all or none: other programs may have rules for a deletion.
    fn replace_each(&self, transaction: i64, rows: Vec<(Value, Value)>) -> Result<i64, Failure> {
        let first = rows.first().map(|(_, row)| row.clone());
        let count = rows.len();
        let replaced = move |table: &SqlTable, connection: &Connection| {
            let Some(sql) = &table.statements.replace else { return Ok(()) };
            in_savepoint(connection, || {
                let mut statement = connection.prepare_cached(sql)?;
                for (_, row) in &rows {
                    statement.execute(params_from_iter(table.bound(&table.replaced, fields(row))))?;
                }
                Ok(())
            })
        };
        self.write((transaction, count), first.as_ref().map_or(&[], fields), replaced)?;
        Ok(count as i64)
    }
}

impl SqlTable {
    fn row(&self, row: &rusqlite::Row<'_>) -> Result<Value, Failure> {
        row_of(&self.schema, row, 0)
    }

    /// Returns these columns of a row as parameters.
    fn bound<'s>(&'s self, columns: &'s [usize], row: &'s [Value]) -> impl Iterator<Item = Bound<'s>> {
        columns.iter().map(|at| Bound(&row[*at], &self.schema.columns[*at]))
    }

    /// Returns the parameters of the condition that a row has this key.
    fn key<'s>(&'s self, key: &'s Value) -> impl Iterator<Item = Bound<'s>> {
        let parts = match key {
            Value::Record(parts) if self.schema.key.len() > 1 => parts,
            only => std::slice::from_ref(only),
        };
        parts.iter().zip(&self.schema.key).map(|(part, at)| Bound(part, &self.schema.columns[*at]))
    }

    /// Inserts a row, and returns its number; `None` if the last number is given. The writer is locked, so that nobody of this program
    /// takes the last number meanwhile.
    fn insert(&self, row: &[Value], connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if self.may_be_used_up.load(Ordering::Relaxed) {
            let is_used_up = self.schema.auto && self.has_last_number(connection);
            self.may_be_used_up.store(is_used_up, Ordering::Relaxed);
            if is_used_up {
                return Ok(None);
            }
        }
        connection
            .prepare_cached(&self.statements.insert)?
            .execute(params_from_iter(self.bound(&self.inserted, row)))?;
        let number = connection.last_insert_rowid();
        self.note_number(number);
        Ok(Some(number))
    }

    /// Notes the number of a row that was written.
    fn note_number(&self, number: i64) {
        if self.schema.auto && number == i64::MAX {
            self.may_be_used_up.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether the last number is given.
    fn has_last_number(&self, connection: &Connection) -> bool {
        let sql = "SELECT seq = ?1 FROM sqlite_sequence WHERE name = ?2";
        connection.query_row(sql, (i64::MAX, &self.schema.name), |row| row.get(0)).unwrap_or(false)
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
            let mut statement = connection.prepare_cached(&self.table.statements.get)?;
            let mut rows = statement.query(params_from_iter(self.table.key(key)))?;
            Ok(rows.next()?.map(|row| self.table.row(row)))
        });
        row.map_err(|error| self.database.failure(&error))?.transpose()
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let rows = self.database.read(transaction, |connection| {
            // One key needs no transaction, and the connection that writes has one.
            let is_whole = keys.len() < 2 || !connection.is_autocommit();
            let _snapshot = if is_whole { None } else { Some(connection.unchecked_transaction()?) };
            let mut statement = connection.prepare_cached(&self.table.statements.get)?;
            let found = keys.iter().map(|key| {
                let mut rows = statement.query(params_from_iter(self.table.key(key)))?;
                Ok(rows.next()?.map(|row| self.table.row(row)).transpose())
            });
            found.collect::<rusqlite::Result<Vec<_>>>()
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.table.statements.select(&self.table.schema, search);
        self.query(transaction, &sql, &parameters)
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let (sql, parameters) = self.table.statements.select_joined(&self.table.schema, search, joined);
        let rows = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let is_absent = |at: usize| matches!(row.get_ref(at), Ok(ValueRef::Null) | Err(_));
                let whole = |schema: &Schema, at: usize| row_of(schema, row, at);
                found.push(with_joined_rows(&self.table.schema, joined, is_absent, whole));
            }
            Ok(found)
        });
        rows.map_err(|error| self.database.failure(&error))?.into_iter().collect()
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (sql, parameters) = self.table.statements.count(&self.table.schema, search);
        let counted = self.database.read(transaction, |connection| {
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), |row| row.get(0))
        });
        counted.map_err(|error| self.database.failure(&error))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        let (sql, parameters) = self.table.statements.sum(&self.table.schema, search, column);
        let summed = self.database.read(transaction, |connection| {
            let halves = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            connection.prepare_cached(&sql)?.query_row(params_from_iter(&parameters), halves)
        });
        let (high, low) = summed.map_err(|error| self.database.failure(&error))?;
        Ok((i128::from(high) << 32) + i128::from(low))
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.table.statements.group(&self.table.schema, search, grouping);
        let groups = self.database.read(transaction, |connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut groups = Vec::new();
            while let Some(row) = rows.next()? {
                let value = |at, column: &_| sqlite_value(row.get_ref(at).unwrap_or(ValueRef::Null), column);
                groups.push(grouping.group(&self.table.schema, value));
            }
            Ok(groups)
        });
        let groups = groups.map_err(|error| self.database.failure(&error))?;
        groups
            .into_iter()
            .collect::<Option<_>>()
            .ok_or_else(|| constraint::unreadable_group(&self.table.schema, Dialect::Sqlite))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let schema = &self.table.schema;
        let row = schema.stored(row)?;
        let inserted = row.clone();
        let number = self.write((transaction, 1), fields(&row), move |table, connection| {
            table.insert(fields(&inserted), connection)
        })?;
        let number = number.ok_or_else(|| constraint::no_number_left(schema))?;
        Ok(if schema.auto { Value::Int(number) } else { schema.key_of(fields(&row)) })
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let schema = &self.table.schema;
        let row = schema.stored(row)?;
        let written = row.clone();
        self.write((transaction, 1), fields(&row), move |table, connection| {
            let parameters =
                fields(&written).iter().zip(&table.schema.columns).map(|(value, column)| Bound(value, column));
            connection.prepare_cached(&table.statements.upsert)?.execute(params_from_iter(parameters))?;
            if let Value::Int(number) = table.schema.key_of(fields(&written)) {
                table.note_number(number);
            }
            Ok(())
        })?;
        Ok(schema.key_of(fields(&row)))
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<(), Failure> {
        let row = self.table.schema.replacement(key, row)?;
        if self.table.statements.replace.is_none() {
            return Ok(());
        }
        let written = row.clone();
        self.write((transaction, 1), fields(&row), move |table, connection| {
            let Some(sql) = &table.statements.replace else { return Ok(0) };
            connection.prepare_cached(sql)?.execute(params_from_iter(table.bound(&table.replaced, fields(&written))))
        })?;
        Ok(())
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let rows = self.table.schema.replacements(old, new)?;
        if self.table.schema.existing.is_some() {
            return self.replace_each(transaction, rows);
        }
        self.database.check()?;
        let (count, rows) = (rows.len(), Arc::new(rows));
        // The row that the database refuses.
        let (table, replaced, refused) =
            (Arc::clone(&self.table), Arc::clone(&rows), Arc::new(AtomicUsize::new(count)));
        let at = Arc::clone(&refused);
        let written = self.database.write((transaction, count), move |connection| {
            in_savepoint(connection, || {
                let replacement = RowReplacement::new(&table.schema, &table.statements.has_key, connection)?;
                let kept = replacement.delete(&replaced)?;
                for (number, ((_, row), kept)) in replaced.iter().zip(kept).enumerate() {
                    at.store(number, Ordering::Relaxed);
                    replacement.insert(row, kept)?;
                }
                Ok(())
            })
        });
        match (written, rows.get(refused.load(Ordering::Relaxed))) {
            (Ok(()), _) => Ok(count as i64),
            (Err(error), Some((_, row))) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Err(self.table.taken(&error, fields(row)))
            }
            (Err(error), _) => Err(self.database.failure(&error)),
        }
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        let key = key.clone();
        let deleted = self.write((transaction, 1), &[], move |table, connection| {
            connection.prepare_cached(&table.statements.delete)?.execute(params_from_iter(table.key(&key)))
        })?;
        Ok(deleted > 0)
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let search = search.clone();
        // Nobody knows how many rows it deletes.
        let deleted = self.write((transaction, usize::MAX), &[], move |table, connection| {
            let (sql, parameters) = table.statements.delete_all(&table.schema, &search);
            connection.prepare_cached(&sql)?.execute(params_from_iter(parameters))
        })?;
        Ok(deleted as i64)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let keys: Vec<Value> = rows.iter().map(|row| self.table.schema.key_of(fields(row))).collect();
        let deleted = self.write((transaction, keys.len()), &[], move |table, connection| {
            in_savepoint(connection, || {
                let mut statement = connection.prepare_cached(&table.statements.delete)?;
                keys.iter()
                    .map(|key| statement.execute(params_from_iter(table.key(key))))
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
