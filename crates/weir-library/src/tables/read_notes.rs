//! The notes of reads that go on without the thread of their flow: the commits that the flow has seen, when the read is answered.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::timeout;
use weir::SeenCommits;

use super::group_commit::GroupCommit;
use super::in_flight_writes::ANSWER_PATIENCE;
use super::own_commits::{OwnCommits, are_answered};
use super::recent_writes::RecentWrites;
use super::table_read::TableRead;

/// Notes what a flow has seen by a read that goes on without its thread.
pub(super) enum ReadNotes {
    /// It depends on writes of the table, which are noted.
    OfTable(Arc<RecentWrites>, Arc<GroupCommit>),
    /// It may depend on any commit.
    OfAll(Arc<OwnCommits>),
}

impl ReadNotes {
    /// Notes what was seen, when the read is answered. What the database has executed before it has read was in flight before the
    /// answer, or noted. `timers` are used if the flow runs in no event loop.
    pub(super) async fn note(&self, read: &TableRead, timers: &Handle) {
        match self {
            ReadNotes::OfTable(recent, commits) => note_rows((recent, commits), read, timers).await,
            ReadNotes::OfAll(own) => {
                let awaited = own.awaited();
                let answered = match &*awaited {
                    [] => Some(true),
                    awaited => soon(are_answered(awaited), timers).await,
                };
                own.saw_all(&awaited, answered);
            }
        }
    }
}

async fn note_rows((recent, commits): (&RecentWrites, &GroupCommit), read: &TableRead, timers: &Handle) {
    if recent.in_flight.may_be_seen(read)
        && let Some(awaited) = recent.in_flight.awaited()
    {
        let answered = soon(awaited.answered(Some(read)), timers).await;
        if answered.is_none() {
            awaited.waited_in_vain();
        }
        if answered != Some(true) {
            SeenCommits::note(commits.count_seen());
        }
    }
    SeenCommits::note(recent.commit_of(commits, read));
}

/// Waits for answers for a moment; `None` if they do not come.
async fn soon(answers: impl Future<Output = bool>, timers: &Handle) -> Option<bool> {
    let timers = Handle::try_current().unwrap_or_else(|_| timers.clone());
    let answered = {
        let _timers = timers.enter();
        timeout(ANSWER_PATIENCE, answers)
    };
    answered.await.ok()
}
