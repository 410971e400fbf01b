//! The last stage of preparation: creates a step for each node.

use std::sync::Arc;

use weir_host::{Argument, FunctionCode, Mode, Resource, Text, Type, Value};
use weir_ir::graph::{Constraint, Control, Graph, Node, NodeId, NodeKind, Operand, SwitchArm, arms_of_truth};
use weir_ir::prim::Prim;

use super::error::{PrepareError, error};
use super::gathered::{gathered_call, groups_iterations};
use super::moves::{MoveOnlyTypes, changed_parameters};
use super::order::StepOrder;
use super::part::{NodePart, Resolved};
use super::shape::{ControlShape, arm_of_tag};
use super::slots::SlotLayout;
use crate::constant_copies::ConstantCopies;
use crate::flow_section::{CallQueue, CallSection};
use crate::resources::Resources;
use crate::step::{
    AcquireStep, Action, Body, CallStep, Condition, ConditionStep, NONE, Out, PreparedStep, PrimStep, Repeat,
    RepeatStep, SharedOf, SimpleStep, StripRole, SwitchStep, Wanted,
};

/// Everything that is known of a graph before its steps are created.
pub(super) struct Assembly<'a> {
    pub graph: &'a Graph,
    pub shape: &'a ControlShape,
    pub order: &'a StepOrder,
    pub layout: &'a SlotLayout,
    pub moves: &'a MoveOnlyTypes<'a>,
    pub resources: &'a Resources,
    /// The part of each node in a loop that goes through its list strip by strip.
    pub strips: &'a [StripRole],
}

/// The maximum number of iterations of one `map` that run at a time. Chosen by judgement: each may hold a connection or
/// a file open.
const OVERLAP_MAX: usize = 64;

/// The same maximum for iterations whose calls are gathered: they need nothing but their frames. Chosen by judgement: each
/// answer of a batch polls all iterations under way.
pub(super) const OVERLAP_GATHERED_MAX: usize = 2_048;

/// A node, as far as the atomic steps around it depend on it.
struct InnerNode {
    ticket_gates: Vec<usize>,
    /// True if it keeps no step around it from seeing a snapshot.
    sees_snapshot: bool,
}

impl Assembly<'_> {
    pub(super) fn body(&self, parts: Vec<NodePart>) -> Result<Body, PrepareError> {
        let waits = self.order.numbers.iter().any(Option::is_some);
        let changed = changed_parameters(self.graph, &parts);
        let handed = changed.iter().zip(&self.graph.parameters).map(|(changed, ty)| *changed || self.moves.may(ty));
        let overlap_max = if self.order.overlaps { overlap_max(&parts) } else { 0 };
        let inner = |(node, part): (&Node, &NodePart)| InnerNode {
            ticket_gates: part.ticket_gates.clone(),
            sees_snapshot: part.sees_snapshot(node),
        };
        let inner: Vec<InnerNode> = self.graph.nodes.iter().zip(&parts).map(inner).collect();
        let mut steps = Vec::with_capacity(parts.len());
        for ((id, node), part) in self.graph.nodes().zip(parts) {
            steps.push(self.step(id, node, part, &inner)?);
        }
        self.link_skips(&mut steps);
        Self::link_idle(&mut steps);
        let result = match self.shape.tuple_of_states {
            Some(_) => None,
            None => self.layout.result(&self.graph.result, self.shared(&self.graph.result)),
        };
        Ok(Body {
            names: self.graph.nodes.iter().map(|node| Arc::from(node.name.as_str())).collect(),
            constants: ConstantCopies::new(&self.graph.constants),
            units: u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX).max(1),
            slots: self.layout.slots,
            switches: self.shape.switches(),
            commits_at_begin: 0,
            result,
            result_parts: self.result_parts(),
            waits,
            order_lengths: self.order.order_lengths.clone().into(),
            resource_orders: self.order.resource_orders.clone().into(),
            overlap_max,
            groups_iterations: overlap_max > 0 && groups_iterations(&steps, self.order),
            gathered_call: if overlap_max > 0 { gathered_call(&steps, result, self.order, self.layout) } else { None },
            latencies: None,
            cuts: Box::default(),
            handed: handed.collect(),
            steps: steps.into(),
        })
    }

    fn step(&self, id: NodeId, node: &Node, part: NodePart, inner: &[InnerNode]) -> Result<PreparedStep, PrepareError> {
        let index = id.0 as usize;
        let (switch, arm) = node.control.map_or((NONE, 0), |control| (self.number(control.switch), control.arm));
        Ok(PreparedStep {
            action: self.action(id, node, part, inner)?,
            switch,
            arm,
            skip_to: id.0 + 1,
            then: id.0 + 1,
            wait_number: self.order.numbers[index],
            depends: self.order.depends[index].clone(),
            follows: self.order.follows[index].clone(),
            is_awaited_by_all: self.order.awaited_by_all[index],
            signals_orders: self.order.signals_orders[index],
            awaits_orders: self.order.awaits_orders[index],
            placed_orders: self.order.placed_orders[index],
            ticket_gates: inner[index].ticket_gates.clone().into(),
        })
    }

    fn action(&self, id: NodeId, node: &Node, part: NodePart, inner: &[InnerNode]) -> Result<Action, PrepareError> {
        let index = id.0 as usize;
        if !matches!(node.kind, NodeKind::Select { .. }) && node.inputs.contains(&Operand::Never) {
            return Ok(Action::Never);
        }
        Ok(match &node.kind {
            NodeKind::Prim(_) if node.condition_of.is_some() => Action::Nothing,
            NodeKind::Prim(_) if self.shape.tuple_of_states == Some(id) => Action::Nothing,
            NodeKind::Prim(_) if self.shape.gates[index] => Action::Nothing,
            NodeKind::Prim(prim) => {
                let operands = self.arguments(index)?;
                let dead = self.dead(index, &operands, |_| true);
                let moves = node.inputs.iter().any(|input| self.moves.input(self.graph, input));
                let is_last = matches!(operands.first(), Some(Argument::Slot { last: true, .. }));
                let reuses = is_last && !moves && prim.reuses_first(&node.outputs[0]);
                Action::Prim(PrimStep { prim: *prim, operands, dead, moves, reuses, out: self.layout.port(id, 0) })
            }
            NodeKind::Call { .. } => {
                let call = part.call.ok_or_else(|| error(&node.name, "its call was not resolved".into()))?;
                self.call(id, call)?
            }
            NodeKind::Switch { .. } if self.shape.decided_by[index].is_some() => Action::Nothing,
            NodeKind::Switch { arms } => match (arms_of_truth(arms), self.condition(index, 0)) {
                (Some(arms), Some(condition)) if !matches!(condition, Condition::Holds(_)) => {
                    Action::Condition(Box::new(ConditionStep { switch: self.number(id), condition, arms }))
                }
                _ => Action::Switch(Box::new(self.switch(id, arms)?)),
            },
            NodeKind::Select { switch } => Action::Select {
                switch: self.number(*switch),
                inputs: node
                    .inputs
                    .iter()
                    .enumerate()
                    .map(|(input, source)| self.input(index, input, source))
                    .collect(),
                out: self.layout.port(id, 0),
            },
            NodeKind::Map { .. } | NodeKind::Fold { .. } | NodeKind::Loop { .. } => self.repeat(id, part)?,
            NodeKind::Within { .. } | NodeKind::Race { .. } | NodeKind::Transaction { .. } => {
                Action::Timed(Box::new(self.timed(id, part)?))
            }
            NodeKind::Acquire { constraints, restores, cancellable } => {
                Action::Acquire(Box::new(self.acquire(id, (constraints, restores, *cancellable), inner)))
            }
            NodeKind::Release { acquire } => {
                Action::Release { acquire: acquire.0, is_last_effect: self.is_last_effect(id) }
            }
            NodeKind::Return => self.only_input(index).map_or(Action::Nothing, Action::Return),
            NodeKind::Fail => self.only_input(index).map_or(Action::Nothing, Action::Fail),
        })
    }

    fn call(&self, id: NodeId, call: Resolved) -> Result<Action, PrepareError> {
        let mut arguments = self.arguments(id.0 as usize)?;
        let dead = self
            .dead(id.0 as usize, &arguments, |input| !call.passing.get(input).is_some_and(|passing| passing.takes()));
        let shared = self.shared_of(&mut arguments);
        let changes = call.changes_slot(&arguments);
        let path = Arc::from(call.path.as_str());
        let is_whole_step = self.graph.is_whole_step(id);
        if let FunctionCode::Immediate(code) = &call.code
            && call.locks.is_empty()
            && !call.reads_elsewhere
            && shared.is_empty()
            && call.state.is_none()
            && call.section.is_none()
            && !call.fallible
            && !is_whole_step
            && !self.may_be_cancelled_in_step(id)
            && self.shape.decides[id.0 as usize].is_none()
        {
            let (code, out) = (Arc::clone(code), self.layout.port(id, 0));
            let vector = call.vector;
            return Ok(Action::Simple(Box::new(SimpleStep { code, path, arguments, dead, changes, vector, out })));
        }
        let out = match self.shape.decides[id.0 as usize] {
            Some(switch) => self.decided(switch, call.fallible),
            None if call.fallible => Out::Result(self.layout.port(id, 0)),
            None => Out::Value(self.layout.port(id, 0)),
        };
        let (code, ticket_gate, state, gatherer) = (call.code, call.ticket_gate, call.state, call.gatherer);
        let section = call.section.map(|section| CallSection { queue: self.queue_of_call(id, state), ..section });
        // The queue of a state lets in one call after the other.
        let is_in_queue = section.is_some_and(|section| section.queue != CallQueue::Any);
        let locks = if is_in_queue { Box::default() } else { call.locks };
        Ok(Action::Call(Box::new(CallStep {
            dead,
            arguments,
            shared,
            changes,
            out,
            kept_failure: call.kept_failure,
            code,
            path,
            locks,
            sees_snapshot: call.sees_snapshot && !call.is_in_step,
            ticket_gate,
            state,
            gatherer,
            section,
            within: self.within(id),
            is_whole_step,
            awaits_peer: call.awaits_peer,
            asks_peer: call.asks_peer,
        })))
    }

    /// Returns true if the flow may be cancelled within the step around a call, which then keeps the locks of the step to its end.
    fn may_be_cancelled_in_step(&self, id: NodeId) -> bool {
        let step = self.graph.node(id).within.map(|acquire| &self.graph.node(acquire).kind);
        matches!(step, Some(NodeKind::Acquire { cancellable: true, .. }))
    }

    /// Returns the queue of a call that the threads of a section make.
    fn queue_of_call(&self, id: NodeId, state: Option<usize>) -> CallQueue {
        match (self.order.placed_orders[id.0 as usize], state) {
            (0, _) => CallQueue::Any,
            (_, Some(_)) => CallQueue::OfState,
            (_, None) => CallQueue::OfFlow,
        }
    }

    /// Returns the shared values of a call, if one of them belongs to the session; the arguments then index these.
    fn shared_of(&self, arguments: &mut [Argument]) -> Box<[SharedOf]> {
        let is_own =
            |argument: &Argument| matches!(argument, Argument::Shared(at) if self.resources.own(*at).is_some());
        let mut shared = Vec::new();
        if arguments.iter().any(is_own) {
            for argument in arguments {
                let Argument::Shared(index) = argument else { continue };
                shared.push(self.place_of(*index));
                *index = shared.len() as u32 - 1;
            }
        }
        shared.into()
    }

    fn place_of(&self, shared: u32) -> SharedOf {
        self.resources.own(shared).cloned().map_or(SharedOf::Program(shared), SharedOf::Session)
    }

    /// Returns the destination of the answer of a call that decides the switch by its `Result`, or by its `Option`.
    fn decided(&self, switch: NodeId, by_result: bool) -> Out {
        let NodeKind::Switch { arms } = &self.graph.node(switch).kind else { unreachable!("only a switch is decided") };
        let arm = |tag| match arm_of_tag(arms, tag) {
            Some((arm, 0)) => (arm, NONE),
            Some((arm, _)) => (arm, self.layout.port(switch, self.graph.node(switch).first_port(arm))),
            None => (NONE, NONE),
        };
        let switch = self.number(switch);
        if by_result {
            Out::OfResult { switch, ok: arm(Value::OK), err: arm(Value::ERR) }
        } else {
            Out::OfOption { switch, some: arm(Value::SOME), none: arm(Value::NONE) }
        }
    }

    /// Returns the node's input as a condition, as far as it is part of a switch's condition, and otherwise as a plain
    /// value.
    fn condition(&self, node: usize, input: usize) -> Option<Condition> {
        let source = &self.graph.nodes[node].inputs[input];
        if let Operand::Port(made_by, 0) = *source
            && let Node { condition_of: Some(_), kind: NodeKind::Prim(prim), .. } = *self.graph.node(made_by)
        {
            let made_by = made_by.0 as usize;
            let operand = |input| self.condition(made_by, input).map(Box::new);
            return Some(match prim {
                Prim::Not => Condition::Not(operand(0)?),
                Prim::And => Condition::Both(operand(0)?, operand(1)?),
                Prim::Or => Condition::Either(operand(0)?, operand(1)?),
                _ => Condition::Compare(prim, self.looked_at(made_by, 0)?, self.looked_at(made_by, 1)?),
            });
        }
        self.looked_at(node, input).map(Condition::Holds)
    }

    /// Returns the location of a node's input, which is not moved out.
    fn looked_at(&self, node: usize, input: usize) -> Option<Argument> {
        let found = self.input(node, input, &self.graph.nodes[node].inputs[input])?;
        Some(if let Argument::Slot { index, .. } = found { Argument::Slot { index, last: false } } else { found })
    }

    fn switch(&self, id: NodeId, arms: &[SwitchArm]) -> Result<SwitchStep, PrepareError> {
        let node = self.graph.node(id);
        let subject = self.only_input(id.0 as usize).ok_or_else(|| error(&node.name, "it tests nothing".into()))?;
        let arm = |(arm, index): (&SwitchArm, u32)| {
            let first = node.first_port(index);
            (arm.test.clone(), (first..first + arm.payload).map(|port| self.layout.port(id, port)).collect())
        };
        let moves = self.moves.input(self.graph, &node.inputs[0]);
        Ok(SwitchStep { switch: self.number(id), subject, moves, arms: arms.iter().zip(0..).map(arm).collect() })
    }

    fn repeat(&self, id: NodeId, part: NodePart) -> Result<Action, PrepareError> {
        let node = self.graph.node(id);
        let (Some(body), Some(repeat)) = (part.body, Repeat::of(&node.kind)) else {
            return Err(error(&node.name, "its body was not prepared".into()));
        };
        let (inputs, out) = (self.arguments(id.0 as usize)?, self.layout.port(id, 0));
        let (within, early_orders) = (self.within(id), self.order.early_orders[id.0 as usize].clone().into());
        let strip = self.strips[id.0 as usize];
        let (has_effects, is_last_effect) = (!computes(self.graph.node(id)), self.is_last_effect(id));
        Ok(Action::Repeat(Box::new(RepeatStep {
            repeat,
            inputs,
            body,
            early_orders,
            strip,
            has_effects,
            is_last_effect,
            within,
            out,
        })))
    }

    /// Returns true if only computation follows a node in the text, apart from other arms of the switches around it.
    pub(super) fn is_last_effect(&self, id: NodeId) -> bool {
        let own = self.arms_around(id);
        let is_in_other_arm = |later: NodeId| {
            let arms = self.arms_around(later);
            arms.iter().any(|arm| own.iter().any(|other| arm.switch == other.switch && arm.arm != other.arm))
        };
        self.graph.nodes().skip(id.0 as usize + 1).all(|(later, node)| computes(node) || is_in_other_arm(later))
    }

    /// Returns the arms of switches in which a node is, from the innermost.
    fn arms_around(&self, id: NodeId) -> Vec<Control> {
        let outer = |arm: &Control| self.graph.node(arm.switch).control;
        std::iter::successors(self.graph.node(id).control, outer).collect()
    }

    /// Returns the atomic steps around a node, from the innermost.
    pub(super) fn within(&self, id: NodeId) -> Box<[u32]> {
        let outer = |acquire: &NodeId| self.graph.node(*acquire).within;
        std::iter::successors(self.graph.node(id).within, outer).map(|acquire| acquire.0).collect()
    }

    fn acquire(
        &self,
        id: NodeId,
        (constraints, restores, cancellable): (&[Constraint], &[Text], bool),
        nodes: &[InnerNode],
    ) -> AcquireStep {
        let inner = || self.graph.nodes_within(id).map(|node| &nodes[node.0 as usize]);
        let locks = constraints.iter().filter_map(|held| self.resources.locks.get(&held.resource));
        let ends = locks.filter(|_| !restores.is_empty()).filter_map(|locks| locks.whole.step_end().cloned()).collect();
        let only_reads = restores.is_empty()
            && constraints.iter().all(|held| held.mode == Mode::Read && !held.per_session)
            && inner().all(|node| node.sees_snapshot);
        let restores = restores.iter().filter_map(|name| self.resources.shared_index.get(name));
        AcquireStep {
            restores: restores.map(|index| self.place_of(*index)).collect(),
            ends,
            wanted: constraints.iter().filter_map(|constraint| self.wanted(constraint)).collect(),
            session: self.only_input(id.0 as usize),
            within: self.within(id),
            ticket_gates: inner().flat_map(|node| node.ticket_gates.iter().copied()).collect(),
            sees_snapshot: only_reads && self.graph.node(id).within.is_none(),
            cancellable,
        }
    }

    fn wanted(&self, constraint: &Constraint) -> Option<Wanted> {
        let locks = self.resources.locks.get(&constraint.resource)?;
        let own = match &constraint.resource {
            Resource::Shared(name) => self.resources.shared_index.get(name).copied(),
            _ => None,
        };
        let own = own.filter(|index| self.resources.own(*index).is_some());
        Some(match (constraint.per_session, own) {
            (true, Some(index)) => Wanted::Own(Arc::clone(&locks.sessions), constraint.mode, index),
            (true, None) => Wanted::Session(Arc::clone(&locks.sessions), constraint.mode),
            (false, _) => Wanted::Whole(Arc::clone(&locks.whole), constraint.mode),
        })
    }

    pub(super) fn arguments(&self, node: usize) -> Result<Box<[Argument]>, PrepareError> {
        let inputs = self.graph.nodes[node].inputs.iter().enumerate();
        let found = inputs.map(|(input, source)| {
            let never = || error(&self.graph.nodes[node].name, format!("its input {input} is never there"));
            self.input(node, input, source).ok_or_else(never)
        });
        found.collect()
    }

    /// Returns the slots that the step leaves filled although no later step uses them, if their values own memory.
    fn dead(&self, node: usize, arguments: &[Argument], may_stay: impl Fn(usize) -> bool) -> Box<[u32]> {
        let sources = &self.graph.nodes[node].inputs;
        let dead = arguments.iter().zip(sources).enumerate().filter_map(|(input, (argument, source))| match argument {
            Argument::Slot { index, last: true } if may_stay(input) && !self.is_scalar(source) => Some(*index),
            _ => None,
        });
        dead.collect()
    }

    fn is_scalar(&self, source: &Operand) -> bool {
        let ty = match source {
            Operand::Port(id, port) => self.graph.node(*id).outputs.get(*port as usize),
            Operand::Parameter(index) => self.graph.parameters.get(*index as usize),
            _ => None,
        };
        ty.is_some_and(Type::is_scalar)
    }

    /// Returns the locations of the states that the body yields, if no tuple is made of them.
    fn result_parts(&self) -> Box<[Argument]> {
        let Some(tuple) = self.shape.tuple_of_states else { return Box::default() };
        let sources = &self.graph.node(tuple).inputs;
        let part = |(index, source): (usize, &Operand)| {
            let part = self.layout.result(source, self.shared(source))?;
            match part {
                // The last of equal parts takes the value out of its slot.
                Argument::Slot { index: slot, .. } if sources[index + 1..].contains(source) => {
                    Some(Argument::Slot { index: slot, last: false })
                }
                part => Some(part),
            }
        };
        sources.iter().enumerate().filter_map(part).collect()
    }

    fn only_input(&self, node: usize) -> Option<Argument> {
        let source = self.graph.nodes[node].inputs.first()?;
        self.input(node, 0, source)
    }

    fn input(&self, node: usize, input: usize, source: &Operand) -> Option<Argument> {
        self.layout.argument(node, input, source, self.shared(source))
    }

    fn shared(&self, source: &Operand) -> u32 {
        match source {
            Operand::Shared(name) => self.resources.shared_index.get(name).copied().unwrap_or(NONE),
            _ => NONE,
        }
    }

    fn number(&self, switch: NodeId) -> u32 {
        self.shape.numbers[switch.0 as usize]
    }

    /// Links each step to the next one that does something.
    fn link_idle(steps: &mut [PreparedStep]) {
        for index in (1..steps.len()).rev() {
            if matches!(steps[index].action, Action::Nothing) {
                steps[index - 1].then = steps[index].then;
            }
        }
    }

    /// Links each skipped step to the end of its arm, or to an earlier step whose ticket gates must be passed.
    fn link_skips(&self, steps: &mut [PreparedStep]) {
        for index in (0..steps.len()).rev() {
            let Some(control) = self.graph.nodes[index].control else { continue };
            let mut next = index + 1;
            while next < steps.len()
                && steps[next].ticket_gates.is_empty()
                && self.shape.chains[next].contains(&control)
            {
                next = if steps[next].switch == NONE { next + 1 } else { steps[next].skip_to as usize };
            }
            steps[index].skip_to = next as u32;
        }
    }
}

/// Returns the number of iterations of a body that may overlap: as many as fill the batches of its calls, within limits.
fn overlap_max(parts: &[NodePart]) -> u32 {
    let worthwhile = parts.iter().filter_map(NodePart::gatherer).map(|gatherer| gatherer.worthwhile());
    worthwhile.max().unwrap_or(0).clamp(OVERLAP_MAX, OVERLAP_GATHERED_MAX) as u32
}

/// Returns true if a node does nothing but compute.
fn computes(node: &Node) -> bool {
    node.uses.is_empty() && node.kind.constraints().is_empty()
}
