//! The emphasis of random programs.

/// The constructs that a generated program has more of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Emphasis {
    /// Of no construct.
    None,
    /// Equal calls and records that loops carry.
    Rewritable,
    /// Loops and arithmetic.
    Computing,
    /// Loops, and reads and updates of elements in them.
    Elements,
    /// Loops, and arithmetic whose primitives belong together.
    Arithmetic,
    /// Nested `for`s over lists.
    Rounds,
    /// Loops and calls that need nothing of those before them.
    Independence,
    /// Calls of batched functions.
    Batches,
    /// The same, and loops that failures leave.
    LeftLoops,
    /// Loops whose rounds are a single change.
    Updates,
}
