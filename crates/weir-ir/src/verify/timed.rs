//! The rules of `within` and `race`: bodies that may be given up on their way.
//!
//! Two bodies of one race may touch one resource: each takes it for its own calls. What an atomic step around the race
//! holds is different: nobody takes it again, so that two bodies would touch it at once.

use weir_host::{Mode, Resource, Type};

use super::operand::Operand;
use super::types::Types;
use crate::graph::{Graph, Kind, Node};
use crate::print::TypeText;

/// The inputs of a `within` or `race` against what the bodies capture, and its output.
pub(super) fn check(node: &Node, inputs: &[Operand<'_>], types: &Types<'_>) -> Result<(), String> {
    let limit = Type::Duration;
    let own = matches!(node.kind, Kind::Within { .. }).then_some(&limit);
    let captured = node.bodies().iter().flat_map(|body| &body.parameters);
    let expected: Vec<&Type> = own.into_iter().chain(captured).collect();
    if inputs.len() != expected.len() {
        return Err(format!("has {} inputs instead of {}", inputs.len(), expected.len()));
    }
    for (input, ty) in inputs.iter().zip(expected) {
        input.must_be("an input", ty, types)?;
    }
    match (&node.kind, &node.outputs[0]) {
        (Kind::Within { .. }, Type::Option(_)) => Ok(()),
        (Kind::Within { .. }, output) => Err(format!("does not give {}", TypeText(output))),
        (Kind::Race { bodies }, _) if bodies.is_empty() => Err("a race has at least one body".into()),
        (Kind::Race { bodies }, _) => apart(bodies),
        _ => Ok(()),
    }
}

/// No two bodies touch what a step around them holds, unless all only read it.
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

/// What a body touches that is held already where it begins.
fn held(body: &Graph) -> impl Iterator<Item = (&Resource, Mode)> {
    let uses = body.nodes.iter().flat_map(|node| &node.uses);
    let outside = uses.filter(|usage| usage.held && !takes(body, &usage.resource));
    outside.map(|usage| (&usage.resource, usage.mode))
}

/// Whether a step of the body takes the resource, which nobody outside holds then.
fn takes(body: &Graph, resource: &Resource) -> bool {
    body.nodes.iter().any(|node| match &node.kind {
        Kind::Acquire { constraints } => constraints.iter().any(|constraint| constraint.resource == *resource),
        _ => false,
    })
}
