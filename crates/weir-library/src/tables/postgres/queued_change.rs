//! A change of one row that is queued, and the flow that waits for it.

use std::sync::Arc;

use tokio::sync::oneshot;
use weir::{Failure, Value};

use super::table_layout::TableLayout;
use crate::tables::rows::{ChangeAnswered, RowChange};

/// A change of a row of a table, and the flow that waits for it.
pub(super) struct QueuedChange {
    pub(super) table: Arc<TableLayout>,
    pub(super) change: RowChange,
    answered: ChangeAnswered,
    flow: ChangeAnswer,
}

/// The flow that waits for the answer and the number of the commit.
type ChangeAnswer = oneshot::Sender<(Result<Value, Failure>, Option<u64>)>;

impl QueuedChange {
    pub(super) fn new(
        (table, change): (Arc<TableLayout>, RowChange),
        answered: ChangeAnswered,
        flow: ChangeAnswer,
    ) -> QueuedChange {
        QueuedChange { table, change, answered, flow }
    }

    /// Gives the flow its answer, and the number of the commit.
    pub(super) fn end(self, answer: Result<Value, Failure>, commit: Option<u64>) {
        (self.answered)(&answer);
        // The flow may have been cancelled.
        _ = self.flow.send((answer, commit));
    }
}
