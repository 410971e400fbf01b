//! The row that the rounds of a `for` have of a read by its key, because one statement has read those of all elements.

use weir_ir::expr::Atom;

/// The row of a read that an element is paired with.
#[derive(Clone)]
pub(super) struct PairedRow {
    /// An `Option` of the row.
    pub(super) row: Atom,
    /// True if it is a `Result` of that, or of the failure of the read.
    pub(super) keeps_failure: bool,
}
