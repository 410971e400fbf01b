//! The reasons for which nodes come after others that they do not need a value of.

use weir_host::{Mode, Resource};

use super::io_call::WaitReason;
use crate::graph::{Graph, Node, NodeKind};

/// Returns the reason for which what is in the body of a node waits, if the node waits for this one.
pub(super) fn enclosed(node: &Node, why: WaitReason) -> WaitReason {
    match why {
        WaitReason::Branch(_) | WaitReason::Atomic { .. } | WaitReason::Enclosing { .. } => why,
        why => WaitReason::Enclosing { word: node.kind.word(), at: node.origin, why: Box::new(why) },
    }
}

/// Returns the reason for which a node waits for an earlier one at which the flow may end.
pub(super) fn end(node: &Node, earlier: &Node) -> WaitReason {
    if node.writes() { WaitReason::End(earlier.origin) } else { WaitReason::Return(earlier.origin) }
}

/// Returns the order of a resource that both nodes use: of one that one of them changes, or else of a shared value.
pub(super) fn common_resource(graph: &Graph, node: &Node, other: &Node) -> Option<WaitReason> {
    let earlier = touched(graph, other);
    let orders = touched(graph, node).into_iter().filter_map(|(resource, mode)| {
        let modes = earlier.iter().filter(|(other, _)| *other == resource).map(|(_, mode)| *mode);
        let (later_writes, earlier_writes) = (mode == Mode::Write, modes.clone().any(|mode| mode == Mode::Write));
        let keeps_order = later_writes || earlier_writes || matches!(resource, Resource::Shared(_));
        let is_common = modes.count() > 0 && keeps_order;
        is_common.then(|| WaitReason::Order { resource: resource.clone(), earlier_writes, later_writes })
    });
    let is_of_reads =
        |order: &WaitReason| matches!(order, WaitReason::Order { earlier_writes: false, later_writes: false, .. });
    orders.min_by_key(is_of_reads)
}

/// Returns the resources that a node uses or that an atomic step holds which it begins or ends.
fn touched<'a>(graph: &'a Graph, node: &'a Node) -> Vec<(&'a Resource, Mode)> {
    let step = match node.kind {
        NodeKind::Release { acquire } => graph.node(acquire),
        _ => node,
    };
    let held = step.kind.constraints().iter().map(|constraint| (&constraint.resource, constraint.mode));
    node.uses.iter().map(|usage| (&usage.resource, usage.mode)).chain(held).collect()
}
