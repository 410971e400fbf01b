//! The control structure of a graph: the arms around each node, and the calls that decide a switch directly.
//!
//! A call *decides* a switch if its answer is a `Result` or an `Option` that only this switch uses: the payload is
//! written directly to the arms' ports, and no `Result` or `Option` is created. A switch on a Boolean evaluates the nodes
//! that say so ([`weir_ir::graph::Node::condition_of`]) itself.

use weir_host::Value;
use weir_ir::graph::{ArmTest, Control, Graph, Node, NodeId, NodeKind, Operand, SwitchArm};
use weir_ir::prim::Prim;

use super::moves::MoveOnlyTypes;
use super::part::NodePart;
use crate::step::{NONE, Repeat};

/// The control structure of a graph.
pub(super) struct ControlShape {
    /// For each node, the arms around it, from the outermost.
    pub chains: Vec<Vec<Control>>,
    /// For each call that decides a switch, that switch.
    pub decides: Vec<Option<NodeId>>,
    /// For each switch that a call decides, that call.
    pub decided_by: Vec<Option<NodeId>>,
    /// For each primitive that a switch evaluates as part of its condition, that switch.
    pub condition_of: Vec<Option<NodeId>>,
    /// For each switch, its number.
    pub numbers: Vec<u32>,
    /// The node that makes a tuple of the next states, which the next iteration takes apart.
    pub tuple_of_states: Option<NodeId>,
    /// For each node, true if it is a gate: others wait for it instead of the many nodes for which it waits.
    pub gates: Vec<bool>,
}

/// A use of a value by a node. A select uses an input only if the input's arm was chosen.
#[derive(Clone, Copy)]
pub(super) struct InputUse {
    /// The node; for the graph's result, the number of nodes.
    pub node: usize,
    /// The arm, if the node is a select.
    pub arm: Option<Control>,
}

impl ControlShape {
    pub(super) fn of(
        graph: &Graph,
        parts: &[NodePart],
        repeat: Option<Repeat>,
        moves: &MoveOnlyTypes<'_>,
    ) -> ControlShape {
        let uses = uses_of_first_ports(graph);
        let mut shape = ControlShape {
            chains: chains(graph),
            decides: vec![None; graph.nodes.len()],
            decided_by: vec![None; graph.nodes.len()],
            condition_of: graph.nodes.iter().map(|node| node.condition_of).collect(),
            numbers: numbers(graph),
            tuple_of_states: repeat.and_then(|repeat| tuple_of_states(graph, repeat, &uses, moves)),
            gates: graph.nodes.iter().zip(&uses).map(|(node, uses)| *uses == 0 && is_copy_of_constant(node)).collect(),
        };
        for (id, node) in graph.nodes() {
            if let NodeKind::Switch { arms } = &node.kind
                && let [Operand::Port(call, 0)] = node.inputs[..]
                && uses[call.0 as usize] == 1
                && parts[call.0 as usize].call.as_ref().is_some_and(|call| call.fallible || call.optional)
                && graph.node(call).control == node.control
                && arms.iter().all(can_be_decided)
            {
                shape.decides[call.0 as usize] = Some(id);
                shape.decided_by[id.0 as usize] = Some(call);
            }
        }
        shape
    }

    /// Returns true if at most one of two uses happens.
    pub(super) fn exclusive(&self, one: InputUse, other: InputUse) -> bool {
        let chain = |of: InputUse| self.chains[of.node].iter().copied().chain(of.arm);
        let pairs = chain(one).zip(chain(other));
        pairs.take_while(|(a, b)| a.switch == b.switch).any(|(a, b)| a.arm != b.arm)
    }

    /// Returns the node that uses the inputs of this one: itself, or the switch whose condition it is part of. The number of
    /// nodes stands for the end of the body.
    pub(super) fn toucher(&self, node: NodeId) -> usize {
        match self.tuple_of_states {
            Some(tuple) if tuple == node => self.chains.len(),
            _ => self.condition_of[node.0 as usize].unwrap_or(node).0 as usize,
        }
    }

    /// Returns true if the node makes no value of its own: its only user does.
    pub(super) fn is_made_by_its_user(&self, node: usize) -> bool {
        self.condition_of[node].is_some() || self.tuple_of_states.is_some_and(|tuple| tuple.0 as usize == node)
    }

    /// Returns the number of switches.
    pub(super) fn switches(&self) -> u32 {
        self.numbers.iter().filter(|number| **number != NONE).count() as u32
    }
}

/// Returns the arm of a variant of this tag, and the length of its payload.
pub(super) fn arm_of_tag(arms: &[SwitchArm], tag: u32) -> Option<(u32, u32)> {
    let found = arms.iter().zip(0..).find(|(arm, _)| match &arm.test {
        ArmTest::Tag(tested) => *tested == tag,
        ArmTest::Otherwise => true,
        ArmTest::Value(_) => false,
    });
    found.map(|(arm, index)| (index, arm.payload))
}

/// Returns the node that makes a tuple of the next states, if it is used for nothing else and holds no move-only value.
fn tuple_of_states(graph: &Graph, repeat: Repeat, uses: &[usize], moves: &MoveOnlyTypes<'_>) -> Option<NodeId> {
    let Operand::Port(tuple, 0) = graph.result else { return None };
    let node = graph.node(tuple);
    let is_tuple = matches!(node.kind, NodeKind::Prim(Prim::Record)) && node.control.is_none();
    let stays = |source: &Operand| *source != Operand::Never && !moves.input(graph, source);
    (repeat.yields_tuple() && is_tuple && uses[tuple.0 as usize] == 1 && node.inputs.iter().all(stays)).then_some(tuple)
}

/// Returns true for a copy of a constant. If nothing uses it, it is a gate.
fn is_copy_of_constant(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Prim(Prim::Copy)) && matches!(node.inputs[..], [Operand::Constant(_)])
}

fn can_be_decided(arm: &SwitchArm) -> bool {
    match arm.test {
        // The tags of `Result` and `Option` are the same numbers.
        ArmTest::Tag(Value::OK | Value::ERR) => arm.payload <= 1,
        ArmTest::Tag(_) | ArmTest::Value(_) => false,
        ArmTest::Otherwise => arm.payload == 0,
    }
}

fn chains(graph: &Graph) -> Vec<Vec<Control>> {
    let mut chains: Vec<Vec<Control>> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let chain = node.control.map_or_else(Vec::new, |control| {
            let mut chain = chains[control.switch.0 as usize].clone();
            chain.push(control);
            chain
        });
        chains.push(chain);
    }
    chains
}

fn numbers(graph: &Graph) -> Vec<u32> {
    let mut next = 0;
    let mut number = |kind: &NodeKind| {
        if !matches!(kind, NodeKind::Switch { .. }) {
            return NONE;
        }
        next += 1;
        next - 1
    };
    graph.nodes.iter().map(|node| number(&node.kind)).collect()
}

fn uses_of_first_ports(graph: &Graph) -> Vec<usize> {
    let mut uses = vec![0; graph.nodes.len()];
    let inputs = graph.nodes.iter().flat_map(|node| &node.inputs);
    for source in inputs.chain([&graph.result]) {
        if let Operand::Port(id, 0) = source {
            uses[id.0 as usize] += 1;
        }
    }
    uses
}
