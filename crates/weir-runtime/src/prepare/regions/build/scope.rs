//! The scope of a graph while its nodes are compiled: where the values of its ports and parameters are.

use std::collections::BTreeMap;

use weir_host::Argument;
use weir_ir::graph::{Control, Graph, Node, NodeId, NodeKind, Operand};
use weir_ir::prim::Prim;

use super::users::NodeUsers;
use crate::region::CodePlace;
use crate::region::{Register, TableIndex, Target};
use crate::step::{Action, Body, NONE, Out};

/// The words of a parameter; `None` if they are not in registers (yet).
pub(super) type PortWords = Option<Vec<Register>>;

/// A graph whose nodes are being compiled.
pub(super) struct Scope<'a> {
    pub graph: &'a Graph,
    pub body: &'a Body,
    /// The slot of the frame that is slot 0 of this body.
    pub base: u32,
    /// For each parameter that is a captured value, its location in the frame.
    pub captured: Vec<Option<Argument>>,
    pub parameters: Vec<PortWords>,
    /// For each parameter that is an element which stays in its list, the row of its loop.
    pub elements: Vec<Option<TableIndex>>,
    /// The words of the ports that are in registers, by node and port.
    pub ports: BTreeMap<(usize, usize), Vec<Register>>,
    /// For each switch that a call decides or that stands outside of the region, the register of its choice.
    pub choices: Vec<Option<Register>>,
    /// The switches around the current node, from the outermost.
    pub open: Vec<CompiledSwitch>,
    /// The number of arms around the first node, which are open as a whole.
    pub outer_arms: usize,
    /// The place of the node with this body; `None` for the region's own body.
    pub around: Option<CodePlace>,
    /// The users of the region's own nodes; nothing in the body of a loop.
    pub users: NodeUsers,
    /// The range of nodes that are compiled.
    pub nodes: std::ops::Range<usize>,
}

/// A switch whose arms are being compiled.
pub(super) struct CompiledSwitch {
    pub switch: usize,
    /// The label of each arm.
    pub labels: Vec<Target>,
    /// The arms whose code has begun.
    pub begun: Vec<bool>,
    pub arm: Option<u32>,
    pub join: Target,
}

impl<'a> Scope<'a> {
    pub(super) fn new(graph: &'a Graph, body: &'a Body, base: u32, around: Option<CodePlace>) -> Scope<'a> {
        Scope {
            graph,
            body,
            base,
            captured: vec![None; graph.parameters.len()],
            parameters: vec![None; graph.parameters.len()],
            elements: vec![None; graph.parameters.len()],
            ports: BTreeMap::new(),
            choices: vec![None; graph.nodes.len()],
            open: Vec::new(),
            outer_arms: 0,
            around,
            users: NodeUsers::default(),
            nodes: 0..graph.nodes.len(),
        }
    }

    /// Returns the place of a node.
    pub(super) fn place(&self, node: usize) -> CodePlace {
        CodePlace::of(node, &self.graph.nodes[node].name, self.around.as_ref())
    }

    /// Returns an argument of a step of this body as a location in the frame.
    pub(super) fn located(&self, argument: Argument) -> Argument {
        match argument {
            Argument::Slot { index, last } => match self.captured.get(index as usize) {
                Some(Some(captured)) => *captured,
                _ => Argument::Slot { index: self.base + index, last },
            },
            other => other,
        }
    }

    /// Returns the arms around a node, from the outermost, without those around the whole region.
    pub(super) fn arms_around(&self, node: usize) -> Vec<Control> {
        let mut arms = arms_around(self.graph, node);
        arms.drain(..self.outer_arms.min(arms.len()));
        arms
    }

    /// Returns true if the region's own body is being compiled.
    pub(super) fn is_outermost(&self) -> bool {
        self.around.is_none()
    }

    /// Returns true if this primitive computes nothing itself: a switch evaluates it as part of its condition, no tuple is made
    /// of the next states of a loop, and a gate only stands for other nodes.
    pub(super) fn is_part_of_condition(&self, node: usize) -> bool {
        matches!(self.graph.nodes[node].kind, NodeKind::Prim(_))
            && matches!(self.body.steps[node].action.form(), Action::Nothing)
    }

    /// Returns true if the nodes use a parameter only to read fields that can be cloned.
    pub(super) fn reads_only_fields(&self, parameter: usize) -> bool {
        let operand = Operand::Parameter(parameter as u32);
        let reads_field = |(node, of): (usize, &Node)| match self.body.steps[node].action.form() {
            Action::Prim(step) => matches!(step.prim, Prim::Field(_) | Prim::DetachField(_)) && !step.moves,
            _ => !of.inputs.contains(&operand),
        };
        let mut users = self.graph.nodes.iter().enumerate().filter(|(_, node)| node.inputs.contains(&operand));
        self.graph.result != operand && users.all(reads_field)
    }

    /// Returns the number of nodes that read a field of a parameter.
    pub(super) fn reads_of_field(&self, parameter: u32, field: u16) -> usize {
        let reads = |node: &&Node| match node.kind {
            NodeKind::Prim(Prim::Field(other) | Prim::DetachField(other)) => {
                other == u32::from(field) && node.inputs[..] == [Operand::Parameter(parameter)]
            }
            _ => false,
        };
        self.graph.nodes.iter().filter(reads).count()
    }

    /// Returns the selects of a switch.
    pub(super) fn selects(&self, switch: usize) -> Vec<usize> {
        let of = |node: &usize| match self.graph.nodes[*node].kind {
            NodeKind::Select { switch: of } => of.0 as usize == switch,
            _ => false,
        };
        self.nodes.clone().filter(of).collect()
    }

    /// Returns the slot of this body that holds the value of a port; `None` if no slot does.
    pub(super) fn slot_of_port(&self, node: usize, port: usize) -> Option<u32> {
        let slot = match self.body.steps[node].action.form() {
            Action::Prim(step) => step.out,
            Action::Simple(step) => step.out,
            Action::Call(step) => match step.out {
                Out::Value(slot) | Out::Result(slot) => slot,
                Out::OfResult { .. } | Out::OfOption { .. } => NONE,
            },
            Action::Select { out, .. } => *out,
            Action::Repeat(step) => step.out,
            Action::Timed(step) => step.out,
            Action::Switch(step) => *step.arms.iter().flat_map(|(_, payload)| payload).nth(port)?,
            Action::Nothing => self.slot_of_decided_port(node, port)?,
            _ => NONE,
        };
        (slot != NONE).then_some(slot)
    }

    /// Returns the slot of a payload port of a switch that a call decides.
    fn slot_of_decided_port(&self, switch: usize, port: usize) -> Option<u32> {
        let node = &self.graph.nodes[switch];
        let [Operand::Port(call, _)] = node.inputs[..] else { return None };
        let Action::Call(step) = self.body.steps[call.0 as usize].action.form() else { return None };
        let arms = match step.out {
            Out::OfResult { ok, err, .. } => [ok, err],
            Out::OfOption { some, none, .. } => [some, none],
            _ => return None,
        };
        let found = arms.iter().find(|(arm, slot)| *slot != NONE && node.first_port(*arm) as usize == port);
        found.map(|(_, slot)| *slot)
    }
}

/// Returns true if the node is a gate: it computes nothing, and stands in no arm and no atomic step, whatever is around it.
pub(in crate::prepare::regions) fn is_gate(graph: &Graph, body: &Body, node: usize) -> bool {
    let of = &graph.nodes[node];
    let is_copy = matches!(of.kind, NodeKind::Prim(Prim::Copy)) && of.condition_of.is_none();
    is_copy && matches!(body.steps[node].action.form(), Action::Nothing)
}

/// Returns the arms around a node, from the outermost.
pub(in crate::prepare::regions) fn arms_around(graph: &Graph, node: usize) -> Vec<Control> {
    let outer = |control: &Control| graph.node(control.switch).control;
    let mut arms: Vec<Control> = std::iter::successors(graph.nodes[node].control, outer).collect();
    arms.reverse();
    arms
}

/// Returns the node that uses the inputs of this one: itself, or the switch whose condition it is part of.
pub(in crate::prepare::regions) fn real_user(graph: &Graph, body: &Body, node: usize) -> usize {
    let is_part = matches!(graph.nodes[node].kind, NodeKind::Prim(_))
        && matches!(body.steps[node].action.form(), Action::Nothing);
    if !is_part {
        return node;
    }
    let port = Operand::Port(NodeId(node as u32), 0);
    let user = (node + 1..graph.nodes.len()).find(|user| graph.nodes[*user].inputs.contains(&port));
    user.map_or(node, |user| real_user(graph, body, user))
}
