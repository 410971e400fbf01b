//! The looks of operations: one table for each form of a drawing says how a node is shown.

use weir_host::Mode;
use weir_ir::graph::{Node, NodeKind, Operand};

use crate::names::{self, GraphScope};

/// The kind of a mark, which decides its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// The start of the flow or body.
    Entry,
    /// A call of a host function.
    Call,
    /// A primitive operation.
    Prim,
    /// A switch.
    Fork,
    /// An end with an answer.
    Answer,
    /// An end with a failure.
    Failure,
    /// A body that runs for each element or round.
    Repeat,
    /// An atomic step.
    Step,
    /// An inlined `fn`.
    Fn,
}

impl MarkKind {
    /// Returns whether marks of this kind contain others.
    pub(crate) fn is_frame(self) -> bool {
        matches!(self, MarkKind::Repeat | MarkKind::Step | MarkKind::Fn)
    }
}

/// Returns the mark of a node in a diagram and its title.
pub(crate) fn mark(scope: &GraphScope<'_>, node: &Node) -> (MarkKind, String) {
    let input = || first_input(scope, node);
    match &node.kind {
        NodeKind::Call { function, .. } => (MarkKind::Call, function.to_string()),
        NodeKind::Prim(prim) => (MarkKind::Prim, prim.name().to_owned()),
        NodeKind::Select { .. } => (MarkKind::Prim, "select".into()),
        NodeKind::Switch { .. } => (MarkKind::Fork, subject(scope, node)),
        NodeKind::Map { .. } => (MarkKind::Repeat, format!("for each in {}", input())),
        NodeKind::Fold { .. } => (MarkKind::Repeat, format!("fold {}", input())),
        NodeKind::Loop { at_most, .. } if names::is_retry(node) => {
            (MarkKind::Repeat, format!("retry, at most {at_most} times"))
        }
        NodeKind::Loop { at_most, .. } => (MarkKind::Repeat, format!("loop, at most {at_most} times")),
        NodeKind::Within { .. } => (MarkKind::Repeat, format!("within {}", input())),
        NodeKind::Race { .. } => (MarkKind::Repeat, "race".into()),
        NodeKind::Transaction { .. } => (MarkKind::Repeat, "transaction".into()),
        NodeKind::Acquire { constraints, .. } => {
            let held: Vec<&str> = constraints.iter().map(|held| names::resource(&held.resource)).collect();
            (MarkKind::Step, format!("atomic {}", held.join(", ")))
        }
        NodeKind::Release { .. } => (MarkKind::Prim, "release".into()),
        NodeKind::Return => (MarkKind::Answer, "answer".into()),
        NodeKind::Fail => (MarkKind::Failure, "fails".into()),
    }
}

/// Returns the line of a node in an outline, without the notes on its resources.
pub(crate) fn line(scope: &GraphScope<'_>, node: &Node) -> String {
    let input = || first_input(scope, node);
    let states = |first: usize| {
        let states = node.inputs.iter().skip(first).take(node.kind.states());
        states.map(|input| scope.describe(input)).collect::<Vec<_>>().join(", ")
    };
    match &node.kind {
        NodeKind::Call { function, .. } => scope.call(function, &node.inputs),
        NodeKind::Prim(prim) => scope.call(prim.name(), &node.inputs),
        NodeKind::Select { .. } => scope.call("select", &node.inputs),
        NodeKind::Switch { .. } => format!("match {}", input()),
        NodeKind::Map { .. } => format!("for each in {}", input()),
        NodeKind::Fold { .. } => format!("fold {} from {}", input(), states(1)),
        NodeKind::Loop { at_most, .. } if names::is_retry(node) => format!("retry at most {at_most} times"),
        NodeKind::Loop { at_most, .. } => format!("loop {} at most {at_most}", states(0)),
        NodeKind::Within { .. } => format!("within {}", input()),
        NodeKind::Race { .. } => "race".into(),
        NodeKind::Transaction { .. } => "transaction".into(),
        NodeKind::Acquire { constraints, .. } => {
            let held = constraints.iter().map(|held| format!("{} ({})", held.resource, mode(held.mode)));
            format!("atomic {}", held.collect::<Vec<_>>().join(", "))
        }
        NodeKind::Release { .. } => "release".into(),
        NodeKind::Return => format!("return {}", input()),
        NodeKind::Fail => format!("fail {}", input()),
    }
}

/// Returns the word for an access.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "reads",
        Mode::Write => "writes",
    }
}

fn first_input(scope: &GraphScope<'_>, node: &Node) -> String {
    node.inputs.first().map(|input| scope.describe(input)).unwrap_or_default()
}

/// Returns the subject of a switch as text; empty if it is the result of a call, which precedes it.
fn subject(scope: &GraphScope<'_>, node: &Node) -> String {
    let Some(subject) = node.inputs.first() else { return String::new() };
    let described = scope.describe(subject);
    match subject {
        Operand::Port(id, _) if matches!(scope.graph.node(*id).kind, NodeKind::Call { .. }) => String::new(),
        _ => described,
    }
}
