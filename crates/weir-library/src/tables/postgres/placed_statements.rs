//! Statements of a transaction that were *placed*: their flow goes on before they are answered. They are sent together, at the latest
//! before what is sent next.
//!
//! If the database refuses one, it executes nothing more of the transaction. Whoever waits for the next answer of the transaction
//! waits for these first, and gets the failure of the first that was refused.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio_postgres::Error;
use weir::Failure;

use super::changes_script::ChangesScript;
use super::connection::SqlStatement;
use super::errors::{StatementError, is_answer};
use super::expected_rows::ExpectedRows;
use super::placed_change::{PlacedChange, SitedChange};
use super::sent_statement::SentStatement;

/// Maximum number of placed changes without an answer.
const PLACED_MAX: usize = 256;
/// The same in bytes: further changes wait for the answers, so that a transaction of many large rows does not have all of them
/// under way at a time.
const PLACED_BYTES_MAX: usize = 1 << 20;
/// Number of placed changes that are sent together.
const SENT_TOGETHER: usize = 32;
/// The same in bytes. Chosen by judgement: the work of so many bytes is far more than that of an answer.
const SENT_TOGETHER_BYTES: usize = 64 << 10;

/// The placed changes of a transaction whose answers nobody has taken yet, in their order.
#[derive(Default)]
pub(super) struct PlacedStatements {
    unsent: Vec<PlacedChange>,
    /// About the bytes that these take.
    unsent_bytes: usize,
    sent: VecDeque<SentChanges>,
    /// The failure of the first that was refused.
    refused: Option<Failure>,
    /// True if the database has answered that one by an error. Otherwise the connection was lost.
    is_refused_by_database: bool,
    /// The rows that the transaction has asked for, whose answers are among those of the placed changes.
    pub(super) expected: Arc<Mutex<ExpectedRows>>,
}

/// Changes that were sent as one message.
struct SentChanges {
    answer: Pin<Box<dyn Future<Output = ChangesAnswer> + Send>>,
    /// The answer that was there at once, such as that the connection is lost.
    answered: Option<ChangesAnswer>,
    /// The changes of each part of the message.
    parts: Vec<Vec<SitedChange>>,
    /// About the bytes that they take.
    bytes: usize,
}

/// The answer to changes: the number of the first part that was refused, and why.
type ChangesAnswer = Result<(), (usize, Error)>;

impl PlacedStatements {
    /// Returns whether another one may be placed.
    pub(super) fn has_room(&self) -> bool {
        let sent: usize = self.sent.iter().flat_map(|sent| &sent.parts).map(Vec::len).sum();
        let bytes = self.unsent_bytes + self.sent.iter().map(|sent| sent.bytes).sum::<usize>();
        self.unsent.len() + sent < PLACED_MAX && bytes < PLACED_BYTES_MAX && self.refused.is_none()
    }

    /// Returns whether the answers of some are missing, or one was refused.
    pub(super) fn are_any(&self) -> bool {
        !self.unsent.is_empty() || !self.sent.is_empty() || self.refused.is_some()
    }

    /// Places a change. Several are sent together: the answer to each message would wake the thread of the connection.
    pub(super) fn place(&mut self, change: PlacedChange) {
        self.unsent_bytes += change.bytes();
        self.unsent.push(change);
        if self.unsent.len() >= SENT_TOGETHER || self.unsent_bytes >= SENT_TOGETHER_BYTES {
            self.send();
        }
    }

    /// Sends what is placed, before what the connection executes next.
    pub(super) fn send(&mut self) {
        let (unsent, bytes) = (std::mem::take(&mut self.unsent), std::mem::take(&mut self.unsent_bytes));
        match ChangesScript::of(unsent) {
            Ok(ChangesScript { connection, script, ends, parts }) => {
                let answer = async move {
                    let part = |at: usize| ends.iter().filter(|end| **end <= at).count();
                    script.execute(&connection).await.map_err(|(at, error)| (part(at), error))
                };
                self.sent.push_back(SentChanges::new(answer, parts, bytes));
            }
            Err(unsent) => self.sent.extend(unsent.into_iter().map(SentChanges::of)),
        }
    }

    /// Waits until all are answered, and all rows that the transaction has asked for are there. Fails if a placed change was refused.
    pub(super) async fn answered(placed: &Arc<Mutex<PlacedStatements>>) -> Result<(), Failure> {
        poll_fn(|context| {
            let mut placed = placed.lock();
            placed.send();
            let expected = placed.expected.lock().poll_all(context);
            let answered = placed.poll_sent(context);
            match expected {
                Poll::Ready(()) => answered,
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Returns the failure of the first that was refused, if one was, and whether the database has answered it by an error.
    pub(super) fn refused(&self) -> Option<(Failure, bool)> {
        self.refused.clone().map(|refused| (refused, self.is_refused_by_database))
    }

    /// Takes the answers to those that were sent.
    pub(super) fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while let Some(first) = self.sent.front_mut() {
            let answer = match first.answered.take() {
                Some(answer) => answer,
                None => match first.answer.as_mut().poll(context) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => return Poll::Pending,
                },
            };
            let answered = self.sent.pop_front();
            if let (Err((at, error)), Some(SentChanges { parts, .. })) = (answer, answered) {
                // Those behind it are not executed.
                self.sent.clear();
                let changes = parts.get(at).map_or(&[][..], Vec::as_slice);
                self.is_refused_by_database = is_answer(&error);
                self.refused = SitedChange::refused_one(changes, &StatementError::from(error));
            }
        }
        Poll::Ready(self.refused.clone().map_or(Ok(()), Err))
    }
}

impl SentChanges {
    /// Sends a change by itself.
    fn of(change: PlacedChange) -> SentChanges {
        let bytes = change.bytes();
        let PlacedChange { connection, of, sent, prepared } = change;
        let answer = async move {
            let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
            connection.execute(&statements, &prepared).await.map(|_| ()).map_err(|(_, error)| (0, error))
        };
        SentChanges::new(answer, vec![vec![of]], bytes)
    }

    /// Sends what the first poll of the answer sends.
    fn new(
        answer: impl Future<Output = ChangesAnswer> + Send + 'static,
        parts: Vec<Vec<SitedChange>>,
        bytes: usize,
    ) -> SentChanges {
        let mut sent = SentChanges { answer: Box::pin(answer), answered: None, parts, bytes };
        if let Poll::Ready(answer) = sent.answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            sent.answered = Some(answer);
        }
        sent
    }
}
