//! Connections on which statements share round trips: one for each event loop, which drives it itself.
//!
//! A statement that reads is sent behind those that were sent before, and its flow waits for the answer without a thread. The
//! database executes the statements of a connection one after the other. So a statement that takes long would delay all others:
//! it is executed on a thread, with a connection of its own, until it is short again ([`SLOW`]). One that took long once may have
//! been held up by something else: it counts as slow if that happens often, or if it took very long.
//!
//! A statement that is held up, such as by a lock that another program has on its table, holds up those behind it once. As long as the
//! first one has no answer for longer than [`HELD_UP`], no other one is sent behind it: each is executed on a thread.
//!
//! A statement also needs a thread as long as the connection is being made, and until the statement is prepared there.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use super::beginning::Beginning;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::connector::PostgresConnector;
use super::errors::StatementError;
use super::io::begin_task;
use super::received_row::ReceivedRow;
use super::unused_connections::{ConnectionPurpose, UnusedConnections};
use super::whole_transactions::prepared_alone;

/// The time of a statement from which others should not wait for it. Chosen by judgement: a read by key takes 0.1 ms.
const SLOW: Duration = Duration::from_millis(20);
/// The time without an answer after which no statement is sent behind others. Chosen by judgement.
const HELD_UP: Duration = Duration::from_millis(50);
/// The time of a statement that is slow, although it was so only once.
const SLOW_ONCE: Duration = Duration::from_millis(200);
/// The score of a statement that is slow. Chosen by judgement: it was slow three times running, or in the long run every third time.
const SLOW_SCORE: u32 = 6;
/// The number that each slow time adds to the score, from which a fast one takes one.
const SLOW_TIME_SCORE: u32 = 2;
/// Time for which a slow statement is executed on a thread; after each further time that it is slow, twice as long.
const SLOW_PAUSE: Duration = Duration::from_secs(1);
/// Maximum of this time.
const SLOW_PAUSE_MAX: Duration = Duration::from_secs(300);
/// Maximum number of statements that are noted as slow.
const SLOW_MAX: usize = 1_024;
/// Maximum number of statements without an answer on a connection; further ones need threads, whose number is bounded, so that
/// the program notices that it is overloaded.
const UNANSWERED_MAX: usize = 1_024;
/// Time after which the next attempt to make a connection follows.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// Period in which a connection is watched for answers while some are expected.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// The connections of the event loops.
#[derive(Default)]
pub(super) struct Pipelines(Mutex<IndexMap<runtime::Id, PipelineState>>);

enum PipelineState {
    Connecting,
    Open(Arc<Pipeline>),
    /// The attempt to connect has failed at this time, or there was no permit for it.
    Failed(Instant),
}

impl Pipelines {
    /// Returns the connection of this event loop, if it is there. Otherwise it is made for later statements; `recovered` fails if
    /// it must not be used.
    pub(super) fn of_this_loop(
        self: &Arc<Self>,
        connector: &PostgresConnector,
        recovered: impl FnOnce() -> Result<(), StatementError> + Send + 'static,
    ) -> Option<Arc<Pipeline>> {
        let handle = Handle::try_current().unwrap_or_else(|_| connector.io.handle.clone());
        let id = handle.id();
        let mut pipelines = self.0.lock();
        match pipelines.get(&id) {
            Some(PipelineState::Open(open)) if !open.connection.is_closed() => return Some(Arc::clone(open)),
            Some(PipelineState::Connecting) => return None,
            Some(PipelineState::Failed(at)) if at.elapsed() < FAILED_PAUSE => return None,
            _ => _ = pipelines.insert(id, PipelineState::Connecting),
        }
        drop(pipelines);
        let (pipelines, connecting) = (Arc::clone(self), connector.clone());
        let Some(permit) = connector.spare.take() else {
            pipelines.0.lock().insert(id, PipelineState::Failed(Instant::now()));
            return None;
        };
        connector.io.handle.spawn_blocking(move || {
            // A crash of the database may be the reason why there is none.
            let connected =
                connecting.connect_on(&handle, permit).and_then(|connection| recovered().map(|()| connection));
            let state = match connected {
                Ok(connection) => {
                    PipelineState::Open(Arc::new(Pipeline::new(connection, handle, Arc::downgrade(&pipelines))))
                }
                Err(_) => PipelineState::Failed(Instant::now()),
            };
            pipelines.0.lock().insert(id, state);
        });
        None
    }

    /// Has a connection end behind the statements that use it. Another one is made for later ones.
    fn remove(&self, pipeline: &Arc<Pipeline>) {
        let (mut pipelines, id) = (self.0.lock(), pipeline.handle.id());
        if matches!(pipelines.get(&id), Some(PipelineState::Open(open)) if Arc::ptr_eq(open, pipeline)) {
            pipelines.swap_remove(&id);
        }
    }
}

impl UnusedConnections for Pipelines {
    fn give_back(&self, refused: ConnectionPurpose) -> bool {
        if refused != ConnectionPurpose::Indispensable {
            return false;
        }
        let mut pipelines = self.0.lock();
        let open = pipelines.values_mut().filter(|state| matches!(state, PipelineState::Open(_)));
        // Each ends behind the statements that use it.
        open.map(|state| *state = PipelineState::Failed(Instant::now())).count() > 0
    }
}

/// A connection on which statements share round trips.
pub(super) struct Pipeline {
    /// A number that no other connection of the process has.
    number: NonZeroU64,
    connection: PostgresConnection,
    handle: Handle,
    /// The connections of which it is one.
    of: Weak<Pipelines>,
    begin: Instant,
    /// The number of statements without an answer.
    unanswered: AtomicUsize,
    /// The time since which the first statement without an answer has been the first, in nanoseconds since the begin.
    first_since_ns: AtomicU64,
    /// The number of answers.
    answers: AtomicU64,
    /// The time of the last answer, in nanoseconds since the begin.
    answered_ns: AtomicU64,
    /// True while a task looks whether the connection answers.
    is_watched: AtomicBool,
    /// True if it was given up, because it did not.
    is_given_up: AtomicBool,
    known: Mutex<KnownStatements>,
}

/// The state of the statements of a connection.
#[derive(Default)]
struct KnownStatements {
    /// The statements that are being prepared.
    preparing: BTreeSet<String>,
    /// The statements that were slow.
    slow: BTreeMap<String, SlowStatement>,
}

/// A statement that was slow.
struct SlowStatement {
    /// More for each time that it is slow, and less for each time that it is not: anything may hold up a statement once, such as a
    /// processor that is busy with something else.
    score: u32,
    until: Instant,
    pause: Duration,
}

impl SlowStatement {
    fn new(now: Instant) -> SlowStatement {
        SlowStatement { score: 0, until: now, pause: SLOW_PAUSE / 2 }
    }

    /// Notes that it took this long, which is slow.
    fn was_slow(&mut self, now: Instant, took: Duration) {
        self.score += if took < SLOW_ONCE { SLOW_TIME_SCORE } else { SLOW_SCORE };
        if self.score >= SLOW_SCORE {
            // Behind the pause, it is slow if it takes long twice.
            self.score = SLOW_SCORE - 2 * SLOW_TIME_SCORE;
            self.pause = (self.pause * 2).min(SLOW_PAUSE_MAX);
            self.until = now + self.pause;
        }
    }

    /// Returns whether it may be sent with others. If it was slow before, no other one is until it has its answer.
    fn may_be_sent(&mut self, now: Instant) -> bool {
        if now < self.until {
            return false;
        }
        if self.pause >= SLOW_PAUSE {
            self.until = now + self.pause;
        }
        true
    }

    /// Notes that it was not slow. Returns whether it is not to be noted any longer.
    fn was_fast(&mut self, now: Instant) -> bool {
        self.until = self.until.min(now);
        self.score = self.score.saturating_sub(1);
        self.score == 0
    }
}

impl Pipeline {
    fn new(connection: PostgresConnection, handle: Handle, of: Weak<Pipelines>) -> Pipeline {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Pipeline {
            number: NonZeroU64::MIN.saturating_add(NUMBERS.fetch_add(1, Ordering::Relaxed)),
            connection,
            handle,
            of,
            begin: Instant::now(),
            unanswered: AtomicUsize::new(0),
            first_since_ns: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            answered_ns: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// Returns a number that no other connection has: the database executes the statements that are sent here one after the other.
    pub(super) fn number(&self) -> NonZeroU64 {
        self.number
    }

    /// Returns the prepared statements, unless one of them needs a thread.
    pub(super) fn prepared(self: &Arc<Self>, statements: &[SqlStatement<'_>]) -> Option<Vec<Statement>> {
        statements.iter().map(|statement| self.prepared_statement(statement.sql)).collect()
    }

    /// Returns a prepared statement, unless it needs a thread.
    pub(super) fn prepared_statement(self: &Arc<Self>, sql: &str) -> Option<Statement> {
        match self.unanswered.load(Ordering::Relaxed) {
            0 => {}
            UNANSWERED_MAX.. => return None,
            _ if self.is_held_up() => return None,
            _ => {}
        }
        if let Some(prepared) = self.connection.known(sql) {
            let slow = &mut self.known.lock().slow;
            let noted = if slow.is_empty() { None } else { slow.get_mut(sql) };
            return noted.is_none_or(|slow| slow.may_be_sent(Instant::now())).then_some(prepared);
        }
        if self.known.lock().preparing.insert(sql.to_owned()) {
            let (pipeline, sql) = (Arc::clone(self), sql.to_owned());
            begin_task(&self.handle, async move {
                // If it fails, the statement says why where it is executed.
                _ = pipeline.connection.prepared(&sql).await;
                pipeline.known.lock().preparing.remove(&sql);
            });
        }
        None
    }

    /// Notes that another statement is the first without an answer.
    fn note_first(&self) {
        self.first_since_ns.store(self.begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns whether the first statement without an answer has had none for long.
    fn is_held_up(&self) -> bool {
        let since = Duration::from_nanos(self.first_since_ns.load(Ordering::Relaxed));
        self.begin.elapsed().saturating_sub(since) > HELD_UP
    }

    /// Executes statements that read, all as the tables are at one moment.
    pub(super) async fn read(
        self: &Arc<Self>,
        statements: &[SqlStatement<'_>],
        prepared: &[Statement],
        limit: Duration,
    ) -> Result<Vec<Executed>, StatementError> {
        let sent = Instant::now();
        let expected = ExpectedAnswer::new(self, limit);
        let read = self.connection.read_at_one_moment(statements, prepared).await;
        drop(expected);
        if self.is_given_up.load(Ordering::Relaxed) && read.is_err() {
            return Err(StatementError::NoAnswer);
        }
        self.note_time(statements.iter().map(|statement| statement.sql), sent);
        read
    }

    /// Reads the first row of a statement.
    pub(super) async fn read_row<P: ToSql + Sync>(
        self: &Arc<Self>,
        (sql, prepared): (&str, &Statement),
        parameters: &[P],
        limit: Duration,
    ) -> Result<Option<ReceivedRow>, StatementError> {
        let sent = Instant::now();
        let expected = ExpectedAnswer::new(self, limit);
        let read = self.connection.row(prepared, parameters).await;
        drop(expected);
        if self.is_given_up.load(Ordering::Relaxed) && read.is_err() {
            return Err(StatementError::NoAnswer);
        }
        self.note_time(std::iter::once(sql), sent);
        Ok(read?)
    }

    /// Executes statements as one transaction, all or none.
    pub(super) async fn write(
        self: &Arc<Self>,
        beginning: &Beginning,
        statements: (&[SqlStatement<'_>], &[Statement]),
        limit: Duration,
    ) -> Result<Vec<Executed>, StatementError> {
        let expected = ExpectedAnswer::new(self, limit);
        let written = prepared_alone((&self.connection, beginning), statements).await;
        drop(expected);
        if self.is_given_up.load(Ordering::Relaxed) && written.is_err() {
            return Err(StatementError::NoAnswer);
        }
        written.map(|(executed, _)| executed)
    }

    /// Notes the time that the database took for statements: since they were sent, or since the answer before.
    fn note_time<'s>(&self, statements: impl Iterator<Item = &'s str>, sent: Instant) {
        let now = self.begin.elapsed();
        let before = self.answered_ns.swap(now.as_nanos() as u64, Ordering::Relaxed);
        let begin = sent.saturating_duration_since(self.begin).max(Duration::from_nanos(before));
        let took = now.saturating_sub(begin);
        let slow = &mut self.known.lock().slow;
        if took < SLOW {
            if slow.is_empty() {
                return;
            }
            let now = Instant::now();
            for sql in statements {
                if slow.get_mut(sql).is_some_and(|slow| slow.was_fast(now)) {
                    slow.remove(sql);
                }
            }
            return;
        }
        let now = Instant::now();
        for sql in statements {
            if slow.len() >= SLOW_MAX {
                slow.clear();
            }
            slow.entry(sql.to_owned()).or_insert_with(|| SlowStatement::new(now)).was_slow(now, took);
        }
    }

    /// Gives the connection up if it does not answer for longer than the limit, as long as answers are expected.
    async fn watch(watched: Weak<Self>, mut answers: u64, limit: Duration) {
        let mut since = Instant::now();
        loop {
            tokio::time::sleep(WATCH_PERIOD).await;
            let Some(pipeline) = watched.upgrade() else { return };
            let now = pipeline.answers.load(Ordering::Relaxed);
            if now != answers {
                (answers, since) = (now, Instant::now());
            }
            if pipeline.unanswered.load(Ordering::Acquire) == 0 {
                pipeline.is_watched.store(false, Ordering::SeqCst);
                // One that was sent meanwhile may have found the connection watched.
                if pipeline.unanswered.load(Ordering::SeqCst) == 0 || pipeline.is_watched.swap(true, Ordering::SeqCst) {
                    return;
                }
                since = Instant::now();
            } else if since.elapsed() > limit {
                pipeline.is_given_up.store(true, Ordering::Relaxed);
                pipeline.connection.abort();
                return;
            }
        }
    }
}

/// Statements without an answer.
struct ExpectedAnswer<'p>(&'p Arc<Pipeline>);

impl<'p> ExpectedAnswer<'p> {
    fn new(pipeline: &'p Arc<Pipeline>, limit: Duration) -> ExpectedAnswer<'p> {
        if pipeline.unanswered.fetch_add(1, Ordering::SeqCst) == 0 {
            pipeline.note_first();
        }
        if !pipeline.is_watched.load(Ordering::SeqCst) && !pipeline.is_watched.swap(true, Ordering::SeqCst) {
            let answers = pipeline.answers.load(Ordering::Relaxed);
            begin_task(&pipeline.handle, Pipeline::watch(Arc::downgrade(pipeline), answers, limit));
        }
        ExpectedAnswer(pipeline)
    }
}

impl Drop for ExpectedAnswer<'_> {
    fn drop(&mut self) {
        self.0.note_first();
        self.0.answers.fetch_add(1, Ordering::Relaxed);
        self.0.unanswered.fetch_sub(1, Ordering::Release);
        if self.0.connection.keeps_too_much() {
            self.0.of.upgrade().inspect(|pipelines| pipelines.remove(self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_something_holds_up_once_is_not_slow_and_one_that_often_takes_long_is() {
        let begin = Instant::now();
        let mut held_up = SlowStatement::new(begin);
        for _ in 0..5 {
            held_up.was_slow(begin, SLOW);
            held_up.was_slow(begin, SLOW);
            assert!(held_up.until <= begin);
            assert!((0..3).all(|_| !held_up.was_fast(begin)) && held_up.was_fast(begin));
        }
        let mut slow = SlowStatement::new(begin);
        slow.was_slow(begin, SLOW);
        assert!(!slow.was_fast(begin));
        slow.was_slow(begin, SLOW);
        slow.was_slow(begin, SLOW);
        assert!(slow.until <= begin, "one of four was fast");
        slow.was_slow(begin, SLOW);
        assert_eq!(slow.until, begin + SLOW_PAUSE);
        slow.was_slow(begin, SLOW);
        assert_eq!(slow.until, begin + SLOW_PAUSE, "once is not enough");
        slow.was_slow(begin, SLOW);
        assert_eq!(slow.until, begin + 2 * SLOW_PAUSE);
        let mut very_slow = SlowStatement::new(begin);
        very_slow.was_slow(begin, SLOW_ONCE);
        assert_eq!(very_slow.until, begin + SLOW_PAUSE);
    }

    #[test]
    fn a_statement_that_was_slow_is_sent_alone_until_its_answer_is_there() {
        let begin = Instant::now();
        let mut once = SlowStatement::new(begin);
        once.was_slow(begin, SLOW);
        assert!(once.may_be_sent(begin) && once.may_be_sent(begin));
        let mut slow = SlowStatement::new(begin);
        slow.was_slow(begin, SLOW_ONCE);
        let behind = begin + SLOW_PAUSE;
        assert!(!slow.may_be_sent(begin));
        assert!(slow.may_be_sent(behind) && !slow.may_be_sent(behind));
        slow.was_fast(behind);
        assert!(slow.may_be_sent(behind) && !slow.may_be_sent(behind));
    }
}
