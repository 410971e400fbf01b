//! The outline: a graph as indented text, in the order of the program.

use std::fmt::Write as _;

use weir_host::Type;
use weir_ir::graph::{Control, Graph, Node, NodeId, NodeKind, Operand};
use weir_ir::program::{Entry, Flow};

use crate::contraction::Contraction;
use crate::diagram::is_of_barrier;
use crate::drawing::Drawing;
use crate::looks::{self, mode};
use crate::names::GraphScope;

/// The deepest indentation, so that nested code stays on the screen.
const INDENT_MAX: usize = 40;
/// The column of the notes on resources.
const NOTE_COLUMN: usize = 60;

/// Returns the program as an outline.
#[must_use]
pub fn outline(drawing: &Drawing<'_>) -> String {
    let mut outline = Outline { drawing, text: String::new() };
    for shared in &drawing.program.shared {
        let scope = if shared.per_session { " per session" } else { "" };
        outline.say(0, &format!("shared {}: {}{scope}", shared.name, shared.ty), "");
    }
    for entry in &drawing.program.entries {
        outline.entry(entry);
    }
    outline.text
}

struct Outline<'a> {
    drawing: &'a Drawing<'a>,
    text: String,
}

impl Outline<'_> {
    fn entry(&mut self, entry: &Entry<Graph>) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let order = if entry.ordered { "in order" } else { "" };
        self.say(0, &format!("{} from {}", entry.name, entry.source), order);
        for flow in &entry.flows {
            self.flow(flow);
        }
    }

    fn flow(&mut self, flow: &Flow<Graph>) {
        let parameters: Vec<String> =
            flow.parameters.iter().map(|parameter| format!("{}: {}", parameter.name, parameter.ty)).collect();
        let result = if flow.result == Type::Unit { String::new() } else { format!(" -> {}", flow.result) };
        self.say(1, &format!("{} ({}){result}", flow.name, parameters.join(", ")), "");
        let scope = GraphScope::of_flow(self.drawing.program, flow);
        self.graph(&scope, 2);
    }

    fn graph(&mut self, scope: &GraphScope<'_>, depth: usize) {
        let contraction = Contraction::new(scope, self.drawing.detail);
        let mut open: Option<Control> = None;
        for (id, node) in scope.graph.nodes() {
            let shown = contraction.is_seen(id) && !matches!(node.kind, NodeKind::Release { .. });
            if shown {
                let level = depth + self.arms(scope, &contraction, node, open, depth) + steps(scope.graph, node);
                self.node(scope, &contraction, id, level);
                open = node.control;
            }
        }
        if scope.graph.result != Operand::Never && scope.generated.is_none() {
            self.say(depth, &format!("=> {}", scope.describe(&scope.graph.result)), "");
        }
    }

    /// Prints the heads of the arms that start with this node, and returns its depth.
    fn arms(
        &mut self,
        scope: &GraphScope<'_>,
        contraction: &Contraction<'_>,
        node: &Node,
        before: Option<Control>,
        depth: usize,
    ) -> usize {
        let seen = |control: &Control| contraction.is_seen(control.switch);
        let opened: Vec<Control> = chain(scope.graph, before).into_iter().filter(seen).collect();
        let wanted: Vec<Control> = chain(scope.graph, node.control).into_iter().filter(seen).collect();
        let common = opened.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
        for (level, control) in wanted.iter().enumerate().skip(common) {
            let switch = scope.graph.node(control.switch);
            let indent = depth + 2 * level + 1 + steps(scope.graph, switch);
            self.say(indent, &format!("{}:", scope.arm(switch, control.arm)), "");
        }
        2 * wanted.len()
    }

    fn node(&mut self, scope: &GraphScope<'_>, contraction: &Contraction<'_>, id: NodeId, depth: usize) {
        let node = scope.graph.node(id);
        let note = note(self.drawing, node);
        let is_try = matches!(node.kind, NodeKind::Call { .. }) && contraction.is_fallible(id);
        let question = if is_try { "?" } else { "" };
        self.say(depth, &format!("{}{question}", looks::line(scope, node)), &note);
        for body in scope.bodies(node) {
            let is_branch = node.kind.has_branches();
            if is_branch {
                self.say(depth + 1, "either", "");
            }
            let inner = if is_branch { depth + 2 } else { depth + 1 };
            self.graph(&body, inner);
        }
    }

    fn say(&mut self, depth: usize, words: &str, note: &str) {
        let line = format!("{:1$}{words}", "", 2 * depth.min(INDENT_MAX));
        let _ = match note {
            "" => writeln!(self.text, "{line}"),
            note => writeln!(self.text, "{line:NOTE_COLUMN$}  {note}"),
        };
    }
}

/// Returns the arms around a node, outermost first.
fn chain(graph: &Graph, control: Option<Control>) -> Vec<Control> {
    let mut chain: Vec<Control> =
        std::iter::successors(control, |control| graph.node(control.switch).control).collect();
    chain.reverse();
    chain
}

/// Returns the number of atomic steps around a node.
fn steps(graph: &Graph, node: &Node) -> usize {
    std::iter::successors(node.within, |&step| graph.node(step).within).count()
}

fn note(drawing: &Drawing<'_>, node: &Node) -> String {
    let waits = match &node.kind {
        NodeKind::Call { function, .. } => match drawing.batch(function) {
            Some(batch) => Some(format!("waits in a batch of at most {}", batch.at_most)),
            None => drawing.leaves_thread(function).then(|| "waits".to_owned()),
        },
        _ => None,
    };
    let shown = node.uses.iter().filter(|usage| !is_of_barrier(node, usage));
    let uses = shown.map(|usage| format!("{} {}", mode(usage.mode), usage.resource));
    uses.chain(waits).collect::<Vec<_>>().join(", ")
}
