//! Borders of regions: which nodes can be in a region, and why a region ends before a node.

use std::fmt;
use std::ops::Range;

use weir_host::{FunctionCode, Passing, Type};
use weir_ir::graph::{Graph, Node, NodeKind, Operand};

use super::build::scope::{arms_around, is_gate};
use crate::region::WordTypes;
use crate::step::{Action, Body, CallStep};

/// The number of operations on numbers from which on a region without a loop pays: entering one costs about as much as
/// two steps.
pub(super) const OPERATIONS_MIN: usize = 4;

/// The reason why a region ends before a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Border {
    /// There are no further nodes.
    EndOfBody,
    /// The function of this node may wait.
    Waits(String),
    /// The function of this node blocks its thread.
    Blocks(String),
    /// This node waits for a lock.
    Lock(String),
    /// This node has private state, and may have to wait for its turn.
    Turn(String),
    /// This node uses the value of a session.
    Session(String),
    /// This node is a `within` or `race`, whose bodies can be cancelled.
    Cancels(String),
    /// This node is a transaction, which may run more than once.
    Transaction(String),
    /// This node begins or ends an atomic step.
    AtomicStep(String),
    /// The body of this node has a node that cannot be in a region.
    Body(String, Box<Border>),
    /// This node changes a number in place.
    ChangesNumber(String),
    /// The iterations of a `for` overlap, and pass this node one after the other.
    IterationOrder(String),
    /// This node waits for others than the nodes before it do.
    OtherDependencies(String),
    /// This node is in other arms.
    OtherArm(String),
    /// This node is in another section of the plan, or may be.
    OtherSection(String),
    /// The region would become too large with this node.
    Size(String),
}

impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Border::EndOfBody => f.write_str("the body ends"),
            Border::Waits(node) => write!(f, "`{node}` may wait"),
            Border::Blocks(node) => write!(f, "`{node}` blocks its thread"),
            Border::Lock(node) => write!(f, "`{node}` may wait for a lock"),
            Border::Turn(node) => write!(f, "`{node}` has state of its own, and may wait for its turn"),
            Border::Session(node) => write!(f, "`{node}` uses a value of the session"),
            Border::Cancels(node) => write!(f, "`{node}` may give up what it runs"),
            Border::Transaction(node) => write!(f, "`{node}` may run more than once"),
            Border::AtomicStep(node) => write!(f, "`{node}` begins or ends an atomic step"),
            Border::Body(node, border) => write!(f, "`{node}` cannot run without a stop: {border}"),
            Border::ChangesNumber(node) => write!(f, "`{node}` changes a number in place"),
            Border::IterationOrder(node) => write!(f, "`{node}` waits for the iterations before it"),
            Border::OtherDependencies(node) => {
                write!(f, "`{node}` does not wait for the same calls as the nodes before it")
            }
            Border::OtherArm(node) => write!(f, "`{node}` is in another arm"),
            Border::OtherSection(node) => write!(f, "`{node}` is in another section of the plan"),
            Border::Size(node) => write!(f, "with `{node}` it would become too large"),
        }
    }
}

/// The rules by which regions are formed.
#[derive(Clone, Copy)]
pub(in crate::prepare) struct RegionRules<'a> {
    pub types: WordTypes<'a>,
    /// The size from which on a region ends if it can: see [`Survey::size`].
    pub size_max: usize,
}

/// A prepared body whose nodes are examined.
#[derive(Clone, Copy)]
pub(super) struct Survey<'a> {
    pub rules: RegionRules<'a>,
    pub graph: &'a Graph,
    pub body: &'a Body,
}

impl Survey<'_> {
    /// Returns the reason why a node can be in no region.
    pub(super) fn obstacle(&self, node: usize) -> Option<Border> {
        let (step, name) = (&self.body.steps[node], || self.graph.nodes[node].name.to_string());
        let found = match step.action.form() {
            Action::Call(call) => self.obstacle_of_call(call, &name()),
            Action::Timed(step) if step.is_transaction => Some(Border::Transaction(name())),
            Action::Timed(_) => Some(Border::Cancels(name())),
            Action::Acquire(_) | Action::Release { .. } => Some(Border::AtomicStep(name())),
            Action::Repeat(repeat) if !repeat.body.cuts.is_empty() => Some(Border::OtherSection(name())),
            Action::Repeat(repeat) => {
                let inner = Survey { graph: &self.graph.nodes[node].bodies()[0], body: &repeat.body, ..*self };
                inner.obstacle_of_body().map(|border| Border::Body(name(), Box::new(border)))
            }
            _ => None,
        };
        let turn = || (!step.ticket_gates.is_empty()).then(|| Border::Turn(name()));
        let order = || {
            let keeps_order = step.signals_orders | step.awaits_orders != 0;
            let border = if keeps_order { Border::IterationOrder(name()) } else { Border::Waits(name()) };
            (step.wait_number.is_some() || keeps_order).then_some(border)
        };
        found.or_else(turn).or_else(order).or_else(|| self.changes_word(node).then(|| Border::ChangesNumber(name())))
    }

    /// Returns true if a node stands for others that later ones wait for, and does nothing itself.
    pub(super) fn is_gate(&self, node: usize) -> bool {
        is_gate(self.graph, self.body, node)
    }

    /// Returns the reason why a repeated body cannot be part of a region.
    fn obstacle_of_body(&self) -> Option<Border> {
        (0..self.graph.nodes.len()).find_map(|node| self.obstacle(node))
    }

    fn obstacle_of_call(&self, call: &CallStep, name: &str) -> Option<Border> {
        let name = name.to_owned();
        match call.code {
            FunctionCode::Waiting(_) => return Some(Border::Waits(name)),
            FunctionCode::Blocking(_) => return Some(Border::Blocks(name)),
            FunctionCode::Immediate(_) => {}
        }
        if call.section.is_some() {
            return Some(Border::OtherSection(name));
        }
        if call.ticket_gate.is_some() || call.state.is_some() {
            return Some(Border::Turn(name));
        }
        if !call.locks.is_empty() {
            return Some(Border::Lock(name));
        }
        (!call.shared.is_empty()).then_some(Border::Session(name))
    }

    /// Returns true if the node changes a value in place that is stored as words.
    fn changes_word(&self, node: usize) -> bool {
        let node_of = &self.graph.nodes[node];
        let is_word =
            |input: usize| self.type_of(&node_of.inputs[input]).is_some_and(|ty| self.rules.types.shape(&ty).is_some());
        match (&node_of.kind, self.body.steps[node].action.form()) {
            (NodeKind::Call { function, .. }, _) => {
                let parameters =
                    self.rules.types.library.function(function).map(|function| &function.signature.parameters);
                let changed = parameters.into_iter().flatten().map(|parameter| parameter.passing == Passing::Change);
                changed.enumerate().any(|(input, changes)| changes && input < node_of.inputs.len() && is_word(input))
            }
            (_, Action::Repeat(repeat)) => {
                let graph = &node_of.bodies()[0];
                let parameters = graph.parameters.iter().zip(&repeat.body.handed);
                parameters
                    .skip(node_of.kind.own().parameters)
                    .any(|(ty, handed)| *handed && self.rules.types.shape(ty).is_some())
            }
            _ => false,
        }
    }

    fn type_of(&self, operand: &Operand) -> Option<Type> {
        match operand {
            Operand::Port(id, port) => self.graph.node(*id).outputs.get(*port as usize).cloned(),
            Operand::Parameter(index) => self.graph.parameters.get(*index as usize).cloned(),
            Operand::Constant(_) | Operand::Shared(_) | Operand::Never => None,
        }
    }

    /// Returns the reason why a node cannot be in the region that begins with another one, although both can be in one.
    pub(super) fn parting(&self, first: usize, node: usize) -> Option<Border> {
        let name = || self.graph.nodes[node].name.to_string();
        let (one, other) = (&self.graph.nodes[first], &self.graph.nodes[node]);
        let is_gate = self.is_gate(node);
        if one.within != other.within && !is_gate {
            return Some(Border::AtomicStep(name()));
        }
        if self.body.cuts.get(node).is_some_and(|cut| cut.is_some() && node > first) {
            return Some(Border::OtherSection(name()));
        }
        if self.body.steps[first].depends != self.body.steps[node].depends {
            return Some(Border::OtherDependencies(name()));
        }
        if is_gate {
            return None;
        }
        let (around, arms) = (arms_around(self.graph, first), arms_around(self.graph, node));
        (!arms.starts_with(&around)).then(|| Border::OtherArm(name()))
    }

    /// Returns the size of a node in a region: about the number of registers of its results and of those in its bodies, and of
    /// the arms of its switches.
    pub(super) fn size(&self, node: usize) -> usize {
        self.size_of(&self.graph.nodes[node])
    }

    fn size_of(&self, node: &Node) -> usize {
        let words = |ty: &Type| self.rules.types.shape(ty).map_or(1, |shape| shape.leaves().len());
        let arms = if let NodeKind::Switch { arms } = &node.kind { arms.len() } else { 0 };
        let bodies = node.bodies().iter().flat_map(|body| &body.nodes).map(|node| self.size_of(node));
        1 + arms + node.outputs.iter().map(words).sum::<usize>() + bodies.sum::<usize>()
    }

    /// Returns true if a region that begins with `first` may end before a node at little cost: the node is in no arm of a
    /// switch in the region, and is no end of one.
    pub(super) fn may_end_before(&self, first: usize, node: usize) -> bool {
        if self.is_gate(node) {
            return false;
        }
        let (first, node) = (&self.graph.nodes[first], &self.graph.nodes[node]);
        first.control == node.control && !matches!(node.kind, NodeKind::Select { .. })
    }

    /// Returns true if a region of these nodes is faster than their steps.
    pub(super) fn pays(&self, nodes: Range<usize>) -> bool {
        let nodes = &self.graph.nodes[nodes];
        let is_loop = |node: &Node| !node.bodies().is_empty();
        nodes.iter().any(is_loop) || nodes.iter().filter(|node| self.is_operation(node)).count() >= OPERATIONS_MIN
    }

    /// Returns true if several of these nodes are calls that declare their units, so that some may run on other threads.
    pub(super) fn may_have_parts(&self, nodes: Range<usize>) -> bool {
        let declares_units = |node: &&Node| match &node.kind {
            NodeKind::Call { function, .. } => {
                let function = self.rules.types.library.function(function);
                function.is_some_and(|function| function.signature.effects.declares_units)
            }
            _ => false,
        };
        self.graph.nodes[nodes].iter().filter(declares_units).take(2).count() == 2
    }

    fn is_operation(&self, node: &Node) -> bool {
        let is_prim = matches!(node.kind, NodeKind::Prim(prim) if !prim.passes_on());
        is_prim && node.outputs.iter().all(|ty| self.rules.types.shape(ty).is_some())
    }
}
