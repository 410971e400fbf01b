//! Commits that were placed: a transaction ends for its flow's step when its commit is sent. What others send follows it on the same
//! connection, so that they see what it has written, or nothing of it if the database takes it back instead.
//!
//! 1. The flow sends the commit while it holds its locks ([`PostgresDatabase::place_commit`]).
//! 2. A task on the thread of connections waits for the answer, notes the commit, and then tells the flow. It does so also if the
//!    flow is gone. If the connection is lost before the answer, it waits until the program has joined again.
//! 3. The flow waits for that behind its step ([`PostgresDatabase::placed_commit`]). Another flow that commits in another way waits
//!    as well, because it has seen what was written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tokio_postgres::Error;
use weir::{Failure, SeenCommits};

use super::commit_ends::CommitProgress;
use super::commit_outcome::{CommittedTransaction, commit_outcome};
use super::connection::PostgresConnection;
use super::durability::NotedCommit;
use super::errors::StatementError;
use super::io::begin_task;
use super::placed_statements::PlacedStatements;
use super::writer::{PostgresWriter, UnsyncedTransaction};
use super::{PostgresDatabase, wait};
use crate::tables::rows::CommitEnded;

/// A commit that was sent.
struct SentCommit {
    connection: Arc<PostgresConnection>,
    answer: Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>,
    /// The answer that was there at once, such as that the connection is lost.
    answered: Option<Result<(), Error>>,
    of: CommittedTransaction,
    /// The transaction, if it does not wait for the disk.
    unsynced: Option<UnsyncedTransaction>,
}

impl PostgresWriter {
    /// Returns the connection, if the commit of a transaction can be sent at once.
    fn committing_connection(&mut self, transaction: i64) -> Option<Arc<PostgresConnection>> {
        let is_open = self.transaction == transaction && self.has_begun(transaction);
        self.open_connection(transaction).filter(|_| is_open)
    }

    fn send_commit(&mut self, transaction: i64) -> Option<SentCommit> {
        let connection = self.committing_connection(transaction)?;
        let mut answer = Box::pin(self.begin_commit(&connection));
        let answered = match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => None,
        };
        let of = self.committing(transaction);
        let unsynced = self.end();
        Some(SentCommit { connection, answer, answered, of, unsynced })
    }
}

impl SentCommit {
    /// Waits for the answer. The database takes the transaction back instead if it has refused a statement before.
    async fn ended(self) -> Result<Option<UnsyncedTransaction>, StatementError> {
        let SentCommit { answer, answered, of, unsynced, .. } = self;
        let answer = async {
            match answered {
                Some(answered) => answered,
                None => answer.await,
            }
        };
        let (committed, _) = tokio::join!(biased; answer, PlacedStatements::answered(&of.placed));
        commit_outcome(&of, committed).map(|()| unsynced)
    }
}

impl PostgresDatabase {
    /// Notes a commit that has not waited for the disk, if there is one. The connection is not made anew before (`connected`), or the
    /// commit fails.
    pub(super) fn committed(&self, unsynced: Option<UnsyncedTransaction>) -> Result<(), StatementError> {
        let Some(((number, statements), group_commit)) = unsynced.zip(self.group_commit.get()) else { return Ok(()) };
        let noted = self.unsynced.note(number, statements);
        if noted == NotedCommit::Lost {
            self.join_later();
            return Err(StatementError::Unknown);
        }
        group_commit.executed();
        if noted == NotedCommit::Due {
            group_commit.begin_sync();
        }
        Ok(())
    }

    /// Blocks the thread until the ends of all commits are noted that were placed before.
    pub(super) fn await_placed_commits(&self) -> Result<(), StatementError> {
        wait(self.limit(), self.placed_commits_noted()).ok_or(StatementError::NoAnswer)
    }

    /// Returns whether the commit of a transaction can be placed.
    pub(super) fn may_place_commit(&self, transaction: i64) -> bool {
        SeenCommits::may_place()
            && self.check().is_ok()
            && self.writer.try_lock().is_some_and(|mut writer| writer.committing_connection(transaction).is_some())
    }

    /// Places the commit of a transaction, and returns true unless it has to be waited for. `ended` is called before anybody else
    /// learns of the end.
    pub(super) fn place_commit(self: &Arc<Self>, transaction: i64, ended: CommitEnded) -> bool {
        if !SeenCommits::may_place() || self.check().is_err() {
            return false;
        }
        let sent = self.writer.try_lock().and_then(|mut writer| writer.send_commit(transaction));
        let Some(sent) = sent else { return false };
        let (end, ends) = watch::channel(CommitProgress::Sent);
        self.placed_commits.add(transaction, ends);
        let database = Arc::clone(self);
        begin_task(&self.connector.io.handle, async move {
            let connection = Arc::clone(&sent.connection);
            let mut answer = database.limited(sent.ended()).await.unwrap_or_else(|_| {
                connection.abort();
                Err(StatementError::NoAnswer)
            });
            if let Some(commit) = database.unanswered(&answer) {
                end.send_replace(CommitProgress::Lost);
                answer = database.outcome(commit).await.map(|()| None);
            }
            // No flow has this task.
            let mut task = SeenCommits::default();
            let _entered = task.enter();
            let committed = answer.and_then(|unsynced| database.committed(unsynced));
            let committed = database.refused_in(transaction, committed);
            let committed = committed.map_err(|error| database.failure(&error));
            ended(&committed);
            if committed.is_ok() {
                database.placed_commits.forget(transaction);
            }
            end.send_replace(CommitProgress::Ended(committed));
        });
        true
    }

    /// Waits for the commit of a transaction, if it was placed. Fails if it has failed.
    pub(in crate::tables) async fn placed_commit(&self, transaction: i64) -> Result<(), Failure> {
        let Some(mut end) = self.placed_commits.get(transaction) else { return Ok(()) };
        let ended = match end.wait_for(CommitProgress::has_ended).await.as_deref() {
            Ok(CommitProgress::Ended(ended)) => ended.clone(),
            // The thread of connections has ended.
            _ => Err(self.failure(&StatementError::Unknown)),
        };
        self.placed_commits.forget(transaction);
        ended
    }

    /// Waits until the ends of all commits are noted that were placed before.
    pub(super) async fn placed_commits_noted(&self) {
        for mut end in self.placed_commits.all() {
            // Whoever has placed it learns why it has failed.
            _ = end.wait_for(CommitProgress::has_ended).await.map(|_| ());
        }
    }

    /// Waits until all commits are answered that were placed before, or are known to get no answer.
    pub(super) async fn placed_commits_answered(&self) {
        for mut end in self.placed_commits.all() {
            _ = end.wait_for(|progress| !matches!(progress, CommitProgress::Sent)).await.map(|_| ());
        }
    }
}
