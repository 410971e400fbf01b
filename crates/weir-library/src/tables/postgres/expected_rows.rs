//! Rows that a transaction has asked for before its flow reads them: the answers are there, or on their way, when it does.
//!
//! All statements of a transaction see the same rows, and those that it writes itself. So an answer is good until the transaction
//! writes the row.
//!
//! A connection passes on the answers in the order of their statements, and stops at one that is large and that nobody takes. So
//! whoever waits for an answer of the transaction takes those before it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
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
    /// The answers that nobody has taken yet, in the order of their statements.
    answers: VecDeque<UntakenAnswer>,
    /// The number of statements that have asked.
    asked: usize,
    /// The first error of a statement whose answer was taken.
    refused: Option<Error>,
    waiting: Arc<WaitingTasks>,
}

enum ExpectedRow {
    /// It belongs to the answer with this number.
    Asked(usize),
    Answered(Arc<Executed>),
}

/// An answer that nobody has taken yet.
struct UntakenAnswer {
    number: usize,
    rows: Vec<RowOf>,
    answer: RowsAnswer,
}

/// The tasks that wait for answers. All are woken by the next one, because the task that has polled last may be gone.
#[derive(Default)]
struct WaitingTasks(Mutex<Vec<Waker>>);

impl WaitingTasks {
    fn add(&self, waker: &Waker) {
        let mut waiting = self.0.lock();
        if !waiting.iter().any(|of| of.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Wakes all but the task that polls.
    fn wake_others(&self, polling: &Waker) {
        let waiting = std::mem::take(&mut *self.0.lock());
        waiting.into_iter().filter(|waker| !waker.will_wake(polling)).for_each(Waker::wake);
    }
}

impl Wake for WaitingTasks {
    fn wake(self: Arc<Self>) {
        let waiting = std::mem::take(&mut *self.0.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl ExpectedRows {
    /// Returns whether this row may be asked for, which was not done before.
    pub(super) fn lacks(&self, of: &RowOf) -> bool {
        self.rows.len() < EXPECTED_MAX && !self.rows.contains_key(of)
    }

    /// Asks for a row.
    pub(super) fn ask(&mut self, of: RowOf, answer: RowAnswer) {
        let row = of.clone();
        self.ask_together(vec![of], Box::pin(async move { Ok(Some(vec![(row, answer.await?)])) }));
    }

    /// Asks for rows by one statement, which is what the first poll of the answer does. That may have the answer already, such as that
    /// the connection is lost.
    pub(super) fn ask_together(&mut self, rows: Vec<RowOf>, mut answer: RowsAnswer) {
        self.asked += 1;
        let number = self.asked;
        self.rows.extend(rows.iter().map(|row| (row.clone(), ExpectedRow::Asked(number))));
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.answers.push_back(UntakenAnswer { number, rows, answer }),
            Poll::Ready(answered) => self.take(number, &rows, answered),
        }
    }

    /// Returns whether these rows were asked for.
    pub(super) fn has_all(&self, rows: &[RowOf]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| self.rows.contains_key(row))
    }

    /// Returns a row that was asked for. Fails if it has to be read.
    pub(super) fn poll(&mut self, of: &RowOf, context: &mut Context<'_>) -> Poll<Result<Arc<Executed>, ()>> {
        loop {
            match self.rows.get(of) {
                Some(ExpectedRow::Answered(executed)) => return Poll::Ready(Ok(Arc::clone(executed))),
                Some(ExpectedRow::Asked(_)) if !self.answers.is_empty() => ready!(self.poll_first(context)),
                // Whoever reads it again learns why.
                _ => return Poll::Ready(Err(())),
            }
        }
    }

    /// Takes all answers.
    pub(super) fn poll_all(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.answers.is_empty() {
            ready!(self.poll_first(context));
        }
        Poll::Ready(())
    }

    /// Takes the first answer.
    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(first) = self.answers.front_mut() else { return Poll::Ready(()) };
        self.waiting.add(context.waker());
        let waker = Waker::from(Arc::clone(&self.waiting));
        let answered = ready!(first.answer.as_mut().poll(&mut Context::from_waker(&waker)));
        if let Some(UntakenAnswer { number, rows, .. }) = self.answers.pop_front() {
            self.take(number, &rows, answered);
        }
        self.waiting.wake_others(context.waker());
        Poll::Ready(())
    }

    /// Notes an answer. A row that has been written since is not one of its rows any more.
    fn take(&mut self, number: usize, rows: &[RowOf], answered: Result<Option<Vec<(RowOf, Executed)>>, Error>) {
        let is_missing = |row: &ExpectedRow| matches!(row, ExpectedRow::Asked(of) if *of == number);
        match answered {
            Ok(None) => self.rows.retain(|_, row| !is_missing(row)),
            Ok(Some(found)) => {
                let mut answer = |of: &RowOf, executed| {
                    if let Some(row) = self.rows.get_mut(of).filter(|row| is_missing(row)) {
                        *row = ExpectedRow::Answered(Arc::new(executed));
                    }
                };
                found.into_iter().for_each(|(of, executed)| answer(&of, executed));
                // The others are not there.
                rows.iter().for_each(|of| answer(of, Executed::default()));
            }
            Err(error) => {
                self.rows.retain(|_, row| !is_missing(row));
                self.refused.get_or_insert(error);
            }
        }
    }

    /// Returns the error of a statement that was refused, if one was: the transaction of the database has failed then, and its commit
    /// takes it back. All answers must have been taken.
    pub(super) fn refused(&mut self) -> Option<Error> {
        self.refused.take()
    }

    /// Returns the error for which the transaction has failed, if this one only says that it has failed before.
    pub(super) fn cause(&mut self, error: Error) -> Error {
        if error.code() != Some(&SqlState::IN_FAILED_SQL_TRANSACTION) {
            return error;
        }
        // The answers before that error are there.
        _ = self.poll_all(&mut Context::from_waker(Waker::noop()));
        self.refused.take().unwrap_or(error)
    }

    /// Notes that the transaction writes a row; `None` stands for any rows.
    pub(super) fn written(&mut self, of: Option<&RowOf>) {
        match of {
            Some(of) => _ = self.rows.swap_remove(of),
            None => self.rows.clear(),
        }
    }
}
