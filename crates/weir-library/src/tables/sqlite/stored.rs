//! A table of the SQLite database.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, ErrorCode, params_from_iter};
use weir::{Failure, Value};

use super::broken_rule::is_unique;
use super::database::Database;
use super::partial_failures::whole;
use super::row_replacement::{RowReplacement, replace_in_place};
use super::row_statement::{RowChanged, RowStatement};
use super::sql_table::{SqlTable, is_used_up};
use super::stored_reads::SqliteSnapshot;
use super::writer::MEMBER_ROWS_MAX;
use crate::tables::constraint;
use crate::tables::evolution::existing_tables;
use crate::tables::group_commit::GroupCommit;
use crate::tables::grouping::TableGrouping;
use crate::tables::join::KeyPart;
use crate::tables::program_owned::{ProgramOwned, unshared_copy};
use crate::tables::query_site::SqlForm;
use crate::tables::row::fields;
use crate::tables::rows::{ReadSize, RowChange, TableRead, TableRows, TableSnapshot, TogetherStatements};
use crate::tables::schema::{Schema, TableSearch};

/// Maximum number of keys that are looked up on the thread of a flow.
const KEYS_MAX: usize = 32;

/// A table of the database.
#[derive(Debug)]
pub(in crate::tables) struct StoredTable {
    database: Arc<Database>,
    table: Arc<SqlTable>,
}

impl StoredTable {
    /// Opens a table of a program that has no other.
    #[cfg(test)]
    pub(in crate::tables) fn open(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        database.changing(|catalog| crate::tables::evolution::migration::apply(&schema, catalog))?;
        Ok(StoredTable::new(schema, database))
    }

    /// Returns a table that the start makes as it is declared before anybody uses it.
    pub(in crate::tables) fn new(schema: Schema, database: Arc<Database>) -> StoredTable {
        StoredTable { database, table: Arc::new(SqlTable::new(schema)) }
    }

    /// Opens a table that other programs have declared.
    pub(in crate::tables) fn open_existing(schema: Schema, database: Arc<Database>) -> Result<StoredTable, Failure> {
        let schema = database.look(|catalog| {
            existing_tables::check(&schema, catalog)??;
            existing_tables::as_indexed(&schema, catalog)
        })?;
        Ok(StoredTable::new(schema, database))
    }

    /// Reads so much by the connection of the transaction, or by one that sees the last commit.
    fn read<T>(
        &self,
        (transaction, size): (i64, ReadSize<'_>),
        read: impl FnOnce(&SqlTable, &Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let is_long = if transaction == 0 { self.takes_long(size) } else { is_large(size) };
        let is_short = !is_long;
        let read = self.database.read((transaction, is_short), |connection| read(&self.table, connection));
        read.map_err(|error| self.database.failure_of_read(transaction, &error))
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
        let name = &self.table.schema.name;
        let written = self.database.write((transaction, rows), name, move |connection| statement(&table, connection));
        written.map_err(|error| self.broken(transaction, &error, row))
    }

    /// Changes one row. A broken rule is a failure that names it, and the row.
    fn change(&self, transaction: i64, change: RowChange, row: &[Value]) -> Result<RowChanged, Failure> {
        self.database.check()?;
        let statement = RowStatement { table: Arc::clone(&self.table), change };
        let changed = self.database.change_row(transaction, &statement);
        changed.map_err(|error| self.broken(transaction, &error, row))
    }

    /// Returns the failure of a statement that writes a row, or several.
    fn broken(&self, transaction: i64, error: &rusqlite::Error, row: &[Value]) -> Failure {
        if error.sqlite_error_code() == Some(ErrorCode::TooBig) {
            return constraint::longer_than_a_row(&self.table.schema, ("SQLite", "1,000,000,000"));
        }
        let is_broken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
        match is_broken {
            true if is_used_up(error) => constraint::no_number_left(&self.table.schema),
            true if !is_unique(error) => constraint::refused(&self.table.schema, &error.to_string()),
            true if !row.is_empty() => self.table.taken(error, row),
            _ => self.database.failure_in(transaction, error),
        }
    }
}

/// Returns whether a read takes long because of its size.
fn is_large(read: ReadSize<'_>) -> bool {
    match read {
        ReadSize::Rows(keys) => keys > KEYS_MAX,
        ReadSize::Search(site) => site.work.is_long(),
    }
}

impl TableRows for StoredTable {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        self.read((transaction, ReadSize::Rows(1)), |table, connection| table.get(connection, key))?
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        self.read((transaction, ReadSize::Rows(keys.len())), |table, connection| table.get_all(connection, keys))?
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        self.read((transaction, ReadSize::Search(&search.query)), |table, connection| table.select(connection, search))?
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        self.read((transaction, ReadSize::Search(&search.query)), |table, connection| {
            table.select_joined(connection, search, joined)
        })?
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.read((transaction, ReadSize::Search(&search.query)), |table, connection| table.count(connection, search))
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        self.read((transaction, ReadSize::Search(&search.query)), |table, connection| {
            table.sum(connection, search, column)
        })?
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        self.read((transaction, ReadSize::Search(&search.query)), |table, connection| {
            table.group(connection, search, grouping)
        })?
    }

    fn takes_long(&self, read: ReadSize<'_>) -> bool {
        self.database.disk_waits.are_long() || self.database.is_waited_for() || is_large(read)
    }

    fn waits_to_write(&self) -> bool {
        self.database.waits_to_write()
    }

    fn waits_to_begin(&self, transaction: i64) -> bool {
        self.database.waits_to_begin(transaction)
    }

    fn snapshot(&self, _read: &TableRead) -> Option<Box<dyn TableSnapshot>> {
        let snapshot = self.database.snapshot()?;
        Some(Box::new(SqliteSnapshot {
            table: Arc::clone(&self.table),
            database: Arc::clone(&self.database),
            snapshot,
        }))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let schema = &self.table.schema;
        let row = schema.stored(row)?;
        match self.change(transaction, RowChange::Insert(row.clone()), fields(&row))? {
            RowChanged::NoNumberLeft => Err(constraint::no_number_left(schema)),
            RowChanged::Numbered(number) => Ok(Value::Int(number)),
            RowChanged::Rows(0) if schema.auto => Err(constraint::not_numbered(schema)),
            RowChanged::Rows(0) => Err(constraint::not_inserted(schema, fields(&row))),
            RowChanged::Rows(_) => Ok(schema.key_of(fields(&row))),
        }
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        let schema = &self.table.schema;
        let row = schema.stored(row)?;
        let changed = self.change(transaction, RowChange::Upsert(row.clone()), fields(&row))?;
        match changed == RowChanged::Rows(0) && self.table.statements.replace.is_some() {
            true => Err(constraint::not_inserted(schema, fields(&row))),
            false => Ok(schema.key_of(fields(&row))),
        }
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        let schema = &self.table.schema;
        let row = schema.replacement(key, row)?;
        if self.table.statements.replace.is_none() {
            return Ok(row);
        }
        let replace = || match self.change(transaction, RowChange::Replace(key.clone(), row.clone()), fields(&row))? {
            RowChanged::Rows(0) => Err(constraint::not_replaced(schema, fields(&row))),
            _ => Ok(()),
        };
        if schema.existing.is_none() {
            return replace().map(|()| row);
        }
        // The database may have changed the row, also to one that cannot be read.
        let mut stored = None;
        self.together(transaction, &mut || {
            replace()?;
            stored = self.get(transaction, key)?;
            Ok(())
        })?;
        Ok(stored.unwrap_or(row))
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let schema = &self.table.schema;
        let rows = schema.replacements(old, new)?;
        let moves = schema.existing.is_none() && schema.moves_unique_values(old, &rows);
        self.database.check()?;
        // The statement may be kept behind the end of the flow, unless it writes many rows.
        let copied = |(key, row): &(Value, Value)| match rows.len() > MEMBER_ROWS_MAX {
            true => (key.clone(), row.clone()),
            false => (unshared_copy(key), unshared_copy(row)),
        };
        let rows = Arc::new(ProgramOwned::new(|| rows.iter().map(copied).collect::<Vec<_>>()));
        let count = rows.len();
        let (table, replaced) = (Arc::clone(&self.table), Arc::clone(&rows));
        // The place of the row that is written.
        let reached = Arc::new(AtomicUsize::new(0));
        let at = Arc::clone(&reached);
        let written = self.database.write((transaction, count), &schema.name, move |connection| {
            whole(connection, || match moves {
                true => RowReplacement::new(&table, connection)?.run(&replaced, &at),
                false => replace_in_place((&table, connection), &replaced, &at),
            })
        });
        match (written, rows.get(reached.load(Ordering::Relaxed))) {
            (Ok(()), _) => Ok(count as i64),
            (Err(rusqlite::Error::StatementChangedRows(0)), Some((_, row))) => {
                Err(constraint::not_replaced(schema, fields(row)))
            }
            (Err(error), row) => Err(self.broken(transaction, &error, row.map_or(&[], |(_, row)| fields(row)))),
        }
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        Ok(self.change(transaction, RowChange::Delete(key.clone()), &[])? != RowChanged::Rows(0))
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let search = search.clone();
        // Nobody knows how many rows it deletes.
        let deleted = self.write((transaction, usize::MAX), &[], move |table, connection| {
            let (sql, parameters) = table.statements.search(&table.schema, &search, SqlForm::Deletion);
            connection.prepare_cached(&sql)?.execute(params_from_iter(parameters))
        })?;
        Ok(deleted as i64)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        let key = |row: &Value| unshared_copy(&self.table.schema.key_of(fields(row)));
        let keys = ProgramOwned::new(|| rows.iter().map(key).collect::<Vec<Value>>());
        let deleted = self.write((transaction, keys.len()), &[], move |table, connection| {
            whole(connection, || {
                let mut statement = connection.prepare_cached(&table.statements.delete)?;
                keys.iter()
                    .map(|key| statement.execute(params_from_iter(table.key(key))))
                    .sum::<rusqlite::Result<usize>>()
            })
        })?;
        Ok(deleted as i64)
    }

    fn together(&self, transaction: i64, statements: TogetherStatements<'_>) -> Result<(), Failure> {
        let command =
            |sql| self.database.command(transaction, sql).map_err(|error| self.broken(transaction, &error, &[]));
        self.database.check()?;
        command("SAVEPOINT together")?;
        match statements() {
            Ok(()) => command("RELEASE together"),
            Err(failure) => {
                // If this fails as well, the database has taken back the transaction by itself.
                _ = command("ROLLBACK TO together; RELEASE together");
                Err(failure)
            }
        }
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        if last { self.database.commit(transaction) } else { Ok(()) }
    }

    fn commit_at_once(&self, transaction: i64) -> Result<(), Failure> {
        self.database.commit_at_once(transaction)
    }

    fn roll_back(&self, transaction: i64) {
        self.database.roll_back(transaction);
    }

    fn snapshots(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(Arc::as_ptr(&self.database).addr()).filter(|_| self.database.has_snapshots)
    }

    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.database.commits()
    }

    fn show(&self, commit: u64) {
        self.database.show(commit);
    }

    fn shows(&self, commit: u64) -> bool {
        self.database.shows(commit)
    }
}
