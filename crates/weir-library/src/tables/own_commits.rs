//! The commits of the program's own database as a whole, for reads of which nobody knows which of them they show: those of tables that
//! triggers of the database may write, and those of a table that the program reads as one of another program, such as a view.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use weir::SeenCommits;

use super::group_commit::GroupCommit;
use super::in_flight_writes::{AwaitedWrites, InFlightWrites};

/// The commits of the own database.
#[derive(Debug, Default)]
pub(super) struct OwnCommits {
    commits: OnceLock<Arc<GroupCommit>>,
    /// The writes in flight of each table.
    in_flight: Mutex<Vec<Arc<InFlightWrites>>>,
}

impl OwnCommits {
    /// Adds a table of the database.
    pub(super) fn add(&self, commits: &Arc<GroupCommit>, in_flight: &Arc<InFlightWrites>) {
        _ = self.commits.set(Arc::clone(commits));
        self.in_flight.lock().push(Arc::clone(in_flight));
    }

    /// Returns the writes of all tables that are in flight now, for a read that has ended.
    pub(super) fn awaited(&self) -> Vec<AwaitedWrites> {
        self.in_flight.lock().iter().filter_map(InFlightWrites::awaited).collect()
    }

    /// Notes that the flow has seen all commits by a read that has ended, and whether the writes are answered that were in flight then;
    /// `None` if it has waited for that in vain.
    pub(super) fn saw_all(&self, awaited: &[AwaitedWrites], are_answered: Option<bool>) {
        let Some(commits) = self.commits.get() else { return };
        if are_answered.is_none() {
            awaited.iter().for_each(AwaitedWrites::waited_in_vain);
        }
        SeenCommits::note(match are_answered {
            Some(true) => commits.executed_count(),
            _ => commits.count_seen(),
        });
    }
}

/// Waits for the writes. Returns whether they are answered: false at once if another read has waited in vain for one of them.
pub(super) async fn are_answered(awaited: &[AwaitedWrites]) -> bool {
    for writes in awaited {
        if !writes.answered(None).await {
            return false;
        }
    }
    true
}
