//! Repetitions: calls that are made for each element of a list or in each round of a loop, and whether they overlap.

use weir_host::{Library, Mode, Resource};

use super::io_call::TurnReason;
use crate::graph::{Graph, Node, NodeKind};

/// The repetitions that a graph is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Repetition {
    /// True if it is in a `for`, so that it is executed for each element of a list.
    pub(super) for_each: bool,
    /// The reason for which its executions come one after the other, if they do.
    pub(super) in_turn: Option<TurnReason>,
    /// True if it is the body of a `for`.
    pub(super) is_map: bool,
    /// True if an execution may be given up while it waits.
    pub(super) may_be_given_up: bool,
    /// True if it is in an atomic step.
    pub(super) in_step: bool,
}

impl Repetition {
    /// Returns the reason for which a node of a graph of this repetition is executed again and again, one after the other.
    pub(super) fn in_turn_of(&self, graph: &Graph, node: &Node, library: &Library) -> Option<TurnReason> {
        let own = || if self.is_map { in_turn(graph, node, library, self.may_be_given_up) } else { None };
        self.in_turn.clone().or_else(own)
    }

    /// Returns the repetition of the body of a node in a graph of this repetition.
    pub(super) fn inside(&self, graph: &Graph, node: &Node, library: &Library) -> Repetition {
        let in_turn = self.in_turn_of(graph, node, library);
        let may_be_given_up = self.may_be_given_up || node.cancels_bodies();
        let in_step = self.in_step || node.within.is_some();
        match &node.kind {
            NodeKind::Map { .. } => Repetition { for_each: true, in_turn, is_map: true, may_be_given_up, in_step },
            NodeKind::Fold { .. } | NodeKind::Loop { .. } => {
                let in_turn = in_turn.or(Some(TurnReason::Loop {
                    word: node.kind.word(),
                    at: node.origin,
                    exit: node.kind.exit(),
                }));
                Repetition { in_turn, is_map: false, may_be_given_up, in_step, for_each: self.for_each }
            }
            _ => Repetition { in_turn, is_map: false, may_be_given_up, in_step, for_each: self.for_each },
        }
    }
}

/// Returns the reason for which a node in the body of a `for` is executed for one element after the other, if it is.
fn in_turn(body: &Graph, node: &Node, library: &Library, may_be_given_up: bool) -> Option<TurnReason> {
    let ends = |node: &&Node| node.may_end() || (may_be_given_up && !node.kind.is_immediate(library));
    if node.writes()
        && let Some(end) = body.nodes.iter().find(ends)
    {
        return Some(TurnReason::End(end.origin));
    }
    if node.waits_for_returns(library)
        && let Some(end) = body.nodes.iter().find(|node| node.may_return())
    {
        return Some(TurnReason::Return(end.origin));
    }
    if let NodeKind::Call { function, .. } = &node.kind
        && library.function(function).is_some_and(|function| function.signature.state.is_some())
    {
        return Some(TurnReason::Resource(Resource::State(node.name.clone())));
    }
    let keeps_order = |resource: &Resource| {
        is_changed(body, resource) && (may_be_given_up || !is_of_one_batch(body, resource, library))
    };
    touched(node)
        .map(|(resource, _)| resource)
        .find(|resource| keeps_order(resource))
        .cloned()
        .map(TurnReason::Resource)
}

/// Returns true if a node of the body changes a resource.
fn is_changed(body: &Graph, resource: &Resource) -> bool {
    body.nodes.iter().flat_map(touched).any(|(other, mode)| other == resource && mode == Mode::Write)
}

/// Returns true if only calls of one batched function touch a resource.
fn is_of_one_batch(body: &Graph, resource: &Resource, library: &Library) -> bool {
    let mut users = body.nodes.iter().filter(|node| touched(node).any(|(other, _)| other == resource));
    let function = |node: &Node| match &node.kind {
        NodeKind::Call { function, .. } => Some(function.clone()),
        _ => None,
    };
    let Some(first) = users.next().and_then(function) else { return false };
    let is_batched = library.function(&first).is_some_and(|function| function.signature.batch.is_some());
    is_batched && users.all(|node| function(node).as_ref() == Some(&first))
}

/// Returns the resources that a node uses or takes.
fn touched(node: &Node) -> impl Iterator<Item = (&Resource, Mode)> {
    let used = node.uses.iter().map(|usage| (&usage.resource, usage.mode));
    used.chain(node.kind.constraints().iter().map(|constraint| (&constraint.resource, constraint.mode)))
}
