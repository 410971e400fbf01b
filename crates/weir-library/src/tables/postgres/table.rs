//! A table of the database in PostgreSQL.

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use tokio_postgres::Row;
use weir::{Failure, Generic, HostType, Value};

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::expected_rows::{ExpectedRead, RowOf};
use super::publications::{NOTIFY, Publications};
use super::received_row::ReceivedRow;
use super::replacement::{PostgresReplacement, fails_without_row, says_no_row};
use super::rows_by_keys::{KeyParameters, row_of, rows_of_keys};
use super::table_layout::TableLayout;
use super::value::{Presence, column_value};
use crate::tables::constraint;
use crate::tables::database_threads::DatabaseThread;
use crate::tables::dialect::Dialect;
use crate::tables::evolution::existing_tables;
use crate::tables::failure_site::FailureSite;
use crate::tables::group_commit::GroupCommit;
use crate::tables::grouping::TableGrouping;
use crate::tables::insertion::columns_beside_key;
use crate::tables::join::{JoinedColumns, KeyPart};
use crate::tables::program_owned::text_bytes;
use crate::tables::query_site::SqlForm;
use crate::tables::read_notes::ReadNotes;
use crate::tables::row::fields;
use crate::tables::rows::{
    ChangeAnswered, CommitEnded, LaterAnswer, LaterChange, LaterEnd, RowChange, SentRead, TableRead, TableRows,
    TogetherStatements,
};
use crate::tables::schema::{Schema, TableSearch};
use crate::tables::sql_value::{Bound, key_parameters};
use crate::tables::statements::parameters;
use crate::tables::write_sets::TableWrite;

/// A table of the database.
#[derive(Clone, Debug)]
pub(in crate::tables) struct PostgresTable {
    pub(super) layout: Arc<TableLayout>,
    pub(super) database: Arc<PostgresDatabase>,
}

impl Deref for PostgresTable {
    type Target = TableLayout;

    fn deref(&self) -> &TableLayout {
        &self.layout
    }
}

impl PostgresTable {
    /// Opens a table that other programs have declared.
    pub(in crate::tables) fn open_existing(
        schema: Schema,
        database: Arc<PostgresDatabase>,
    ) -> Result<PostgresTable, Failure> {
        database.look(|catalog| existing_tables::check(&schema, catalog)?)?;
        Ok(PostgresTable::new(schema, database))
    }

    /// Returns a table that the start makes as it is declared before anybody uses it.
    pub(in crate::tables) fn new(schema: Schema, database: Arc<PostgresDatabase>) -> PostgresTable {
        let triggers = database.triggers.of(&schema.name);
        let mut layout = TableLayout::new(schema, database.program, &database.connector.address);
        layout.triggers = triggers;
        PostgresTable { layout: Arc::new(layout), database }
    }

    fn read(&self, transaction: i64, (sql, parameters): (&str, &[Bound<'_>])) -> Result<Executed, Failure> {
        let executed = self.database.read(transaction, &[SqlStatement::new(sql, parameters)]);
        executed
            .map(|executed| executed.into_iter().next().unwrap_or_default())
            .map_err(|error| self.database.failure(&error))
    }

    /// Executes statements that write any rows, and returns the answer of the first.
    fn write(
        &self,
        transaction: i64,
        (sql, parameters): (&str, &[Bound<'_>]),
        written: TableWrite,
    ) -> Result<Executed, Failure> {
        let published = self.published(&[written]);
        let statements = std::iter::once(SqlStatement::new(sql, parameters)).chain(published.statements());
        let executed = self.database.write(transaction, &statements.collect::<Vec<_>>());
        let executed = executed.map_err(|error| self.database.failure(&error))?;
        Ok(executed.into_iter().next().unwrap_or_default())
    }

    /// Updates rows one after the other, all or none.
    fn replace_in_place(
        &self,
        transaction: i64,
        rows: &[(Value, Value)],
        published: &Publications,
    ) -> Result<i64, Failure> {
        let Some(update) = &self.statements.replace else { return Ok(rows.len() as i64) };
        let sql = fails_without_row(update);
        let columns = || self.schema.key.iter().copied().chain(columns_beside_key(&self.schema));
        let given: Vec<Vec<Bound<'_>>> =
            rows.iter().map(|(_, row)| parameters(&self.schema, columns(), fields(row))).collect();
        let updates = given.iter().map(|given| SqlStatement::new(&sql, given));
        let statements: Vec<SqlStatement<'_>> = updates.chain(published.statements()).collect();
        let written = self.database.write(transaction, &statements);
        written.map_err(|error| match rows.get(error.place()) {
            Some((_, row)) if says_no_row(&error) => constraint::not_replaced(&self.schema, fields(row)),
            Some((key, row)) => self.layout.refused(&RowChange::Replace(key.clone(), row.clone()), &error),
            None => self.database.failure(&error),
        })?;
        Ok(rows.len() as i64)
    }

    /// Returns the rows of an answer. Each is released when its value is made, so that the flow holds about one of both.
    fn rows(&self, executed: Executed) -> Result<Vec<Value>, Failure> {
        executed.into_rows()?.into_iter().map(|row| row_of(&self.schema, &row, 0)).collect()
    }
}

/// Begins a statement that reads, and goes on without a thread. `begin` begins its statements in SQL, and says on which connection.
fn read_later<C>(
    table: &PostgresTable,
    read: &TableRead,
    begin: impl FnOnce(&[SqlStatement<'_>]) -> Option<(C, StatementsAnswered)>,
) -> Option<(C, LaterAnswer)> {
    let schema = Arc::clone(&table.schema);
    let read = read.clone();
    let (keys, searched);
    let statements: Vec<SqlStatement<'_>> = match &read {
        TableRead::Row(key) => {
            keys = KeyParameters::of((&table.schema, &table.statements), std::slice::from_ref(key));
            keys.statements()
        }
        TableRead::Rows(of) => {
            keys = KeyParameters::of((&table.schema, &table.statements), of);
            keys.statements()
        }
        TableRead::Search(search) => {
            searched = table.statements.search(&table.schema, search, SqlForm::Rows);
            vec![SqlStatement::new(&searched.0, &searched.1)]
        }
        TableRead::Count(search) => {
            searched = table.statements.search(&table.schema, search, SqlForm::Count);
            vec![SqlStatement::new(&searched.0, &searched.1)]
        }
    };
    if statements.is_empty() {
        return None;
    }
    let database = Arc::clone(&table.database);
    let (connection, executing) = begin(&statements)?;
    drop(statements);
    let answer = Box::pin(async move {
        let failed = |error| database.failure(&error);
        let executed = executing.await.map_err(failed)?;
        let option =
            |row: Option<&ReceivedRow>| row.map_or(Ok(Value::none()), |row| row_of(&schema, row, 0).map(Value::some));
        match read {
            TableRead::Row(_) => option(executed.first().map_or(Ok(&[][..]), |executed| executed.rows())?.first()),
            TableRead::Rows(keys) => {
                let rows = rows_of_keys(&schema, &keys, &executed)?.into_iter();
                list_of(rows.map(|row| Ok(row.map_or_else(Value::none, Value::some))))
            }
            // Each row is released when its value is made.
            TableRead::Search(_) => {
                let found = executed.into_iter().next().and_then(Arc::into_inner).unwrap_or_default();
                list_of(found.into_rows()?.into_iter().map(|row| row_of(&schema, &row, 0)))
            }
            TableRead::Count(_) => {
                let found = executed.first().map_or(Ok(&[][..]), |executed| executed.rows())?;
                let row = found.first().ok_or_else(|| Failure::function("the database has given no answer"))?;
                let number: i64 = row.try_get(0).map_err(|error| failed(StatementError::from(error)))?;
                Ok(Value::Int(number))
            }
        }
    });
    Some((connection, answer))
}

/// Waits for what a transaction has asked for; `None` if it has not.
fn expected_later(
    table: &PostgresTable,
    transaction: i64,
    (read, statements): (&TableRead, &[SqlStatement<'_>]),
) -> Option<StatementsAnswered> {
    let database = Arc::clone(&table.database);
    let of = match read {
        TableRead::Row(key) => ExpectedRead::Rows(vec![table.row_of_key(key.clone())]),
        TableRead::Rows(keys) => ExpectedRead::Rows(keys.iter().map(|key| table.row_of_key(key.clone())).collect()),
        TableRead::Search(_) | TableRead::Count(_) => {
            let is_any = database.has_expected_queries(transaction);
            ExpectedRead::Query(is_any.then(|| database.keep(statements)).flatten()?.pop()?)
        }
    };
    if !database.has_expected(transaction, &of) {
        return None;
    }
    let sent = database.keep(statements)?;
    Some(Box::pin(async move {
        let answered = database.expected_answered(transaction, &of).await;
        match database.refused_in(transaction, answered)? {
            Some(executed) => Ok(executed),
            None => {
                let executed = database.execute_again(transaction, sent, true).await?;
                Ok(executed.into_iter().map(Arc::new).collect())
            }
        }
    }))
}

/// The answer to statements.
type StatementsAnswered = Pin<Box<dyn Future<Output = Result<Vec<Arc<Executed>>, StatementError>> + Send>>;

fn shared(
    executing: impl Future<Output = Result<Vec<Executed>, StatementError>> + Send + 'static,
) -> StatementsAnswered {
    Box::pin(async { Ok(executing.await?.into_iter().map(Arc::new).collect()) })
}

fn list_of(values: impl Iterator<Item = Result<Value, Failure>>) -> Result<Value, Failure> {
    values.map(|value| value.map(Generic::<'e'>)).collect::<Result<Vec<_>, _>>()?.into_value()
}

impl TableRows for PostgresTable {
    fn get(&self, transaction: i64, key: &Value) -> Result<Option<Value>, Failure> {
        let rows = self.get_all(transaction, std::slice::from_ref(key))?;
        Ok(rows.into_iter().next().flatten())
    }

    fn get_all(&self, transaction: i64, keys: &[Value]) -> Result<Vec<Option<Value>>, Failure> {
        let rows: Vec<RowOf> = match transaction {
            0 => Vec::new(),
            _ => keys.iter().map(|key| self.row_of_key(key.clone())).collect(),
        };
        if let Some(found) = self.database.expected_rows(transaction, rows) {
            let found = rows_of_keys(&self.schema, keys, &found)?;
            self.note_found(transaction, keys, &found);
            return Ok(found);
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let parameters = KeyParameters::of((&self.schema, &self.statements), keys);
        let found = self.database.read(transaction, &parameters.statements());
        let found = rows_of_keys(&self.schema, keys, &found.map_err(|error| self.database.failure(&error))?)?;
        self.note_found(transaction, keys, &found);
        Ok(found)
    }

    fn select(&self, transaction: i64, search: &TableSearch) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Rows);
        self.rows(self.read(transaction, (&sql, &parameters))?)
    }

    fn rows_with(
        &self,
        transaction: i64,
        columns: &[usize],
        parts: &[Vec<Value>],
    ) -> Option<Result<Vec<Value>, Failure>> {
        let sql = self.statements.selection_of_many(&self.schema, columns)?;
        let mut parameters: Vec<Vec<Bound<'_>>> = Vec::with_capacity(parts.len());
        for (of, parts) in columns.iter().zip(parts) {
            parameters.push(parts.iter().map(|part| Bound::new(part, &self.schema.columns[*of])).collect());
        }
        let found = self.database.read(transaction, &[SqlStatement::new(&sql, &parameters)]);
        let rows = found.map_err(|error| self.database.failure(&error)).map(|found| found.into_iter().next());
        Some(rows.and_then(|found| self.rows(found.unwrap_or_default())))
    }

    fn select_joined(
        &self,
        transaction: i64,
        search: &TableSearch,
        joined: &[(&Schema, &[KeyPart<'_>])],
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let (sql, parameters) = self.statements.select_joined(&self.schema, search, joined);
        let read = self.read(transaction, (&sql, &parameters))?;
        let mut columns = JoinedColumns::new(&self.schema, joined);
        let mut whole = |row: &Row| {
            let is_absent = |at: usize| row.try_get::<_, Presence>(at).map_or(true, |of| of == Presence::Absent);
            columns.rows(is_absent, |schema, at| row_of(schema, row, at))
        };
        read.into_rows()?.into_iter().map(|row| whole(&row)).collect()
    }

    fn count(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Count);
        self.number(&self.read(transaction, (&sql, &parameters))?, 0)
    }

    fn sum(&self, transaction: i64, search: &TableSearch, column: usize) -> Result<i128, Failure> {
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Sum(column));
        let halves = self.read(transaction, (&sql, &parameters))?;
        Ok((i128::from(self.number(&halves, 0)?) << 32) + i128::from(self.number(&halves, 1)?))
    }

    fn group(&self, transaction: i64, search: &TableSearch, grouping: &TableGrouping) -> Result<Vec<Value>, Failure> {
        let (sql, parameters) = self.statements.group(&self.schema, search, grouping);
        let read = self.read(transaction, (&sql, &parameters))?;
        let group = |row: &ReceivedRow| grouping.group(&self.schema, |at, column| column_value(row, at, column));
        let groups: Result<Vec<Value>, usize> = read.rows()?.iter().map(group).collect();
        groups.map_err(|column| constraint::unreadable_in_group(&self.schema, column, Dialect::Postgres))
    }

    fn insert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.change(transaction, RowChange::Insert(row))
    }

    fn upsert(&self, transaction: i64, row: Value) -> Result<Value, Failure> {
        self.change(transaction, RowChange::Upsert(row))
    }

    fn replace(&self, transaction: i64, key: &Value, row: Value) -> Result<Value, Failure> {
        self.change(transaction, RowChange::Replace(key.clone(), row))
    }

    fn replace_rows(&self, transaction: i64, old: &[Value], new: Vec<Value>) -> Result<i64, Failure> {
        let published = self.published(&TableWrite::of_changed(&self.schema, old, &new));
        let rows = self.schema.replacements(old, new)?;
        rows.iter().try_for_each(|(_, row)| self.check_length(text_bytes(row)))?;
        // No statement is sent for nothing.
        if rows.is_empty() {
            return Ok(0);
        }
        if self.schema.existing.is_some() || !self.schema.moves_unique_values(old, &rows) {
            return self.replace_in_place(transaction, &rows, &published);
        }
        let PostgresTable { layout, database } = self;
        let TableLayout { schema, statements, .. } = &**layout;
        let replacement = PostgresReplacement { database, schema, statements, published: &published };
        let replaced = database.write_together(transaction, |transaction| replacement.run(transaction, &rows));
        replaced.map(|count| count as i64).map_err(|error| match error.broken_index() {
            Some((index, at)) => self.taken((index, &error), rows.get(at).map_or(&[], |(_, row)| fields(row))),
            None => database.failure(&error),
        })
    }

    fn delete(&self, transaction: i64, key: &Value) -> Result<bool, Failure> {
        self.change(transaction, RowChange::Delete(key.clone())).map(|deleted| deleted == Value::Bool(true))
    }

    fn delete_all(&self, transaction: i64, search: &TableSearch) -> Result<i64, Failure> {
        self.database.forget_existing();
        let (sql, parameters) = self.statements.search(&self.schema, search, SqlForm::Deletion);
        let written = TableWrite::of_any(&self.schema);
        Ok(self.write(transaction, (&sql, &parameters), written)?.count as i64)
    }

    fn delete_rows(&self, transaction: i64, rows: &[Value]) -> Result<i64, Failure> {
        self.database.forget_existing();
        let keys: Vec<Value> = rows.iter().map(|row| self.schema.key_of(fields(row))).collect();
        let keys: Vec<Vec<Bound<'_>>> = keys.iter().map(|key| key_parameters(&self.schema, key)).collect();
        let published = self.published(&TableWrite::of_deleted(&self.schema, rows));
        let deletions = keys.iter().map(|key| SqlStatement::new(&self.statements.delete, key));
        let statements: Vec<SqlStatement<'_>> = deletions.chain(published.statements()).collect();
        let deleted = self.database.write(transaction, &statements).map_err(|error| self.database.failure(&error))?;
        Ok(deleted.iter().take(keys.len()).map(|deleted| deleted.count).sum::<u64>() as i64)
    }

    fn together(&self, transaction: i64, statements: TogetherStatements<'_>) -> Result<(), Failure> {
        let mut refused = None;
        let done = self.database.in_savepoint(transaction, || {
            statements().map_err(|failure| StatementError::TakenBack(refused.insert(failure).clone()))
        });
        done.map_err(|error| refused.unwrap_or_else(|| self.database.failure(&error)))
    }

    fn commit(&self, transaction: i64, last: bool) -> Result<(), Failure> {
        if last { self.database.commit(transaction) } else { Ok(()) }
    }

    fn roll_back(&self, transaction: i64) {
        // A placed change that was refused is asked for.
        _ = self.database.roll_back(transaction);
    }

    fn read_later(&self, read: &TableRead, notes: Option<ReadNotes>) -> Option<SentRead> {
        if let TableRead::Row(_) = read {
            return self.read_row_later(read.clone(), notes);
        }
        let begin = |statements: &[SqlStatement<'_>]| {
            self.database.read_later(statements).map(|(connection, executed)| (connection, shared(executed)))
        };
        let (connection, answer) = read_later(self, read, begin)?;
        let Some(notes) = notes else { return Some(SentRead { connection, answer }) };
        let (read, timers) = (read.clone(), self.database.connector.io.handle.clone());
        let answer = Box::pin(async move {
            let answer = answer.await;
            notes.note(&read, &timers).await;
            answer
        });
        Some(SentRead { connection, answer })
    }

    fn thread(&self) -> Option<DatabaseThread> {
        self.database.threads.take()
    }

    fn change_later(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        self.queue_change(change, answered)
    }

    fn read_in_transaction(&self, transaction: i64, read: &TableRead) -> Option<LaterAnswer> {
        let begin = |statements: &[SqlStatement<'_>]| {
            let expected = expected_later(self, transaction, (read, statements));
            let begun = || self.database.execute_later(transaction, statements, true).map(shared);
            Some(((), expected.or_else(begun)?))
        };
        read_later(self, read, begin).map(|((), answer)| answer)
    }

    fn expect(&self, transaction: i64, keys: &mut dyn Iterator<Item = Value>) -> bool {
        self.expect_rows(transaction, keys)
    }

    fn expect_found(&self, transaction: i64, read: &TableRead) -> bool {
        PostgresTable::expect_found(self, transaction, read)
    }

    fn has_row(&self, transaction: i64, key: &Value) -> bool {
        self.database.expected_rows(transaction, vec![self.row_of_key(key.clone())]).is_some()
    }

    fn knows_row(&self, transaction: i64, key: &Value) -> bool {
        PostgresTable::knows_row(self, transaction, key)
    }

    fn change_in_transaction(&self, transaction: i64, change: &RowChange) -> Option<LaterAnswer> {
        self.begin_change(transaction, change)
    }

    fn may_place(&self, transaction: i64, change: &RowChange) -> bool {
        let publication = self.schema.existing.is_none().then_some(NOTIFY);
        let is_numbered = self.schema.auto && matches!(change, RowChange::Insert(_));
        self.places(change)
            && (!is_numbered || self.next_number(transaction).is_some())
            && self.database.may_place(transaction, (self.placed_sql(change), publication))
    }

    fn place(
        &self,
        transaction: i64,
        change: &RowChange,
        site: Option<&FailureSite>,
    ) -> Option<Result<Value, Failure>> {
        self.place_change(transaction, change, site)
    }

    fn commit_later(&self, transaction: i64) -> Option<LaterEnd> {
        let committing = self.database.commit_later(transaction)?;
        let database = Arc::clone(&self.database);
        Some(Box::pin(async move { committing.await.map_err(|error| database.failure(&error)) }))
    }

    fn may_place_commit(&self, transaction: i64) -> bool {
        self.database.may_place_commit(transaction)
    }

    fn place_commit(&self, transaction: i64, ended: CommitEnded) -> bool {
        self.database.place_commit(transaction, ended)
    }

    fn has_placed(&self, transaction: i64) -> bool {
        self.database.has_placed(transaction)
    }

    fn roll_back_later(&self, transaction: i64) -> Option<LaterEnd> {
        let refused = Arc::clone(&self.database).refused_first(transaction);
        Some(Box::pin(async { refused.await.map_or(Ok(()), Err) }))
    }

    fn refused(&self, transaction: i64) -> Option<Failure> {
        self.database.refused(transaction)
    }

    fn commits(&self) -> Option<&Arc<GroupCommit>> {
        self.database.commits()
    }

    fn snapshots(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(Arc::as_ptr(&self.database).addr())
    }

    fn is_shared(&self) -> bool {
        true
    }
}
