//! Verification of fused conditions: a switch may evaluate what says so, and evaluates all of it.

use super::report::Rule;
use super::view::{GraphVerifier, GraphView};
use crate::graph::{Conditions, Graph, NodeId, Operand};

pub(super) fn check(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>) {
    let graph = view.graph;
    if graph.nodes.iter().all(|node| node.condition_of.is_none()) {
        return;
    }
    let conditions = Conditions::new(graph, checker.library);
    for (id, node) in graph.nodes() {
        let Some(switch) = node.condition_of else { continue };
        if switch <= id || switch.0 as usize >= graph.nodes.len() || !conditions.parts(switch).contains(&id) {
            checker.add(Rule::Conditions, node, format!("cannot be part of the condition of %{}", switch.0));
        } else if !is_evaluated(graph, id, switch) {
            checker.add(Rule::Conditions, node, format!("is not evaluated, because %{} does not reach it", switch.0));
        }
    }
}

/// Returns true if the switch, or another part of its condition, uses the node's result.
fn is_evaluated(graph: &Graph, id: NodeId, switch: NodeId) -> bool {
    let mut users = graph.nodes().filter(|(_, user)| user.inputs.contains(&Operand::Port(id, 0)));
    users.all(|(user, node)| user == switch || node.condition_of == Some(switch))
}
