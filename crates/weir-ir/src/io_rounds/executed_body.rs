//! Graphs that are executed as bodies, and the moments at which the values in them are there.

use weir_host::Value;

use super::ending_arms::tests_kept_failure;
use super::io_call::{CommonArgument, IoArm};
use super::moment::{Moment, NodeMoments};
use super::repeated::Repetition;
use crate::expr::ArmTest;
use crate::graph::{Graph, Node, NodeKind, Operand};
use crate::prim::Prim;

/// The function that pairs the elements of two lists, such as those of a `for` and the rows that are read for them.
const ZIP: &str = "list.zip";

/// A graph that is executed as the body of a node or of a flow.
pub(super) struct ExecutedBody {
    /// The moment at which the first of its nodes can begin.
    pub(super) start: Moment,
    /// The moments at which the values of its parameters are there.
    pub(super) parameters: Vec<Moment>,
    /// The values that the parameters behind its own stand for.
    pub(super) captures: Vec<CommonArgument>,
    pub(super) own_parameters: usize,
    /// The moments at which the parts of its first parameter are there, if that is a pair of elements of two lists.
    pub(super) parts: Vec<Moment>,
    pub(super) repetition: Repetition,
    /// The arms that it is in, outermost first.
    pub(super) arms: Vec<IoArm>,
}

impl ExecutedBody {
    /// Returns the arms that a node of a body is in, outermost first.
    pub(super) fn arms_around(&self, graph: &Graph, number: u32, node: &Node) -> Vec<IoArm> {
        let own = std::iter::successors(node.control, |control| graph.node(control.switch).control);
        let own = own.filter(|control| !tests_kept_failure(graph, control.switch)).map(|control| {
            let switch = graph.node(control.switch);
            let is_condition = match &switch.kind {
                NodeKind::Switch { arms } => {
                    arms.first().is_some_and(|arm| arm.test == ArmTest::Value(Value::Bool(true)))
                }
                _ => false,
            };
            IoArm { switch: (number, control.switch), at: switch.origin, arm: control.arm, is_condition }
        });
        let own: Vec<IoArm> = own.collect();
        self.arms.iter().cloned().chain(own.into_iter().rev()).collect()
    }

    /// Returns an argument in which calls of one batch must agree.
    pub(super) fn common(&self, graph: &Graph, number: u32, operand: &Operand) -> CommonArgument {
        match operand {
            Operand::Constant(index) if (*index as usize) < graph.constants.len() => {
                CommonArgument::Constant(graph.constants[*index as usize].clone())
            }
            Operand::Shared(name) => CommonArgument::Shared(name.clone()),
            Operand::Parameter(index) if *index as usize >= self.own_parameters => {
                let own = CommonArgument::Computed { graph: number, operand: operand.clone(), repeats: false };
                self.captures.get(*index as usize - self.own_parameters).cloned().unwrap_or(own)
            }
            operand => {
                let repeats = self.repetition.for_each || self.repetition.in_turn.is_some();
                CommonArgument::Computed { graph: number, operand: operand.clone(), repeats }
            }
        }
    }
}

/// Returns the moment at which the inputs of a node are there.
pub(super) fn value(node: &Node, body: &ExecutedBody, moments: &[NodeMoments]) -> Moment {
    if let NodeKind::Prim(Prim::Field(part) | Prim::DetachField(part)) = node.kind
        && let Some(Operand::Parameter(0)) = node.inputs.first()
        && let Some(part) = body.parts.get(part as usize)
    {
        return part.clone();
    }
    let named = node.kind.named_node().map(|id| moments[id.0 as usize].value.clone());
    let inputs = node.inputs.iter().map(|input| of_operand(input, body, moments));
    inputs.chain(named).fold(Moment::default(), Moment::or_later)
}

/// Returns the moments at which the parts of the elements of a node's list are there, if it pairs the elements of two lists.
pub(super) fn parts(node: &Node, body: &ExecutedBody, moments: &[NodeMoments]) -> Vec<Moment> {
    match &node.kind {
        NodeKind::Call { function, .. } if function.as_str() == ZIP => {
            node.inputs.iter().map(|input| of_operand(input, body, moments)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the moment at which the value of an operand is there.
pub(super) fn of_operand(operand: &Operand, body: &ExecutedBody, moments: &[NodeMoments]) -> Moment {
    match operand {
        Operand::Port(id, _) => moments[id.0 as usize].value.clone(),
        Operand::Parameter(index) => body.parameters.get(*index as usize).cloned().unwrap_or_default(),
        Operand::Constant(_) | Operand::Shared(_) | Operand::Never => Moment::default(),
    }
}
