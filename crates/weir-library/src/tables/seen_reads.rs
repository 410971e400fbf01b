//! The commits that a read of no transaction has seen, for which the answer of its flow waits.
//!
//! Such a read takes no lock of its table, so that others may write while it reads. It sees what was executed before, and notes on which
//! commit the answer of its flow depends:
//!
//! 1. It asks on which commit it depends, and has the database show that. What is executed and not noted yet counts as such a commit.
//! 2. It reads. Commits are counted before other connections see them.
//! 3. If others were executed meanwhile, it asks once more. If the database is another process, it waits for the answers of the writes in
//!    flight before, and for no longer than a moment.
//!
//! If the database has triggers, a read depends on the last commit, whatever that has written. So does a read of a table of the program's
//! own database that the program reads as one of another program, such as a view.

use std::sync::Arc;

use weir::{Failure, SeenCommits, assert_may_block};

use super::group_commit::GroupCommit;
use super::in_flight_writes::ANSWER_PATIENCE;
use super::own_commits::{OwnCommits, are_answered};
use super::postgres::wait;
use super::published_rows::PublishedRows;
use super::read_notes::ReadNotes;
use super::recent_writes::RecentWrites;
use super::rows::TableRows;
use super::schema::TableSearch;

/// The last commit on which a read depends that began when so many were executed.
pub(super) struct ReadDependence {
    executed: u64,
    pub(super) commit: u64,
}

impl PublishedRows {
    /// Reads what depends on a commit, which the read sees, and the flow has seen. A transaction sees all commits, and waits for
    /// them at its end.
    pub(super) fn reading<T>(
        &self,
        transaction: i64,
        depends_on: impl Fn(&RecentWrites, &GroupCommit) -> u64,
        read: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if transaction != 0 {
            return read();
        }
        let Some(commits) = &self.commits else {
            let found = read();
            self.saw_all_of_own();
            return found;
        };
        let dependence = self.dependence(commits, &depends_on);
        if dependence.commit > 0 {
            self.rows.show(dependence.commit);
            SeenCommits::note(dependence.commit);
        }
        let found = read();
        if self.is_shared() {
            // The read may have seen a change that was in flight, whose commit had no number before its answer.
            self.wait_for_changes(commits);
        }
        self.note_later(commits, &dependence, &depends_on);
        found
    }

    /// Reads the rows that a search accepts, or something that is computed from them.
    pub(super) fn searching<T>(
        &self,
        transaction: i64,
        search: &TableSearch,
        read: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.reading(transaction, |recent, commits| recent.commit_of_search(commits, search), read)
    }

    /// Returns the last commit on which a read depends that begins now. It is one that was executed and is not noted yet, if there is such:
    /// another read may have seen it.
    pub(super) fn dependence(
        &self,
        commits: &GroupCommit,
        depends_on: &impl Fn(&RecentWrites, &GroupCommit) -> u64,
    ) -> ReadDependence {
        let executed = commits.executed_count();
        let is_noted = commits.are_noted_to(executed) || self.is_shared() && !commits.has_triggers();
        ReadDependence { executed, commit: if is_noted { depends_on(&self.recent, commits) } else { executed } }
    }

    /// Notes that the flow has seen a commit that was executed since a read began, if the read depends on it.
    pub(super) fn note_later(
        &self,
        commits: &GroupCommit,
        before: &ReadDependence,
        depends_on: &impl Fn(&RecentWrites, &GroupCommit) -> u64,
    ) {
        if self.is_shared() || commits.executed_count() != before.executed {
            SeenCommits::note(self.dependence(commits, depends_on).commit);
        }
    }

    /// Blocks the thread until the changes that are in flight are answered. If that takes long, the flow has perhaps seen a commit without a
    /// number.
    pub(super) fn wait_for_changes(&self, commits: &GroupCommit) {
        assert_may_block();
        if commits.has_triggers() {
            return self.saw_all_of_own();
        }
        if let Some(awaited) = self.recent.in_flight.awaited() {
            let answered = wait(ANSWER_PATIENCE, awaited.answered(None));
            if answered.is_none() {
                awaited.waited_in_vain();
            }
            if answered != Some(true) {
                SeenCommits::note(commits.count_seen());
            }
        }
    }

    /// Notes that the flow has seen all commits of the program's own database by a read that has ended, if the table is in that.
    pub(super) fn saw_all_of_own(&self) {
        if let Some(own) = &self.own {
            saw_all(own);
        }
    }

    /// Returns the notes of a read that goes on without its thread.
    pub(super) fn read_notes(&self) -> Option<ReadNotes> {
        match (&self.commits, &self.own) {
            (Some(commits), _) if !commits.has_triggers() => {
                Some(ReadNotes::OfTable(Arc::clone(&self.recent), Arc::clone(commits)))
            }
            (_, own) => own.clone().map(ReadNotes::OfAll),
        }
    }
}

/// Notes that the flow has seen all commits by a read that has ended. Blocks the thread until the changes that are in flight are answered,
/// but not for long.
fn saw_all(own: &OwnCommits) {
    let awaited = own.awaited();
    let answered = match &*awaited {
        [] => Some(true),
        awaited => {
            assert_may_block();
            wait(ANSWER_PATIENCE, are_answered(awaited))
        }
    };
    own.saw_all(&awaited, answered);
}
