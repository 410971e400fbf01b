//! Random level graphs (Ohua's thesis, §4.5.1).
//!
//! L - 1 random levels and a root at level 0. A level has 1 to 6 nodes with probability 0.10, 0.30, 0.40, 0.10, 0.07 and
//! 0.03; an edge from a node of level i to one of a deeper level j has probability 2^-(j - i), and the upper node consumes
//! the deeper one's value. The root consumes every node that nobody else does. A node asks a source with probability 0.4,
//! and otherwise computes, which takes no time.

use bench_harness::random;

const WIDTHS: [f64; 6] = [0.10, 0.30, 0.40, 0.10, 0.07, 0.03];
const SOURCES: f64 = 0.4;

/// A node.
#[derive(Clone)]
pub(crate) struct LevelNode {
    /// The source that it asks, if any.
    pub(crate) source: Option<usize>,
    /// The earlier nodes whose values it consumes.
    pub(crate) inputs: Vec<usize>,
}

/// A graph; each node comes after those that it consumes, and the last one is the root.
pub(crate) struct LevelGraph(pub(crate) Vec<LevelNode>);

fn fraction(seed: &mut u64) -> f64 {
    (random(seed) >> 11) as f64 / (1u64 << 53) as f64
}

fn width(seed: &mut u64) -> usize {
    let mut left = fraction(seed);
    for (index, weight) in WIDTHS.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return index + 1;
        }
    }
    WIDTHS.len()
}

impl LevelGraph {
    /// Generates a graph of this many levels over this many sources.
    pub(crate) fn random(levels: usize, sources: usize, seed: &mut u64) -> LevelGraph {
        // From the deepest level up.
        let depths: Vec<usize> =
            (1..levels).map(|level| (level, width(seed))).flat_map(|(level, width)| vec![level; width]).rev().collect();
        let mut nodes: Vec<LevelNode> = Vec::new();
        for (index, depth) in depths.iter().enumerate() {
            let deeper = (0..index).filter(|other| depths[*other] > *depth);
            let inputs = deeper.filter(|other| fraction(seed) < 0.5f64.powi((depths[*other] - depth) as i32)).collect();
            nodes.push(LevelNode { source: source(sources, seed), inputs });
        }
        let consumed: Vec<usize> = nodes.iter().flat_map(|node| node.inputs.iter().copied()).collect();
        let inputs = (0..nodes.len()).filter(|node| !consumed.contains(node)).collect();
        nodes.push(LevelNode { source: source(sources, seed), inputs });
        LevelGraph(nodes)
    }

    /// Returns the largest weight of a chain of nodes.
    pub(crate) fn longest(&self, weight: impl Fn(&LevelNode) -> u64) -> u64 {
        let mut depths: Vec<u64> = Vec::new();
        for node in &self.0 {
            let deepest = node.inputs.iter().map(|input| depths[*input]).max().unwrap_or(0);
            depths.push(deepest + weight(node));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns the least number of calls: the longest chain counted in each source alone.
    pub(crate) fn calls_min(&self, sources: usize) -> u64 {
        (0..sources).map(|source| self.longest(|node| u64::from(node.source == Some(source)))).sum()
    }

    /// Returns the graph as a program in the text of the expression IR: one statement after the other.
    pub(crate) fn program(&self) -> String {
        let mut body = String::new();
        let (mut next, mut values) = (1, Vec::new());
        let mut define = |body: &mut String, what: String| {
            *body += &format!("    %{next}: Int = {what}\n");
            next += 1;
            format!("%{}", next - 1)
        };
        for (index, node) in self.0.iter().enumerate() {
            let mut sum = format!("{index}");
            for input in &node.inputs {
                sum = define(&mut body, format!("add({sum}, {})", values[*input]));
            }
            values.push(match node.source {
                Some(source) => define(&mut body, format!("call source{source}.get at n{index} ({sum})")),
                None => define(&mut body, format!("add({sum}, %0)")),
            });
        }
        let result = values.last().map_or("0", |value| value.as_str());
        let head = "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n";
        format!("{head}{body}    yield {result}\n")
    }
}

fn source(sources: usize, seed: &mut u64) -> Option<usize> {
    (fraction(seed) < SOURCES).then(|| (random(seed) >> 33) as usize % sources)
}
