//! Primitives on values, and calls of host functions.

use weir_host::{Argument, Function, FunctionCode, Passing, Type};
use weir_ir::graph::{NodeId, NodeKind, Operand};
use weir_ir::prim::Prim;

use super::Builder;
use super::emitter::{add, slot};
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::Scope;
use crate::operations::KeptFailure;
use crate::region::{CallEffects, SlotCall, WordCall};
use crate::region::{Instruction, Register};
use crate::region::{Scalar, WordShape};
use crate::step::{Action, NONE, Out, PrimStep};

impl<'a> Builder<'a> {
    /// Compiles a primitive on values.
    pub(super) fn value_prim(&mut self, scope: &mut Scope<'a>, node: usize, prim: Prim) -> Result<(), RegionProblem> {
        let body = scope.body;
        let Action::Prim(step) = body.steps[node].action.form() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let read = match self.read_of_value(scope, node, prim, step)? {
            Some(register) => Some(vec![register]),
            None => self.read_of_record(scope, node, prim, step)?,
        };
        if let Some(registers) = read {
            self.clear_dead(scope, &step.dead);
            scope.ports.insert((node, 0), registers);
            return Ok(());
        }
        let operands = self.arguments(scope, node, &step.operands)?;
        if step.reuses && self.appended(scope, node, &operands) {
            return Ok(());
        }
        let (dead, out) = (dead_slots(scope, &step.dead), scope.base + step.out);
        let (moves, reuses) = (step.moves, step.reuses);
        let row = add(&mut self.emitter.tables.prims, PrimStep { prim, operands, dead, moves, reuses, out });
        self.emitter.emit(Instruction::Prim(row));
        self.load_result(scope, node, out);
        Ok(())
    }

    /// Compiles a primitive that reads a scalar out of a value, if it has an instruction of its own.
    fn read_of_value(
        &mut self,
        scope: &mut Scope<'a>,
        node: usize,
        prim: Prim,
        step: &PrimStep,
    ) -> Result<Option<Register>, RegionProblem> {
        let graph = scope.graph;
        let is_scalar = Scalar::of(&graph.nodes[node].outputs[0]).is_some();
        let Some(Argument::Slot { index, .. }) = step.operands.first().map(|first| scope.located(*first)) else {
            return Ok(None);
        };
        let inputs = &graph.nodes[node].inputs;
        let of = Self::type_of(scope, &inputs[0]);
        let is_value = of.as_ref().is_some_and(|ty| self.types.shape(ty).is_none());
        if !is_scalar || !is_value || step.moves {
            return Ok(None);
        }
        let out = self.emitter.register();
        let instruction = match (prim, of) {
            (Prim::Length, _) => Instruction::Length(out, slot(index)),
            (Prim::Field(field) | Prim::DetachField(field), _) if field < u32::from(u16::MAX) => {
                Instruction::Field(out, slot(index), field as u16)
            }
            (Prim::Index | Prim::DetachElement, Some(Type::List(_))) => {
                let at = self.word(scope, &inputs[1])?;
                Instruction::Index(out, slot(index), at)
            }
            _ => return Ok(None),
        };
        self.emitter.emit(instruction);
        Ok(Some(out))
    }

    /// Compiles the reading of an element of a list, if it is a record of scalars.
    fn read_of_record(
        &mut self,
        scope: &mut Scope<'a>,
        node: usize,
        prim: Prim,
        step: &PrimStep,
    ) -> Result<Option<Vec<Register>>, RegionProblem> {
        let (Prim::Index | Prim::DetachElement) = prim else { return Ok(None) };
        let inputs = &scope.graph.nodes[node].inputs;
        let Some(shape @ WordShape::Record(_)) = self.types.shape(&scope.graph.nodes[node].outputs[0]) else {
            return Ok(None);
        };
        let Some(Argument::Slot { index, .. }) = step.operands.first().map(|first| scope.located(*first)) else {
            return Ok(None);
        };
        if !matches!(Self::type_of(scope, &inputs[0]), Some(Type::List(_))) || step.moves {
            return Ok(None);
        }
        let at = self.word(scope, &inputs[1])?;
        let registers: Vec<Register> = shape.leaves().iter().map(|_| self.emitter.register()).collect();
        let row = self.record(index, &registers, &shape);
        self.emitter.emit(Instruction::LoadElement(row, at));
        Ok(Some(registers))
    }

    fn clear_dead(&mut self, scope: &Scope<'_>, dead: &[u32]) {
        for dead in dead_slots(scope, dead) {
            self.emitter.emit(Instruction::Clear(slot(dead), 1));
        }
    }

    /// Loads the result of a node from its slot, if it is stored as words.
    pub(super) fn load_result(&mut self, scope: &mut Scope<'a>, node: usize, index: u32) {
        if let Some(shape) = self.types.shape(&scope.graph.nodes[node].outputs[0]) {
            scope.ports.insert((node, 0), self.load(index, &shape));
        }
    }

    /// Compiles a call.
    pub(super) fn call(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let (graph, body) = (scope.graph, scope.body);
        let NodeKind::Call { function, keeps_failure, .. } = &graph.nodes[node].kind else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let function = self.types.library.function(function).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        if !keeps_failure && self.call_of_words(scope, node, function)? {
            return Ok(());
        }
        let (code, path, arguments, dead, out) = match body.steps[node].action.form() {
            Action::Simple(step) => (&step.code, &step.path, &step.arguments, &step.dead, &Out::Value(step.out)),
            Action::Call(step) => match &step.code {
                FunctionCode::Immediate(code) => (code, &step.path, &step.arguments, &step.dead, &step.out),
                _ => return Err(RegionProblem::of(NodeObstacle::NoInstruction)),
            },
            _ => return Err(RegionProblem::of(NodeObstacle::NoInstruction)),
        };
        let (code, path, arguments) = (code.clone(), path.clone(), self.arguments(scope, node, arguments)?);
        let (dead, out) = (dead_slots(scope, dead), self.destination(scope, node, out));
        let result = if let Out::Value(slot) | Out::Result(slot) = out { Some(slot) } else { None };
        let mut effects = effects_of_call(scope, node, function);
        effects.changed = changed_slots(function, &arguments);
        let kept_failure = keeps_failure.then(|| KeptFailure::of(&function.signature));
        let call = SlotCall { code, path, arguments, dead, out, kept_failure, effects };
        let row = add(&mut self.emitter.tables.calls, call);
        self.emitter.emit(Instruction::Call(row));
        if let Some(result) = result {
            self.load_result(scope, node, result);
        }
        self.store_decided_choice(scope, node);
        Ok(())
    }

    /// Compiles a call of a typed entry point; returns false if the function has none. A function that declares units is
    /// called with a budget of them, which a typed entry point does not take.
    fn call_of_words(
        &mut self,
        scope: &mut Scope<'a>,
        node: usize,
        function: &Function,
    ) -> Result<bool, RegionProblem> {
        let graph = scope.graph;
        let inputs = &graph.nodes[node].inputs;
        let is_scalar = |input: &Operand| matches!(self.shape_of(scope, input), Some(WordShape::Scalar(_)));
        let takes = function.signature.parameters.iter().all(|parameter| parameter.passing == Passing::Value);
        let (Some(code), Action::Simple(step)) = (function.words, scope.body.steps[node].action.form()) else {
            return Ok(false);
        };
        if function.signature.effects.declares_units
            || !takes
            || !inputs.iter().all(is_scalar)
            || Scalar::of(&graph.nodes[node].outputs[0]).is_none()
        {
            return Ok(false);
        }
        let mut arguments = Vec::with_capacity(inputs.len());
        for input in inputs {
            arguments.push(self.word(scope, input)?);
        }
        let (out, path) = (self.emitter.register(), step.path.clone());
        let (arguments, effects) = (arguments.into(), effects_of_call(scope, node, function));
        let row = add(&mut self.emitter.tables.word_calls, WordCall { code, path, arguments, effects });
        self.emitter.emit(Instruction::CallWords(out, row));
        scope.ports.insert((node, 0), vec![out]);
        Ok(true)
    }

    /// Returns the destination of a call's answer in the frame; the choice of a decided switch gets a register.
    fn destination(&mut self, scope: &mut Scope<'a>, node: usize, out: &Out) -> Out {
        let base = scope.base;
        let slot = |slot: u32| if slot == NONE { NONE } else { base + slot };
        let mut choice = || {
            let register = self.emitter.register();
            if let Some(switch) = decided_switch(scope, node) {
                scope.choices[switch] = Some(register);
            }
            u32::from(register)
        };
        match *out {
            Out::Value(index) => Out::Value(slot(index)),
            Out::Result(index) => Out::Result(slot(index)),
            Out::OfResult { ok, err, .. } => {
                Out::OfResult { switch: choice(), ok: (ok.0, slot(ok.1)), err: (err.0, slot(err.1)) }
            }
            Out::OfOption { some, none, .. } => {
                Out::OfOption { switch: choice(), some: (some.0, slot(some.1)), none: (none.0, slot(none.1)) }
            }
        }
    }

    /// Notes the choice of a decided switch for steps outside of the region.
    fn store_decided_choice(&mut self, scope: &Scope<'a>, node: usize) {
        let Action::Call(step) = scope.body.steps[node].action.form() else { return };
        if let (Out::OfResult { switch, .. } | Out::OfOption { switch, .. }, Some(decided)) =
            (&step.out, decided_switch(scope, node))
            && let Some(choice) = scope.choices[decided]
            && scope.is_outermost()
        {
            self.emitter.emit(Instruction::StoreChoice(*switch as u16, choice));
        }
    }
}

fn effects_of_call(scope: &Scope<'_>, node: usize, function: &Function) -> CallEffects {
    let uses = scope.graph.nodes[node].uses.as_slice().into();
    CallEffects { uses, changed: Box::default(), declares_units: function.signature.effects.declares_units }
}

/// Returns the slots of arguments that a function takes by `&mut`.
fn changed_slots(function: &Function, arguments: &[Argument]) -> Box<[u32]> {
    let parameters = function.signature.parameters.iter().zip(arguments);
    let changed = parameters.filter(|(parameter, _)| parameter.passing == Passing::Change);
    let slots = changed.filter_map(|(_, argument)| match argument {
        Argument::Slot { index, .. } => Some(*index),
        Argument::Constant(_) | Argument::Shared(_) => None,
    });
    slots.collect()
}

fn decided_switch(scope: &Scope<'_>, call: usize) -> Option<usize> {
    let port = Operand::Port(NodeId(call as u32), 0);
    let switches = scope.graph.nodes.iter().enumerate().skip(call);
    let found = switches
        .into_iter()
        .find(|(_, node)| matches!(node.kind, NodeKind::Switch { .. }) && node.inputs.first() == Some(&port));
    found.map(|(switch, _)| switch)
}

/// Returns the locations of the slots that a step leaves behind.
pub(super) fn dead_slots(scope: &Scope<'_>, dead: &[u32]) -> Box<[u32]> {
    let located = |index: &u32| match scope.located(Argument::Slot { index: *index, last: true }) {
        Argument::Slot { index, .. } => index,
        Argument::Constant(_) | Argument::Shared(_) => NONE,
    };
    dead.iter().map(located).filter(|index| *index != NONE).collect()
}
