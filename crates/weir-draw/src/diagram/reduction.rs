//! Transitive reduction: removes the edges of a diagram that other paths imply.

use super::{Diagram, Edge, EdgeLabel};

impl Diagram {
    /// Removes edges that another path implies (transitive reduction). For a choice, the path must start with the same
    /// arm.
    pub(super) fn reduce(&mut self) {
        self.edges.sort();
        self.edges.dedup();
        let below = self.below();
        let outgoing = self.outgoing();
        let follows = |edge: &Edge| {
            outgoing[edge.from].iter().map(|&other| &self.edges[other]).any(|other| {
                let same_start = !matches!(edge.label, EdgeLabel::Choice(_)) || other.label == edge.label;
                let stronger =
                    other.to == edge.to && other.label < edge.label && !matches!(edge.label, EdgeLabel::Choice(_));
                stronger || (same_start && other.to != edge.to && below[other.to].contains(edge.to))
            })
        };
        let kept: Vec<Edge> = self.edges.iter().filter(|edge| !follows(edge)).cloned().collect();
        self.edges = kept;
    }

    fn outgoing(&self) -> Vec<Vec<usize>> {
        let mut outgoing = vec![Vec::new(); self.marks.len()];
        self.edges.iter().enumerate().for_each(|(index, edge)| outgoing[edge.from].push(index));
        outgoing
    }

    /// Returns, for each mark, the marks that are reachable from it.
    fn below(&self) -> Vec<Bits> {
        let mut below = vec![Bits::default(); self.marks.len()];
        for edge in self.edges.iter().rev() {
            // Edges are sorted by `from` and point forward, so that the set of `to` is complete.
            let reached = below[edge.to].clone();
            below[edge.from].add(edge.to);
            below[edge.from].add_all(&reached);
        }
        below
    }
}

/// A set of marks.
#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn add(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn add_all(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}
