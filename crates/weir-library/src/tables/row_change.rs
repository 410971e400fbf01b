//! A change of one row.

use weir::Value;

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
