//! Models of the policies by which other systems send batches, by discrete-event simulation.

use std::collections::BTreeMap;

use crate::latency::{LatencyOf, SourceCall, UNIT_NS};
use crate::level_graph::LevelGraph;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The requests of a source leave when nothing can be computed any more: npm's `dataloader`, Haxl 2.
    Eager,
    /// The next batches leave when all earlier ones are back: Haxl 1, Yauhau.
    Rounds,
    /// The requests of a source leave this many nanoseconds after the first of them: async-graphql's loader.
    Delay(u64),
    /// A batch leaves when its first request has no slack left on the critical path; the latencies are known.
    Slack,
}

/// The state of a simulation.
struct Simulation<'a> {
    graph: &'a LevelGraph,
    /// The inputs that each node still waits for.
    missing: Vec<usize>,
    /// The latest time at which each node may begin without delaying the root.
    latest: Vec<u64>,
    pending: Vec<Vec<usize>>,
    /// The time at which the first of the pending requests of each source was made.
    asked: Vec<u64>,
    ends: BTreeMap<u64, Vec<Vec<usize>>>,
    in_flight: usize,
    calls: u64,
    latency: &'a LatencyOf,
    flow: usize,
    earlier: u64,
}

/// Returns the time, in nanoseconds, and the number of calls that a policy takes for a flow after this number of calls. The
/// policy knows `latencies`, in units; `latency` has those that happen.
pub(crate) fn simulate(
    graph: &LevelGraph,
    latencies: &[u64],
    latency: &LatencyOf,
    (flow, earlier): (usize, u64),
    policy: Policy,
) -> (u64, u64) {
    let missing = graph.0.iter().map(|node| node.inputs.len()).collect();
    let mut simulation = Simulation {
        graph,
        missing,
        latest: latest(graph, latencies),
        pending: vec![Vec::new(); latencies.len()],
        asked: vec![0; latencies.len()],
        ends: BTreeMap::new(),
        in_flight: 0,
        calls: 0,
        latency,
        flow,
        earlier,
    };
    let ready: Vec<usize> = (0..graph.0.len()).filter(|node| graph.0[*node].inputs.is_empty()).collect();
    simulation.begin(ready, 0);
    simulation.send(0, policy);
    let mut now = 0;
    while let Some((time, batches)) = simulation.ends.pop_first() {
        now = time;
        for batch in batches {
            simulation.in_flight -= usize::from(!batch.is_empty());
            batch.into_iter().for_each(|node| simulation.end(node, now));
        }
        simulation.send(now, policy);
    }
    (now, simulation.calls)
}

fn latest(graph: &LevelGraph, latencies: &[u64]) -> Vec<u64> {
    let cost = |node: usize| graph.0[node].source.map_or(0, |source| latencies[source] * UNIT_NS);
    let mut tails: Vec<u64> = (0..graph.0.len()).map(cost).collect();
    for node in (0..graph.0.len()).rev() {
        for input in &graph.0[node].inputs {
            tails[*input] = tails[*input].max(tails[node] + cost(*input));
        }
    }
    let total = tails.iter().copied().max().unwrap_or(0);
    tails.iter().map(|tail| total - tail).collect()
}

impl Simulation<'_> {
    fn begin(&mut self, ready: Vec<usize>, now: u64) {
        for node in ready {
            let Some(source) = self.graph.0[node].source else {
                self.end(node, now);
                continue;
            };
            if self.pending[source].is_empty() {
                self.asked[source] = now;
            }
            self.pending[source].push(node);
        }
    }

    fn end(&mut self, node: usize, now: u64) {
        let users = (node + 1..self.graph.0.len()).filter(|user| self.graph.0[*user].inputs.contains(&node));
        let mut ready = Vec::new();
        for user in users {
            self.missing[user] -= 1;
            if self.missing[user] == 0 {
                ready.push(user);
            }
        }
        self.begin(ready, now);
    }

    fn send(&mut self, now: u64, policy: Policy) {
        let was_busy = self.in_flight > 0;
        for source in 0..self.pending.len() {
            let Some(due) = self.pending[source].iter().map(|node| self.latest[*node]).min() else { continue };
            let due = match policy {
                Policy::Slack => due,
                Policy::Delay(ns) => self.asked[source] + ns,
                Policy::Eager | Policy::Rounds => now,
            };
            if due > now {
                // An empty batch stands for looking again.
                self.ends.entry(due).or_default().push(Vec::new());
            } else if policy != Policy::Rounds || !was_busy {
                let batch = std::mem::take(&mut self.pending[source]);
                (self.calls, self.in_flight) = (self.calls + 1, self.in_flight + 1);
                let call = SourceCall { source, flow: self.flow, earlier: self.earlier + self.calls };
                self.ends.entry(now + (self.latency)(call)).or_default().push(batch);
            }
        }
    }
}
