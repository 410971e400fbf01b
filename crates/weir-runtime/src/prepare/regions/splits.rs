//! Rounds on several threads: which loops allow it, and what forbids it.
//!
//! The rounds of a `for` may run beside each other if they have no order: none writes what others read or write, none may
//! end the flow by its text, and none changes a value that the next one finds. Rounds that read a shared value stay on the
//! thread that holds its lock.

use std::fmt;

use weir_host::{Mode, Resource};
use weir_ir::graph::{Graph, Node, NodeKind};

use crate::step::{Repeat, RepeatStep};

/// The reason why the rounds of a loop run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SplitObstacle {
    /// Each round needs the one before it.
    NeedsLast,
    /// The rounds change a value in turn.
    Changes,
    /// The elements can only be moved.
    MovesElements,
    /// The loop is in an atomic step.
    AtomicStep,
    /// A round may end the flow at this node.
    Ends(String),
    /// This node writes a resource.
    Writes(String, Resource),
    /// This node reads a shared value.
    Reads(String, Resource),
}

impl fmt::Display for SplitObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitObstacle::NeedsLast => f.write_str("each needs the result of the one before it"),
            SplitObstacle::MovesElements => f.write_str("their elements can only be moved"),
            SplitObstacle::Changes => f.write_str("they change a value in turn"),
            SplitObstacle::AtomicStep => f.write_str("they are in an atomic step"),
            SplitObstacle::Ends(node) => write!(f, "`{node}` may end the flow"),
            SplitObstacle::Writes(node, resource) => write!(f, "`{node}` writes `{resource}`"),
            SplitObstacle::Reads(node, resource) => write!(f, "`{node}` reads `{resource}` under a lock"),
        }
    }
}

/// Returns the reason why the rounds of this loop run one after the other; `None` if they may run on several threads, those of a
/// `fold` only if its states are reductions.
pub(super) fn obstacle(node: &Node, step: &RepeatStep) -> Option<SplitObstacle> {
    if matches!(step.repeat, Repeat::Loop { .. }) {
        return Some(SplitObstacle::NeedsLast);
    }
    if step.body.handed[step.repeat.fixed()..].contains(&true) {
        return Some(SplitObstacle::Changes);
    }
    if node.within.is_some() {
        return Some(SplitObstacle::AtomicStep);
    }
    node.bodies().iter().find_map(obstacle_in)
}

fn obstacle_in(graph: &Graph) -> Option<SplitObstacle> {
    graph.nodes.iter().find_map(|node| {
        let name = || node.name.to_string();
        match node.kind {
            NodeKind::Return | NodeKind::Fail => return Some(SplitObstacle::Ends(name())),
            _ if !node.bodies().is_empty() => return node.bodies().iter().find_map(obstacle_in),
            _ => {}
        }
        node.uses.iter().find_map(|used| match (used.mode, &used.resource) {
            (Mode::Write, resource) => Some(SplitObstacle::Writes(name(), resource.clone())),
            (Mode::Read, Resource::World(_)) => None,
            (Mode::Read, resource) => Some(SplitObstacle::Reads(name(), resource.clone())),
        })
    })
}
