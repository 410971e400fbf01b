//! Reads of a table of the SQLite database, by any connection; and the table as it was at one moment.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, StatementStatus, params_from_iter};
use weir::{Failure, Value, memory};

use super::counted_memory::CountedStatement;
use super::database::{Database, Snapshot};
use super::sql_table::SqlTable;
use super::value::sqlite_value;
use crate::tables::constraint;
use crate::tables::dialect::Dialect;
use crate::tables::grouping::{TableGrouping, sum_of};
use crate::tables::join::{JoinedColumns, KeyPart};
use crate::tables::query_site::SqlForm;
use crate::tables::read_work::ReadWork;
use crate::tables::schema::{Schema, TableSearch};
use crate::tables::table_read::{TableRead, TableSnapshot};

/// Rows that were read, or the failure of the first one that cannot be.
type ReadRows<T> = rusqlite::Result<Result<T, Failure>>;

/// A table as it was at one moment.
#[derive(Debug)]
pub(super) struct SqliteSnapshot {
    pub(super) table: Arc<SqlTable>,
    pub(super) database: Arc<Database>,
    pub(super) snapshot: Snapshot,
}

impl TableSnapshot for SqliteSnapshot {
    fn read(self: Box<Self>, read: &TableRead) -> Result<Value, Failure> {
        let option = |row: Option<Value>| row.map_or_else(Value::none, Value::some);
        let table = Arc::clone(&self.table);
        self.reading(|connection| {
            Ok(match read {
                TableRead::Row(key) => table.get(connection, key)?.map(option),
                TableRead::Rows(keys) => {
                    table.get_all(connection, keys)?.map(|rows| Value::list(rows.into_iter().map(option).collect()))
                }
                TableRead::Search(search) => table.select(connection, search)?.map(Value::list),
                TableRead::Count(search) => Ok(Value::Int(table.count(connection, search)?)),
            })
        })
    }

    fn sum(self: Box<Self>, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        let table = Arc::clone(&self.table);
        self.reading(|connection| table.sum(connection, search, column))
    }

    fn group(self: Box<Self>, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        let table = Arc::clone(&self.table);
        self.reading(|connection| table.group(connection, search, grouping))
    }
}

impl SqliteSnapshot {
    fn reading<T>(self, read: impl FnOnce(&Connection) -> ReadRows<T>) -> Result<T, Failure> {
        let SqliteSnapshot { database, snapshot, .. } = self;
        database.read_snapshot(snapshot, read).map_err(|error| database.failure_of_read(0, &error))?
    }
}

impl SqlTable {
    pub(super) fn get(&self, connection: &Connection, key: &Value) -> ReadRows<Option<Value>> {
        let mut statement = connection.prepare_cached(&self.statements.get)?;
        let mut rows = statement.query(params_from_iter(self.key(key)))?;
        Ok(rows.next()?.map(|row| self.row(row)).transpose())
    }

    pub(super) fn get_all(&self, connection: &Connection, keys: &[Value]) -> ReadRows<Vec<Option<Value>>> {
        // One key needs no transaction, and the connection that writes has one.
        let is_whole = keys.len() < 2 || !connection.is_autocommit();
        let _snapshot = if is_whole { None } else { Some(connection.unchecked_transaction()?) };
        let mut statement = connection.prepare_cached(&self.statements.get)?;
        let found = keys.iter().map(|key| {
            let mut rows = statement.query(params_from_iter(self.key(key)))?;
            Ok(rows.next()?.map(|row| self.row(row).and_then(charged)).transpose())
        });
        found.collect::<rusqlite::Result<Result<Vec<_>, Failure>>>()
    }

    pub(super) fn select(&self, connection: &Connection, search: &TableSearch) -> ReadRows<Vec<Value>> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Rows);
        counted(&search.query.work, connection, &sql, |statement, counted| {
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut found = Vec::new();
            while let Some(row) = counted.next(&mut rows)? {
                match self.row(row).and_then(charged) {
                    Ok(row) => found.push(row),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            Ok(Ok(found))
        })
    }

    pub(super) fn select_joined(
        &self,
        connection: &Connection,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> ReadRows<Vec<Vec<Value>>> {
        let (sql, parameters) = self.statements.select_joined(&self.schema, search, joined);
        counted(&search.query.work, connection, &sql, |statement, counted| {
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let (mut columns, mut found) = (JoinedColumns::new(&self.schema, joined), Vec::new());
            while let Some(row) = counted.next(&mut rows)? {
                let is_absent = |at: usize| matches!(row.get_ref(at), Ok(ValueRef::Null) | Err(_));
                match columns.rows(is_absent, |schema, at| row_of(schema, row, at)).and_then(charged) {
                    Ok(rows) => found.push(rows),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            Ok(Ok(found))
        })
    }

    pub(super) fn count(&self, connection: &Connection, search: &TableSearch) -> rusqlite::Result<i64> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Count);
        counted(&search.query.work, connection, &sql, |statement, counted| {
            counted.only_row(statement.query(params_from_iter(&parameters))?, |row| row.get(0))
        })
    }

    pub(super) fn sum(&self, connection: &Connection, search: &TableSearch, column: usize) -> ReadRows<i128> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Sum(column));
        counted(&search.query.work, connection, &sql, |statement, counted| {
            let halves = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            Ok(match counted.only_row(statement.query(params_from_iter(&parameters))?, halves)? {
                (Some(high), Some(low)) => Ok(sum_of(high, low)),
                _ => Err(constraint::unreadable_in_group(&self.schema, column, Dialect::Sqlite)),
            })
        })
    }

    pub(super) fn group(
        &self,
        connection: &Connection,
        search: &TableSearch,
        grouping: &TableGrouping,
    ) -> ReadRows<Vec<Value>> {
        let (sql, parameters) = self.statements.group(&self.schema, search, grouping);
        counted(&search.query.work, connection, &sql, |statement, counted| {
            let mut rows = statement.query(params_from_iter(&parameters))?;
            let mut groups = Vec::new();
            while let Some(row) = counted.next(&mut rows)? {
                let value = |at, column: &_| sqlite_value(row.get_ref(at).unwrap_or(ValueRef::Null), column);
                let group = grouping.group(&self.schema, value);
                let group =
                    group.map_err(|column| constraint::unreadable_in_group(&self.schema, column, Dialect::Sqlite));
                match group.and_then(charged) {
                    Ok(group) => groups.push(group),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            Ok(Ok(groups))
        })
    }

    fn row(&self, row: &rusqlite::Row<'_>) -> Result<Value, Failure> {
        row_of(&self.schema, row, 0)
    }
}

/// Returns a row that is collected with others, or the failure of the flow, which may not hold it, too: so a statement is given up with
/// the row that is too much.
fn charged<T>(row: T) -> Result<T, Failure> {
    memory::check().map(|()| row).map_err(|failure| *failure)
}

/// The bytes of large values that SQLite copies in about the time of a step of its machine.
const BYTES_OF_STEP: usize = 1024;

/// Executes a statement, and notes its work.
fn counted<T>(
    work: &ReadWork,
    connection: &Connection,
    sql: &str,
    read: impl FnOnce(&mut CachedStatement<'_>, &CountedStatement) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let mut statement = connection.prepare_cached(sql)?;
    let counted = CountedStatement::begin();
    let found = read(&mut statement, &counted);
    let steps = u32::try_from(statement.reset_status(StatementStatus::VmStep)).unwrap_or(u32::MAX);
    // A few steps may copy many bytes.
    let copied = u32::try_from(counted.allocated() / BYTES_OF_STEP).unwrap_or(u32::MAX);
    work.note(steps.saturating_add(copied));
    found
}

/// Returns the row whose columns begin at a position.
fn row_of(schema: &Schema, row: &rusqlite::Row<'_>, begin: usize) -> Result<Value, Failure> {
    let value = |at, column: &_| sqlite_value(row.get_ref(begin + at).unwrap_or(ValueRef::Null), column);
    schema.read_row(Dialect::Sqlite, value)
}
