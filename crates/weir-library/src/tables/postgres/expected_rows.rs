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

/// The answer of a statement that reads rows by several keys; `None` if they have to be read again.
pub(super) type RowsAnswer = Pin<Box<dyn Future<Output = Result<Option<Vec<(RowOf, Executed)>>, Error>> + Send>>;

/// The rows that a transaction has asked for.
#[derive(Default)]
pub(super) struct ExpectedRows {
    rows: IndexMap<RowOf, ExpectedRow, RandomState>,
    /// The answers for several rows.
    together: Vec<RowsTogether>,
    /// The first error of a statement whose answer was taken.
    refused: Option<Error>,
}

enum ExpectedRow {
    Sent(RowAnswer),
    /// It belongs to the answer with this number.
    SentTogether(usize),
    Answered(Arc<Executed>),
}

/// The answer for several rows; `None` when it is there.
struct RowsTogether {
    answer: Option<RowsAnswer>,
    /// The tasks that wait for it.
    waiting: Vec<Waker>,
}

impl ExpectedRows {
    /// Returns whether this row may be asked for, which was not done before.
    pub(super) fn lacks(&self, of: &RowOf) -> bool {
        self.rows.len() < EXPECTED_MAX && !self.rows.contains_key(of)
    }

    /// Asks for a row, which is what the first poll of the answer does. That may have the answer already.
    pub(super) fn ask(&mut self, of: RowOf, mut answer: RowAnswer) {
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => _ = self.rows.insert(of, ExpectedRow::Sent(answer)),
            Poll::Ready(Ok(executed)) => _ = self.rows.insert(of, ExpectedRow::Answered(Arc::new(executed))),
            Poll::Ready(Err(error)) => _ = self.refused.get_or_insert(error),
        }
    }

    /// Asks for rows by one statement.
    pub(super) fn ask_together(&mut self, rows: Vec<RowOf>, answer: RowsAnswer) {
        let number = self.together.len();
        self.rows.extend(rows.into_iter().map(|row| (row, ExpectedRow::SentTogether(number))));
        self.together.push(RowsTogether { answer: Some(answer), waiting: Vec::new() });
        _ = self.poll_together(number, &mut Context::from_waker(Waker::noop()));
    }

    /// Returns whether these rows were asked for.
    pub(super) fn has_all(&self, rows: &[RowOf]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| self.rows.contains_key(row))
    }

    /// Returns a row that was asked for. Fails if it has to be read.
    pub(super) fn poll(&mut self, of: &RowOf, context: &mut Context<'_>) -> Poll<Result<Arc<Executed>, ()>> {
        if let Some(ExpectedRow::SentTogether(number)) = self.rows.get(of)
            && self.poll_together(*number, context).is_pending()
        {
            return Poll::Pending;
        }
        let Some(row) = self.rows.get_mut(of) else { return Poll::Ready(Err(())) };
        if let ExpectedRow::Sent(answer) = row {
            let Poll::Ready(answered) = answer.as_mut().poll(context) else { return Poll::Pending };
            match answered {
                Ok(executed) => *row = ExpectedRow::Answered(Arc::new(executed)),
                // Whoever reads it again learns why.
                Err(error) => {
                    self.refused.get_or_insert(error);
                    self.rows.swap_remove(of);
                    return Poll::Ready(Err(()));
                }
            }
        }
        match self.rows.get(of) {
            Some(ExpectedRow::Answered(executed)) => Poll::Ready(Ok(Arc::clone(executed))),
            _ => Poll::Ready(Err(())),
        }
    }

    /// Takes the answer for several rows, if it is there. A row that has been written since is not one of them any more.
    fn poll_together(&mut self, number: usize, context: &mut Context<'_>) -> Poll<()> {
        let Some(RowsTogether { answer, waiting }) = self.together.get_mut(number) else { return Poll::Ready(()) };
        let Some(pending) = answer else { return Poll::Ready(()) };
        let Poll::Ready(answered) = pending.as_mut().poll(context) else {
            waiting.retain(|waker| !waker.will_wake(context.waker()));
            waiting.push(context.waker().clone());
            return Poll::Pending;
        };
        *answer = None;
        waiting.drain(..).for_each(Waker::wake);
        let is_missing = |row: &ExpectedRow| matches!(row, ExpectedRow::SentTogether(of) if *of == number);
        match answered {
            Ok(None) => self.rows.retain(|_, row| !is_missing(row)),
            Ok(Some(found)) => {
                for (of, executed) in found {
                    if let Some(row) = self.rows.get_mut(&of).filter(|row| is_missing(row)) {
                        *row = ExpectedRow::Answered(Arc::new(executed));
                    }
                }
                for row in self.rows.values_mut().filter(|row| is_missing(row)) {
                    *row = ExpectedRow::Answered(Arc::default());
                }
            }
            Err(error) => {
                self.rows.retain(|_, row| !is_missing(row));
                self.refused.get_or_insert(error);
            }
        }
        Poll::Ready(())
    }

    /// Returns the error of a statement that was refused, if one was: the transaction of the database has failed then, and its commit
    /// takes it back. All statements must have been answered.
    pub(super) fn refused(&mut self) -> Option<Error> {
        if let Some(error) = self.refused.take() {
            return Some(error);
        }
        let mut context = Context::from_waker(Waker::noop());
        let mut together = self.together.iter_mut().filter_map(|rows| rows.answer.as_mut());
        let refused = together.find_map(|answer| refusal(answer.as_mut().poll(&mut context)));
        refused.or_else(|| {
            self.rows.values_mut().find_map(|row| match row {
                ExpectedRow::Sent(answer) => refusal(answer.as_mut().poll(&mut context)),
                ExpectedRow::SentTogether(_) | ExpectedRow::Answered(_) => None,
            })
        })
    }

    /// Notes that the transaction writes a row; `None` stands for any rows.
    pub(super) fn written(&mut self, of: Option<&RowOf>) {
        match of {
            Some(of) => _ = self.rows.swap_remove(of),
            None => self.rows.clear(),
        }
    }
}

fn refusal<T>(answer: Poll<Result<T, Error>>) -> Option<Error> {
    match answer {
        Poll::Ready(Err(error)) => Some(error),
        _ => None,
    }
}
