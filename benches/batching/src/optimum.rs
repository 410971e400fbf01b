//! The least number of calls at the latency of the critical path, by trying every division of the calls into batches.

use crate::level_graph::LevelGraph;

/// The largest number of calls of a graph for which all divisions are tried.
pub(crate) const CALLS_MAX: usize = 9;

/// The division that is being tried.
struct Division<'a> {
    graph: &'a LevelGraph,
    latencies: &'a [u64],
    /// The nodes that ask a source.
    calls: Vec<usize>,
    /// The longest time that a flow may take.
    time_max: u64,
    /// For each node the batch of its call.
    batch_of: Vec<Option<usize>>,
    /// The source of each batch.
    batches: Vec<usize>,
    best: usize,
}

/// Returns the least number of calls with which the graph takes no longer than its critical path; `None` if it has more than
/// [`CALLS_MAX`] calls.
pub(crate) fn calls_min(graph: &LevelGraph, latencies: &[u64]) -> Option<u64> {
    let calls: Vec<usize> = (0..graph.0.len()).filter(|node| graph.0[*node].source.is_some()).collect();
    if calls.len() > CALLS_MAX {
        return None;
    }
    let time_max = graph.longest(|node| node.source.map_or(0, |source| latencies[source]));
    let (best, batch_of) = (calls.len(), vec![None; graph.0.len()]);
    let mut division = Division { graph, latencies, calls, time_max, batch_of, batches: Vec::new(), best };
    division.assign(0);
    Some(division.best as u64)
}

impl Division<'_> {
    /// Tries every batch for this call and those after it.
    fn assign(&mut self, call: usize) {
        if self.batches.len() >= self.best {
            return;
        }
        let Some(node) = self.calls.get(call).copied() else {
            if self.is_in_time() {
                self.best = self.batches.len();
            }
            return;
        };
        let Some(source) = self.graph.0[node].source else { return };
        for batch in 0..self.batches.len() {
            if self.batches[batch] == source {
                self.batch_of[node] = Some(batch);
                self.assign(call + 1);
            }
        }
        self.batches.push(source);
        self.batch_of[node] = Some(self.batches.len() - 1);
        self.assign(call + 1);
        self.batches.pop();
        self.batch_of[node] = None;
    }

    /// Returns true if every batch can be sent when all its requests are known, within the time.
    fn is_in_time(&self) -> bool {
        let mut sent = vec![0u64; self.batches.len()];
        // A batch that needs itself is sent later in each round, and so exceeds the time.
        for _ in 0..=self.batches.len() {
            let mut ends = vec![0u64; self.graph.0.len()];
            let mut is_stable = true;
            for (at, node) in self.graph.0.iter().enumerate() {
                let ready = node.inputs.iter().map(|input| ends[*input]).max().unwrap_or(0);
                ends[at] = self.batch_of[at].map_or(ready, |batch| {
                    is_stable &= ready <= sent[batch];
                    sent[batch] = sent[batch].max(ready);
                    sent[batch] + self.latencies[self.batches[batch]]
                });
            }
            if ends.into_iter().max().unwrap_or(0) > self.time_max {
                return false;
            }
            if is_stable {
                return true;
            }
        }
        false
    }
}
