//! Verification of the resource uses that nodes state, and of the order in which they take resources.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Passing, Resource, Text, World};

use super::report::Rule;
use super::view::{GraphVerifier, GraphView, HeldResources};
use crate::expr::Constraint;
use crate::graph::{Graph, Node, NodeId, NodeKind, Operand, ResourceUse};
use crate::print::{Commas, UseText};

/// Checks the uses of one node.
pub(super) fn check<'a>(
    checker: &mut GraphVerifier<'a, '_>,
    view: &GraphView<'a>,
    id: NodeId,
    node: &'a Node,
    held: &HeldResources,
) {
    let inside = held_at(view, Some(id), held, checker.session_scoped);
    let expected: Vec<ResourceUse> = match &node.kind {
        NodeKind::Call { function, .. } => {
            let Some(function) = checker.library.function(function) else { return };
            let state = function.signature.state.as_ref().map(|state| state.mode);
            let mut uses = call_uses(&function.signature, node);
            uses.extend(own_state(checker, node, state));
            if !uses.is_empty() {
                checker.barriers.iter().for_each(|barrier| _ = uses.entry(barrier.clone()).or_insert(Mode::Read));
            }
            with_held(uses, &inside)
        }
        _ => body_uses(node.bodies()),
    };
    if let Some(name) = own_unheld(checker, node, &inside) {
        checker.add(Rule::Steps, node, format!("the session's `{name}` is used outside of a step that holds it"));
    }
    if let Some((wanted, held)) = out_of_order(node, &inside, checker.session_scoped) {
        checker.add(Rule::Constraints, node, format!("takes {wanted} within a step that holds {held}"));
    }
    if node.uses != expected {
        let what = format!("uses {}, but says {}", uses_text(&expected), uses_text(&node.uses));
        checker.add(Rule::Uses, node, what);
    }
}

/// Returns a resource that is taken although a step around holds it in a weaker mode, or holds a later one: two flows
/// could wait for each other (Flux §3.1.1). The lock of a session that is held is not taken again, and a call takes
/// session-scoped resources last.
fn out_of_order<'a>(
    node: &Node,
    held: &'a HeldResources,
    session_scoped: &BTreeSet<Resource>,
) -> Option<(Resource, &'a Resource)> {
    let used = node.uses.iter().filter(|usage| !usage.held && !session_scoped.contains(&usage.resource));
    // Resources that a body takes are checked at the node that takes them.
    let used = used.filter(|_| node.bodies().is_empty()).map(|usage| usage.resource.clone());
    let acquired = node.kind.constraints().iter().filter(|own| {
        let session = held.get(&(own.resource.clone(), false)).filter(|_| own.per_session);
        session.is_none_or(|mode| *mode < own.mode)
    });
    let mut taken = used.chain(acquired.map(|constraint| constraint.resource.clone()));
    let ((last, _), _) = held.last_key_value()?;
    taken.find_map(|resource| (resource <= *last).then_some((resource, last)))
}

/// Returns a session's shared value that is used outside of a step that names the session.
fn own_unheld<'a>(checker: &GraphVerifier<'a, '_>, node: &'a Node, held: &HeldResources) -> Option<&'a Text> {
    node.inputs.iter().find_map(|input| match input {
        Operand::Shared(name) if checker.types.per_session.contains(&**name) => {
            (!held.contains_key(&(Resource::Shared(name.clone()), false))).then_some(name)
        }
        _ => None,
    })
}

fn uses_text(uses: &[ResourceUse]) -> String {
    if uses.is_empty() { "nothing".into() } else { Commas(uses.iter().map(UseText)).to_string() }
}

/// Returns the uses that follow from the signature and the shared arguments.
fn call_uses(signature: &weir_host::Signature, node: &Node) -> BTreeMap<Resource, Mode> {
    let mut uses = BTreeMap::new();
    let mut touch = |resource: Resource, mode: Mode| {
        let entry = uses.entry(resource).or_insert(mode);
        *entry = mode.max(*entry);
    };
    for (input, parameter) in node.inputs.iter().zip(&signature.parameters) {
        if let Operand::Shared(name) = input {
            let writes = parameter.passing == Passing::Change;
            touch(Resource::Shared(name.clone()), if writes { Mode::Write } else { Mode::Read });
        }
    }
    match signature.effects.world {
        World::Pure => {}
        World::Reads => touch(Resource::World(signature.module.clone()), Mode::Read),
        World::Writes => touch(Resource::World(signature.module.clone()), Mode::Write),
    }
    uses
}

/// Returns the private state that the node names, which no other node may name.
fn own_state<'a>(checker: &mut GraphVerifier<'a, '_>, node: &'a Node, state: Option<Mode>) -> Option<(Resource, Mode)> {
    let named = node.uses.iter().find(|usage| matches!(usage.resource, Resource::State(_)));
    if state.is_some() && named.is_none() {
        checker.add(Rule::Uses, node, "calls a stateful function, but names no state");
    }
    let (usage, mode) = named.zip(state)?;
    if !checker.states.insert(&usage.resource) {
        checker.add(Rule::Once, node, format!("another node has the {}", usage.resource));
    }
    Some((usage.resource.clone(), mode))
}

fn with_held(uses: BTreeMap<Resource, Mode>, held: &HeldResources) -> Vec<ResourceUse> {
    let uses = uses.into_iter();
    uses.map(|(resource, mode)| ResourceUse {
        held: held.get(&(resource.clone(), true)).is_some_and(|own| *own >= mode),
        resource,
        mode,
    })
    .collect()
}

/// Returns all that the nodes and steps of bodies state that they use: each resource once, in its strongest mode, held if all
/// of them hold it. The nodes of the body are checked by themselves.
fn body_uses(bodies: &[Graph]) -> Vec<ResourceUse> {
    let mut uses: BTreeMap<Resource, ResourceUse> = BTreeMap::new();
    for node in bodies.iter().flat_map(|body| &body.nodes) {
        let constraints = constraints(node).map(|(resource, mode)| ResourceUse { resource, mode, held: false });
        for usage in node.uses.iter().cloned().chain(constraints) {
            let entry = uses.entry(usage.resource.clone()).or_insert_with(|| usage.clone());
            entry.mode = entry.mode.max(usage.mode);
            entry.held &= usage.held;
        }
    }
    uses.into_values().collect()
}

/// Returns the resources that an acquire takes; nothing for other nodes.
pub(super) fn constraints(node: &Node) -> impl Iterator<Item = (Resource, Mode)> + '_ {
    node.kind.constraints().iter().map(|constraint| (constraint.resource.clone(), constraint.mode))
}

/// Returns the resources held when the node runs: by the steps around it, here and in enclosing graphs. Session locks
/// count only for session-scoped resources.
pub(super) fn held_at(
    view: &GraphView<'_>,
    node: Option<NodeId>,
    outside: &HeldResources,
    session_scoped: &BTreeSet<Resource>,
) -> HeldResources {
    let mut held = outside.clone();
    let mut step = node.and_then(|id| view.graph.node(id).within);
    while let Some(acquire) = step {
        let node = view.graph.node(acquire);
        let counts = |own: &&Constraint| !own.per_session || session_scoped.contains(&own.resource);
        for constraint in node.kind.constraints().iter().filter(counts) {
            let key = (constraint.resource.clone(), !constraint.per_session);
            let entry = held.entry(key).or_insert(constraint.mode);
            *entry = constraint.mode.max(*entry);
        }
        step = node.within;
    }
    held
}
