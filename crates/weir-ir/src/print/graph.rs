//! Graphs as text.
//!
//! `p0` is a parameter, `k0` a constant of the table, `%3.0` a port of an earlier node.
//!
//! ```text
//! parameters Text, Int
//! constant 8
//! %0 files.read: Result(Text, Failure) = call files.read(p0) uses read world files @12..20
//! %1 switch: Text = switch(%0.0)
//!   tag 0 payload 1
//!   otherwise
//! %2 fail = fail(k0) if %1 arm 1 after %0
//! %3 select: Text = select %1 (%1.0, never)
//! %4 less: Bool = less(%3.0, k0) condition of %5
//! %5 switch#2 = switch(%4.0)
//! %6 for: List(Int) = for(%3.0) within %2
//!   parameters Int
//!   yield p0
//! yield %6.0
//! ```

use std::fmt::{self, Display};

use super::expr::{ConstraintText, PrimText, ResourceText, RestoresText, TestText, kept_failure, mode};
use super::{Commas, Constant, IndentedText, LoopExitText, NameText, OriginText, TypeText};
use crate::graph::{Graph, Node, NodeId, NodeKind, Operand, ResourceUse};
use crate::program::LoopExit;

pub(super) fn graph(page: &mut IndentedText, graph: &Graph) {
    if !graph.parameters.is_empty() {
        page.line(format_args!("parameters {}", Commas(graph.parameters.iter().map(TypeText))));
    }
    graph.constants.iter().for_each(|constant| page.line(format_args!("constant {}", Constant(constant))));
    graph.nodes().for_each(|(id, value)| node(page, id, value));
    page.line(format_args!("yield {}", OperandText(&graph.result)));
}

fn node(page: &mut IndentedText, id: NodeId, node: &Node) {
    let outputs = match &node.outputs[..] {
        [] => String::new(),
        outputs => format!(": {}", Commas(outputs.iter().map(TypeText))),
    };
    let name = NameText(&node.name);
    page.line(format_args!(
        "{} {name}{outputs} = {}{}{}",
        NodeIdText(id),
        NodeText(node),
        AttributesText(node),
        OriginText(node.origin)
    ));
    page.nested(|page| match &node.kind {
        NodeKind::Switch { arms } => arms.iter().for_each(|arm| match arm.payload {
            0 => page.line(TestText(&arm.test)),
            payload => page.line(format_args!("{} payload {payload}", TestText(&arm.test))),
        }),
        kind if kind.has_branches() => node.bodies().iter().for_each(|body| {
            page.line("branch");
            page.nested(|page| graph(page, body));
        }),
        _ => node.bodies().iter().for_each(|body| graph(page, body)),
    });
}

/// The operation and inputs of a node, without its bodies.
struct NodeText<'a>(&'a Node);

impl Display for NodeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.kind.word();
        match &self.0.kind {
            NodeKind::Prim(prim) => write!(f, "{}", PrimText(*prim)),
            NodeKind::Call { function, keeps_failure, may_end } => {
                let end = if *may_end { " may end" } else { "" };
                write!(f, "{word} {}{}{end}", NameText(function), kept_failure(*keeps_failure))
            }
            NodeKind::Select { switch: earlier } | NodeKind::Release { acquire: earlier } => {
                write!(f, "{word} {} ", NodeIdText(*earlier))
            }
            NodeKind::Acquire { constraints, restores, cancellable } => {
                let cancellable = if *cancellable { "cancellable " } else { "" };
                write!(
                    f,
                    "{word} {cancellable}({}){} ",
                    Commas(constraints.iter().map(ConstraintText)),
                    RestoresText(restores)
                )
            }
            // An operation without details is its word and its numbers.
            kind => NumbersText(kind).fmt(f),
        }?;
        write!(f, "({})", Commas(self.0.inputs.iter().map(OperandText)))
    }
}

/// `for`, `fold of 2 `, `loop at most 9 `: the word of an operation and its numbers.
struct NumbersText<'a>(&'a NodeKind);

impl Display for NumbersText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (states, at_most) = self.0.numbers();
        let states = states.filter(|states| *states != 1);
        f.write_str(self.0.word())?;
        states.iter().try_for_each(|states| write!(f, " of {states}"))?;
        at_most.iter().try_for_each(|at_most| write!(f, " at most {at_most}"))?;
        let exit = self.0.exit();
        LoopExitText(exit).fmt(f)?;
        f.write_str(if states.is_some() || at_most.is_some() || exit != LoopExit::Never { " " } else { "" })
    }
}

/// Control, order, resources and fusion of a node, each if present.
struct AttributesText<'a>(&'a Node);

impl Display for AttributesText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(control) = self.0.control {
            write!(f, " if {} arm {}", NodeIdText(control.switch), control.arm)?;
        }
        if !self.0.after.is_empty() {
            write!(f, " after {}", Commas(self.0.after.iter().copied().map(NodeIdText)))?;
        }
        if !self.0.uses.is_empty() {
            write!(f, " uses {}", Commas(self.0.uses.iter().map(UseText)))?;
        }
        self.0.within.iter().try_for_each(|acquire| write!(f, " within {}", NodeIdText(*acquire)))?;
        self.0.condition_of.iter().try_for_each(|switch| write!(f, " condition of {}", NodeIdText(*switch)))
    }
}

/// `write held shared hits`.
#[derive(Clone, Copy)]
pub(crate) struct UseText<'a>(pub(crate) &'a ResourceUse);

impl Display for UseText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.0.held { " held" } else { "" };
        write!(f, "{}{held} {}", mode(self.0.mode), ResourceText(&self.0.resource))
    }
}

struct NodeIdText(NodeId);

impl Display for NodeIdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0.0)
    }
}

/// `%3.0`, `p0`, `k0`.
#[derive(Clone, Copy)]
pub(crate) struct OperandText<'a>(pub(crate) &'a Operand);

impl Display for OperandText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Operand::Port(node, port) => write!(f, "{}.{port}", NodeIdText(*node)),
            Operand::Parameter(index) => write!(f, "p{index}"),
            Operand::Constant(index) => write!(f, "k{index}"),
            Operand::Shared(name) => write!(f, "shared {}", NameText(name)),
            Operand::Never => f.write_str("never"),
        }
    }
}
