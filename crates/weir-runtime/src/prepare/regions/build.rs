//! The builder: compiles neighbouring nodes of a body to the code of a region.
//!
//! Nodes are compiled in the order in which they are listed. A port whose type has a [word shape](crate::region::WordShape) gets
//! registers of its own; registers are never shared, so that each has one definition (static single assignment), except
//! for the state of a loop and the result of a select. A port that is a value stays in the slot that the frame's layout
//! gives it, and is used and moved as the step form does; the bodies of loops have the slots behind those of the frame.
//! Words are stored in slots where a step outside of the region or an instruction on values needs them.

use std::ops::Range;

use weir_ir::graph::{Graph, NodeId, NodeKind, Operand};

use crate::region::Instruction;
use crate::region::Region;
use crate::region::WordTypes;
use crate::step::{Action, Body};
use emitter::{CodeEmitter, add};
use finish::finished;
use scope::{Scope, arms_around, real_user};
use simplify::simplify;
use users::NodeUsers;

mod control;
mod elements;
mod emitter;
mod finish;
mod loops;
mod move_only;
mod operands;
mod parts;
mod problem;
mod reductions;
mod scalars;
pub(super) mod scope;
mod simplify;
mod states;
mod users;
mod values;

pub(super) use problem::{NodeObstacle, RegionProblem};

/// The builder of a region.
pub(super) struct Builder<'a> {
    types: WordTypes<'a>,
    emitter: CodeEmitter,
}

/// Compiles the nodes of this range.
pub(super) fn region(
    types: WordTypes<'_>,
    graph: &Graph,
    body: &Body,
    nodes: Range<usize>,
) -> Result<Region, RegionProblem> {
    let mut builder = Builder { types, emitter: CodeEmitter { slots: body.slots as usize, ..CodeEmitter::default() } };
    let mut scope = Scope::new(graph, body, 0, None);
    scope.outer_arms = arms_around(graph, nodes.start).len();
    scope.users = NodeUsers::of(graph, &nodes);
    scope.nodes = nodes.clone();
    builder.note_move_only(&scope);
    builder.nodes(&mut scope)?;
    builder.emitter.emit(Instruction::End);
    simplify(&mut builder.emitter);
    // What an atomic step does stays on the thread that holds its locks.
    if graph.nodes[nodes.start].within.is_none() {
        parts::mark(&mut builder.emitter);
    }
    finished(builder.emitter, nodes)
}

impl<'a> Builder<'a> {
    /// Compiles the nodes of a scope.
    fn nodes(&mut self, scope: &mut Scope<'a>) -> Result<(), RegionProblem> {
        for node in scope.nodes.clone() {
            if !self.emitter.fits() {
                return Err(RegionProblem::TooLarge);
            }
            // A part of a condition is compiled with its switch, and no tuple is made of the next states of a loop. A gate may stand
            // in the middle of an arm to which it does not belong: it must not end the arm.
            if scope.is_part_of_condition(node) {
                continue;
            }
            self.node_in_arms(scope, node).map_err(|problem| problem.at(&scope.graph.nodes[node].name))?;
        }
        self.close_to(scope, 0)
    }

    /// Compiles a node in the arms around it.
    fn node_in_arms(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        self.enter_arms_of(scope, node)?;
        self.emitter.place(scope.place(node));
        self.node(scope, node)?;
        if scope.is_outermost() {
            self.store_for_others(scope, node)?;
        }
        Ok(())
    }

    fn node(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let (graph, body) = (scope.graph, scope.body);
        if matches!(body.steps[node].action.form(), Action::Never) {
            self.emitter.emit(Instruction::Never);
            return Ok(());
        }
        match &graph.nodes[node].kind {
            NodeKind::Prim(prim) => {
                if self.field_of_element(scope, node) || self.word_prim(scope, node)? {
                    return Ok(());
                }
                self.value_prim(scope, node, *prim)
            }
            NodeKind::Call { .. } => match self.replacement(scope, node)? {
                true => Ok(()),
                false => self.call(scope, node),
            },
            NodeKind::Switch { .. } => self.switch(scope, node),
            NodeKind::Select { .. } => self.select(scope, node),
            NodeKind::Map { .. } | NodeKind::Fold { .. } | NodeKind::Loop { .. } => self.repeat(scope, node),
            NodeKind::Return | NodeKind::Fail => self.end(scope, node),
            // Without instructions of its own, an operation stays a step, and the region ends there.
            _ => Err(RegionProblem::of(NodeObstacle::NoInstruction)),
        }
    }

    /// Compiles an end of the flow.
    fn end(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let (argument, is_failure) = match scope.body.steps[node].action.form() {
            Action::Return(argument) => (*argument, false),
            Action::Fail(argument) => (*argument, true),
            _ => return Err(RegionProblem::of(NodeObstacle::NoInstruction)),
        };
        let input = &scope.graph.nodes[node].inputs[0];
        let argument = self.argument(scope, argument, input)?;
        let row = add(&mut self.emitter.tables.arguments, argument);
        self.emitter.emit(if is_failure { Instruction::Fail(row) } else { Instruction::Return(row) });
        Ok(())
    }

    /// Stores the words of a node in its slot, if a step outside of the region uses them.
    fn store_for_others(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let is_computed = matches!(
            scope.body.steps[node].action.form(),
            Action::Prim(_) | Action::Simple(_) | Action::Select { .. } | Action::Repeat(_)
        );
        let Some(registers) = scope.ports.get(&(node, 0)).cloned().filter(|_| is_computed) else {
            return Ok(());
        };
        if is_used_outside(scope, node, 0) {
            let shape = self.types.shape(&scope.graph.nodes[node].outputs[0]);
            let index = scope.slot_of_port(node, 0).ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))?;
            self.store(scope.base + index, &registers, &shape.ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))?);
        }
        Ok(())
    }
}

/// Returns true if a step outside of the region, or the end of the body, uses a port of a node.
fn is_used_outside(scope: &Scope<'_>, node: usize, port: usize) -> bool {
    let is_outside = |user: usize| !scope.nodes.contains(&real_user(scope.graph, scope.body, user));
    let mut users = scope.users.of_port(node, port);
    let port = Operand::Port(NodeId(node as u32), port as u32);
    // The next iteration takes the parts of such a tuple out of their slots.
    let is_next_state = match &scope.graph.result {
        Operand::Port(tuple, 0) if !scope.body.result_parts.is_empty() => {
            scope.graph.node(*tuple).inputs.contains(&port)
        }
        _ => false,
    };
    scope.graph.result == port || is_next_state || users.any(is_outside)
}
