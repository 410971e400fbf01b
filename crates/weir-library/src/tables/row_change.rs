//! A change of one row.

use weir::Value;

use super::program_owned::{text_bytes, unshared_copy};

/// A change of one row that is a statement of its own, and owns what it needs.
#[derive(Clone, Debug)]
pub(super) enum RowChange {
    /// Inserts the row. The answer is its key.
    Insert(Value),
    /// Inserts the row, or puts it in place of the one with its key. The answer is the key.
    Upsert(Value),
    /// Puts the row in place of the one with the key. The answer is the row as it is stored.
    Replace(Value, Value),
    /// Deletes the row with the key. The answer is whether there was one.
    Delete(Value),
}

impl RowChange {
    /// Returns a copy that shares nothing with the change.
    pub(super) fn unshared_copy(&self) -> RowChange {
        match self {
            RowChange::Insert(row) => RowChange::Insert(unshared_copy(row)),
            RowChange::Upsert(row) => RowChange::Upsert(unshared_copy(row)),
            RowChange::Replace(key, row) => RowChange::Replace(unshared_copy(key), unshared_copy(row)),
            RowChange::Delete(key) => RowChange::Delete(unshared_copy(key)),
        }
    }

    /// Returns about the bytes that it takes, apart from a few.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            RowChange::Insert(value) | RowChange::Upsert(value) | RowChange::Delete(value) => text_bytes(value),
            RowChange::Replace(_, row) => text_bytes(row),
        }
    }
}
