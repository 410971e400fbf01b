//! Look-ups that update the entry they find: the value is taken out of the map, changed, and put back.
//!
//! ```text
//! at:    look_up map, key: Some ->some, None ->none      its value in a register, or moved to a slot
//! none:  …                                               the value of a missing key
//! some:  add_int, add_float, push or push_value          behind moves and jumps, if there are some
//!        replace map, key                                with that value, which nothing else uses
//! behind:
//! ```
//!
//! The instructions stay: they run for a missing key, and whenever the value cannot be changed where it is.

use weir_host::{Argument, Value};

use super::uses::RegisterUses;
use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{
    ElementReplacement, EntryChange, EntryUpdate, FieldOperand, FrameSlot, Instruction, LookUp, LookUpOutput,
    RegionOperand, Register, Scalar,
};

/// Lets look-ups update entries.
pub(super) fn update_entries(emitter: &mut CodeEmitter) {
    let uses = RegisterUses::of(emitter);
    for at in 0..emitter.code.len() {
        let Instruction::Switch(row) = emitter.code[at] else { continue };
        let Some((change, replace)) = update_at(emitter, usize::from(row), &uses) else { continue };
        let Instruction::Replace(replacement) = emitter.code[replace] else { continue };
        let begins_empty = begins_empty(emitter, usize::from(row));
        let behind = emitter.label();
        emitter.labels[usize::from(behind)] = Some(replace + 1);
        let replacement = &emitter.tables.replacements[usize::from(replacement)];
        let mut dead = replacement.call.dead.to_vec();
        if let RegionOperand::Value(Argument::Slot { index, last: true }) = replacement.key {
            dead.push(index);
        }
        let Some(look_up) = &mut emitter.tables.switches[usize::from(row)].look_up else { continue };
        dead.extend(&look_up.dead);
        look_up.update = Some(EntryUpdate { change, dead: dead.into(), behind, begins_empty });
    }
}

/// Returns the change that the instructions behind a look-up make, and the replacement with which they end.
fn update_at(emitter: &CodeEmitter, row: usize, uses: &RegisterUses) -> Option<(EntryChange, usize)> {
    let switch = &emitter.tables.switches[row];
    let look_up = switch.look_up.as_ref()?;
    look_up.none?;
    let some = switch.arms.get(look_up.some?)?.target;
    let walk = ValueWalk { emitter, at: emitter.labels[usize::from(some)]? };
    match look_up.output {
        LookUpOutput::Word(found) => walk.sum(look_up, found, uses),
        LookUpOutput::Slot(found) if look_up.detaches => walk.longer_list(look_up, found),
        LookUpOutput::Slot(_) | LookUpOutput::Nothing => None,
    }
}

/// Returns true if the update of an entry makes a missing one of 0 or of an empty list.
fn begins_empty(emitter: &CodeEmitter, row: usize) -> bool {
    let switch = &emitter.tables.switches[row];
    let Some(look_up) = &switch.look_up else { return false };
    let walk = |arm: Option<usize>| {
        let target = switch.arms.get(arm?)?.target;
        Some(ValueWalk { emitter, at: emitter.labels[usize::from(target)]? })
    };
    let (Some(some), Some(mut none)) = (walk(look_up.some), walk(look_up.none)) else { return false };
    match (none.next(), look_up.output) {
        (Some(Instruction::Move(to, from)), LookUpOutput::Word(found)) => {
            to == found && emitter.words.get(&0) == Some(&from) && none.change(None) == some.change(None)
        }
        (Some(Instruction::ConstantValue(to, constant)), LookUpOutput::Slot(found)) => {
            let value = &emitter.constants[usize::from(constant)];
            let is_empty = matches!(value, Value::List(elements) if elements.is_empty());
            is_empty && none.change(Some(to)) == some.change(Some(found))
        }
        _ => false,
    }
}

/// A walk over the instructions behind a look-up.
struct ValueWalk<'e> {
    emitter: &'e CodeEmitter,
    at: usize,
}

impl ValueWalk<'_> {
    /// Returns the next instruction that does something, behind jumps.
    fn next(&mut self) -> Option<Instruction> {
        loop {
            let instruction = *self.emitter.code.get(self.at)?;
            match instruction {
                Instruction::Nothing => self.at += 1,
                // No circle of jumps is ever built: each goes forwards.
                Instruction::Jump(label) => {
                    self.at = self.emitter.labels[usize::from(label)].filter(|to| *to > self.at)?;
                }
                other => {
                    self.at += 1;
                    return Some(other);
                }
            }
        }
    }

    /// Returns the next instruction that adds to a number, or to the list that is in this slot.
    fn change(mut self, mut list: Option<FrameSlot>) -> Option<usize> {
        loop {
            match self.next()? {
                Instruction::TakeValue(to, from) if list == Some(from) => list = Some(to),
                Instruction::AddInt(..) if list.is_none() => return Some(self.at - 1),
                Instruction::Push(to, ..) | Instruction::PushValue(to, _) if list == Some(to) => {
                    return Some(self.at - 1);
                }
                _ => return None,
            }
        }
    }

    /// Returns the replacement that comes next, if it is of the map and key of the look-up.
    fn replacement(&mut self, look_up: &LookUp) -> Option<&ElementReplacement> {
        let Instruction::Replace(row) = self.next()? else { return None };
        let replacement = &self.emitter.tables.replacements[usize::from(row)];
        let is_of_map = is_slot(&look_up.map, replacement.whole);
        (is_of_map && is_same_key(look_up.key, replacement.key)).then_some(replacement)
    }

    fn sum(mut self, look_up: &LookUp, found: Register, uses: &RegisterUses) -> Option<(EntryChange, usize)> {
        let (change, sum, kind) = match self.next()? {
            Instruction::AddInt(sum, one, other) if one == found => (EntryChange::AddInt(other), sum, Scalar::Int),
            Instruction::AddInt(sum, one, other) if other == found => (EntryChange::AddInt(one), sum, Scalar::Int),
            Instruction::AddFloat(sum, one, other) if one == found => {
                (EntryChange::AddFloat(other), sum, Scalar::Float)
            }
            _ => return None,
        };
        let add = self.at - 1;
        let RegionOperand::Word(value, scalar, _) = self.replacement(look_up)?.value else { return None };
        let replace = self.at - 1;
        let is_key = |register| matches!(look_up.key, RegionOperand::Word(key, ..) if key == register);
        let (added, is_read_elsewhere) = match change {
            EntryChange::AddInt(added) | EntryChange::AddFloat(added) => {
                let elsewhere = |register| uses.reads(register).any(|at| at != add && at != replace);
                (added, elsewhere(found) || elsewhere(sum))
            }
            _ => return None,
        };
        let is_sum = value == sum && scalar == kind && added != found;
        (is_sum && !is_key(sum) && !is_key(found) && !is_read_elsewhere).then_some((change, replace))
    }

    fn longer_list(mut self, look_up: &LookUp, found: FrameSlot) -> Option<(EntryChange, usize)> {
        let (mut list, mut change) = (found, None);
        let is_free = |slot: FrameSlot| !is_slot(&look_up.map, slot) && !is_key_slot(look_up.key, slot);
        loop {
            match self.next()? {
                Instruction::TakeValue(to, from) if from == list && is_free(to) => list = to,
                Instruction::Push(to, word, scalar) if to == list && change.is_none() => {
                    change = Some(EntryChange::Push(word, scalar));
                }
                Instruction::PushValue(to, from) if to == list && from != list && change.is_none() => {
                    change = Some(EntryChange::PushValue(from));
                }
                Instruction::Replace(_) => {
                    self.at -= 1;
                    break;
                }
                _ => return None,
            }
        }
        let value = self.replacement(look_up)?.value;
        let is_list =
            matches!(value, RegionOperand::Value(Argument::Slot { index, last: true }) if index == u32::from(list));
        let change = change.filter(|_| is_list)?;
        let moves_other = change.moved_slot().is_none_or(is_free);
        (is_free(found) && moves_other).then_some((change, self.at - 1))
    }
}

fn is_slot(argument: &Argument, slot: FrameSlot) -> bool {
    matches!(argument, Argument::Slot { index, .. } if *index == u32::from(slot))
}

/// Returns true if a key is in this slot, or is copied to it for a call.
fn is_key_slot(key: RegionOperand, slot: FrameSlot) -> bool {
    match key {
        RegionOperand::Word(_, _, stored) => stored == slot,
        RegionOperand::Value(argument) => is_slot(&argument, slot),
        RegionOperand::Field(field) => [field.slot, field.list].contains(&slot),
    }
}

/// Returns true if two operands are the same key: between a look-up and its replacement nothing changes registers and slots.
fn is_same_key(one: RegionOperand, other: RegionOperand) -> bool {
    match (one, other) {
        (RegionOperand::Word(one, kind, _), RegionOperand::Word(other, other_kind, _)) => {
            one == other && kind == other_kind
        }
        (RegionOperand::Value(Argument::Slot { index, .. }), RegionOperand::Value(other)) => {
            matches!(other, Argument::Slot { index: other, .. } if index == other)
        }
        (RegionOperand::Field(one), RegionOperand::Field(other)) => {
            let place = |field: FieldOperand| (field.list, field.count, field.field);
            place(one) == place(other)
        }
        _ => false,
    }
}
