//! Rows that a transaction has asked for before its flow reads them, and answers of queries: they are there, or on their way, when it
//! does.
//!
//! All statements of a transaction see the same rows, and those that it writes itself. So a row is good until the transaction
//! writes it, and the answer of a query until it writes anything. A row is kept, because it may be read again; the answer of a query,
//! which may be large, belongs to the flow once that has read it.
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
use super::sent_statement::SentStatement;
use crate::tables::expecting::EXPECTED_MAX;

/// Maximum number of queries whose answers a transaction has asked for and not read. Chosen by judgement.
const QUERIES_MAX: usize = 64;

/// The identity of a table within its program, and the key of a row.
pub(super) type RowOf = (usize, Value);

/// The answer of a statement.
pub(super) type StatementAnswer = Pin<Box<dyn Future<Output = Result<Executed, Error>> + Send>>;

/// The answer of a statement that reads rows by several keys; `None` if they have to be read again.
pub(super) type RowsAnswer = Pin<Box<dyn Future<Output = Result<Option<Vec<(RowOf, Executed)>>, Error>> + Send>>;

/// A read of what a transaction may have asked for.
pub(super) enum ExpectedRead {
    Rows(Vec<RowOf>),
    Query(SentStatement),
}

/// The rows that a transaction has asked for, and the queries.
#[derive(Default)]
pub(super) struct ExpectedRows {
    rows: IndexMap<RowOf, ExpectedRow, RandomState>,
    queries: Vec<ExpectedQuery>,
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

/// A query whose answer the flow has not read.
struct ExpectedQuery {
    of: SentStatement,
    /// The number of its answer.
    number: usize,
    /// The answer, once it is taken.
    executed: Option<Executed>,
}

/// An answer that nobody has taken yet.
struct UntakenAnswer {
    number: usize,
    answer: RequestedAnswer,
}

enum RequestedAnswer {
    /// That of a statement which reads these rows.
    Rows(Vec<RowOf>, RowsAnswer),
    OfQuery(StatementAnswer),
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
    pub(super) fn ask(&mut self, of: RowOf, answer: StatementAnswer) {
        let row = of.clone();
        self.ask_together(vec![of], Box::pin(async move { Ok(Some(vec![(row, answer.await?)])) }));
    }

    /// Asks for rows by one statement.
    pub(super) fn ask_together(&mut self, rows: Vec<RowOf>, answer: RowsAnswer) {
        let number = self.asked + 1;
        self.rows.extend(rows.iter().map(|row| (row.clone(), ExpectedRow::Asked(number))));
        self.send(RequestedAnswer::Rows(rows, answer));
    }

    /// Asks for the answer of a query. Returns whether it is asked for; one that is not read yet is not asked for again.
    pub(super) fn ask_query(&mut self, of: SentStatement, answer: StatementAnswer) -> bool {
        if self.queries.iter().any(|query| query.of == of) {
            return true;
        }
        if self.queries.len() >= QUERIES_MAX {
            return false;
        }
        self.queries.push(ExpectedQuery { of, number: self.asked + 1, executed: None });
        self.send(RequestedAnswer::OfQuery(answer));
        true
    }

    /// Sends a statement, which is what the first poll of the answer does. That may have the answer already, such as that the
    /// connection is lost.
    fn send(&mut self, answer: RequestedAnswer) {
        self.asked += 1;
        let mut untaken = UntakenAnswer { number: self.asked, answer };
        match untaken.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.answers.push_back(untaken),
            Poll::Ready(answered) => self.take(untaken.number, answered),
        }
    }

    /// Returns whether these rows were asked for.
    pub(super) fn has_all(&self, rows: &[RowOf]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| self.rows.contains_key(row))
    }

    /// Returns a row that was asked for. Fails if it has to be read.
    fn poll(&mut self, of: &RowOf, context: &mut Context<'_>) -> Poll<Result<Arc<Executed>, ()>> {
        loop {
            match self.rows.get(of) {
                Some(ExpectedRow::Answered(executed)) => return Poll::Ready(Ok(Arc::clone(executed))),
                Some(ExpectedRow::Asked(_)) if !self.answers.is_empty() => ready!(self.poll_first(context)),
                // Whoever reads it again learns why.
                _ => return Poll::Ready(Err(())),
            }
        }
    }

    /// Returns whether this was asked for.
    pub(super) fn has(&self, of: &ExpectedRead) -> bool {
        match of {
            ExpectedRead::Rows(rows) => self.has_all(rows),
            ExpectedRead::Query(of) => self.queries.iter().any(|query| query.of == *of),
        }
    }

    /// Returns what was asked for. Fails if it has to be read.
    pub(super) fn poll_answer(
        &mut self,
        of: &ExpectedRead,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Arc<Executed>>, ()>> {
        match of {
            ExpectedRead::Query(of) => self.poll_query(of, context).map_ok(|executed| vec![Arc::new(executed)]),
            ExpectedRead::Rows(rows) => {
                let mut executed = Vec::with_capacity(rows.len());
                for row in rows {
                    match ready!(self.poll(row, context)) {
                        Ok(answer) => executed.push(answer),
                        Err(()) => return Poll::Ready(Err(())),
                    }
                }
                Poll::Ready(Ok(executed))
            }
        }
    }

    /// Returns whether answers of queries were asked for that the flow has not read.
    pub(super) fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Returns the answer of a query that was asked for. Fails if it has to be executed.
    fn poll_query(&mut self, of: &SentStatement, context: &mut Context<'_>) -> Poll<Result<Executed, ()>> {
        loop {
            let Some(at) = self.queries.iter().position(|query| query.of == *of) else { return Poll::Ready(Err(())) };
            if self.queries[at].executed.is_none() && !self.answers.is_empty() {
                ready!(self.poll_first(context));
                continue;
            }
            return Poll::Ready(self.queries.remove(at).executed.ok_or(()));
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
        let answered = ready!(first.poll(&mut Context::from_waker(&waker)));
        if let Some(UntakenAnswer { number, .. }) = self.answers.pop_front() {
            self.take(number, answered);
        }
        self.waiting.wake_others(context.waker());
        Poll::Ready(())
    }

    /// Notes an answer. A row that has been written since is not one of its rows any more.
    fn take(&mut self, number: usize, answered: Result<TakenAnswer, Error>) {
        let is_missing = |row: &ExpectedRow| matches!(row, ExpectedRow::Asked(of) if *of == number);
        match answered {
            Ok(TakenAnswer::None) => self.rows.retain(|_, row| !is_missing(row)),
            Ok(TakenAnswer::Rows(rows, found)) => {
                let mut answer = |of: &RowOf, executed| {
                    if let Some(row) = self.rows.get_mut(of).filter(|row| is_missing(row)) {
                        *row = ExpectedRow::Answered(Arc::new(executed));
                    }
                };
                found.into_iter().for_each(|(of, executed)| answer(&of, executed));
                // The others are not there.
                rows.iter().for_each(|of| answer(of, Executed::default()));
            }
            Ok(TakenAnswer::OfQuery(executed)) => {
                if let Some(query) = self.queries.iter_mut().find(|query| query.number == number) {
                    query.executed = Some(executed);
                }
            }
            Err(error) => {
                self.rows.retain(|_, row| !is_missing(row));
                self.queries.retain(|query| query.number != number);
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
        self.queries.clear();
        match of {
            Some(of) => _ = self.rows.swap_remove(of),
            None => self.rows.clear(),
        }
    }
}

/// The answer of a statement, which somebody has taken.
enum TakenAnswer {
    /// Rows that have to be read again.
    None,
    /// The rows for which it was sent, and those of them that it has found.
    Rows(Vec<RowOf>, Vec<(RowOf, Executed)>),
    OfQuery(Executed),
}

impl UntakenAnswer {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<TakenAnswer, Error>> {
        match &mut self.answer {
            RequestedAnswer::OfQuery(answer) => answer.as_mut().poll(context).map_ok(TakenAnswer::OfQuery),
            RequestedAnswer::Rows(rows, answer) => answer.as_mut().poll(context).map_ok(|found| match found {
                Some(found) => TakenAnswer::Rows(std::mem::take(rows), found),
                None => TakenAnswer::None,
            }),
        }
    }
}
