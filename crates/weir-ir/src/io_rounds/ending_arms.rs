//! Arms of switches that end the flow: what comes behind such a switch runs only if the arm was not chosen, and does not wait for
//! the calls in it.

use indexmap::IndexSet;

use crate::graph::{Control, Graph, NodeId, NodeKind};

/// The arms of a graph that end the flow.
pub(super) struct EndingArms(IndexSet<Control>);

impl EndingArms {
    pub(super) fn of(graph: &Graph) -> EndingArms {
        let ends = graph.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Return | NodeKind::Fail));
        EndingArms(ends.filter_map(|node| node.control).collect())
    }

    pub(super) fn contains(&self, arm: Control) -> bool {
        self.0.contains(&arm)
    }

    /// Returns the switch that decides whether the flow ends in an arm with the earlier node, if the later node is not in this arm:
    /// the later one then runs only if the earlier one is skipped. Of several such switches, returns the outermost one.
    pub(super) fn skipped_for(&self, graph: &Graph, earlier: NodeId, later: NodeId) -> Option<NodeId> {
        let is_skipped = |arm: &Control| self.contains(*arm) && arms(graph, later).all(|other| other != *arm);
        arms(graph, earlier).filter(is_skipped).last().map(|arm| arm.switch)
    }
}

/// Returns the arms that a node is in, the innermost one first.
fn arms(graph: &Graph, id: NodeId) -> impl Iterator<Item = Control> {
    std::iter::successors(graph.node(id).control, |arm| graph.node(arm.switch).control)
}
