//! The context of graph verification: the graph with the arms of its nodes, and the names seen so far.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Mode, Resource, Text, Type};

use super::operand::TypedOperand;
use super::report::{Report, Rule};
use super::types::TypeTable;
use crate::graph::{Control, Graph, Node, NodeId, Operand};

/// The resources that enclosing steps hold; the flag is false for a session's lock.
pub(super) type HeldResources = BTreeMap<(Resource, bool), Mode>;

/// Verifier of graphs, with the names and states seen so far.
pub(super) struct GraphVerifier<'a, 'r> {
    pub(super) types: &'a TypeTable<'a>,
    pub(super) library: &'a Library,
    /// The resources that calls take last: [`crate::graph::Program::session_scoped`].
    pub(super) session_scoped: &'a BTreeSet<Resource>,
    /// The resources of the barriers that the flow calls, which each of its calls that is not pure reads.
    pub(super) barriers: BTreeSet<Resource>,
    /// The type of the flow's answer.
    pub(super) answer: Option<&'a Type>,
    pub(super) report: &'r mut Report,
    /// The names seen so far.
    pub(super) names: BTreeSet<&'a Text>,
    /// The private states seen so far, each of one node.
    pub(super) states: BTreeSet<&'a Resource>,
    /// The nesting depth of bodies.
    pub(super) depth: usize,
    /// `true` in a body that may be given up while it waits, and in the bodies in it.
    pub(super) may_be_given_up: bool,
}

/// A graph with the arms that each node is in, outermost first.
pub(super) struct GraphView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) arms: Vec<Vec<Control>>,
}

impl<'a> GraphView<'a> {
    /// Returns true if no flow runs both nodes.
    pub(super) fn exclusive(&self, a: NodeId, b: NodeId) -> bool {
        let pairs = self.arms[a.0 as usize].iter().zip(&self.arms[b.0 as usize]);
        pairs.into_iter().any(|(a, b)| a.switch == b.switch && a.arm != b.arm)
    }

    /// Returns the type of an operand.
    pub(super) fn operand(&self, source: &Operand, types: &TypeTable<'a>) -> TypedOperand<'a> {
        let operand = match source {
            Operand::Port(node, port) => {
                let node = self.graph.nodes.get(node.0 as usize);
                node.and_then(|node| node.outputs.get(*port as usize)).map(TypedOperand::Typed)
            }
            Operand::Parameter(index) => self.graph.parameters.get(*index as usize).map(TypedOperand::Typed),
            Operand::Constant(index) => self.graph.constants.get(*index as usize).map(TypedOperand::Constant),
            Operand::Shared(name) => types.shared.get(&**name).map(|ty| TypedOperand::Shared(ty)),
            Operand::Never => None,
        };
        operand.unwrap_or(TypedOperand::Unknown)
    }
}

impl GraphVerifier<'_, '_> {
    /// Reports a violation at a node.
    pub(super) fn add(&mut self, rule: Rule, node: &Node, what: impl Into<String>) {
        self.report.add(rule, &node.name, what);
    }

    /// Reports the error of a check, if any.
    pub(super) fn holds(&mut self, rule: Rule, node: &Node, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.add(rule, node, what);
        }
    }
}
