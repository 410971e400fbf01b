//! Elements of lists and maps that are read and replaced where they are.
//!
//! * A record of a list whose fields alone are used stays in the list.
//! * `list + [x]` adds `x` at the end of a list at its last use, and `text + "…{x}"` the parts of the text; neither the
//!   list of one element nor the text is made.
//! * `map[key]` whose `Option` is taken apart at once jumps to the arm that it chooses.
//! * A call that replaces an element ([`weir_host::Effects::replaces_element`]) replaces it in its slot, and takes the new
//!   one from where it was before it was moved for the call.
//!
//! The last three are recognised by the instruction that was emitted last: it is removed, unless a jump goes
//! behind it.

use weir_host::{Argument, Effects, Type, Value, World};
use weir_ir::graph::{ArmTest, NodeKind, Operand};
use weir_ir::prim::Prim;

use super::emitter::{add, slot};
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::Scope;
use super::values::dead_slots;
use super::{Builder, is_used_outside};
use crate::region::{
    CallEffects, ElementReplacement, FrameSlot, Instruction, LookUp, LookUpOutput, RegionOperand, Scalar, SlotCall,
    WordShape,
};
use crate::step::{Action, Out, PrimStep, SwitchStep};

impl<'a> Builder<'a> {
    /// Compiles the reading of a field of an element that stays in its list; returns false if the node is no such thing.
    pub(super) fn field_of_element(&mut self, scope: &mut Scope<'a>, node: usize) -> bool {
        let (graph, body) = (scope.graph, scope.body);
        let (NodeKind::Prim(prim), [Operand::Parameter(index)]) =
            (&graph.nodes[node].kind, &graph.nodes[node].inputs[..])
        else {
            return false;
        };
        let (Prim::Field(field) | Prim::DetachField(field)) = prim else { return false };
        let Some(row) = scope.elements[*index as usize] else { return false };
        let Action::Prim(step) = body.steps[node].action.form() else { return false };
        if Scalar::of(&graph.nodes[node].outputs[0]).is_some() {
            let register = self.emitter.register();
            self.emitter.emit(Instruction::ElementWord(register, row, *field as u16));
            scope.ports.insert((node, 0), vec![register]);
        } else {
            let (out, field) = (scope.base + step.out, *field as u16);
            self.emitter.emit(match scope.reads_of_field(*index, field) {
                1 => Instruction::TakeElementField(slot(out), row, field),
                _ => Instruction::ElementField(slot(out), row, field),
            });
            self.load_result(scope, node, out);
        }
        true
    }

    /// Compiles `list + [x]` and `text + "…{x}"`, whose first operand is not used afterwards, if the instruction before has
    /// made the second operand; returns false otherwise.
    pub(super) fn appended(&mut self, scope: &mut Scope<'a>, node: usize, operands: &[Argument]) -> bool {
        let Action::Prim(step) = scope.body.steps[node].action.form() else { return false };
        let [Argument::Slot { index: whole, last: true }, Argument::Slot { index: made, last: true }] = *operands
        else {
            return false;
        };
        let Some(Instruction::Prim(row)) = self.emitter.code.last().copied() else { return false };
        let maker = &self.emitter.tables.prims[usize::from(row)];
        if maker.out != made || made == whole || step.prim != Prim::Add {
            return false;
        }
        let is_appended = match (maker.prim, &maker.operands[..]) {
            (Prim::List, [element]) if !maker.moves && maker.dead.iter().all(|dead| *element == last_use(*dead)) => {
                self.append_element(whole, made, *element)
            }
            (Prim::Interpolate, parts) if !parts.iter().any(|part| is_slot(part, whole)) => {
                self.append_parts(usize::from(row), whole)
            }
            _ => false,
        };
        if is_appended {
            let out = scope.base + step.out;
            let dead = dead_slots(scope, &step.dead);
            for dead in dead.iter().filter(|dead| ![whole, made].contains(dead)) {
                self.emitter.emit(Instruction::Clear(slot(*dead), 1));
            }
            self.put(out, Argument::Slot { index: whole, last: true });
        }
        is_appended
    }

    fn append_element(&mut self, whole: u32, made: u32, element: Argument) -> bool {
        let last = self.emitter.code.len() - 1;
        let stored = last.checked_sub(1).map(|before| self.emitter.code[before]);
        // A word is stored anew for each instruction on values, so that nothing else needs this store.
        if let (Argument::Slot { index, .. }, Some(Instruction::Store(to, register, scalar))) = (element, stored)
            && slot(index) == to
            && self.emitter.retract(last - 1)
        {
            self.emitter.emit(Instruction::Push(slot(whole), register, scalar));
            return true;
        }
        // The same holds for a record.
        if let (Argument::Slot { index, .. }, Some(Instruction::StoreRecord(row))) = (element, stored)
            && slot(index) == self.emitter.tables.records[usize::from(row)].slot
            && self.emitter.retract(last - 1)
        {
            self.emitter.tables.records[usize::from(row)].slot = slot(whole);
            self.emitter.emit(Instruction::PushRecord(row));
            return true;
        }
        if !self.emitter.retract(last) {
            return false;
        }
        let from = match element {
            Argument::Slot { index, last: true } => index,
            other => {
                self.put(made, other);
                made
            }
        };
        self.emitter.emit(Instruction::PushValue(slot(whole), slot(from)));
        true
    }

    fn append_parts(&mut self, maker: usize, whole: u32) -> bool {
        if !self.emitter.retract(self.emitter.code.len() - 1) {
            return false;
        }
        let maker = &self.emitter.tables.prims[maker];
        let (operands, dead) = (maker.operands.clone(), maker.dead.clone());
        let step = PrimStep { prim: Prim::Interpolate, operands, dead, moves: false, reuses: true, out: whole };
        let row = add(&mut self.emitter.tables.prims, step);
        self.emitter.emit(Instruction::AppendParts(row));
        true
    }

    /// Returns the look-up in a map that the instruction before has made, if the subject of this switch is its result and
    /// nothing else uses it.
    pub(super) fn look_up(
        &mut self,
        scope: &mut Scope<'a>,
        switch: usize,
        step: &SwitchStep,
        subject: Argument,
    ) -> Option<LookUp> {
        let Argument::Slot { index: found, last: true } = subject else { return None };
        let Operand::Port(maker, 0) = scope.graph.nodes[switch].inputs[0] else { return None };
        let maker = scope.graph.node(maker);
        let is_found = |arm: &ArmTest| matches!(arm, ArmTest::Tag(_) | ArmTest::Otherwise);
        if !matches!(Self::type_of(scope, maker.inputs.first()?), Some(Type::Map(..)))
            || !step.arms.iter().all(|(test, ports)| is_found(test) && ports.len() <= 1)
        {
            return None;
        }
        let Some(Instruction::Prim(row)) = self.emitter.code.last().copied() else { return None };
        let made = &self.emitter.tables.prims[usize::from(row)];
        let (Prim::Index | Prim::DetachElement, [map, key]) = (made.prim, &made.operands[..]) else { return None };
        let look_up = LookUp {
            map: *map,
            key: RegionOperand::Value(*key),
            detaches: made.prim == Prim::DetachElement,
            dead: made.dead.clone(),
            output: LookUpOutput::Nothing,
            some: step.arms.iter().position(|(test, _)| is_tag(test, Value::SOME)),
            none: step.arms.iter().position(|(test, _)| is_tag(test, Value::NONE)),
            update: None,
        };
        let (is_it, key) = (made.out == found && !made.moves, *key);
        if !is_it {
            return None;
        }
        let key = self.key_of_look_up(key)?;
        let output = self.output_of_look_up(scope, switch, step, &look_up);
        Some(LookUp { key, output, ..look_up })
    }

    /// Removes the look-up that was emitted last, together with the store of its key, and returns the key.
    fn key_of_look_up(&mut self, key: Argument) -> Option<RegionOperand> {
        let last = self.emitter.code.len() - 1;
        let stored = last.checked_sub(1).map(|before| self.emitter.code[before]);
        // A word is stored anew for each instruction on values, so that nothing else needs this store.
        if let (Argument::Slot { index, .. }, Some(Instruction::Store(to, register, scalar))) = (key, stored)
            && slot(index) == to
            && self.emitter.retract(last - 1)
        {
            return Some(RegionOperand::Word(register, Scalar::ALL[usize::from(scalar)], to));
        }
        self.emitter.retract(last).then_some(RegionOperand::Value(key))
    }

    /// Returns the destination of the value that a look-up finds: a register if it is one word that only the region uses.
    fn output_of_look_up(
        &mut self,
        scope: &mut Scope<'a>,
        switch: usize,
        step: &SwitchStep,
        look_up: &LookUp,
    ) -> LookUpOutput {
        let Some(arm) = look_up.some else { return LookUpOutput::Nothing };
        let [port] = step.arms[arm].1[..] else { return LookUpOutput::Nothing };
        let node = &scope.graph.nodes[switch];
        let number = node.first_port(arm as u32) as usize;
        let is_seen = scope.is_outermost() && is_used_outside(scope, switch, number);
        if is_seen || Scalar::of(&node.outputs[number]).is_none() {
            return LookUpOutput::Slot(slot(scope.base + port));
        }
        let register = self.emitter.register();
        scope.ports.insert((switch, number), vec![register]);
        LookUpOutput::Word(register)
    }

    /// Returns the operand for a value that is used for the last time: if the instruction before has only moved it to its
    /// slot, and from none of these, that instruction goes, and the value is taken where it was.
    fn before_move(&mut self, value: RegionOperand, others: [FrameSlot; 2]) -> RegionOperand {
        if let RegionOperand::Value(Argument::Slot { index, last: true }) = value
            && let Some(Instruction::TakeValue(to, from)) = self.emitter.code.last().copied()
            && to == slot(index)
            && !others.contains(&from)
            && self.emitter.retract(self.emitter.code.len() - 1)
        {
            return RegionOperand::Value(last_use(u32::from(from)));
        }
        value
    }

    /// Compiles a call of a function that replaces one element of its first argument; returns false if the node is none.
    pub(super) fn replacement(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<bool, RegionProblem> {
        let (graph, body) = (scope.graph, scope.body);
        let NodeKind::Call { function, .. } = &graph.nodes[node].kind else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let function = self.types.library.function(function).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        let Action::Simple(step) = body.steps[node].action.form() else { return Ok(false) };
        let takes = function.signature.parameters.iter().all(|parameter| parameter.passing.takes());
        let [whole, key, value] = step.arguments[..] else { return Ok(false) };
        if !takes || !replaces_in_place(&function.signature.effects) {
            return Ok(false);
        }
        let whole = scope.located(whole);
        let Argument::Slot { index, last } = whole else { return Ok(false) };
        let inputs = &graph.nodes[node].inputs;
        let (key, value) = (self.operand(scope, key, &inputs[1])?, self.operand(scope, value, &inputs[2])?);
        let out = scope.base + step.out;
        let changed = if last { index } else { out };
        let value = self.before_move(value, [changed, index].map(slot));
        self.put(changed, whole);
        let arguments = [whole, located(key), located(value)].into();
        let (code, path, dead) = (step.code.clone(), step.path.clone(), dead_slots(scope, &step.dead));
        let (out_value, effects) = (Out::Value(out), CallEffects::default());
        let call = SlotCall { code, path, arguments, dead, out: out_value, kept_failure: None, effects };
        self.set_word(scope, slot(changed), key, &inputs[..])?;
        let row =
            add(&mut self.emitter.tables.replacements, ElementReplacement { whole: slot(changed), key, value, call });
        self.emitter.emit(Instruction::Replace(row));
        self.put(out, Argument::Slot { index: changed, last: true });
        Ok(true)
    }

    /// Stores a scalar in a list, if that takes no more than storing its word.
    fn set_word(
        &mut self,
        scope: &mut Scope<'a>,
        list: FrameSlot,
        key: RegionOperand,
        inputs: &[Operand],
    ) -> Result<(), RegionProblem> {
        let Some(Type::List(element)) = Self::type_of(scope, &inputs[0]) else { return Ok(()) };
        if let (RegionOperand::Word(key, ..), Some(_)) = (key, Scalar::of(&element)) {
            let value = self.word(scope, &inputs[2])?;
            self.emitter.emit(Instruction::SetWord(list, key, value));
        }
        Ok(())
    }

    /// Returns an operand, which stays in its register if it is one word.
    fn operand(
        &mut self,
        scope: &mut Scope<'a>,
        argument: Argument,
        input: &Operand,
    ) -> Result<RegionOperand, RegionProblem> {
        if let (Argument::Slot { index, .. }, Some(WordShape::Scalar(scalar))) =
            (scope.located(argument), self.shape_of(scope, input))
        {
            return Ok(RegionOperand::Word(self.word(scope, input)?, scalar, slot(index)));
        }
        Ok(RegionOperand::Value(self.argument(scope, argument, input)?))
    }
}

fn replaces_in_place(effects: &Effects) -> bool {
    effects.replaces_element && effects.world == World::Pure
}

/// Returns true if the test holds for a variant with this tag.
fn is_tag(test: &ArmTest, tag: u32) -> bool {
    matches!(test, ArmTest::Otherwise) || *test == ArmTest::Tag(tag)
}

fn last_use(slot: u32) -> Argument {
    Argument::Slot { index: slot, last: true }
}

fn is_slot(argument: &Argument, slot: u32) -> bool {
    matches!(argument, Argument::Slot { index, .. } if *index == slot)
}

/// Returns the location at which a call finds an operand.
fn located(operand: RegionOperand) -> Argument {
    match operand {
        RegionOperand::Word(_, _, slot) => Argument::Slot { index: slot.into(), last: true },
        RegionOperand::Value(argument) => argument,
        RegionOperand::Field(field) => Argument::Slot { index: field.slot.into(), last: true },
    }
}
