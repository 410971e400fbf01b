//! Statements of the connection that writes which wait for their answers without a thread: one at a time is *in flight*.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::beginning::Beginning;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::{StatementError, why_lost};
use super::publications::without_publications;
use super::sent_statement::SentStatement;
use super::transaction_statements::{AnsweredStatements, BegunStatements, StatementsAnswer};
use super::writer::PostgresWriter;

impl PostgresWriter {
    /// Returns whether a statement waits for its answer without a thread.
    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight != 0
    }

    /// Notes that a statement waits for its answer without a thread. Returns its number.
    pub(super) fn begin_flight(&mut self) -> u64 {
        self.flights += 1;
        self.in_flight = self.flights;
        self.in_flight
    }

    /// Notes that a statement does not wait any more. Returns false if it was given up before: what is open now belongs to others.
    pub(super) fn land(&mut self, flight: u64) -> bool {
        let is_awaited = self.in_flight == flight;
        if is_awaited {
            self.in_flight = 0;
        }
        is_awaited
    }

    /// Gives up the statement that waits, and its connection.
    pub(super) fn give_up_flight(&mut self) {
        self.in_flight = 0;
        self.cut();
    }

    /// Begins to execute statements in a transaction, as far as that needs no thread; `None` if it does.
    pub(super) fn begin_statements(
        &mut self,
        transaction: i64,
        (statements, reads): (&[SqlStatement<'_>], bool),
    ) -> Option<BegunStatements> {
        let connection = self.open_connection(transaction)?;
        let begins = self.transaction == 0 || self.begun.is_some();
        let statements = if !begins && self.is_unheard { without_publications(statements) } else { statements };
        let prepared = connection.all_known(statements)?;
        let begin = match (begins, self.begun.take()) {
            (true, None) => Some(Beginning::prepared(&connection, self.turns)?.pending(&connection)),
            (_, begun) => begun,
        };
        let sent = SentStatement::keep(statements, &prepared);
        self.begin(transaction);
        if !reads {
            self.note_write(None);
        }
        self.placed.lock().send();
        Some(BegunStatements {
            flight: self.begin_flight(),
            sent,
            begins,
            answer: StatementsAnswer { connection, prepared, begin, placed: Arc::clone(&self.placed) },
        })
    }

    /// Sends the beginning of a transaction. Returns whether it is sent.
    pub(super) fn send_begin(&mut self, transaction: i64, connection: &Arc<PostgresConnection>) -> bool {
        if self.transaction == transaction {
            return true;
        }
        let Some(beginning) = Beginning::prepared(connection, self.turns) else { return false };
        let mut begun = beginning.pending(connection);
        self.begin(transaction);
        self.is_unanswered = true;
        match begun.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.begun = Some(begun),
            Poll::Ready(Ok(begun)) => self.note_begun(Some(begun)),
            Poll::Ready(Err(_)) => self.take_back(),
        }
        self.transaction == transaction
    }

    /// Takes the answer to the beginning of the transaction, if it was sent beforehand.
    pub(super) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(begun) = &mut self.begun {
            let Poll::Ready(answer) = begun.as_mut().poll(context) else { return Poll::Pending };
            self.begun = None;
            match answer {
                Ok(begun) => self.note_begun(Some(begun)),
                // Nothing of it is done, and it can begin anew.
                Err(_) => self.take_back(),
            }
        }
        Poll::Ready(())
    }

    /// Returns whether the transaction has begun, as far as that is known.
    pub(super) fn has_begun(&mut self, transaction: i64) -> bool {
        self.poll_begun(&mut Context::from_waker(Waker::noop())).is_ready() && self.transaction == transaction
    }

    /// Goes on behind the answer of statements that needed no thread; `None` if there was none in time.
    pub(super) fn end_statements(
        &mut self,
        (transaction, begins, reads): (i64, bool, bool),
        (flight, sent): (u64, Vec<SentStatement>),
        answer: Option<AnsweredStatements>,
    ) -> Result<Vec<Executed>, StatementError> {
        if !self.land(flight) {
            return Err(StatementError::TakenBack(why_lost(transaction)));
        }
        self.check(transaction)?;
        let Some(AnsweredStatements { begun, executed, refused }) = answer else {
            self.cut();
            return Err(StatementError::NoAnswer);
        };
        if self.transaction != transaction {
            return Err(self.lose_number(transaction, why_lost(transaction)));
        }
        if let Some(refused) = refused {
            self.take_back();
            return Err(self.lose_number(transaction, refused));
        }
        self.note_begun(begun);
        if let (Ok(executed), false) = (&executed, reads) {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            self.note_unheard(&statements, executed);
            drop(statements);
            self.note_written(|| sent);
        }
        self.executed(transaction, begins, executed)
    }

    /// Forgets statements whose answer nobody waits for any longer: nobody knows what they have done. If one is the commit, what
    /// follows must not be executed once more without it: the connection is given up, so that all before is durable.
    pub(super) fn abandon_statements(&mut self, transaction: i64, flight: u64, commits: bool) {
        if self.land(flight) && self.transaction == transaction {
            self.lost = Some((transaction, why_lost(transaction)));
            if commits {
                self.transaction = 0;
                self.forget_placed();
                // Placed commits still get their answers.
                self.connection = None;
            }
        }
    }

    /// Returns the connection, if statements of a transaction can be sent at once.
    pub(super) fn open_connection(&self, transaction: i64) -> Option<Arc<PostgresConnection>> {
        let may_go_on = self.transaction == 0 || self.transaction == transaction;
        if self.is_in_flight() || !may_go_on || self.check(transaction).is_err() {
            return None;
        }
        self.connection.as_ref().filter(|connection| !connection.is_closed()).cloned()
    }
}
