//! Reasons why nodes cannot be compiled to a region although they qualify.

use std::fmt;

use weir_host::Text;

/// The reason why a region cannot be built; its nodes stay steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::prepare::regions) enum RegionProblem {
    /// It has too many registers, slots or instructions.
    TooLarge,
    /// A node of it cannot be compiled with the others.
    Node {
        /// The name of the node; `None` for the end of the nodes.
        node: Option<Text>,
        obstacle: NodeObstacle,
    },
}

impl RegionProblem {
    pub(super) const fn of(obstacle: NodeObstacle) -> RegionProblem {
        RegionProblem::Node { node: None, obstacle }
    }

    /// Adds the name of the node, unless it is about a node of a body within.
    pub(super) fn at(mut self, name: &Text) -> RegionProblem {
        if let RegionProblem::Node { node, .. } = &mut self {
            node.get_or_insert_with(|| name.clone());
        }
        self
    }
}

impl fmt::Display for RegionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionProblem::TooLarge => f.write_str("there are too many values for one region"),
            RegionProblem::Node { node: Some(node), obstacle } => write!(f, "`{node}` {obstacle}"),
            RegionProblem::Node { node: None, obstacle } => write!(f, "its end {obstacle}"),
        }
    }
}

/// The reason why a node cannot be compiled with the nodes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::prepare::regions) enum NodeObstacle {
    /// Its arm has ended before it, or begins outside of the region.
    OutOfItsArm,
    /// It uses a value that is neither in a register nor in a slot.
    ValueElsewhere,
    /// It has no instruction in a region.
    NoInstruction,
}

impl fmt::Display for NodeObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeObstacle::OutOfItsArm => "is listed apart from the other nodes of its arm",
            NodeObstacle::ValueElsewhere => "uses a value that is in no register and in no slot",
            NodeObstacle::NoInstruction => "has no instruction in a region",
        })
    }
}
