//! Verification of `within` and `race`, whose bodies may be cancelled.
//!
//! Two bodies of one race may touch one resource: each takes it for its own calls. A resource that an atomic step
//! around the race holds is different: it is not taken again, so that two bodies would access it at once.

use weir_host::{Mode, Resource, Type};

use super::operand::TypedOperand;
use super::types::TypeTable;
use crate::graph::{Graph, Node, NodeKind};
use crate::print::TypeText;

/// Checks the inputs of a `within` or `race` against the captures of its bodies, and its output.
pub(super) fn check(node: &Node, inputs: &[TypedOperand<'_>], types: &TypeTable<'_>) -> Result<(), String> {
    let limit = std::iter::repeat_n(&Type::Duration, node.kind.own().inputs);
    let captured = node.bodies().iter().flat_map(|body| &body.parameters);
    let expected: Vec<&Type> = limit.chain(captured).collect();
    if inputs.len() != expected.len() {
        return Err(format!("has {} inputs instead of {}", inputs.len(), expected.len()));
    }
    for (input, ty) in inputs.iter().zip(expected) {
        input.must_be("an input", ty, types)?;
    }
    match (&node.kind, &node.outputs[0]) {
        (NodeKind::Within { .. }, Type::Option(_)) => Ok(()),
        (NodeKind::Within { .. }, output) => Err(format!("does not give {}", TypeText(output))),
        (NodeKind::Race { bodies }, _) if bodies.is_empty() => Err("a race has at least one body".into()),
        (NodeKind::Race { bodies }, _) => apart(bodies),
        _ => Ok(()),
    }
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
