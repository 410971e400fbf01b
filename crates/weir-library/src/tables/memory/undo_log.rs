//! The undo log of a table in memory: what the open transaction has changed, so that it can be taken back.

use std::time::Instant;

use weir::Value;

/// The changes of a transaction in a table, whose rows are stored as `R`.
#[derive(Debug)]
pub(super) struct UndoLog<R> {
    transaction: i64,
    /// The time of its first statement on the table, if rows expire: none expires between its statements.
    now: Option<Instant>,
    /// The number of the next row before.
    next: Option<i64>,
    /// The keys that were written, each with the row before.
    changes: Vec<(Value, Option<R>)>,
}

impl<R> UndoLog<R> {
    /// Returns the log of a transaction that has changed nothing yet.
    pub(super) fn new(transaction: i64, now: Option<Instant>, next: Option<i64>) -> Self {
        UndoLog { transaction, now, next, changes: Vec::new() }
    }

    /// Returns true if this is the log of the transaction with this number.
    pub(super) fn is_of(&self, transaction: i64) -> bool {
        self.transaction == transaction
    }

    /// Returns the time by which rows have expired, if they do.
    pub(super) fn now(&self) -> Option<Instant> {
        self.now
    }

    /// Returns the number of the next row before the transaction.
    pub(super) fn next(&self) -> Option<i64> {
        self.next
    }

    /// Notes that a key is written, and the row that it has before.
    pub(super) fn note(&mut self, key: Value, before: Option<R>) {
        self.changes.push((key, before));
    }

    /// Returns the keys that were written, the last first, each with the row before.
    pub(super) fn into_changes(self) -> impl Iterator<Item = (Value, Option<R>)> {
        self.changes.into_iter().rev()
    }
}
