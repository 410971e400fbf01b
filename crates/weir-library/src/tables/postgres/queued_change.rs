//! A change of one row that is queued, and the flow that waits for it.

use std::sync::Arc;

use tokio::sync::oneshot;
use weir::{Failure, Value};

use super::errors::StatementError;
use super::table::PostgresTable;
use crate::tables::rows::{ChangeAnswered, LaterChange, RowChange};

/// A change of a row of a table, and the flow that waits for it.
pub(super) struct QueuedChange {
    pub(super) table: PostgresTable,
    pub(super) change: RowChange,
    answered: ChangeAnswered,
    flow: oneshot::Sender<(Result<Value, Failure>, Option<u64>)>,
}

impl QueuedChange {
    /// Gives the flow its answer, and the number of the commit.
    pub(super) fn end(self, answer: Result<Value, Failure>, commit: Option<u64>) {
        (self.answered)(&answer);
        // The flow may have been cancelled.
        _ = self.flow.send((answer, commit));
    }
}

impl PostgresTable {
    /// Queues a change that is no part of a transaction.
    pub(super) fn queue_change(&self, change: &RowChange, answered: ChangeAnswered) -> Option<LaterChange> {
        // The thread of a statement gives the failure of a row that cannot be stored.
        let change = self.stored_change(change.clone()).ok()?;
        let (flow, answer) = oneshot::channel();
        let queued = || QueuedChange { table: self.clone(), change, answered, flow };
        if self.database.groups.push(queued)? {
            let database = Arc::clone(&self.database);
            // The thread that drives the connection, so that it wakes no other one for each answer.
            self.database.connector.io.handle.spawn(database.run_groups());
        }
        let database = Arc::clone(&self.database);
        Some(Box::pin(async move {
            let lost = |_| (Err(database.failure(&StatementError::Unknown)), None);
            answer.await.unwrap_or_else(lost)
        }))
    }
}
