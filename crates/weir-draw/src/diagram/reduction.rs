//! Transitive reduction: removes the edges of a diagram that other paths imply.

use std::ops::Range;

use super::edges::{Edge, EdgeLabel, MarkId};

/// Removes edges that another path implies (transitive reduction). For a choice, the path must start with the same arm.
pub(super) fn reduce(edges: &mut Vec<Edge>, marks: usize) {
    edges.sort();
    edges.dedup();
    let below = below(edges, 0..marks);
    let mut outgoing = vec![Vec::new(); marks];
    edges.iter().enumerate().for_each(|(index, edge)| outgoing[edge.from].push(index));
    let follows = |edge: &Edge| {
        outgoing[edge.from].iter().map(|&other: &usize| &edges[other]).any(|other| {
            let same_start = !matches!(edge.label, EdgeLabel::Choice(_)) || other.label == edge.label;
            let stronger =
                other.to == edge.to && other.label < edge.label && !matches!(edge.label, EdgeLabel::Choice(_));
            stronger || (same_start && other.to != edge.to && below[other.to].contains(edge.to))
        })
    };
    let kept: Vec<Edge> = edges.iter().filter(|edge| !follows(edge)).cloned().collect();
    *edges = kept;
}

/// Returns, for each of these marks, the marks among them that are reachable from it, counted from the first one.
pub(super) fn below(edges: &[Edge], marks: Range<MarkId>) -> Vec<Bits> {
    let mut within: Vec<(usize, usize)> = edges
        .iter()
        .filter(|edge| marks.contains(&edge.from) && marks.contains(&edge.to))
        .map(|edge| (edge.from - marks.start, edge.to - marks.start))
        .collect();
    within.sort_unstable();
    let mut below = vec![Bits::default(); marks.len()];
    for (from, to) in within.into_iter().rev() {
        // Edges point forward, so that the set of `to` is complete.
        let reached = below[to].clone();
        below[from].add(to);
        below[from].add_all(&reached);
    }
    below
}

/// A set of marks.
#[derive(Clone, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn add(&mut self, index: usize) {
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

    pub(super) fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// Returns whether two sets have a mark in common.
    pub(super) fn meets(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }
}
