//! States of loops: what a `fold` or `loop` hands from round to round.
//!
//! A state that is words has registers of its own, another one the slot of its parameter. At the end of a round all next
//! states are assigned as if at once: each may be made of the others' old values. No tuple is made of them if the body
//! makes one for this purpose only.

use weir_host::Argument;
use weir_ir::graph::Operand;
use weir_ir::prim::Prim;

use super::Builder;
use super::emitter::{add, slot};
use super::loops::LoopParts;
use super::problem::RegionProblem;
use crate::region::{Instruction, Register, WordShape};
use crate::step::{PrimStep, Repeat};

impl<'a> Builder<'a> {
    /// Puts the initial states, which are the inputs from this one on, where the body expects them.
    pub(super) fn begin_states(&mut self, parts: &mut LoopParts<'a, '_>, first: usize) -> Result<(), RegionProblem> {
        for state in 0..parts.step.repeat.states() {
            let Some(shape) = self.types.shape(&parts.graph.parameters[state]) else {
                self.input_to(parts, first + state, parts.inner.base + state as u32)?;
                continue;
            };
            let operand = &parts.outer.graph.nodes[parts.node].inputs[first + state];
            let initial = self.words(parts.outer, operand)?;
            let registers: Vec<Register> = shape.leaves().iter().map(|_| self.emitter.register()).collect();
            self.move_words(&registers, &initial);
            parts.inner.parameters[state] = Some(registers);
        }
        Ok(())
    }

    /// Assigns the next states; returns the register that ends a `loop`.
    pub(super) fn next_states(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<Option<Register>, RegionProblem> {
        let graph = parts.graph;
        if let (Operand::Port(tuple, 0), false) = (&graph.result, parts.inner.body.result_parts.is_empty()) {
            return self.next_states_of_parts(parts, &graph.node(*tuple).inputs);
        }
        if !parts.step.repeat.yields_tuple() {
            return self.next_state(parts).map(|()| None);
        }
        match self.shape_of(&parts.inner, &graph.result) {
            Some(_) if self.are_words(parts) => {
                let mut next = self.words(&mut parts.inner, &graph.result)?;
                let is_loop = matches!(parts.step.repeat, Repeat::Loop { .. });
                let done = if is_loop { next.pop() } else { None };
                Ok(self.assign_words(parts, &next, done))
            }
            _ => self.next_states_of_tuple(parts),
        }
    }

    /// Returns true if all states are words.
    fn are_words(&self, parts: &LoopParts<'a, '_>) -> bool {
        (0..parts.step.repeat.states()).all(|state| parts.inner.parameters[state].is_some())
    }

    fn next_state(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<(), RegionProblem> {
        if parts.inner.parameters[0].is_none() {
            return self.value_result(parts, parts.inner.base);
        }
        let next = self.words(&mut parts.inner, &parts.graph.result)?;
        self.assign_words(parts, &next, None);
        Ok(())
    }

    /// Assigns the words of all states that are words; returns a register with the word of `done` that stays.
    fn assign_words(
        &mut self,
        parts: &LoopParts<'a, '_>,
        next: &[Register],
        done: Option<Register>,
    ) -> Option<Register> {
        let states = &parts.inner.parameters[..parts.step.repeat.states()];
        let registers: Vec<Register> = states.iter().flatten().flatten().copied().collect();
        let done = done.map(|done| {
            if !registers.contains(&done) {
                return done;
            }
            let kept = self.emitter.register();
            self.emitter.emit(Instruction::Move(kept, done));
            kept
        });
        self.move_words(&registers, next);
        done
    }

    /// Assigns the next states that are the inputs of a tuple, which is never made.
    fn next_states_of_parts(
        &mut self,
        parts: &mut LoopParts<'a, '_>,
        inputs: &[Operand],
    ) -> Result<Option<Register>, RegionProblem> {
        let states = parts.step.repeat.states();
        let (mut next, mut values) = (Vec::new(), Vec::new());
        for (state, input) in inputs.iter().enumerate().take(states) {
            if parts.inner.parameters[state].is_some() {
                next.extend(self.words(&mut parts.inner, input)?);
            } else {
                let part = parts.inner.body.result_parts[state];
                values.push((state as u32, self.argument(&mut parts.inner, part, input)?));
            }
        }
        self.assign_values(parts, &values);
        let done = match inputs.get(states) {
            Some(done) => Some(self.word(&mut parts.inner, done)?),
            None => None,
        };
        Ok(self.assign_words(parts, &next, done))
    }

    /// Assigns the states that are no words: directly, unless one of them is another one's old value.
    fn assign_values(&mut self, parts: &LoopParts<'a, '_>, values: &[(u32, Argument)]) {
        let (base, states) = (parts.inner.base, parts.step.repeat.states() as u32);
        if let [(state, from)] = values {
            return self.put(base + state, *from);
        }
        let is_other = |(state, from): &(u32, Argument)| match from {
            Argument::Slot { index, .. } => (base..base + states).contains(index) && *index != base + state,
            Argument::Constant(_) | Argument::Shared(_) => false,
        };
        if !values.iter().any(is_other) {
            values.iter().for_each(|(state, from)| self.put(base + state, *from));
            return;
        }
        let between = parts.first_slot + 2;
        values.iter().for_each(|(state, from)| self.put(between + state, *from));
        for (state, _) in values {
            self.emitter.emit(Instruction::TakeValue(slot(base + state), slot(between + state)));
        }
    }

    /// Takes the tuple apart that a round yields.
    fn next_states_of_tuple(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<Option<Register>, RegionProblem> {
        let (tuple, states) = (parts.first_slot + 1, parts.step.repeat.states());
        self.value_result(parts, tuple)?;
        let mut next = Vec::new();
        for state in 0..states {
            let to = parts.inner.base + state as u32;
            match self.types.shape(&parts.graph.parameters[state]) {
                Some(WordShape::Scalar(_)) => next.push(self.field(tuple, state)),
                shape => {
                    self.take_part(tuple, state, to);
                    next.extend(shape.into_iter().flat_map(|shape| self.load(to, &shape)));
                }
            }
        }
        let is_loop = matches!(parts.step.repeat, Repeat::Loop { .. });
        let done = is_loop.then(|| self.field(tuple, states));
        self.emitter.emit(Instruction::Clear(slot(tuple), 1));
        Ok(self.assign_words(parts, &next, done))
    }

    /// Loads a scalar field of a tuple.
    fn field(&mut self, tuple: u32, field: usize) -> Register {
        let register = self.emitter.register();
        self.emitter.emit(Instruction::Field(register, slot(tuple), field as u16));
        register
    }

    /// Puts a part of a tuple into a slot; a move-only part is moved.
    fn take_part(&mut self, tuple: u32, part: usize, out: u32) {
        let operands = [Argument::Slot { index: tuple, last: false }].into();
        let prim = Prim::Field(part as u32);
        self.prim(PrimStep { prim, operands, dead: Box::default(), moves: true, reuses: false, out });
    }

    fn prim(&mut self, step: PrimStep) {
        let row = add(&mut self.emitter.tables.prims, step);
        self.emitter.emit(Instruction::Prim(row));
    }

    /// Makes the last states the result of the loop.
    pub(super) fn end_states(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<(), RegionProblem> {
        let (states, out) = (parts.step.repeat.states(), parts.outer.base + parts.step.out);
        let ty = &parts.outer.graph.nodes[parts.node].outputs[0];
        if self.types.shape(ty).is_some() {
            let registers = parts.inner.parameters[..states].iter().flatten().flatten().copied().collect();
            parts.outer.ports.insert((parts.node, 0), registers);
            return Ok(());
        }
        let located = |state: usize| Argument::Slot { index: parts.inner.base + state as u32, last: true };
        if states == 1 {
            self.put(out, located(0));
            return Ok(());
        }
        for state in 0..states {
            if let (Some(registers), Some(shape)) =
                (&parts.inner.parameters[state], self.types.shape(&parts.graph.parameters[state]))
            {
                self.store(parts.inner.base + state as u32, registers, &shape);
            }
        }
        let operands = (0..states).map(located).collect();
        self.prim(PrimStep { prim: Prim::Record, operands, dead: Box::default(), moves: false, reuses: false, out });
        Ok(())
    }
}
