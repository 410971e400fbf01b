//! The ends of commits that were placed, as far as flows have not learned them (`placed_commits`).

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;
use weir::Failure;

/// Maximum number of failures for which no flow has asked.
const FAILED_MAX: usize = 1_024;

/// The ends of placed commits that are not known yet, and the failures of others, by transactions.
#[derive(Default)]
pub(super) struct PlacedCommits(Mutex<BTreeMap<i64, CommitEnd>>);

/// The end of a commit, when it is known.
pub(super) type CommitEnd = watch::Receiver<CommitProgress>;

/// The state of a commit that was sent, as far as it is known.
#[derive(Clone)]
pub(super) enum CommitProgress {
    /// It has no answer yet.
    Sent,
    /// The connection was lost before the answer, and the next join tells the end.
    Lost,
    Ended(Result<(), Failure>),
}

impl CommitProgress {
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, CommitProgress::Ended(_))
    }
}

impl PlacedCommits {
    pub(super) fn add(&self, transaction: i64, end: CommitEnd) {
        let mut commits = self.0.lock();
        if commits.len() >= FAILED_MAX {
            // Flows that are gone.
            commits.retain(|_, end| !end.borrow().has_ended() && end.has_changed().is_ok());
        }
        commits.insert(transaction, end);
    }

    /// Returns whether the commit of a transaction was placed, and its flow has not learned its end.
    pub(super) fn is_placed(&self, transaction: i64) -> bool {
        self.0.lock().contains_key(&transaction)
    }

    pub(super) fn get(&self, transaction: i64) -> Option<CommitEnd> {
        self.0.lock().get(&transaction).cloned()
    }

    pub(super) fn all(&self) -> Vec<CommitEnd> {
        self.0.lock().values().cloned().collect()
    }

    pub(super) fn forget(&self, transaction: i64) {
        self.0.lock().remove(&transaction);
    }
}
