//! Accesses of instructions to the state of a region: the registers, slots and choices that each reads and changes.

use weir_host::Argument;

use super::changes::{PushedCall, PushedWord, RoundEffect, StoredWord};
use super::code::{
    ElementReplacement, LookUp, LookUpOutput, LoopOutcome, RegionOperand, SlotCall, Tables, ValueSwitch,
};
use super::instruction::{FrameSlot, Instruction, Register, RegisterAccess, TableIndex};
use crate::operations::{NONE, Out, PrimStep};

/// A location of the state of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StateLocation {
    Register(Register),
    Slot(FrameSlot),
    /// The choice of a switch, for steps outside of the region.
    Choice(u16),
}

/// The kind of an access to a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateAccess {
    /// Reads the content, which stays.
    Read,
    /// May read the content, and may change it, move it out, or leave it.
    Change,
    /// Overwrites the content without reading it; or leaves it, and then nothing reads it before it is overwritten.
    Overwrite,
}

/// A function that sees the accesses of an instruction, in their order.
type SeeAccess<'f> = dyn FnMut(StateLocation, StateAccess) + 'f;

impl Tables {
    /// Calls `see` for each access of an instruction. Reads come before overwriting of the same location.
    pub(crate) fn accesses(&mut self, mut instruction: Instruction, see: &mut SeeAccess<'_>) {
        let mut see_register = |register: &mut Register, access| {
            let access = if access == RegisterAccess::Read { StateAccess::Read } else { StateAccess::Overwrite };
            see(StateLocation::Register(*register), access);
        };
        self.registers(instruction, &mut see_register);
        instruction.registers(&mut see_register);
        match instruction {
            Instruction::LoadChoice(_, switch) => see(StateLocation::Choice(switch), StateAccess::Read),
            Instruction::StoreChoice(switch, _) => see(StateLocation::Choice(switch), StateAccess::Overwrite),
            other => self.slots(other, &mut |slot, access| see(StateLocation::Slot(slot), access)),
        }
    }

    /// Calls `see` for each access of an instruction to a slot.
    fn slots(&self, instruction: Instruction, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
        use Instruction::*;
        use StateAccess::{Change, Overwrite, Read};
        let list = |row: TableIndex| self.loops[usize::from(row)].list;
        match instruction {
            Load(_, slot) | Length(_, slot) | Field(_, slot, _) | Index(_, slot, _) => see(slot, Read),
            LoadRecord(row) | LoadElement(row, _) => see(self.records[usize::from(row)].slot, Read),
            Store(slot, ..) | ConstantValue(slot, _) | BeginMap(slot) => see(slot, Overwrite),
            StoreRecord(row) => see(self.records[usize::from(row)].slot, Overwrite),
            PushRecord(row) => see(self.records[usize::from(row)].slot, Change),
            SetWord(slot, ..) | Push(slot, ..) => see(slot, Change),
            TakeValue(to, from) => {
                see(from, Change);
                see(to, Overwrite);
            }
            CloneValue(to, from) => {
                see(from, Read);
                see(to, Overwrite);
            }
            PushValue(list, from) => [list, from].into_iter().for_each(|slot| see(slot, Change)),
            Clear(first, count) => (first..first + count).for_each(|slot| see(slot, Overwrite)),
            FirstWord(row, ..) | NextWord(row, ..) | FirstElement(row, _) | NextElement(row, _) => see(list(row), Read),
            FirstValue(row, to, _) | NextValue(row, to, _) | TakeElementField(to, row, _) => {
                see(list(row), Change);
                see(to, Overwrite);
            }
            ElementWord(_, row, _) => see(list(row), Read),
            ElementWords(row) => see(list(self.element_words[usize::from(row)].row), Read),
            ElementField(to, row, _) => {
                see(list(row), Read);
                see(to, Overwrite);
            }
            EndFor(row) => {
                let split = &self.splits[usize::from(row)];
                see(list(split.row), Change);
                of_outcome(&split.outcome, see);
            }
            Rounds(row) => {
                let rounds = self.rounds[usize::from(row)];
                match rounds.effect {
                    RoundEffect::Store(StoredWord { list, .. }) => see(list, Change),
                    RoundEffect::Push(PushedWord { results, .. }) | RoundEffect::Call(PushedCall { results, .. }) => {
                        see(list(rounds.row), Read);
                        see(results, Change);
                    }
                }
            }
            Prim(row) => of_prim(&self.prims[usize::from(row)], Overwrite, see),
            AppendParts(row) => of_prim(&self.prims[usize::from(row)], Change, see),
            Call(row) => of_call(&self.calls[usize::from(row)], see),
            Replace(row) => of_replacement(&self.replacements[usize::from(row)], see),
            Switch(row) => of_switch(&self.switches[usize::from(row)], see),
            Return(row) | Fail(row) => of_argument(self.arguments[usize::from(row)], see),
            other => debug_assert!(other.has_no_slot(), "{other:?} has slots"),
        }
    }
}

fn of_outcome(outcome: &LoopOutcome, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    match outcome {
        LoopOutcome::List(results) => see(*results, StateAccess::Change),
        LoopOutcome::Reductions(reductions) => {
            reductions.maps.iter().for_each(|map| see(map.slot, StateAccess::Change));
        }
    }
}

fn of_argument(argument: Argument, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    if let Argument::Slot { index, last } = argument {
        see(index as FrameSlot, if last { StateAccess::Change } else { StateAccess::Read });
    }
}

fn overwritten(slots: &[u32], see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    let real = slots.iter().filter(|slot| **slot != NONE);
    real.for_each(|slot| see(*slot as FrameSlot, StateAccess::Overwrite));
}

fn of_prim(row: &PrimStep, of_output: StateAccess, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    for operand in &row.operands {
        match operand {
            Argument::Slot { index, .. } if row.moves => see(*index as FrameSlot, StateAccess::Change),
            other => of_argument(*other, see),
        }
    }
    overwritten(&row.dead, see);
    see(row.out as FrameSlot, of_output);
}

fn of_call(row: &SlotCall, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    row.arguments.iter().for_each(|argument| of_argument(*argument, see));
    row.effects.changed.iter().for_each(|slot| see(*slot as FrameSlot, StateAccess::Change));
    overwritten(&row.dead, see);
    match row.out {
        Out::Value(slot) | Out::Result(slot) => overwritten(&[slot], see),
        Out::OfResult { ok, err, .. } => overwritten(&[ok.1, err.1], see),
        Out::OfOption { some, none, .. } => overwritten(&[some.1, none.1], see),
    }
}

fn of_operand(operand: RegionOperand, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    match operand {
        RegionOperand::Word(_, _, slot) => see(slot, StateAccess::Overwrite),
        RegionOperand::Value(argument) => of_argument(argument, see),
        RegionOperand::Field(field) => {
            see(field.list, StateAccess::Read);
            see(field.slot, StateAccess::Overwrite);
        }
    }
}

fn of_replacement(row: &ElementReplacement, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    see(row.whole, StateAccess::Change);
    of_operand(row.key, see);
    of_operand(row.value, see);
    of_call(&row.call, see);
}

fn of_look_up(row: &LookUp, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    match row.map {
        Argument::Slot { index, .. } if row.detaches => see(index as FrameSlot, StateAccess::Change),
        other => of_argument(other, see),
    }
    of_operand(row.key, see);
    overwritten(&row.dead, see);
    if let LookUpOutput::Slot(slot) = row.output {
        see(slot, StateAccess::Overwrite);
    }
    if let (Some(update), Argument::Slot { index: map, .. }) = (&row.update, row.map) {
        see(map as FrameSlot, StateAccess::Change);
        update.change.moved_slot().into_iter().for_each(|slot| see(slot, StateAccess::Change));
        overwritten(&update.dead, see);
    }
}

fn of_switch(row: &ValueSwitch, see: &mut dyn FnMut(FrameSlot, StateAccess)) {
    match (&row.look_up, row.subject) {
        (Some(look_up), _) => of_look_up(look_up, see),
        (None, Argument::Slot { index, .. }) if row.moves => see(index as FrameSlot, StateAccess::Change),
        (None, subject) => of_argument(subject, see),
    }
    row.arms.iter().for_each(|arm| overwritten(&arm.ports, see));
}

impl Instruction {
    /// Returns true if the instruction has no access to a slot.
    fn has_no_slot(self) -> bool {
        use Instruction::*;
        let computes =
            self.is_on_words() || matches!(self, AddProductFloat(..) | AddSum(..) | Scalars(_) | CallWords(..));
        let compares = matches!(self, EqualFloat(..) | NotEqualFloat(..));
        let jumps = matches!(
            self,
            Jump(_)
                | JumpIf(..)
                | JumpUnless(..)
                | JumpIfEqual(..)
                | JumpIfNotEqual(..)
                | JumpIfLess(..)
                | JumpIfLessOrEqual(..)
                | JumpIfLessFloat(..)
                | JumpIfLessOrEqualFloat(..)
                | JumpUnlessLessFloat(..)
                | JumpUnlessLessOrEqualFloat(..)
                | JumpTable(..)
        );
        computes
            || compares
            || jumps
            || self.again().is_some()
            || matches!(self, BeginPart(_) | EndPart(_) | Never | End)
    }
}
