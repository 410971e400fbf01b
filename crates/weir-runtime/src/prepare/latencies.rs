//! The steps of a body that may wait, with their latencies, for the slack of batched calls.

use std::sync::Arc;

use weir_ir::graph::{Graph, Node, NodeKind};

use super::order::StepOrder;
use super::part::NodePart;
use super::shape::ControlShape;
use crate::batching::{LatencyGraph, LatencyStep, ReturnStep, StepLatency};
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
    let arms =
        |index: usize| shape.chains[index].iter().map(|arm| (shape.numbers[arm.switch.0 as usize], arm.arm)).collect();
    let step = |index: usize| {
        let (node, part) = (&graph.nodes[index], &parts[index]);
        LatencyStep { index, before: order.depends[index].clone(), arms: arms(index), latency: latency(node, part) }
    };
    let steps = (0..parts.len()).filter(waits).map(step).collect();
    let returns = (0..parts.len()).filter(|index| may_return(&graph.nodes[*index]));
    let returns = returns.map(|index| ReturnStep { index, arms: arms(index) }).collect();
    let takes_turns = order.awaits_orders.iter().any(|orders| *orders != 0);
    LatencyGraph::new(steps, returns, takes_turns).map(Arc::new)
}

/// Returns true if a node may end the flow with an answer.
fn may_return(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Return) || node.bodies().iter().any(|body| body.nodes.iter().any(may_return))
}

fn latency(node: &Node, part: &NodePart) -> StepLatency {
    match (&part.call, part.gatherer().or_else(|| part.gatherer_of_iterations()), part.iterations()) {
        (call, Some(gatherer), _) => {
            let delays = !gatherer.writes() && node.within.is_none();
            StepLatency::Gathered { gatherer: Arc::clone(gatherer), delays, repeats: call.is_none() }
        }
        (Some(call), None, _) if !call.waits() => StepLatency::OtherFlows,
        (_, _, Some(body)) if Repeat::of(&node.kind) == Some(Repeat::Map) => {
            StepLatency::Iterations { body: Arc::clone(body), delays: node.within.is_none() }
        }
        _ if matches!(node.kind, NodeKind::Acquire { .. }) => StepLatency::OtherFlows,
        _ if part.waits(node) => StepLatency::Unknown,
        _ => StepLatency::None,
    }
}
