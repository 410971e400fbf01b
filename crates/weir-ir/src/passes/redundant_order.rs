//! Redundant order: an `after` edge is removed if a path of other edges implies it.
//!
//! *Source.* Transitive reduction of a directed acyclic graph (Aho, Garey and Ullman, SIAM J. Comput. 1972).
//!
//! *Law.* A node waits for every node from which a path of edges leads to it, even if nodes on the path are skipped,
//! because skipping preserves the order. The pairs of nodes that are ordered stay the same, and with them the order of
//! effects and of ends. Inputs and control stay, and so does the edge of a node to the acquire of its step.

use weir_host::Library;

use crate::graph::{Graph, NodeId, Predecessors};

/// The number of nodes up to which a graph is reduced: the predecessors take one bit for each pair of nodes.
const NODES_MAX: usize = 8_192;

pub(super) fn run(graph: &mut Graph, _: &Library) {
    in_all(graph);
}

/// Reduces a graph and the bodies within it.
fn in_all(graph: &mut Graph) {
    if graph.nodes.len() <= NODES_MAX {
        reduce(graph);
    }
    graph.nodes.iter_mut().flat_map(|node| node.kind.bodies_mut()).for_each(in_all);
}

/// Removes the edges of one graph that others imply. An edge that goes is implied by edges that stay: of a chain of
/// implied edges the last one is not, because the graph has no cycle.
fn reduce(graph: &mut Graph) {
    let earlier = Predecessors::new(graph);
    for node in &mut graph.nodes {
        let others: Vec<NodeId> = node.waits_for().collect();
        let implied = |edge: NodeId| others.iter().any(|other| earlier.is(edge, *other));
        let step = node.within;
        node.after.retain(|edge| Some(*edge) == step || !implied(*edge));
    }
}
