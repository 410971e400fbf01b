//! Instructions on the elements of lists and maps, which read and replace them where they are.

use weir_host::{Argument, Entries, Failure, Value};
use weir_ir::prim::append_part;

use super::code::{ElementReplacement, FieldOperand, LookUp, LookUpOutput, LoopRow, Region, RegionOperand, ValueArm};
use super::instruction::{FrameSlot, Instruction, TableIndex};
use super::outcome::{Outside, fails, r, spent_call};
use super::shapes::word_of;
use super::stop::After;
use crate::constant_copies::ConstantCopies;
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
            Instruction::AppendParts(row) => {
                let step = &tables.prims[r(row)];
                outside.units.spend_data(operations::units_of(step, slots, &self.constants));
                if let Err(failure) = append_parts(step, slots, &self.constants) {
                    return fails(at, failure);
                }
            }
            _ => return fails(at, operations::never()),
        }
        After::Next
    }

    /// Clones a field of the current element of a loop to a slot; moves it there if this is its only read, and nobody else
    /// holds the list and its element.
    #[inline(never)]
    pub(super) fn element_field(
        &self,
        row: TableIndex,
        field: u16,
        is_only_read: bool,
        words: &[u64],
        slots: &mut [Value],
        out: FrameSlot,
    ) {
        let row = &self.tables.loops[r(row)];
        let Ok([Value::List(elements), to]) = slots.get_disjoint_mut([r(row.list), r(out)]) else { return };
        let index = current(row, words);
        if is_only_read
            && let Some(Value::Record(fields)) = elements.unshared_element(index)
            && let Some(fields) = fields.unshared()
        {
            fields[r(field)].move_to(to);
            return;
        }
        // The fields of packed records are scalars, which are loaded as words.
        if let Some(Value::Record(fields)) = elements.borrowed(index)
            && let Some(value) = fields.get(r(field))
        {
            value.clone_to(to);
        }
    }

    /// Looks up a key and jumps to the arm for what was found.
    #[inline(never)]
    pub(super) fn look_up(
        &self,
        look_up: &LookUp,
        arms: &[ValueArm],
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        let (constants, slots) = (&self.constants, &mut *outside.slots);
        let is_found = match look_up.output {
            LookUpOutput::Word(register) => {
                let word = find(look_up, words, slots, constants, |map, key| map.get_to_change(key).map(word_of));
                word.map(|word| words[r(register)] = word).is_some()
            }
            output => find_value(look_up, output, words, slots, constants),
        };
        arm_of(if is_found { look_up.some } else { look_up.none }, arms, at)
    }

    /// Replaces an element in place.
    #[inline(never)]
    pub(super) fn replace(&self, row: TableIndex, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        let row = &self.tables.replacements[r(row)];
        if replace_found(row, words, outside.slots, &self.constants).is_some() {
            if let RegionOperand::Value(Argument::Slot { index, last: true }) = row.key {
                outside.slots[index as usize].empty();
            }
        } else if !self.replace_other(row, words, outside.slots) {
            return self.call_to_replace(row, at, words, outside);
        }
        forget(&row.call.dead, outside.slots);
        spent_call(at, outside)
    }

    /// Replaces an element that was not found last; returns false and does nothing if the list does not have it.
    #[inline(never)]
    fn replace_other(&self, row: &ElementReplacement, words: &[u64], slots: &mut [Value]) -> bool {
        let (whole, constants) = (r(row.whole), &self.constants);
        match &slots[whole] {
            Value::Map(_) => put_entry(row, words, slots, constants),
            Value::List(elements) => {
                let length = elements.len();
                let index = index(row.key, words, slots, constants).filter(|index| *index < length);
                let Some(index) = index else { return false };
                let value = operand(row.value, words, slots, constants);
                if let Value::List(elements) = &mut slots[whole] {
                    elements.set(index, value);
                }
            }
            _ => return false,
        }
        true
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
            match operand {
                RegionOperand::Word(register, scalar, slot) => {
                    scalar.store(words[r(register)], &mut outside.slots[r(slot)]);
                }
                RegionOperand::Field(field) => {
                    let value = field.of(&outside.slots[r(field.list)], words).clone();
                    outside.slots[r(field.slot)].put(value);
                }
                RegionOperand::Value(_) => {}
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

/// Jumps to the arm that a look-up has chosen.
#[inline]
pub(super) fn arm_of(chosen: Option<usize>, arms: &[ValueArm], at: usize) -> After {
    match chosen.and_then(|arm| arms.get(arm)) {
        Some(arm) => After::Jump(arm.target),
        None => fails(at, operations::no_arm(&Value::none())),
    }
}

impl FieldOperand {
    /// Returns the field in its list.
    #[inline(always)]
    pub(super) fn of<'v>(&self, list: &'v Value, words: &[u64]) -> &'v Value {
        let Value::List(elements) = list else { return &Value::Absent };
        // The fields of packed records are scalars, which are loaded as words.
        match elements.borrowed((words[r(self.count)] - 1) as usize) {
            Some(Value::Record(fields)) => fields.get(r(self.field)).unwrap_or(&Value::Absent),
            _ => &Value::Absent,
        }
    }
}

/// Puts an entry into a map. A key in a slot that is needed afterwards is cloned only if it is new to the map.
#[inline]
fn put_entry(row: &ElementReplacement, words: &[u64], slots: &mut [Value], constants: &ConstantCopies) {
    let key = match row.key {
        RegionOperand::Value(Argument::Slot { index, .. }) if is_in(row.value, index) => slots[index as usize].clone(),
        key => operand(key, words, slots, constants),
    };
    let new = operand(row.value, words, slots, constants);
    if let Value::Map(entries) = &mut slots[r(row.whole)] {
        drop(entries.insert(key, new));
    }
}

/// Replaces the value that was found last in a map, if it is the one under the key. Otherwise returns `None` and does
/// nothing.
#[inline]
fn replace_found(
    row: &ElementReplacement,
    words: &[u64],
    slots: &mut [Value],
    constants: &ConstantCopies,
) -> Option<()> {
    let whole = r(row.whole);
    match (row.key, row.value) {
        (RegionOperand::Value(Argument::Slot { index: key, .. }), RegionOperand::Word(register, scalar, _)) => {
            let [map, key] = slots.get_disjoint_mut([whole, key as usize]).ok()?;
            scalar.store(words[r(register)], found_last(map, key)?);
        }
        (RegionOperand::Value(Argument::Slot { index: key, .. }), RegionOperand::Value(value)) => {
            let Argument::Slot { index: value, last } = value else { return None };
            let [map, key, value] = slots.get_disjoint_mut([whole, key as usize, value as usize]).ok()?;
            move_or_clone(value, found_last(map, key)?, last);
        }
        (RegionOperand::Word(key, kind, _), RegionOperand::Word(register, scalar, _)) => {
            let found = found_last(&mut slots[whole], &kind.value(words[r(key)]))?;
            scalar.store(words[r(register)], found);
        }
        (RegionOperand::Word(key, kind, _), RegionOperand::Value(value)) => {
            let Argument::Slot { index: value, last } = value else { return None };
            let [map, value] = slots.get_disjoint_mut([whole, value as usize]).ok()?;
            move_or_clone(value, found_last(map, &kind.value(words[r(key)]))?, last);
        }
        (RegionOperand::Field(field), RegionOperand::Word(register, scalar, _)) => {
            let [map, list] = slots.get_disjoint_mut([whole, r(field.list)]).ok()?;
            scalar.store(words[r(register)], found_last(map, field.of(list, words))?);
        }
        (RegionOperand::Field(field), RegionOperand::Value(Argument::Slot { index: value, last })) => {
            let [map, list, value] = slots.get_disjoint_mut([whole, r(field.list), value as usize]).ok()?;
            move_or_clone(value, found_last(map, field.of(list, words))?, last);
        }
        (RegionOperand::Value(key), RegionOperand::Word(register, scalar, _)) => {
            let found = found_last(&mut slots[whole], place(&key, &[], constants))?;
            scalar.store(words[r(register)], found);
        }
        _ => return None,
    }
    Some(())
}

fn found_last<'v>(map: &'v mut Value, key: &Value) -> Option<&'v mut Value> {
    if let Value::Map(entries) = map { entries.found_last(key) } else { None }
}

fn move_or_clone(from: &mut Value, to: &mut Value, moves: bool) {
    if moves { from.move_to(to) } else { from.clone_to(to) }
}

/// Returns true if the operand is the value of this slot.
fn is_in(operand: RegionOperand, slot: u32) -> bool {
    matches!(operand, RegionOperand::Value(Argument::Slot { index, .. }) if index == slot)
}

/// Returns the position of the current element of a loop.
fn current(row: &LoopRow, words: &[u64]) -> usize {
    (words[r(row.count)] - 1) as usize
}

/// Looks up a key, and puts the value that it finds into a slot, if it is used. Returns true if there is one.
#[inline(never)]
fn find_value(
    look_up: &LookUp,
    output: LookUpOutput,
    words: &[u64],
    slots: &mut [Value],
    constants: &ConstantCopies,
) -> bool {
    let LookUpOutput::Slot(slot) = output else {
        return find(look_up, words, slots, constants, |map, key| map.get_to_change(key).map(|_| ())).is_some();
    };
    if let Some(is_found) = find_to_slot(look_up, words, slots, constants) {
        forget(&look_up.dead, slots);
        return is_found;
    }
    let value = find(look_up, words, slots, constants, |map, key| take_or_clone(map, key, look_up));
    value.map(|value| slots[r(slot)].put(value)).is_some()
}

/// Reads an entry, and then drops what is not used afterwards: at its last use, the map's slot may be the one for the value.
#[inline]
fn find<R>(
    look_up: &LookUp,
    words: &[u64],
    slots: &mut [Value],
    constants: &ConstantCopies,
    read: impl FnOnce(&mut Entries, &Value) -> Option<R>,
) -> Option<R> {
    let found = read_entry(look_up, words, slots, constants, read);
    forget(&look_up.dead, slots);
    found
}

/// Reads an entry of the map of a slot or constant; `None` if the key is missing.
#[inline]
fn read_entry<R>(
    look_up: &LookUp,
    words: &[u64],
    slots: &mut [Value],
    constants: &ConstantCopies,
    read: impl FnOnce(&mut Entries, &Value) -> Option<R>,
) -> Option<R> {
    let read = |map: &mut Value, key: &Value| if let Value::Map(entries) = map { read(entries, key) } else { None };
    let Argument::Slot { index: map, .. } = look_up.map else {
        return read_entry_of_other(look_up, words, slots, constants, read);
    };
    match look_up.key {
        RegionOperand::Word(register, scalar, _) => read(&mut slots[map as usize], &scalar.value(words[r(register)])),
        RegionOperand::Value(Argument::Slot { index: key, .. }) => {
            let [map, key] = slots.get_disjoint_mut([map as usize, key as usize]).ok()?;
            read(map, key)
        }
        RegionOperand::Field(field) => {
            let [map, list] = slots.get_disjoint_mut([map as usize, r(field.list)]).ok()?;
            read(map, field.of(list, words))
        }
        RegionOperand::Value(key) => read(&mut slots[map as usize], place(&key, &[], constants)),
    }
}

/// Reads an entry of a map that is in no slot.
#[cold]
#[inline(never)]
fn read_entry_of_other<R>(
    look_up: &LookUp,
    words: &[u64],
    slots: &mut [Value],
    constants: &ConstantCopies,
    read: impl FnOnce(&mut Value, &Value) -> Option<R>,
) -> Option<R> {
    let mut map = value(look_up.map, slots, constants);
    match look_up.key {
        RegionOperand::Word(register, scalar, _) => read(&mut map, &scalar.value(words[r(register)])),
        RegionOperand::Value(key) => read(&mut map, place(&key, slots, constants)),
        RegionOperand::Field(field) => read(&mut map, field.of(&slots[r(field.list)], words)),
    }
}

/// Looks up a key in the map of a slot, and puts the value that it finds into another slot. Returns `None` and does nothing
/// if the map is no slot, or the slots are not distinct.
#[inline]
fn find_to_slot(look_up: &LookUp, words: &[u64], slots: &mut [Value], constants: &ConstantCopies) -> Option<bool> {
    let (Argument::Slot { index: map, .. }, LookUpOutput::Slot(out)) = (look_up.map, look_up.output) else {
        return None;
    };
    let (map, out) = (map as usize, r(out));
    Some(match look_up.key {
        RegionOperand::Word(register, scalar, _) => {
            let [map, out] = slots.get_disjoint_mut([map, out]).ok()?;
            found_to_slot(look_up, map, &scalar.value(words[r(register)]), out)
        }
        RegionOperand::Value(Argument::Slot { index: key, .. }) => {
            let [map, key, out] = slots.get_disjoint_mut([map, key as usize, out]).ok()?;
            found_to_slot(look_up, map, key, out)
        }
        RegionOperand::Field(field) => {
            let [map, list, out] = slots.get_disjoint_mut([map, r(field.list), out]).ok()?;
            found_to_slot(look_up, map, field.of(list, words), out)
        }
        RegionOperand::Value(key) => {
            let [map, out] = slots.get_disjoint_mut([map, out]).ok()?;
            found_to_slot(look_up, map, place(&key, &[], constants), out)
        }
    })
}

#[inline]
fn found_to_slot(look_up: &LookUp, map: &mut Value, key: &Value, out: &mut Value) -> bool {
    let Value::Map(entries) = map else { return false };
    if look_up.detaches {
        return entries.take_to(key, out);
    }
    entries.get_to_change(key).map(|value| value.clone_to(out)).is_some()
}

/// Returns the value under a key: moved out if nothing reads it afterwards, and cloned otherwise.
fn take_or_clone(map: &mut Entries, key: &Value, look_up: &LookUp) -> Option<Value> {
    if look_up.detaches { map.take(key) } else { map.get_to_change(key).cloned() }
}

/// Returns the position that an operand names in a list.
fn index(operand: RegionOperand, words: &[u64], slots: &[Value], constants: &[Value]) -> Option<usize> {
    let index = match operand {
        RegionOperand::Word(register, ..) => words[r(register)].cast_signed(),
        RegionOperand::Value(argument) => word_of(place(&argument, slots, constants)).cast_signed(),
        RegionOperand::Field(field) => word_of(field.of(&slots[r(field.list)], words)).cast_signed(),
    };
    usize::try_from(index).ok()
}

#[inline(always)]
fn operand(operand: RegionOperand, words: &[u64], slots: &mut [Value], constants: &[Value]) -> Value {
    match operand {
        RegionOperand::Word(register, scalar, _) => scalar.value(words[r(register)]),
        RegionOperand::Value(argument) => value(argument, slots, constants),
        RegionOperand::Field(field) => field.of(&slots[r(field.list)], words).clone(),
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
