//! Commits whose connection was lost before their answer. The next join of the program tells whether they have taken effect.
//!
//! The program knows the mark of a commit when it sends it (`commit_marks`), and its transaction has had its turn. The program joins
//! again in another turn, so that the database has ended the transaction before, and reads the marks. These are rows of the database
//! itself, so that what they tell is right whatever has happened to the server, such as a crash, or the change to a standby that lacks the
//! commit. The number that the server gives the transaction (`pg_current_xact_id`) would not do: after a crash, another one may have it.
//!
//! A commit is noted here before the program can join, as those are that are answered (`durability`).

use tokio::sync::oneshot;

use super::PostgresDatabase;
use super::commit_marks::{CommitMark, CommitsAtJoin};
use super::errors::StatementError;

/// The commits whose outcome the next join tells.
#[derive(Debug, Default)]
pub(super) struct UnansweredCommits(Vec<(CommitMark, oneshot::Sender<bool>)>);

/// A commit whose outcome the next join tells.
pub(super) struct UnansweredCommit(oneshot::Receiver<bool>);

impl UnansweredCommits {
    pub(super) fn add(&mut self, mark: CommitMark) -> UnansweredCommit {
        let (sender, outcome) = oneshot::channel();
        self.0.push((mark, sender));
        UnansweredCommit(outcome)
    }

    /// Tells the outcomes, as far as they are known.
    pub(super) fn tell(&mut self, found: CommitsAtJoin) {
        for (mark, sender) in self.0.drain(..) {
            if let Some(has_taken_effect) = found.has(mark) {
                _ = sender.send(has_taken_effect);
            }
        }
    }

    /// Tells that nobody knows the outcomes.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl UnansweredCommit {
    /// Returns a commit that was not noted in time.
    pub(super) fn unknown() -> UnansweredCommit {
        UnansweredCommit(oneshot::channel().1)
    }

    /// Waits for the outcome.
    async fn outcome(self) -> Result<(), StatementError> {
        match self.0.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StatementError::NotCommitted),
            Err(_) => Err(StatementError::Unknown),
        }
    }
}

impl PostgresDatabase {
    /// Returns the commit, if the next join tells its outcome. The program has not joined since.
    pub(super) fn unanswered<T>(&self, committed: &Result<T, StatementError>) -> Option<UnansweredCommit> {
        match committed {
            Err(StatementError::Unanswered(mark)) => Some(self.unsynced.note_unanswered(*mark)),
            _ => None,
        }
    }

    /// Waits until the program has joined again, and returns the outcome of a commit. It is durable if it has taken effect.
    pub(super) async fn outcome(&self, commit: UnansweredCommit) -> Result<(), StatementError> {
        self.limited(commit.outcome()).await.unwrap_or(Err(StatementError::Unknown))
    }
}
