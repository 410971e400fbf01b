//! Graphs that are executed as bodies.

use weir_host::Value;

use super::moments::Moment;
use super::repeated::Repetition;
use super::{CommonArgument, IoArm};
use crate::expr::ArmTest;
use crate::graph::{Graph, Node, NodeKind, Operand};

/// A graph that is executed as the body of a node or of a flow.
pub(super) struct ExecutedBody {
    /// The moment at which the first of its nodes can begin.
    pub(super) start: Moment,
    /// The moments at which the values of its parameters are there.
    pub(super) parameters: Vec<Moment>,
    /// The values that the parameters behind its own stand for.
    pub(super) captures: Vec<CommonArgument>,
    pub(super) own_parameters: usize,
    pub(super) repetition: Repetition,
    /// The arms that it is in, outermost first.
    pub(super) arms: Vec<IoArm>,
}

impl ExecutedBody {
    /// Returns the arms that a node of a body is in, outermost first.
    pub(super) fn arms_around(&self, graph: &Graph, number: u32, node: &Node) -> Vec<IoArm> {
        let own = std::iter::successors(node.control, |control| graph.node(control.switch).control);
        let own = own.map(|control| {
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
