//! A connection to the database, with its prepared statements.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Waker};

use futures_core::Stream;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::errors::StatementError;
use super::io::in_order;

/// Maximum number of prepared statements that a connection keeps.
const PREPARED_MAX: usize = 256;

/// Begins what all statements of one moment have in common.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// A connection to the database.
pub(super) struct PostgresConnection {
    client: Client,
    prepared: Mutex<IndexMap<String, Statement>>,
    driver: AbortHandle,
}

/// A statement and its parameters.
pub(super) struct SqlStatement<'s> {
    pub(super) sql: &'s str,
    pub(super) parameters: Vec<&'s (dyn ToSql + Sync)>,
}

/// The answer to a statement.
#[derive(Debug, Default)]
pub(super) struct Executed {
    pub(super) rows: Vec<Row>,
    /// The number of rows that it has read or written.
    pub(super) count: u64,
}

impl<'s> SqlStatement<'s> {
    pub(super) fn new<P: ToSql + Sync>(sql: &'s str, parameters: &'s [P]) -> SqlStatement<'s> {
        SqlStatement { sql, parameters: parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect() }
    }
}

impl PostgresConnection {
    pub(super) fn new(client: Client, driver: AbortHandle) -> PostgresConnection {
        PostgresConnection { client, prepared: Mutex::default(), driver }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Closes the connection at once, also for others that use it: the database is not waited for.
    pub(super) fn abort(&self) {
        self.driver.abort();
    }

    /// Executes commands without parameters. They are sent when this is first polled.
    pub(super) async fn command(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
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

    async fn executed(&self, prepared: &Statement, statement: &SqlStatement<'_>) -> Result<Executed, Error> {
        let stream = self.client.query_raw(prepared, statement.parameters.iter().copied()).await?;
        let (mut stream, mut rows) = (pin!(stream), Vec::new());
        while let Some(row) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            rows.push(row?);
        }
        Ok(Executed { rows, count: stream.rows_affected().unwrap_or(0) })
    }
}
