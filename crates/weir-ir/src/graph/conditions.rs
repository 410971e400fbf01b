//! Conditions of switches: the primitives that a switch on a Boolean may evaluate itself.
//!
//! A primitive is *part* of the condition of a switch if it compares scalars or combines Booleans, and only the switch or
//! another part uses its result. The switch evaluates it later than its place in the list, so everything that it reads
//! must be there still, and unchanged.

use std::collections::BTreeSet;

use weir_host::{Library, Passing, Type, Value};

use super::{ArmTest, Graph, Node, NodeId, NodeKind, Operand, SwitchArm};
use crate::prim::Prim;

/// The deepest nesting of a condition, which engines evaluate by recursion.
const DEPTH_MAX: usize = 8;

/// Returns the arms of `false` and `true`; `None` if one of them has no arm, or an arm takes a payload.
#[must_use]
pub fn arms_of_truth(arms: &[SwitchArm]) -> Option<[u32; 2]> {
    let is_plain = |arm: &SwitchArm| arm.payload == 0 && !matches!(arm.test, ArmTest::Tag(_));
    let arm_of = |truth: bool| {
        let fits = |arm: &SwitchArm| match &arm.test {
            ArmTest::Value(value) => *value == Value::Bool(truth),
            ArmTest::Otherwise => true,
            ArmTest::Tag(_) => false,
        };
        arms.iter().position(fits).and_then(|arm| u32::try_from(arm).ok())
    };
    if arms.iter().all(is_plain) { Some([arm_of(false)?, arm_of(true)?]) } else { None }
}

/// Returns true if the node is a switch that may evaluate a condition: one with an arm for each truth value.
pub(crate) fn may_hold_condition(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Switch { arms } if arms_of_truth(arms).is_some())
}

/// The search for the conditions of one graph.
pub(crate) struct Conditions<'g> {
    graph: &'g Graph,
    /// The number of uses of each node's first port.
    uses: Vec<usize>,
    /// The values that calls take by `&mut`.
    changed: BTreeSet<&'g Operand>,
}

impl<'g> Conditions<'g> {
    pub(crate) fn new(graph: &'g Graph, library: &Library) -> Self {
        let mut uses = vec![0; graph.nodes.len()];
        for source in graph.nodes.iter().flat_map(|node| &node.inputs).chain([&graph.result]) {
            if let Operand::Port(id, 0) = source {
                uses[id.0 as usize] += 1;
            }
        }
        Conditions { graph, uses, changed: changed_values(graph, library) }
    }

    /// Returns the parts of a switch's condition, each before the parts that make its operands.
    pub(crate) fn parts(&self, switch: NodeId) -> Vec<NodeId> {
        let mut parts = Vec::new();
        if may_hold_condition(self.graph.node(switch)) {
            let found = self.graph.node(switch).inputs.iter();
            found.for_each(|subject| self.add(subject, switch, DEPTH_MAX, &mut parts));
        }
        parts
    }

    /// Adds the primitive that makes this value, and those that make its operands, as far as they are parts.
    fn add(&self, value: &Operand, switch: NodeId, depth: usize, parts: &mut Vec<NodeId>) {
        let Operand::Port(id, 0) = *value else { return };
        let node = self.graph.node(id);
        if depth > 0 && self.uses[id.0 as usize] == 1 && self.is_part(node, self.graph.node(switch)) {
            parts.push(id);
            // Operands of comparisons stay in their slots, even Booleans.
            if matches!(node.kind, NodeKind::Prim(Prim::Not | Prim::And | Prim::Or)) {
                node.inputs.iter().for_each(|operand| self.add(operand, switch, depth - 1, parts));
            }
        }
    }

    fn is_part(&self, node: &Node, switch: &Node) -> bool {
        let decides = matches!(node.kind, NodeKind::Prim(prim) if prim.decides());
        decides
            && (node.control, node.within) == (switch.control, switch.within)
            && node.inputs.iter().all(|operand| self.stays(operand))
    }

    /// Returns true if the operand is a scalar that is present and unchanged whenever the switch runs.
    fn stays(&self, operand: &Operand) -> bool {
        let ty = match operand {
            Operand::Port(id, port) => self.graph.node(*id).outputs.get(*port as usize),
            Operand::Parameter(index) => self.graph.parameters.get(*index as usize),
            Operand::Constant(_) => return true,
            Operand::Shared(_) | Operand::Never => None,
        };
        ty.is_some_and(Type::is_scalar) && !self.changed.contains(operand)
    }
}

/// Returns the values of a graph that calls take by `&mut`, in it and in the bodies that capture them.
fn changed_values<'g>(graph: &'g Graph, library: &Library) -> BTreeSet<&'g Operand> {
    let mut changed = BTreeSet::new();
    for node in &graph.nodes {
        let within: Vec<BTreeSet<&Operand>> = node.bodies().iter().map(|body| changed_values(body, library)).collect();
        let changes = |input: usize| match &node.kind {
            NodeKind::Call { function, .. } => {
                let parameters = library.function(function).map(|function| &function.signature.parameters);
                parameters.and_then(|all| all.get(input)).is_none_or(|one| one.passing == Passing::Change)
            }
            _ => node.captured(input).is_some_and(|(body, parameter)| {
                within[body].iter().any(|value| matches!(value, Operand::Parameter(at) if *at as usize == parameter))
            }),
        };
        let inputs = node.inputs.iter().enumerate().filter(|(input, _)| changes(*input));
        changed.extend(inputs.map(|(_, value)| value));
    }
    changed
}
