//! Statements of transactions that need no thread.
//!
//! A transaction has the connection that writes for itself, because its flow holds the constraint of the database. A statement is sent when
//! its flow comes to it, and the flow waits without a thread, or goes on if the statement is placed. A statement needs a thread if
//! the connection has to be made, or something else is to be waited for before the statement is sent.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio_postgres::Statement;
use weir::{Failure, SeenCommits};

use super::PostgresDatabase;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::StatementError;
use super::expected_rows::{ExpectedRead, ExpectedRows, RowOf};
use super::io::on_thread;
use super::placed_change::{PlacedChange, SitedChange};
use super::placed_statements::PlacedStatements;
use super::publications::without_publications;
use super::sent_statement::SentStatement;
use crate::tables::transaction_number::is_repeated;
use crate::time_limit::TimeIsUp;

impl PostgresDatabase {
    /// Begins statements of a transaction; `None` if they need a thread.
    pub(super) fn execute_later(
        self: &Arc<Self>,
        transaction: i64,
        statements: &[SqlStatement<'_>],
        reads: bool,
    ) -> Option<impl Future<Output = Result<Vec<Executed>, StatementError>> + Send + use<>> {
        if Handle::try_current().is_err() || (!reads && self.check().is_err()) {
            return None;
        }
        let mut writer = self.writer.try_lock()?;
        if writer.transaction == 0 && !self.groups.are_idle() {
            return None;
        }
        let begun = writer.begin_statements(transaction, (statements, reads))?;
        drop(writer);
        let in_flight = InFlight::new(self, (transaction, begun.flight), false);
        Some(async move {
            let mut in_flight = in_flight;
            let database = Arc::clone(&in_flight.database);
            let answer = database.limited(begun.answer.answer(&begun.sent, reads)).await;
            let again = begun.begins.then(|| begun.sent.clone());
            in_flight.is_answered = true;
            let (of, sent) = ((transaction, begun.begins, reads), (begun.flight, begun.sent));
            let executed = database.writer.lock().end_statements(of, sent, answer.ok());
            database.landed.notify_all();
            match (executed, again) {
                // A thread tries it again: it may have to wait for a connection.
                (Err(error), Some(sent)) if error.is_lost() || (error.is_conflict() && !is_repeated(transaction)) => {
                    database.execute_again(transaction, sent, reads).await
                }
                (executed, _) => database.refused_in(transaction, executed),
            }
        })
    }

    /// Executes the first statements of a transaction once more, on a thread.
    pub(super) async fn execute_again(
        self: &Arc<Self>,
        transaction: i64,
        sent: Vec<SentStatement>,
        reads: bool,
    ) -> Result<Vec<Executed>, StatementError> {
        let database = Arc::clone(self);
        let again = on_thread(&self.connector.io.handle, move || {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            match reads {
                true => database.read(transaction, &statements),
                false => database.write(transaction, &statements),
            }
        });
        again.await.unwrap_or(Err(StatementError::NoAnswer))
    }

    /// Begins the commit of a transaction; `None` if it needs a thread.
    pub(super) fn commit_later(
        self: &Arc<Self>,
        transaction: i64,
    ) -> Option<impl Future<Output = Result<(), StatementError>> + Send + use<>> {
        Handle::try_current().ok()?;
        let mut writer = self.writer.try_lock()?;
        if writer.transaction != transaction {
            return None;
        }
        let connection = writer.open_connection(transaction)?;
        if !writer.has_begun(transaction) {
            // It has executed nothing.
            writer.take_back();
        }
        let placed = Arc::clone(&writer.placed);
        let committing = writer.begin_commit(&connection);
        let flight = writer.begin_flight();
        drop(writer);
        let in_flight = InFlight::new(self, (transaction, flight), true);
        Some(async move {
            let mut in_flight = in_flight;
            let database = Arc::clone(&in_flight.database);
            // The database takes the transaction back instead if it has refused a placed statement.
            let both = async { tokio::join!(biased; committing, PlacedStatements::answered(&placed)) };
            let answer = database.limited(both).await;
            in_flight.is_answered = true;
            let (committed, unanswered) = {
                let mut writer = database.writer.lock();
                let committed = match (writer.land(flight), answer) {
                    (false, _) => Err(StatementError::Unknown),
                    (true, Ok((committed, _))) => writer.committed(transaction, committed),
                    (true, Err(_)) => {
                        writer.cut();
                        Err(StatementError::NoAnswer)
                    }
                };
                // The writer is not connected anew before the commit is noted.
                let unanswered = database.unanswered(&committed);
                (committed.and_then(|unsynced| database.committed(unsynced)), unanswered)
            };
            database.landed.notify_all();
            let outcome = match unanswered {
                Some(commit) => database.outcome(commit).await,
                None => committed,
            };
            database.placed_commits_noted().await;
            database.refused_in(transaction, outcome)
        })
    }

    /// Gives an answer up after the time limit.
    pub(super) fn limited<A: Future>(&self, answer: A) -> impl Future<Output = Result<A::Output, TimeIsUp>> {
        self.time_limits.limited(&self.connector.io.handle, self.limit(), answer)
    }

    /// Takes back a transaction, unless that has to be waited for. Returns whether it is taken back.
    pub(super) fn take_back(&self, transaction: i64) -> bool {
        let mut writer = self.writer.lock();
        // What is in flight is then of others, and may be answered by a task of this thread.
        if writer.transaction != transaction {
            return true;
        }
        if writer.is_in_flight() || writer.check(transaction).is_err() || writer.placed.lock().are_any() {
            return false;
        }
        writer.take_back();
        true
    }

    /// Takes back the transaction that is open, if there is one, without waiting for that. One with placed statements is taken back
    /// by the end of its flow, which asks for their failures first.
    pub(in crate::tables) fn take_back_unfinished(&self) {
        let mut writer = self.writer.lock();
        if writer.transaction != 0 && !writer.is_in_flight() && !writer.placed.lock().are_any() {
            writer.take_back();
        }
    }

    /// Waits for the placed statements of a transaction, and takes it back. Returns the failure of the first that was refused.
    pub(in crate::tables) async fn placed_refused(self: Arc<Self>, transaction: i64) -> Option<Failure> {
        // A flow that has failed in a transaction fails also if the database would have refused that.
        self.refused_first(transaction).await.filter(|failure| !failure.is_refusal())
    }

    /// The same, also if the transaction is executed again.
    pub(super) async fn refused_first(self: Arc<Self>, transaction: i64) -> Option<Failure> {
        if self.placed_commits.is_placed(transaction) {
            return self.placed_commit(transaction).await.err().filter(|failure| failure.place().is_some());
        }
        let placed = {
            let writer = self.writer.lock();
            (writer.transaction == transaction).then(|| Arc::clone(&writer.placed))
        };
        if let Some(placed) = placed {
            let answered = self.limited(PlacedStatements::answered(&placed)).await;
            let mut writer = self.writer.lock();
            if writer.transaction == transaction {
                writer.take_back();
            }
            drop(writer);
            return answered.ok()?.err();
        }
        self.refused(transaction)
    }

    /// Returns the failure of the placed statement for which a transaction was taken back, if one was refused.
    pub(super) fn refused(&self, transaction: i64) -> Option<Failure> {
        match self.writer.lock().check(transaction) {
            Err(StatementError::TakenBack(failure)) if failure.place().is_some() => Some(failure),
            _ => None,
        }
    }

    /// Returns whether a transaction has placed statements that are not answered.
    pub(super) fn has_placed(&self, transaction: i64) -> bool {
        let writer = self.writer.lock();
        writer.transaction == transaction && (writer.is_in_flight() || writer.placed.lock().are_any())
    }

    /// Has a transaction ask for what it is about to read, and begins it with that if it has not begun. `ask` gets the connection, and
    /// returns whether it has asked.
    pub(super) fn expect(
        &self,
        transaction: i64,
        sql: &str,
        ask: impl FnOnce(&Arc<PostgresConnection>, Statement, &mut ExpectedRows) -> bool,
    ) -> bool {
        // Nobody asks under the evaluator, which executes statements on its thread.
        if !SeenCommits::may_place() || self.check().is_err() {
            return false;
        }
        let Some(mut writer) = self.writer.try_lock() else { return false };
        let may_begin = writer.transaction == transaction || self.groups.are_idle();
        let Some(connection) = writer.open_connection(transaction).filter(|_| may_begin) else { return false };
        let Some(prepared) = connection.known(sql) else { return false };
        if !writer.send_begin(transaction, &connection) {
            return false;
        }
        writer.placed.lock().send();
        let expected = Arc::clone(&writer.expected);
        ask(&connection, prepared, &mut expected.lock())
    }

    /// Returns whether a transaction has asked for what a statement reads.
    pub(super) fn has_expected(&self, transaction: i64, of: &ExpectedRead) -> bool {
        self.asks(transaction, |expected| expected.has(of))
    }

    /// Returns whether a transaction has asked for answers of queries that its flow has not read.
    pub(super) fn has_expected_queries(&self, transaction: i64) -> bool {
        self.asks(transaction, ExpectedRows::has_queries)
    }

    fn asks(&self, transaction: i64, has_asked: impl FnOnce(&ExpectedRows) -> bool) -> bool {
        self.writer.try_lock().is_some_and(|writer| {
            writer.transaction == transaction && transaction != 0 && has_asked(&writer.expected.lock())
        })
    }

    /// Returns rows that a transaction has asked for, if all are there.
    pub(super) fn expected_rows(&self, transaction: i64, rows: Vec<RowOf>) -> Option<Vec<Arc<Executed>>> {
        let of = ExpectedRead::Rows(rows);
        match self.poll_expected(transaction, &of, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(executed) => executed,
            Poll::Pending => None,
        }
    }

    /// Waits for what a transaction has asked for; `None` if that has to be read, such as after a failure. If the transaction has no
    /// other answer, the read begins it anew.
    pub(super) async fn expected_answered(
        &self,
        transaction: i64,
        of: &ExpectedRead,
    ) -> Result<Option<Vec<Arc<Executed>>>, StatementError> {
        let answered = self.limited(poll_fn(|context| self.poll_expected(transaction, of, context))).await;
        if let Ok(Some(_)) = answered {
            return Ok(answered.ok().flatten());
        }
        let mut writer = self.writer.lock();
        let is_open = writer.transaction == transaction;
        match answered {
            Ok(_) if is_open && writer.is_unanswered => writer.take_back(),
            Err(_) if is_open => writer.cut(),
            _ => {}
        }
        answered.map_err(|_| StatementError::NoAnswer)
    }

    fn poll_expected(
        &self,
        transaction: i64,
        of: &ExpectedRead,
        context: &mut Context<'_>,
    ) -> Poll<Option<Vec<Arc<Executed>>>> {
        if transaction == 0 {
            return Poll::Ready(None);
        }
        let Some(mut writer) = self.writer.try_lock() else { return Poll::Ready(None) };
        if writer.transaction != transaction || writer.open_connection(transaction).is_none() {
            return Poll::Ready(None);
        }
        if writer.poll_begun(context).is_pending() {
            return Poll::Pending;
        }
        let answered = writer.expected.lock().poll_answer(of, context);
        match answered {
            Poll::Ready(Ok(executed)) if !executed.is_empty() => {
                writer.is_unanswered = false;
                Poll::Ready(Some(executed))
            }
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => {
                // The answers of placed changes may be before it.
                _ = writer.placed.lock().poll_sent(context);
                Poll::Pending
            }
        }
    }

    /// Returns whether a statement is prepared on the connection that writes. Otherwise it will be.
    pub(super) fn is_prepared(&self, sql: &str) -> bool {
        let Some(connection) = self.writer.try_lock().and_then(|writer| writer.connection.clone()) else {
            return false;
        };
        let is_prepared = connection.known(sql).is_some();
        if !is_prepared {
            connection.prepare_later(sql, &self.connector.io.handle);
        }
        is_prepared
    }

    /// Keeps statements that are prepared on the connection that writes, so that a thread can execute them.
    pub(super) fn keep(&self, statements: &[SqlStatement<'_>]) -> Option<Vec<SentStatement>> {
        let connection = self.writer.try_lock()?.connection.clone()?;
        let prepared = connection.all_known(statements);
        Some(SentStatement::keep(statements, &prepared?))
    }

    /// Returns whether a statement of a transaction can be placed, with one that publishes what it writes: both are prepared.
    pub(super) fn may_place(&self, transaction: i64, (sql, publication): (Option<&str>, Option<&str>)) -> bool {
        SeenCommits::may_place()
            && self.check().is_ok()
            && self.writer.try_lock().is_some_and(|mut writer| {
                writer.transaction == transaction
                    && writer.has_begun(transaction)
                    && writer.placed.lock().has_room()
                    && writer.open_connection(transaction).is_some_and(|connection| {
                        let publication = publication.filter(|_| !writer.is_unheard);
                        sql.into_iter().chain(publication).all(|sql| connection.known(sql).is_some())
                    })
            })
    }

    /// Places the statements of a change in a transaction. Returns whether they are placed.
    pub(super) fn place(
        &self,
        transaction: i64,
        statements: &[SqlStatement<'_>],
        (row, of): (&RowOf, SitedChange),
    ) -> bool {
        if !SeenCommits::may_place() || self.check().is_err() {
            return false;
        }
        let Some(mut writer) = self.writer.try_lock().filter(|writer| writer.transaction == transaction) else {
            return false;
        };
        let Some(connection) = writer.open_connection(transaction) else { return false };
        if !writer.has_begun(transaction) {
            return false;
        }
        let statements = if writer.is_unheard { without_publications(statements) } else { statements };
        let prepared = connection.all_known(statements);
        let Some(prepared) = prepared.filter(|_| writer.rows.place(row, &of)) else { return false };
        let sent = SentStatement::keep(statements, &prepared);
        writer.note_written(|| sent.clone());
        writer.note_write(Some(row));
        writer.placed.lock().place(PlacedChange { connection, of, sent, prepared });
        SeenCommits::place(transaction);
        true
    }
}

/// Statements whose answer is not there yet. If their flow ends before, the transaction is taken back.
struct InFlight {
    database: Arc<PostgresDatabase>,
    transaction: i64,
    /// The number by which the writer knows that they wait.
    flight: u64,
    /// True for the commit.
    commits: bool,
    is_answered: bool,
}

impl InFlight {
    fn new(database: &Arc<PostgresDatabase>, (transaction, flight): (i64, u64), commits: bool) -> InFlight {
        InFlight { database: Arc::clone(database), transaction, flight, commits, is_answered: false }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.is_answered {
            self.database.writer.lock().abandon_statements(self.transaction, self.flight, self.commits);
            self.database.landed.notify_all();
        }
    }
}
