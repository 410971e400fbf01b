//! The edges of a diagram.

/// The index of a mark.
pub(crate) type MarkId = usize;

/// The label of an edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeLabel {
    /// This arm was chosen.
    Choice(String),
    /// A value is passed.
    Value,
    /// The second happens after the first, without a value of it: both access a resource, or the second ends the flow.
    Order,
}

/// An edge between two marks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: MarkId,
    pub(crate) to: MarkId,
    pub(crate) label: EdgeLabel,
}
