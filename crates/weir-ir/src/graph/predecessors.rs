//! The order that the edges of a graph imply: sets of nodes, and the predecessors of each node.

use super::{Graph, NodeId};

/// A set of nodes, a bit for each, up to the last of them.
#[derive(Default)]
pub(crate) struct NodeSet(Vec<u64>);

impl NodeSet {
    pub(crate) fn insert(&mut self, NodeId(node): NodeId) {
        let word = node as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (node % 64);
    }

    pub(crate) fn insert_all(&mut self, others: &NodeSet) {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn contains(&self, NodeId(node): NodeId) -> bool {
        self.0.get(node as usize / 64).is_some_and(|word| word & (1 << (node % 64)) != 0)
    }

    /// Returns the nodes that are not among the others, in ascending order.
    pub(crate) fn without<'a>(&'a self, others: &'a NodeSet) -> impl Iterator<Item = NodeId> + 'a {
        let others = others.0.iter().copied().chain(std::iter::repeat(0));
        let words = self.0.iter().zip(others).map(|(word, other)| word & !other);
        (0..).zip(words).flat_map(|(index, word)| bits(word).map(move |bit| NodeId(index * 64 + bit)))
    }
}

/// Returns the indices of the set bits in ascending order.
fn bits(word: u64) -> impl Iterator<Item = u32> {
    let rest = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
    rest.take_while(|word| *word != 0).map(u64::trailing_zeros)
}

/// The predecessors of each node: the nodes that have run or were skipped whenever it runs.
pub(crate) struct Predecessors(Vec<NodeSet>);

impl Predecessors {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut all: Vec<NodeSet> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let mut earlier = NodeSet::default();
            for edge in node.waits_for() {
                earlier.insert_all(&all[edge.0 as usize]);
                earlier.insert(edge);
            }
            all.push(earlier);
        }
        Predecessors(all)
    }

    pub(crate) fn is(&self, first: NodeId, second: NodeId) -> bool {
        self.0[second.0 as usize].contains(first)
    }

    /// Returns the nodes that may not have run or been skipped when `node` runs.
    pub(crate) fn missing<'a>(&'a self, nodes: &'a NodeSet, node: NodeId) -> impl Iterator<Item = NodeId> + 'a {
        nodes.without(&self.0[node.0 as usize])
    }
}
