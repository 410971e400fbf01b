//! Detaching: a field or element that is updated moves out of its record, list or map, instead of being copied.
//!
//! `{ ..r, items: r.items + [x] }` reads a field, makes its new value of it, and puts that in its place. While the record
//! holds the old value too, making the new one copies it. The same holds for `m.with(k, (m[k] else { [] }) + [x])`, a get and
//! an update of one entry.
//!
//! *Source.* In-place updates of unique values by reference counts (Perceus, PLDI 2021, §2.2 to §2.5), extended to parts:
//! a last use of a part is found as the last use of a value is.
//!
//! *Law.* A primitive that reads a part may move it out of the value if no node reads that part afterwards: each other node
//! that reads it is in another arm, or has run before. Nodes that read other fields, replace the part, or ask for the
//! length of a list or map do not read it, and a record with another field replaced is read as its own users read it. The
//! value was made by this run of the graph, so that no other round sees it. If the flow ends in between, the frame ends
//! with it. At run time a part stays where it is if the value is shared. A reader that is listed before and waits for
//! nothing else gets an edge to the node.

use weir_host::{Library, Type};

use crate::graph::{Graph, NodeId, NodeKind, NodeSet, PartUses, Predecessors};
use crate::prim::Prim;

/// The number of nodes up to which a graph is examined: the predecessors take one bit for each pair of nodes.
const NODES_MAX: usize = 8_192;

pub(super) fn run(graph: &mut Graph, library: &Library) {
    detach(graph, usize::MAX, library);
}

/// Detaches parts in a graph of which so many parameters are its own, and in the bodies within.
fn detach(graph: &mut Graph, own: usize, library: &Library) {
    for found in Search::new(graph, own, library).map_or_else(Vec::new, |search| search.all()) {
        let node = &mut graph.nodes[found.node.0 as usize];
        node.kind = NodeKind::Prim(found.prim);
        node.after.extend(found.readers);
        node.after.sort_unstable();
        node.after.dedup();
    }
    for node in &mut graph.nodes {
        let own = node.kind.own().parameters;
        node.kind.bodies_mut().iter_mut().for_each(|body| detach(body, own, library));
    }
}

/// A node that may move out what it reads.
struct Detachment {
    node: NodeId,
    prim: Prim,
    /// The nodes that read the same part, all of which are listed before.
    readers: Vec<NodeId>,
}

/// The search for nodes that may move out what they read.
struct Search<'g> {
    graph: &'g Graph,
    uses: PartUses<'g>,
    earlier: Predecessors,
    /// The nodes that may keep the flow waiting.
    waits: NodeSet,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph, own: usize, library: &'g Library) -> Option<Self> {
        let reads_parts = |kind: &NodeKind| matches!(kind, NodeKind::Prim(prim) if prim.detaching().is_some());
        if graph.nodes.len() > NODES_MAX || !graph.nodes.iter().any(|node| reads_parts(&node.kind)) {
            return None;
        }
        let mut waits = NodeSet::default();
        graph.nodes().filter(|(_, node)| node.kind.may_wait()).for_each(|(id, _)| waits.insert(id));
        Some(Search { graph, uses: PartUses::new(graph, own, library), earlier: Predecessors::new(graph), waits })
    }

    fn all(&self) -> Vec<Detachment> {
        self.graph.nodes().filter_map(|(id, _)| self.detachment(id)).collect()
    }

    fn detachment(&self, node: NodeId) -> Option<Detachment> {
        let NodeKind::Prim(prim) = self.graph.node(node).kind else { return None };
        let prim = prim.detaching()?;
        let part = self.uses.part(node)?;
        if !owns_memory(self.graph.node(node).outputs.first()?) || !self.uses.is_steady(&part) {
            return None;
        }
        // At the last use of the whole value, its memory goes anyway.
        if !self.uses.has_other_uses(node, &part) {
            return None;
        }
        let readers = self.uses.other_readers(node, &part);
        readers.iter().all(|reader| self.has_run(*reader, node)).then_some(Detachment { node, prim, readers })
    }

    /// Returns true if the reader has run before the node, or does so with an edge that keeps nothing waiting.
    fn has_run(&self, reader: NodeId, node: NodeId) -> bool {
        let waits_for_more = || {
            let mut missing = self.earlier.missing(&self.waits, node);
            missing.any(|wait| wait == reader || self.earlier.is(wait, reader))
        };
        reader < node && (self.earlier.is(reader, node) || !waits_for_more())
    }
}

/// Returns true if values of the type may hold memory that a change would copy.
fn owns_memory(ty: &Type) -> bool {
    match ty {
        Type::Option(inner) => owns_memory(inner),
        other => !other.is_scalar(),
    }
}
