//! Conditions of switches: finds the switches that evaluate their conditions themselves, so that no Boolean passes
//! through a slot.
//!
//! A primitive is *part* of a switch's condition if it compares scalars or combines Booleans, and only this switch uses
//! its result. It is computed when the switch runs, which is later than its position in the list; the switch therefore
//! counts as the user of its operands, and nothing may change them in between.

use std::collections::BTreeSet;

use weir_host::{Type, Value};
use weir_ir::graph::{ArmTest, Graph, Node, NodeId, NodeKind, Operand, SwitchArm};
use weir_ir::prim::Prim;

use super::part::NodePart;
use crate::step::NONE;

/// The deepest nesting of a condition; deeper parts are computed by steps of their own.
const DEPTH_MAX: usize = 8;

/// Returns, for each primitive that is part of a switch's condition, that switch.
pub(super) fn parts_of_conditions(graph: &Graph, parts: &[NodePart], uses: &[usize]) -> Vec<Option<NodeId>> {
    let mut marking =
        Marking { graph, uses, changed: changed_sources(graph, parts), of: vec![None; graph.nodes.len()] };
    for (id, node) in graph.nodes() {
        if let NodeKind::Switch { arms } = &node.kind
            && arms_of_truth(arms).is_some()
        {
            marking.mark(&node.inputs[0], id, DEPTH_MAX);
        }
    }
    marking.of
}

/// Returns the arms of `false` and `true`; `None` if one of them has no arm, or an arm takes a payload.
pub(super) fn arms_of_truth(arms: &[SwitchArm]) -> Option<[u32; 2]> {
    let arm_of = |truth| {
        let fits = |arm: &SwitchArm| match &arm.test {
            ArmTest::Value(value) => *value == Value::Bool(truth),
            ArmTest::Otherwise => true,
            ArmTest::Tag(_) => false,
        };
        arms.iter().position(fits).map_or(NONE, |arm| arm as u32)
    };
    let both = [arm_of(false), arm_of(true)];
    let plain = arms.iter().all(|arm| arm.payload == 0 && !matches!(arm.test, ArmTest::Tag(_)));
    (plain && !both.contains(&NONE)).then_some(both)
}

/// Returns true for types whose values are stored entirely in their slots, so that nothing has to be dropped.
pub(super) fn is_scalar(ty: &Type) -> bool {
    matches!(ty, Type::Unit | Type::Bool | Type::Int | Type::Float | Type::Time | Type::Duration | Type::Size)
}

struct Marking<'a> {
    graph: &'a Graph,
    uses: &'a [usize],
    changed: BTreeSet<Operand>,
    of: Vec<Option<NodeId>>,
}

impl Marking<'_> {
    /// Marks the primitive that makes this input of the switch, and those that make its operands, as far as they are
    /// part of the condition.
    fn mark(&mut self, input: &Operand, switch: NodeId, depth: usize) {
        let Operand::Port(id, 0) = *input else { return };
        let node = self.graph.node(id);
        if depth > 0 && self.uses[id.0 as usize] == 1 && self.is_part(node, self.graph.node(switch)) {
            self.of[id.0 as usize] = Some(switch);
            // Operands of comparisons stay in their slots, even Booleans.
            if matches!(node.kind, NodeKind::Prim(Prim::Not | Prim::And | Prim::Or)) {
                node.inputs.iter().for_each(|operand| self.mark(operand, switch, depth - 1));
            }
        }
    }

    fn is_part(&self, node: &Node, switch: &Node) -> bool {
        let decides = match node.kind {
            NodeKind::Prim(Prim::Not) => node.inputs.len() == 1,
            NodeKind::Prim(
                Prim::And
                | Prim::Or
                | Prim::Equal
                | Prim::NotEqual
                | Prim::Less
                | Prim::LessOrEqual
                | Prim::Greater
                | Prim::GreaterOrEqual,
            ) => node.inputs.len() == 2,
            _ => false,
        };
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
        ty.is_some_and(is_scalar) && !self.changed.contains(operand)
    }
}

/// Returns the values that calls take by `&mut`.
fn changed_sources(graph: &Graph, parts: &[NodePart]) -> BTreeSet<Operand> {
    let nodes = graph.nodes.iter().zip(parts);
    let inputs = nodes.flat_map(|(node, part)| node.inputs.iter().enumerate().map(move |input| (node, part, input)));
    inputs
        .filter(|(node, part, (index, _))| part.changes(node, *index))
        .map(|(_, _, (_, source))| source.clone())
        .collect()
}
