//! A table that is open: its description, and the store of its rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::rows::TableRows;
use super::schema::Schema;
use super::transaction_number;

/// A table that is open.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) schema: Schema,
    pub(super) rows: Box<dyn TableRows>,
    pub(super) restoring: Arc<RestoringStep>,
}

/// The step of the program that restores shared values unless its transaction commits. There is one at a time, because such steps hold
/// the constraint `tables`.
#[derive(Debug, Default)]
pub(super) struct RestoringStep {
    is_uncommitted: AtomicBool,
}

impl RestoringStep {
    /// Begins the transaction of such a step.
    pub(super) fn begin(&self) {
        self.is_uncommitted.store(true, Ordering::Relaxed);
    }

    /// Notes that a transaction has committed.
    pub(super) fn committed(&self, transaction: i64) {
        if transaction_number::is_restoring(transaction) {
            self.is_uncommitted.store(false, Ordering::Relaxed);
        }
    }

    /// Ends the step, and returns true if its transaction has not committed.
    pub(super) fn end(&self) -> bool {
        self.is_uncommitted.swap(false, Ordering::Relaxed)
    }
}
