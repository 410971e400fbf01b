//! Rows that a transaction has asked for before its flow reads them: the answers are there, or on their way, when it does.
//!
//! All statements of a transaction see the same rows, and those that it writes itself. So an answer is good until the transaction
//! writes the row.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use tokio_postgres::Error;
use weir::Value;

use super::connection::Executed;
use crate::tables::expecting::EXPECTED_MAX;

/// The identity of a table within its program, and the key of a row.
pub(super) type RowOf = (usize, Value);

/// The answer of the statement that reads a row.
pub(super) type RowAnswer = Pin<Box<dyn Future<Output = Result<Executed, Error>> + Send>>;

/// The rows that a transaction has asked for.
#[derive(Default)]
pub(super) struct ExpectedRows(IndexMap<RowOf, ExpectedRow, RandomState>);

enum ExpectedRow {
    Sent(RowAnswer),
    Answered(Arc<Executed>),
}

impl ExpectedRows {
    /// Asks for a row, which is what the first poll of the answer does, unless that was done before.
    pub(super) fn ask(&mut self, of: RowOf, answer: impl FnOnce() -> RowAnswer) {
        if self.0.len() >= EXPECTED_MAX || self.0.contains_key(&of) {
            return;
        }
        let mut answer = answer();
        // An answer that is an error is read again.
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => _ = self.0.insert(of, ExpectedRow::Sent(answer)),
            Poll::Ready(Ok(executed)) => _ = self.0.insert(of, ExpectedRow::Answered(Arc::new(executed))),
            Poll::Ready(Err(_)) => {}
        }
    }

    /// Returns whether these rows were asked for.
    pub(super) fn has_all(&self, rows: &[RowOf]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| self.0.contains_key(row))
    }

    /// Returns a row that was asked for. Fails if it has to be read.
    pub(super) fn poll(&mut self, of: &RowOf, context: &mut Context<'_>) -> Poll<Result<Arc<Executed>, ()>> {
        let Some(row) = self.0.get_mut(of) else { return Poll::Ready(Err(())) };
        if let ExpectedRow::Sent(answer) = row {
            let Poll::Ready(answered) = answer.as_mut().poll(context) else { return Poll::Pending };
            match answered {
                Ok(executed) => *row = ExpectedRow::Answered(Arc::new(executed)),
                // Whoever reads it again learns why.
                Err(_) => {
                    self.0.swap_remove(of);
                    return Poll::Ready(Err(()));
                }
            }
        }
        match self.0.get(of) {
            Some(ExpectedRow::Answered(executed)) => Poll::Ready(Ok(Arc::clone(executed))),
            _ => Poll::Ready(Err(())),
        }
    }

    /// Notes that the transaction writes a row; `None` stands for any rows.
    pub(super) fn written(&mut self, of: Option<&RowOf>) {
        match of {
            Some(of) => _ = self.0.swap_remove(of),
            None => self.0.clear(),
        }
    }
}
