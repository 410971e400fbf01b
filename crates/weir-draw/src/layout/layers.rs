//! Layer assignment: ranks by longest path, and long edges split by bends.

use super::LayoutInput;

/// Boxes and bends in layers. Boxes have the first indices, bends the others.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// The elements of each rank, from left to right.
    pub(crate) ranks: Vec<Vec<usize>>,
    /// The rank of each box and bend.
    pub(crate) rank_of: Vec<usize>,
    /// The bends of each edge, from top to bottom.
    pub(crate) bends: Vec<Vec<usize>>,
    /// The neighbours of each box and bend in the rank above.
    pub(crate) above: Vec<Vec<usize>>,
    /// The neighbours of each box and bend in the rank below.
    pub(crate) below: Vec<Vec<usize>>,
    /// The number of boxes.
    pub(crate) boxes: usize,
}

impl Layers {
    /// Returns the position of each box and bend in its rank.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![0; self.rank_of.len()];
        for rank in &self.ranks {
            rank.iter().enumerate().for_each(|(position, &index)| positions[index] = position);
        }
        positions
    }

    fn add(&mut self, rank: usize) -> usize {
        let index = self.rank_of.len();
        self.rank_of.push(rank);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        index
    }

    fn join(&mut self, upper: usize, lower: usize) {
        self.below[upper].push(lower);
        self.above[lower].push(upper);
    }
}

/// Ranks every box below its predecessors, and splits edges that pass ranks.
pub(crate) fn layers(input: &LayoutInput) -> Layers {
    let mut layers = Layers { boxes: input.boxes.len(), ..Layers::default() };
    for rank in ranks(input) {
        layers.add(rank);
    }
    for &(from, to) in &input.edges {
        let mut bends = Vec::new();
        let mut upper = from;
        for rank in layers.rank_of[from] + 1..layers.rank_of[to] {
            let bend = layers.add(rank);
            layers.join(upper, bend);
            bends.push(bend);
            upper = bend;
        }
        layers.join(upper, to);
        layers.bends.push(bends);
    }
    layers.ranks = depth_first(&layers);
    layers
}

/// Returns the length of the longest path to each box. Boxes without predecessors move down next to their successors.
fn ranks(input: &LayoutInput) -> Vec<usize> {
    let mut ranks = vec![0; input.boxes.len()];
    let mut edges = input.edges.clone();
    edges.sort_unstable();
    // Every edge points to a later box, so that sorted edges are in topological order.
    for &(from, to) in &edges {
        ranks[to] = ranks[to].max(ranks[from] + 1);
    }
    for index in 0..ranks.len() {
        let is_root = edges.iter().all(|edge| edge.1 != index);
        let below = edges.iter().filter(|edge| edge.0 == index).map(|edge| ranks[edge.1]).min();
        if let (true, Some(below)) = (is_root, below) {
            ranks[index] = below - 1;
        }
    }
    ranks
}

/// Returns an initial order by depth-first search, which keeps connected boxes together.
fn depth_first(layers: &Layers) -> Vec<Vec<usize>> {
    let rank_count = layers.rank_of.iter().max().map_or(0, |last| last + 1);
    let mut ranks = vec![Vec::new(); rank_count];
    let mut seen = vec![false; layers.rank_of.len()];
    let roots = (0..layers.rank_of.len()).filter(|&index| layers.above[index].is_empty());
    for root in roots {
        let mut waiting = vec![root];
        while let Some(index) = waiting.pop() {
            if !std::mem::replace(&mut seen[index], true) {
                ranks[layers.rank_of[index]].push(index);
                waiting.extend(layers.below[index].iter().rev());
            }
        }
    }
    ranks
}
