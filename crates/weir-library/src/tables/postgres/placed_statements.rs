//! Statements of a transaction that were *placed*: they were sent, and their flow goes on before they are answered.
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

/// Makes the failure of a statement from the error of the database.
pub(super) type Refused = Box<dyn FnOnce(&StatementError) -> Failure + Send>;

/// The placed statements of a transaction whose answers nobody has taken yet, in their order.
#[derive(Default)]
pub(super) struct PlacedStatements {
    unanswered: VecDeque<PlacedStatement>,
    /// The failure of the first that was refused.
    refused: Option<Failure>,
}

struct PlacedStatement {
    answer: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
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

    /// Sends a statement, which is what the first poll of the answer does.
    pub(super) fn place(&mut self, answer: impl Future<Output = Result<(), Error>> + Send + 'static, refused: Refused) {
        let mut statement = PlacedStatement { answer: Box::pin(answer), refused };
        match statement.answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.unanswered.push_back(statement),
            Poll::Ready(Ok(())) => {}
            // The connection is lost, also for those before.
            Poll::Ready(Err(error)) => {
                let failure = (statement.refused)(&StatementError::from(error));
                self.refused.get_or_insert(failure);
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
        while let Some(first) = self.unanswered.front_mut() {
            let Poll::Ready(answer) = first.answer.as_mut().poll(context) else { return Poll::Pending };
            let answered = self.unanswered.pop_front();
            if let (Err(error), Some(PlacedStatement { refused, .. })) = (answer, answered) {
                // Those behind it are not executed.
                self.unanswered.clear();
                self.refused = Some(refused(&StatementError::from(error)));
            }
        }
        Poll::Ready(self.refused.clone().map_or(Ok(()), Err))
    }
}
