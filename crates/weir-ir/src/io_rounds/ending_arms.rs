//! Arms of switches that end the flow: what comes behind such a switch runs only if the arm was not chosen, and does not wait for
//! the calls in it.

use indexmap::IndexSet;

use crate::graph::{Control, Graph, Node, NodeId, NodeKind, Operand};
use crate::prim::Prim;

/// The arms of a graph that end the flow.
pub(super) struct EndingArms(IndexSet<Control>);

impl EndingArms {
    pub(super) fn of(graph: &Graph) -> EndingArms {
        let mut arms = IndexSet::new();
        // An arm with a switch all of whose arms end the flow ends it, too.
        for (id, node) in graph.nodes().collect::<Vec<_>>().into_iter().rev() {
            let ends = match &node.kind {
                NodeKind::Return | NodeKind::Fail => true,
                NodeKind::Switch { arms: own } => {
                    let mut own = (0..).take(own.len()).map(|arm| Control { switch: id, arm });
                    own.all(|arm| arms.contains(&arm))
                }
                _ => false,
            };
            arms.extend(node.control.filter(|_| ends));
        }
        EndingArms(arms)
    }

    /// Returns true if the node is in one of the arms, so that the flow ends behind it.
    pub(super) fn contain(&self, graph: &Graph, node: &Node) -> bool {
        let around = std::iter::successors(node.control, |arm| graph.node(arm.switch).control);
        around.into_iter().any(|arm| self.0.contains(&arm))
    }

    /// Returns the switch that decides whether the flow ends in an arm with the earlier node, if the later node is not in this arm:
    /// the later one then runs only if the earlier one is skipped. Of several such switches, returns the outermost one.
    pub(super) fn skipped_for(&self, graph: &Graph, earlier: NodeId, later: NodeId) -> Option<NodeId> {
        let is_skipped = |arm: &Control| self.0.contains(arm) && arms(graph, later).all(|other| other != *arm);
        arms(graph, earlier).filter(is_skipped).last().map(|arm| arm.switch)
    }
}

/// Returns true if the nodes are in different arms of one switch, so that no flow runs both.
pub(super) fn are_exclusive(graph: &Graph, one: NodeId, other: NodeId) -> bool {
    arms(graph, one).any(|arm| arms(graph, other).any(|other| other.switch == arm.switch && other.arm != arm.arm))
}

/// Returns the nodes that an earlier node waits for, and that may run in a flow with the later one, which skips the earlier one: it
/// does so only when these have run.
pub(super) fn before_skipped(graph: &Graph, earlier: NodeId, later: NodeId) -> IndexSet<NodeId> {
    let (mut skipped, mut before) = (IndexSet::from([earlier]), IndexSet::new());
    let mut at = 0;
    while let Some(node) = skipped.get_index(at).copied() {
        for needed in graph.node(node).waits_for() {
            let others = if are_exclusive(graph, needed, later) { &mut skipped } else { &mut before };
            others.insert(needed);
        }
        at += 1;
    }
    before
}

/// Returns true if a switch goes on if there is no kept failure: the program's text has no such branch.
pub(super) fn tests_kept_failure(graph: &Graph, switch: NodeId) -> bool {
    let Some(Operand::Port(of, 0)) = graph.node(switch).inputs.first() else { return false };
    is_kept_failure(graph, *of)
}

fn is_kept_failure(graph: &Graph, node: NodeId) -> bool {
    match (&graph.node(node).kind, graph.node(node).inputs.first()) {
        (NodeKind::Call { keeps_failure, .. }, _) => *keeps_failure,
        (NodeKind::Prim(Prim::Checked(_)), _) => true,
        (NodeKind::Prim(Prim::Field(_)), Some(Operand::Port(of, 0))) => is_kept_failure(graph, *of),
        (NodeKind::Select { switch }, _) => tests_kept_failure(graph, *switch),
        _ => false,
    }
}

/// Returns the arms that a node is in, the innermost one first.
fn arms(graph: &Graph, id: NodeId) -> impl Iterator<Item = Control> {
    std::iter::successors(graph.node(id).control, |arm| graph.node(arm.switch).control)
}
