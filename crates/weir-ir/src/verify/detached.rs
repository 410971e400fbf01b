//! Verification of primitives that move a part out of a value: nothing may read the part afterwards.

use super::report::Rule;
use super::view::{GraphVerifier, GraphView};
use crate::graph::{NodeKind, PartUses, Predecessors};

/// Checks all nodes of a graph of which so many parameters are its own.
pub(super) fn check(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>, own: usize) {
    let graph = view.graph;
    if !graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Prim(prim) if prim.detaches())) {
        return;
    }
    let (uses, earlier) = (PartUses::new(graph, own, checker.library), Predecessors::new(graph));
    for (id, node) in graph.nodes() {
        let (NodeKind::Prim(prim), Some(part)) = (&node.kind, uses.part(id)) else { continue };
        if !prim.detaches() {
            continue;
        }
        if !uses.is_steady(&part) {
            checker.add(Rule::Order, node, "moves a part out of a value that outlives this run");
        }
        for reader in uses.other_readers(id, &part) {
            if reader.0 as usize >= graph.nodes.len() {
                checker.add(Rule::Order, node, "moves a part out of the graph's result");
            } else if !earlier.is(reader, id) {
                checker.add(Rule::Order, node, format!("moves out what %{} reads, without waiting for it", reader.0));
            }
        }
    }
}
