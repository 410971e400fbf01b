//! Places of instructions in the program, for messages and plans.

/// The place of an instruction in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodePlace {
    /// The node of the region's body.
    pub(crate) node: usize,
    /// The path of the node within bodies below; empty if it is the node itself.
    pub(crate) within: String,
}
