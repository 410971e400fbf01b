//! Verification of nodes with bodies: their inputs, the parameters of their bodies and their result.
//!
//! Two bodies of one race may touch one resource: each takes it for its own calls. A resource that an atomic step
//! around the race holds is different: it is not taken again, so that two bodies would access it at once.

use weir_host::{Mode, Resource, Type};

use super::operand::TypedOperand;
use super::types::TypeTable;
use crate::body_types::RequiredTypes;
use crate::graph::{Graph, Node};

/// Returns the types that the node requires, if it has bodies.
pub(super) fn required(node: &Node) -> Option<Result<RequiredTypes, String>> {
    let own = node.kind.own().parameters;
    let parameters = &node.bodies().first()?.parameters;
    let own: Vec<&Type> = parameters.iter().take(own).collect();
    Some(node.kind.body_types()?.required(&own, node.outputs.first()?))
}

/// Checks the inputs of a node against its bodies, and its output.
pub(super) fn check(node: &Node, inputs: &[TypedOperand<'_>], types: &TypeTable<'_>) -> Result<(), String> {
    let required = required(node).ok_or("has no body")??;
    let own = node.kind.own().parameters;
    let captured = node.bodies().iter().flat_map(|body| body.parameters.iter().skip(own));
    let expected: Vec<&Type> = required.operands.iter().chain(captured).collect();
    if inputs.len() != expected.len() {
        return Err(format!("has {} inputs instead of {}", inputs.len(), expected.len()));
    }
    for (input, ty) in inputs.iter().zip(expected) {
        input.must_be("an input", ty, types)?;
    }
    apart(node.bodies())
}

/// Checks that no two bodies access a resource that a step around them holds, unless all only read it.
fn apart(bodies: &[Graph]) -> Result<(), String> {
    for (index, body) in bodies.iter().enumerate() {
        for (resource, mode) in held(body) {
            let mut others = bodies[..index].iter().flat_map(held);
            if others.any(|(other, of)| other == resource && (mode == Mode::Write || of == Mode::Write)) {
                return Err(format!("two bodies touch the {resource}, which a step around them holds"));
            }
        }
    }
    Ok(())
}

/// Returns the resources that a body accesses and that are held when it begins.
fn held(body: &Graph) -> impl Iterator<Item = (&Resource, Mode)> {
    let uses = body.nodes.iter().flat_map(|node| &node.uses);
    let outside = uses.filter(|usage| usage.held && !takes(body, &usage.resource));
    outside.map(|usage| (&usage.resource, usage.mode))
}

/// Returns true if a step of the body takes the resource, which no enclosing step holds then.
fn takes(body: &Graph, resource: &Resource) -> bool {
    let mut constraints = body.nodes.iter().flat_map(|node| node.kind.constraints());
    constraints.any(|constraint| constraint.resource == *resource)
}
