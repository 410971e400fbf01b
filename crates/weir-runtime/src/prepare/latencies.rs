//! The steps of a body that may wait, with their latencies, for the slack of batched calls.

use std::sync::Arc;

use weir_ir::graph::{Graph, Node, NodeKind};

use super::order::StepOrder;
use super::part::NodePart;
use super::shape::ControlShape;
use crate::batching::{LatencyGraph, LatencyStep, StepLatency};
use crate::step::Repeat;

/// Returns the waiting steps of a graph; `None` if calls in it have no slack.
pub(super) fn latencies(
    graph: &Graph,
    parts: &[NodePart],
    shape: &ControlShape,
    order: &StepOrder,
) -> Option<Arc<LatencyGraph>> {
    let waits = |index: &usize| order.numbers[*index].is_some();
    let gathers = parts.iter().any(|part| part.gatherer().is_some() || part.iterations().is_some());
    if !gathers {
        return None;
    }
    let step = |index: usize| {
        let (node, part) = (&graph.nodes[index], &parts[index]);
        let arms = shape.chains[index].iter().map(|arm| (shape.numbers[arm.switch.0 as usize], arm.arm)).collect();
        LatencyStep { index, before: order.depends[index].clone(), arms, latency: latency(node, part) }
    };
    LatencyGraph::new((0..parts.len()).filter(waits).map(step).collect()).map(Arc::new)
}

fn latency(node: &Node, part: &NodePart) -> StepLatency {
    match (&part.call, part.gatherer().or_else(|| part.gatherer_of_iterations()), part.iterations()) {
        (_, Some(gatherer), _) => {
            let delays = !gatherer.writes() && node.within.is_none();
            StepLatency::Gathered { gatherer: Arc::clone(gatherer), delays }
        }
        (Some(call), None, _) if !call.waits() => StepLatency::None,
        (_, _, Some(body)) if Repeat::of(&node.kind) == Some(Repeat::Map) => {
            StepLatency::Iterations { body: Arc::clone(body), delays: node.within.is_none() }
        }
        _ if matches!(node.kind, NodeKind::Acquire { .. }) => StepLatency::None,
        _ if part.waits(node) => StepLatency::Unknown,
        _ => StepLatency::None,
    }
}
