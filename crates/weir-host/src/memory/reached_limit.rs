//! The limits that a flow can reach.

/// The limit for which a flow was refused memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedLimit {
    /// The flow would hold more than a flow may.
    Flow,
    /// The flow would hold more than the program has free.
    Program,
}
