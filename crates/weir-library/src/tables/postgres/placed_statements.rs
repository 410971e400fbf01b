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

use super::errors::StatementError;

/// Maximum number of placed statements without an answer.
const PLACED_MAX: usize = 256;
/// Number of placed statements that are sent together.
const SENT_TOGETHER: usize = 32;

/// Makes the failure of a statement from the error of the database.
pub(super) type Refused = Box<dyn FnOnce(&StatementError) -> Failure + Send>;

/// The placed statements of a transaction whose answers nobody has taken yet, in their order.
#[derive(Default)]
pub(super) struct PlacedStatements {
    unanswered: VecDeque<PlacedChange>,
    /// The number of the last ones that are not sent.
    unsent: usize,
    /// The failure of the first that was refused.
    refused: Option<Failure>,
}

struct PlacedChange {
    answer: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
    /// The answer that was there at once, such as that the connection is lost.
    answered: Option<Result<(), Error>>,
    refused: Refused,
}

impl PlacedStatements {
    /// Returns whether another one may be placed.
    pub(super) fn has_room(&self) -> bool {
        self.unanswered.len() < PLACED_MAX && self.refused.is_none()
    }

    /// Returns whether the answers of some are missing, or one was refused.
    pub(super) fn are_any(&self) -> bool {
        !self.unanswered.is_empty() || self.refused.is_some()
    }

    /// Places a statement, which the first poll of the answer sends. Several are sent together: each would wake the thread of the
    /// connection.
    pub(super) fn place(&mut self, answer: impl Future<Output = Result<(), Error>> + Send + 'static, refused: Refused) {
        self.unanswered.push_back(PlacedChange { answer: Box::pin(answer), answered: None, refused });
        self.unsent += 1;
        if self.unsent >= SENT_TOGETHER {
            self.send();
        }
    }

    /// Sends what is placed, before what the connection executes next.
    pub(super) fn send(&mut self) {
        let sent = self.unanswered.len() - std::mem::take(&mut self.unsent);
        for placed in self.unanswered.range_mut(sent..) {
            if let Poll::Ready(answer) = placed.answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                placed.answered = Some(answer);
            }
        }
    }

    /// Waits until all are answered. Fails if one was refused.
    pub(super) async fn answered(placed: &Arc<Mutex<PlacedStatements>>) -> Result<(), Failure> {
        if !placed.lock().are_any() {
            return Ok(());
        }
        poll_fn(|context| placed.lock().poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.send();
        while let Some(first) = self.unanswered.front_mut() {
            let answer = match first.answered.take() {
                Some(answer) => answer,
                None => match first.answer.as_mut().poll(context) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => return Poll::Pending,
                },
            };
            let answered = self.unanswered.pop_front();
            if let (Err(error), Some(PlacedChange { refused, .. })) = (answer, answered) {
                // Those behind it are not executed.
                self.unanswered.clear();
                self.refused = Some(refused(&StatementError::from(error)));
            }
        }
        Poll::Ready(self.refused.clone().map_or(Ok(()), Err))
    }
}
