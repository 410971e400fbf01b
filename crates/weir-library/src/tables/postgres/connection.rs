//! A connection to the database, with its prepared statements.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use futures_core::Stream;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, RowStream, SimpleQueryMessage, Statement};
use weir::{Failure, memory};

use super::errors::{StatementError, is_outdated};
use super::io::{begin_task, in_order};
use super::kept_room::KeptRoom;
use super::received_row::ReceivedRow;

/// Maximum number of prepared statements that a connection keeps.
const PREPARED_MAX: usize = 256;

/// The bytes of a row that is kept whatever its flow holds, if it is the only one: it may tell the number of a transaction or of a new
/// row. Chosen by judgement: such a row has some ten bytes.
const SMALL_ROW_BYTES: usize = 256;

/// Begins what all statements of one moment have in common.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// A connection to the database.
pub(super) struct PostgresConnection {
    client: Client,
    prepared: Mutex<IndexMap<String, Statement>>,
    /// The statements that are being prepared for later.
    preparing: Mutex<BTreeSet<String>>,
    names: Mutex<ScriptNames>,
    room: KeptRoom,
    driver: AbortHandle,
    /// True if the driver was told to end.
    is_aborted: AtomicBool,
    /// Set when the database has ended the connection because its transaction was idle.
    was_idle: Arc<AtomicBool>,
    /// Is closed when the connection is, unless somebody waits for that already.
    end: Mutex<Option<ConnectionEnd>>,
}

/// The end of a connection: the other side is dropped with the driver, and sends nothing.
pub(super) type ConnectionEnd = oneshot::Receiver<Infallible>;

/// The names of statements in scripts.
#[derive(Default)]
struct ScriptNames {
    /// The names by statements; none yet while one is being given.
    by_sql: IndexMap<String, Option<Arc<str>>>,
    /// The number of names that were given.
    given: usize,
}

/// A statement and its parameters.
pub(super) struct SqlStatement<'s> {
    pub(super) sql: &'s str,
    pub(super) parameters: Vec<&'s (dyn ToSql + Sync)>,
}

/// The answer to a statement.
#[derive(Debug)]
pub(super) struct Executed {
    /// Its rows; the failure of the flow if they are more than it may hold.
    rows: Result<Vec<ReceivedRow>, Failure>,
    /// The number of rows that it has read or written.
    pub(super) count: u64,
}

impl Default for Executed {
    fn default() -> Executed {
        Executed { rows: Ok(Vec::new()), count: 0 }
    }
}

impl Executed {
    /// Returns the answer to a statement that reads one row.
    pub(super) fn of_row(row: ReceivedRow) -> Executed {
        Executed { rows: Ok(vec![row]), count: 1 }
    }

    /// Returns the rows. Fails if they are more than the flow may hold.
    pub(super) fn rows(&self) -> Result<&[ReceivedRow], Failure> {
        self.rows.as_deref().map_err(Clone::clone)
    }

    /// Returns the rows, each of which can be released by itself. Fails if they are more than the flow may hold.
    pub(super) fn into_rows(self) -> Result<Vec<ReceivedRow>, Failure> {
        self.rows
    }

    /// Keeps a row. Once the flow may not hold more, rows are only received, so that the connection can go on.
    fn receive(&mut self, row: ReceivedRow) {
        let bytes = row.bytes();
        if let Ok(rows) = &mut self.rows {
            rows.push(row);
            let is_small = rows.len() == 1 && bytes <= SMALL_ROW_BYTES;
            if let (false, Err(failure)) = (is_small, memory::check()) {
                self.rows = Err(*failure);
            }
        }
    }
}

impl<'s> SqlStatement<'s> {
    pub(super) fn new<P: ToSql + Sync>(sql: &'s str, parameters: &'s [P]) -> SqlStatement<'s> {
        SqlStatement { sql, parameters: parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect() }
    }
}

impl PostgresConnection {
    pub(super) fn new(
        client: Client,
        (driver, end, was_idle): (AbortHandle, ConnectionEnd, Arc<AtomicBool>),
    ) -> PostgresConnection {
        PostgresConnection {
            client,
            prepared: Mutex::default(),
            preparing: Mutex::default(),
            names: Mutex::default(),
            room: KeptRoom::default(),
            driver,
            is_aborted: AtomicBool::new(false),
            was_idle,
            end: Mutex::new(Some(end)),
        }
    }

    /// Returns the end of the connection, to the first who asks for it.
    pub(super) fn end(&self) -> Option<ConnectionEnd> {
        self.end.lock().take()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_aborted.load(Ordering::Relaxed) || self.client.is_closed()
    }

    /// Returns whether the database has ended the connection because its transaction has executed nothing for too long.
    pub(super) fn was_idle(&self) -> bool {
        self.was_idle.load(Ordering::Relaxed)
    }

    /// Returns whether its buffers keep so much room that it should not be used any more.
    pub(super) fn keeps_too_much(&self) -> bool {
        self.room.is_too_large()
    }

    /// Returns who is told when they keep more.
    pub(super) fn room_grown(&self) -> Arc<Notify> {
        Arc::clone(&self.room.grown)
    }

    /// Closes the connection at once, also for others that use it: the database is not waited for.
    pub(super) fn abort(&self) {
        self.is_aborted.store(true, Ordering::Relaxed);
        self.driver.abort();
    }

    /// Executes commands without parameters. They are sent when this is first polled.
    pub(super) async fn command(&self, sql: &str) -> Result<(), Error> {
        self.send(self.client.batch_execute(sql)).await
    }

    /// Sends a command without parameters, whose answer nobody waits for.
    pub(super) fn send_command(&self, sql: &str) {
        _ = pin!(self.command(sql)).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Returns the rows of a query, with their values as texts.
    pub(super) async fn texts(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let messages = self.client.simple_query(sql).await?;
        let row = |message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// Prepares statements. Nothing is executed.
    pub(super) async fn prepare(&self, statements: &[SqlStatement<'_>]) -> Result<Vec<Statement>, Error> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepared(statement.sql).await?);
        }
        Ok(prepared)
    }

    /// Returns a statement that was prepared before.
    pub(super) fn known(&self, sql: &str) -> Option<Statement> {
        self.prepared.lock().get(sql).cloned()
    }

    /// Prepares a statement for later by a task of an event loop, unless that is being done.
    pub(super) fn prepare_later(self: &Arc<Self>, sql: &str, event_loop: &Handle) {
        if self.preparing.lock().insert(sql.to_owned()) {
            let (connection, sql) = (Arc::clone(self), sql.to_owned());
            begin_task(event_loop, async move {
                // If it fails, the next attempt follows.
                _ = connection.prepared(&sql).await;
                connection.preparing.lock().remove(&sql);
            });
        }
    }

    /// Returns statements that were all prepared before.
    pub(super) fn all_known(&self, statements: &[SqlStatement<'_>]) -> Option<Vec<Statement>> {
        let prepared = self.prepared.lock();
        statements.iter().map(|statement| prepared.get(statement.sql).cloned()).collect()
    }

    /// Prepares a statement, unless it was prepared before.
    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(known) = self.known(sql) {
            return Ok(known);
        }
        let statement = self.client.prepare(sql).await?;
        let mut prepared = self.prepared.lock();
        if prepared.len() >= PREPARED_MAX {
            prepared.shift_remove_index(0);
        }
        prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Returns the name of a statement in scripts (`script`), if it has one.
    pub(super) fn known_name(&self, sql: &str) -> Option<Arc<str>> {
        self.names.lock().by_sql.get(sql).cloned().flatten()
    }

    /// Returns the name of a statement in scripts. If it has none, it will have one later.
    pub(super) fn name_of(self: &Arc<Self>, sql: &str) -> Option<Arc<str>> {
        let mut names = self.names.lock();
        if let Some(known) = names.by_sql.get(sql) {
            return known.clone();
        }
        let event_loop = Handle::try_current().ok().filter(|_| names.by_sql.len() < PREPARED_MAX)?;
        names.given += 1;
        let (connection, sql, name) = (Arc::clone(self), sql.to_owned(), format!("weir_{}", names.given));
        names.by_sql.insert(sql.clone(), None);
        begin_task(&event_loop, async move {
            let prepared = connection.command(&format!("PREPARE {name} AS {sql}")).await;
            let mut names = connection.names.lock();
            match prepared {
                Ok(()) => _ = names.by_sql.insert(sql, Some(name.into())),
                // Such as in a transaction that was refused. The next attempt follows.
                Err(_) => _ = names.by_sql.swap_remove(&sql),
            }
        });
        None
    }

    /// Sends commands without parameters, and returns the messages of their answers.
    pub(super) async fn messages(
        &self,
        sql: &str,
    ) -> Result<impl Stream<Item = Result<SimpleQueryMessage, Error>> + use<>, Error> {
        self.send(self.client.simple_query_raw(sql)).await
    }

    /// Executes prepared statements one after the other. They are sent together, when this is first polled. Fails with the
    /// first error, and the place of its statement.
    pub(super) async fn execute(
        &self,
        statements: &[SqlStatement<'_>],
        prepared: &[Statement],
    ) -> Result<Vec<Executed>, (usize, Error)> {
        if let ([statement], [prepared]) = (statements, prepared) {
            return self.executed(prepared, statement).await.map(|executed| vec![executed]).map_err(|error| (0, error));
        }
        let sent = statements.iter().zip(prepared).map(|(statement, prepared)| self.executed(prepared, statement));
        let answers = in_order(sent).await.into_iter().enumerate();
        answers.map(|(at, answer)| answer.map_err(|error| (at, error))).collect()
    }

    /// Executes prepared statements that read, all as the tables are at one moment. They are sent together, when this is first
    /// polled.
    pub(super) async fn read_at_one_moment(
        &self,
        statements: &[SqlStatement<'_>],
        prepared: &[Statement],
    ) -> Result<Vec<Executed>, StatementError> {
        let executed = self.execute(statements, prepared);
        if statements.len() < 2 {
            return executed.await.map_err(|(at, error)| StatementError::Database(error, at));
        }
        let (began, executed, ended) = tokio::join!(biased; self.command(SNAPSHOT), executed, self.command("COMMIT"));
        began?;
        let executed = executed.map_err(|(at, error)| StatementError::Database(error, at))?;
        ended?;
        Ok(executed)
    }

    /// Executes a prepared statement that reads, and returns its first row. It is sent when this is first polled.
    pub(super) async fn row<P: ToSql + Sync>(
        &self,
        prepared: &Statement,
        parameters: &[P],
    ) -> Result<Option<ReceivedRow>, Error> {
        let parameters = parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync));
        let mut stream = pin!(self.send(self.client.query_raw(prepared, parameters)).await?);
        let mut first = None;
        while let Some(row) = self.next_row(stream.as_mut()).await {
            first.get_or_insert(row?);
        }
        Ok(first)
    }

    /// Forgets all prepared statements if one of them is outdated, so that each is prepared anew for the next attempt. Returns the error.
    pub(super) fn forget_outdated(&self, error: Error) -> Error {
        if is_outdated(&error) {
            self.prepared.lock().clear();
            self.names.lock().by_sql.clear();
        }
        error
    }

    async fn executed(&self, prepared: &Statement, statement: &SqlStatement<'_>) -> Result<Executed, Error> {
        let stream = self.send(self.client.query_raw(prepared, statement.parameters.iter().copied())).await?;
        let (mut stream, mut executed) = (pin!(stream), Executed::default());
        while let Some(row) = self.next_row(stream.as_mut()).await {
            executed.receive(row?);
        }
        executed.count = stream.rows_affected().unwrap_or(0);
        Ok(executed)
    }

    /// Sends a message, whose memory belongs to the program: the driver of the connection releases it, perhaps on another thread and
    /// later than the flow that sends goes on.
    async fn send<T>(&self, sending: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut sending = pin!(sending);
        let sent = poll_fn(|context| {
            let (polled, allocated) = memory::of_program_measured(|| sending.as_mut().poll(context));
            self.room.sent(allocated);
            polled
        });
        sent.await.map_err(|error| self.forget_outdated(error))
    }

    /// Returns the next row of an answer.
    async fn next_row(&self, stream: Pin<&mut RowStream>) -> Option<Result<ReceivedRow, Error>> {
        let row = ReceivedRow::next(stream).await;
        if let Some(Ok(row)) = &row {
            self.room.received(row.bytes());
        }
        row
    }
}
