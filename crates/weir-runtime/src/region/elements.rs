//! Instructions on the elements of lists and maps, which read and replace them where they are.

use weir_host::{Argument, Failure, Value};
use weir_ir::prim::append_part;

use super::code::{ElementReplacement, LookUp, LookUpOutput, LoopRow, Region, RegionOperand, ValueArm};
use super::instruction::{Instruction, TableIndex};
use super::outcome::{Outside, fails, r, spent_call};
use super::shapes::word_of;
use super::stop::After;
use crate::operations::{self, Out, PrimStep, forget, place, value};

impl Region {
    /// Executes an instruction on elements.
    #[inline]
    pub(super) fn step_on_elements(
        &self,
        instruction: Instruction,
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        let (tables, slots) = (&self.tables, &mut *outside.slots);
        match instruction {
            Instruction::FirstElement(row, target) => {
                let row = &tables.loops[r(row)];
                words[r(row.count)] = 1;
                let Value::List(elements) = &slots[r(row.list)] else { return fails(at, operations::never()) };
                if elements.is_empty() {
                    return After::Jump(target);
                }
            }
            Instruction::ElementField(out, row, field) => {
                clone_field(&tables.loops[r(row)], field, words, (slots, r(out)));
            }
            Instruction::TakeElementField(out, row, field) => {
                take_field(&tables.loops[r(row)], field, words, (slots, r(out)));
            }
            Instruction::AppendParts(row) => {
                if let Err(failure) = append_parts(&tables.prims[r(row)], slots, &self.constants) {
                    return fails(at, failure);
                }
            }
            _ => return fails(at, operations::never()),
        }
        After::Next
    }

    /// Looks up a key and jumps to the arm for what was found.
    pub(super) fn look_up(
        &self,
        look_up: &LookUp,
        arms: &[ValueArm],
        at: usize,
        (words, slots): (&mut [u64], &mut [Value]),
    ) -> After {
        let constants = &self.constants;
        let is_found = match look_up.map {
            Argument::Slot { index, .. } => {
                // The key may be in any other slot.
                let mut whole = slots[index as usize].take();
                let is_found = find(look_up, &mut whole, constants, (words, slots));
                // At its last use, what is found may be in its slot already.
                if !look_up.dead.contains(&index) {
                    slots[index as usize].put(whole);
                }
                is_found
            }
            other => find(look_up, &mut value(other, slots, constants), constants, (words, slots)),
        };
        let target = if is_found { look_up.some } else { look_up.none };
        match target.and_then(|arm| arms.get(arm)) {
            Some(arm) => After::Jump(arm.target),
            None => fails(at, operations::no_arm(&Value::none())),
        }
    }

    /// Replaces an element in place.
    #[inline(never)]
    pub(super) fn replace(&self, row: TableIndex, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        let row = &self.tables.replacements[r(row)];
        let (whole, constants) = (r(row.whole), &self.constants);
        match &outside.slots[whole] {
            Value::Map(_) => put_entry(row, words, outside.slots, constants),
            Value::List(elements) => {
                let length = elements.len();
                let Some(index) = index(row.key, words, outside.slots, constants).filter(|index| *index < length)
                else {
                    return self.call_to_replace(row, at, words, outside);
                };
                let value = operand(row.value, words, outside.slots, constants);
                if let Value::List(elements) = &mut outside.slots[whole] {
                    elements.set(index, value);
                }
            }
            _ => return self.call_to_replace(row, at, words, outside),
        }
        forget(&row.call.dead, outside.slots);
        spent_call(at, outside)
    }

    /// Calls the function, which decides about an element that the list does not have.
    #[cold]
    fn call_to_replace(
        &self,
        row: &ElementReplacement,
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        for operand in [row.key, row.value] {
            if let RegionOperand::Word(register, scalar, slot) = operand {
                outside.slots[r(slot)].put(scalar.value(words[r(register)]));
            }
        }
        let after = self.call(&row.call, at, words, outside);
        if let Out::Value(out) = row.call.out
            && out as usize != r(row.whole)
        {
            outside.slots[r(row.whole)] = outside.slots[out as usize].take();
        }
        after
    }
}

/// Returns a field of the current element of a loop, which is a tuple or record.
fn field_in<'v>(row: &LoopRow, field: u16, words: &[u64], list: &'v Value) -> Option<&'v Value> {
    let Value::List(elements) = list else { return None };
    let Some(Value::Record(fields)) = elements.borrowed(current(row, words)) else { return None };
    fields.get(r(field))
}

/// Clones a field of the current element to a slot.
fn clone_field(row: &LoopRow, field: u16, words: &[u64], (slots, to): (&mut [Value], usize)) {
    let list = r(row.list);
    if let Ok([list, to]) = slots.get_disjoint_mut([list, to])
        && let Some(value) = field_in(row, field, words, list)
    {
        value.clone_to(to);
    }
}

/// Moves the same field to a slot if nobody else holds the list and its element; clones it otherwise.
fn take_field(row: &LoopRow, field: u16, words: &[u64], (slots, to): (&mut [Value], usize)) {
    if let Value::List(elements) = &mut slots[r(row.list)]
        && let Some(Value::Record(fields)) = elements.unshared_element(current(row, words))
        && let Some(fields) = fields.unshared()
    {
        let value = fields[r(field)].take();
        slots[to].put(value);
        return;
    }
    clone_field(row, field, words, (slots, to));
}

/// Puts an entry into a map. A key in a slot that is needed afterwards is cloned only if it is new to the map.
#[inline]
fn put_entry(row: &ElementReplacement, words: &[u64], slots: &mut [Value], constants: &[Value]) {
    let whole = r(row.whole);
    let (key, new) = match row.key {
        RegionOperand::Value(Argument::Slot { index, last: false }) if !is_in(row.value, index) => {
            let new = operand(row.value, words, slots, constants);
            let Ok([Value::Map(entries), key]) = slots.get_disjoint_mut([whole, index as usize]) else { return };
            match entries.found_last(key) {
                Some(found) => return *found = new,
                None => (key.clone(), new),
            }
        }
        key => (operand(key, words, slots, constants), operand(row.value, words, slots, constants)),
    };
    if let Value::Map(entries) = &mut slots[whole] {
        drop(entries.insert(key, new));
    }
}

/// Returns true if the operand is the value of this slot.
fn is_in(operand: RegionOperand, slot: u32) -> bool {
    matches!(operand, RegionOperand::Value(Argument::Slot { index, .. }) if index == slot)
}

/// Returns the position of the current element of a loop.
fn current(row: &LoopRow, words: &[u64]) -> usize {
    (words[r(row.count)] - 1) as usize
}

/// Looks up a key, and puts what it finds where the arm expects it: moved out if nothing reads it afterwards, and cloned
/// otherwise.
fn find(look_up: &LookUp, whole: &mut Value, constants: &[Value], (words, slots): (&mut [u64], &mut [Value])) -> bool {
    let Value::Map(entries) = whole else { return false };
    let key = place(&look_up.key, slots, constants);
    if let LookUpOutput::Word(register) = look_up.output {
        let found = entries.get_to_change(key).map(word_of);
        forget(&look_up.dead, slots);
        found.into_iter().for_each(|word| words[r(register)] = word);
        return found.is_some();
    }
    let found = if look_up.detaches { entries.take(key) } else { entries.get_to_change(key).cloned() };
    forget(&look_up.dead, slots);
    let is_found = found.is_some();
    if let (Some(found), LookUpOutput::Slot(slot)) = (found, look_up.output) {
        slots[r(slot)].put(found);
    }
    is_found
}

/// Returns the position that an operand names in a list.
fn index(operand: RegionOperand, words: &[u64], slots: &[Value], constants: &[Value]) -> Option<usize> {
    let index = match operand {
        RegionOperand::Word(register, ..) => words[r(register)].cast_signed(),
        RegionOperand::Value(argument) => word_of(place(&argument, slots, constants)).cast_signed(),
    };
    usize::try_from(index).ok()
}

#[inline(always)]
fn operand(operand: RegionOperand, words: &[u64], slots: &mut [Value], constants: &[Value]) -> Value {
    match operand {
        RegionOperand::Word(register, scalar, _) => scalar.value(words[r(register)]),
        RegionOperand::Value(argument) => value(argument, slots, constants),
    }
}

/// Adds the parts of an interpolation at the end of a text.
fn append_parts(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> Result<(), Box<Failure>> {
    let mut whole = slots[step.out as usize].take();
    let mut parts = step.operands.iter().map(|part| place(part, slots, constants));
    let appended = match &mut whole {
        Value::Text(text) => parts.try_for_each(|part| append_part(text, part)),
        _ => Ok(()),
    };
    forget(&step.dead, slots);
    slots[step.out as usize] = whole;
    appended
}
