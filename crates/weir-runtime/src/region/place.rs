//! Places of instructions in the program, for messages and plans.

/// The place of an instruction in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodePlace {
    /// The node of the region's body.
    pub(crate) node: usize,
    /// The path of the node within bodies below; empty if it is the node itself.
    pub(crate) within: String,
}

impl CodePlace {
    /// Returns the place of a node of this name in the body of another node, or of the region itself.
    pub(crate) fn of(node: usize, name: &str, around: Option<&CodePlace>) -> CodePlace {
        match around {
            None => CodePlace { node, within: String::new() },
            Some(place) if place.within.is_empty() => CodePlace { node: place.node, within: name.to_owned() },
            Some(place) => CodePlace { node: place.node, within: format!("{}/{name}", place.within) },
        }
    }
}
