//! Verification of order: nodes that may not overlap are connected by a path of inputs, control and `after` edges.
//!
//! A path counts even if a node on it is skipped: a node is skipped only when all that it waits for has run or was
//! skipped, so that skipping preserves the order. Nodes in different arms of one switch need no order.

use std::collections::BTreeMap;

use weir_host::{Mode, Passing, Resource};

use super::report::Rule;
use super::uses::constraints;
use super::view::{GraphVerifier, GraphView};
use crate::graph::{Graph, Node, NodeId, NodeKind, NodeSet, Operand, Predecessors};

/// The key of an access whose order matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConflictKey {
    Resource(Resource),
    /// A port or a parameter whose value some node changes or moves away: its node and port.
    Value(Option<NodeId>, u32),
}

/// Checks the order of all nodes of one graph.
pub(super) fn check(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>) {
    let earlier = Predecessors::new(view.graph);
    resources(checker, view, &earlier);
    reads(checker, view, &earlier);
    ends(checker, view, &earlier);
    steps(checker, view, &earlier);
}

/// Checks that conflicting accesses to one resource, or to one value that is changed or moved, are ordered.
fn resources(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>, earlier: &Predecessors) {
    let mut accesses: BTreeMap<ConflictKey, Vec<(NodeId, Mode)>> = BTreeMap::new();
    for (id, node) in view.graph.nodes() {
        for (key, mode) in accesses_of(checker, view.graph, node) {
            accesses.entry(key).or_default().push((id, mode));
        }
    }
    accesses.retain(|_, nodes| nodes.iter().any(|(_, mode)| *mode == Mode::Write));
    for (key, nodes) in accesses {
        let (mut all, mut writers) = (NodeSet::default(), NodeSet::default());
        for (second, mode) in nodes {
            let conflicting = if mode == Mode::Write { &all } else { &writers };
            for first in earlier.missing(conflicting, second) {
                if first != second && !view.exclusive(first, second) {
                    let what = format!("does not wait for %{}, which touches {} too", first.0, name(&key));
                    checker.add(Rule::Order, view.graph.node(second), what);
                }
            }
            all.insert(second);
            if mode == Mode::Write {
                writers.insert(second);
            }
        }
    }
}

/// Checks that a reader of a shared value waits for the earlier readers that are immediate.
fn reads(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>, earlier: &Predecessors) {
    let mut readers: BTreeMap<&Resource, NodeSet> = BTreeMap::new();
    for (id, node) in view.graph.nodes() {
        for resource in node.shared_reads() {
            let before = readers.entry(resource).or_default();
            if let Some(first) = earlier.missing(before, id).find(|first| !view.exclusive(*first, id)) {
                checker.add(
                    Rule::Order,
                    node,
                    format!("does not wait for %{}, which reads {resource} before", first.0),
                );
            }
            if node.kind.is_immediate(checker.library) {
                before.insert(id);
            }
        }
    }
}

fn name(key: &ConflictKey) -> String {
    match key {
        ConflictKey::Resource(resource) => resource.to_string(),
        ConflictKey::Value(Some(node), port) => format!("the value %{}.{port}", node.0),
        ConflictKey::Value(None, index) => format!("the value p{index}"),
    }
}

fn accesses_of(checker: &GraphVerifier<'_, '_>, graph: &Graph, node: &Node) -> Vec<(ConflictKey, Mode)> {
    let uses = node.uses.iter().map(|usage| (usage.resource.clone(), usage.mode));
    let resources = uses.chain(constraints(node)).map(|(resource, mode)| (ConflictKey::Resource(resource), mode));
    let values = node.inputs.iter().enumerate().filter_map(|(index, input)| {
        let key = match input {
            Operand::Port(from, port) => ConflictKey::Value(Some(*from), *port),
            Operand::Parameter(parameter) => ConflictKey::Value(None, *parameter),
            _ => return None,
        };
        Some((key, mode_of(checker, graph, node, index)))
    });
    resources.chain(values).collect()
}

/// Returns the mode of an input: [`Mode::Write`] if the node changes it, or takes a move-only value.
fn mode_of(checker: &GraphVerifier<'_, '_>, graph: &Graph, node: &Node, input: usize) -> Mode {
    let changes = match &node.kind {
        NodeKind::Call { function, .. } => {
            let function = checker.library.function(function);
            let passing = function.and_then(|function| function.signature.parameters.get(input)).map(|p| p.passing);
            match passing {
                Some(Passing::Change) => true,
                Some(Passing::Value | Passing::Typed | Passing::Named) => is_move_only(checker, graph, node, input),
                _ => false,
            }
        }
        NodeKind::Prim(prim) => prim.passes_on() && is_move_only(checker, graph, node, input),
        NodeKind::Switch { arms } => {
            arms.iter().any(|arm| arm.payload > 0) && is_move_only(checker, graph, node, input)
        }
        // A body hands what it captures to its next round, unless it changes it; if it may be cancelled, it takes what it
        // could lose. All other inputs go into the operation.
        _ => match node.captured(input) {
            Some((body, parameter)) => {
                let taken = node.cancels_bodies() && is_move_only(checker, graph, node, input);
                taken || changes_parameter(checker, &node.bodies()[body], parameter)
            }
            None => is_move_only(checker, graph, node, input),
        },
    };
    if changes { Mode::Write } else { Mode::Read }
}

fn changes_parameter(checker: &GraphVerifier<'_, '_>, body: &Graph, index: usize) -> bool {
    body.nodes.iter().any(|node| {
        let takes = |input: &Operand| matches!(input, Operand::Parameter(taken) if *taken as usize == index);
        let mut inputs = node.inputs.iter().enumerate().filter(|(_, input)| takes(input));
        inputs.any(|(input, _)| mode_of(checker, body, node, input) == Mode::Write)
    })
}

fn is_move_only(checker: &GraphVerifier<'_, '_>, graph: &Graph, node: &Node, input: usize) -> bool {
    let ty = match &node.inputs[input] {
        Operand::Port(from, port) => graph.node(*from).outputs.get(*port as usize),
        Operand::Parameter(index) => graph.parameters.get(*index as usize),
        _ => None,
    };
    ty.is_some_and(|ty| checker.types.definitions.is_move_only(ty))
}

/// Checks that a node that writes waits for every earlier node that may end the flow, or at which the body may be given
/// up, and one that reads something outside the program for every earlier `return`.
fn ends(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>, earlier: &Predecessors) {
    let (mut ends, mut returns) = (NodeSet::default(), NodeSet::default());
    for (id, node) in view.graph.nodes() {
        let awaited = match () {
            () if node.writes() => Some(&ends),
            () if node.waits_for_returns(checker.types.definitions.library) => Some(&returns),
            () => None,
        };
        let missing = awaited.and_then(|ends| earlier.missing(ends, id).find(|end| !view.exclusive(*end, id)));
        if let Some(end) = missing {
            checker.add(Rule::Order, node, format!("does not wait for %{}, which may end the flow", end.0));
        }
        if node.may_return() {
            returns.insert(id);
        }
        if node.may_end() || (checker.may_be_given_up && node.kind.may_wait()) {
            ends.insert(id);
        }
    }
}

/// Checks atomic steps: nodes within wait for the acquire, the release waits for them, and an acquire waits for
/// every earlier node that may wait (see [`mod@crate::lower`]).
fn steps(checker: &mut GraphVerifier<'_, '_>, view: &GraphView<'_>, earlier: &Predecessors) {
    let mut waiting = NodeSet::default();
    let mut released: Vec<NodeId> = Vec::new();
    for (id, node) in view.graph.nodes() {
        if let Some(acquire) = node.within.filter(|_| node.kind.may_wait() || node.kind.ends_flow())
            && !earlier.is(acquire, id)
        {
            checker.add(Rule::Steps, node, format!("does not wait for %{}, which it is within", acquire.0));
        }
        if let NodeKind::Release { acquire } = node.kind {
            release(checker, view, earlier, id, acquire);
            released.push(acquire);
        }
        if let NodeKind::Acquire { .. } = node.kind {
            let missing = earlier.missing(&waiting, id).find(|other| !view.exclusive(*other, id));
            if let Some(other) = missing {
                checker.add(Rule::Steps, node, format!("does not wait for %{}, which may wait", other.0));
            }
        }
        if node.kind.may_wait() {
            waiting.insert(id);
        }
    }
    for (id, node) in view.graph.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::Acquire { .. })) {
        let releases = released.iter().filter(|acquire| **acquire == id).count();
        if releases != 1 {
            checker.add(Rule::Steps, node, format!("is released {releases} times"));
        }
    }
}

fn release(
    checker: &mut GraphVerifier<'_, '_>,
    view: &GraphView<'_>,
    earlier: &Predecessors,
    id: NodeId,
    acquire: NodeId,
) {
    let node = view.graph.node(id);
    let within = view.graph.nodes().filter(|(_, inner)| inner.within == Some(acquire) && inner.kind.may_wait());
    for (inner, _) in within.filter(|(inner, _)| !earlier.is(*inner, id)) {
        checker.add(Rule::Steps, node, format!("does not wait for %{}, which is within", inner.0));
    }
    let begin = view.graph.node(acquire);
    if begin.control != node.control || begin.within != node.within {
        checker.add(Rule::Steps, node, format!("does not stand where %{} stands", acquire.0));
    }
}
