//! Instructions on values: everything that is not in the loop of the interpreter.

use smallvec::SmallVec;
use weir_host::{Argument, Elements, Failure, Value};
use weir_ir::evaluate::{failure_of, rounds_exceeded, test_holds};
use weir_ir::prim::Prim;

use super::elements::arm_of;
use super::entries::{EntryState, push_word, update_entry, updated};
use super::instruction::{FrameSlot, Instruction, Register, RegisterAccess, TableIndex};
use super::outcome::{Outside, fails, r};
use super::shapes::{Scalar, word_of};
use super::stop::{After, RegionBorders, RegionStop};
use crate::operations::{self, apply, forget, unpack};
use crate::region::code::{ElementWords, LoopRow, RecordTransfer, Region, ScalarPrim, ValueSwitch};

impl Outside<'_> {
    /// Returns the word of a scalar element of a list; `None` if there is none.
    #[inline(always)]
    pub(crate) fn word(&self, list: FrameSlot, index: i64) -> Option<u64> {
        let Value::List(elements) = &self.slots[usize::from(list)] else { return None };
        // No list has as many elements as the number that a negative index becomes.
        word_at(elements, index.cast_unsigned() as usize)
    }

    /// Replaces a scalar in a list. Returns the number of instructions that are skipped then: none if it takes more than
    /// storing the word, because the next instruction does the same for every list.
    #[inline(always)]
    pub(crate) fn set_word(&mut self, list: FrameSlot, index: i64, word: u64) -> usize {
        let Value::List(elements) = &mut self.slots[usize::from(list)] else { return 0 };
        elements.set_word(index.cast_unsigned() as usize, word).into()
    }

    /// Adds a scalar of the type `Scalar::ALL[scalar]` at the end of a list.
    #[inline(always)]
    pub(crate) fn push_word(&mut self, list: FrameSlot, word: u64, scalar: u16) {
        let Value::List(elements) = &mut self.slots[usize::from(list)] else { return };
        push_word(elements, word, scalar);
    }

    /// Returns the word of a scalar field of a record.
    #[inline(always)]
    pub(crate) fn field(&self, record: FrameSlot, field: u16) -> u64 {
        let Value::Record(fields) = &self.slots[usize::from(record)] else { return 0 };
        fields.get(r(field)).map_or(0, word_of)
    }

    /// Returns the word of a scalar field of the record that is the current element of a loop, of which `taken` elements
    /// were taken.
    #[inline(always)]
    pub(crate) fn field_of_element(&self, row: &LoopRow, taken: u64, field: u16) -> u64 {
        let Value::List(elements) = &self.slots[usize::from(row.list)] else { return 0 };
        let index = taken.wrapping_sub(1) as usize;
        match elements.borrowed(index) {
            Some(Value::Record(fields)) => fields.get(r(field)).map_or(0, word_of),
            _ => elements.field_word(index, r(field)).unwrap_or_else(|| field_of_others(elements, index, r(field))),
        }
    }
}

impl Region {
    /// Loads scalar fields of the record that is the current element of a loop.
    #[inline(never)]
    pub(super) fn load_fields(&self, row: TableIndex, words: &mut [u64], outside: &Outside<'_>) {
        let ElementWords { row, fields } = &self.tables.element_words[r(row)];
        let row = &self.tables.loops[r(*row)];
        let taken = words[r(row.count)];
        let record = match &outside.slots[r(row.list)] {
            Value::List(elements) => elements.record_words(taken.wrapping_sub(1) as usize),
            _ => None,
        };
        match record {
            Some(record) => fields.iter().for_each(|(register, field)| words[r(*register)] = record[r(*field)]),
            None => fields.iter().for_each(|(register, field)| {
                words[r(*register)] = outside.field_of_element(row, taken, *field);
            }),
        }
    }

    /// Executes an instruction that is not in the interpreter's loop.
    #[inline(never)]
    pub(crate) fn step(
        &self,
        instruction: Instruction,
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        use Instruction::*;
        let (tables, slots) = (&self.tables, &mut *outside.slots);
        match instruction {
            EqualFloat(out, a, b) => words[r(out)] = (float(words, a) == float(words, b)).into(),
            NotEqualFloat(out, a, b) => words[r(out)] = (float(words, a) != float(words, b)).into(),
            LessFloat(out, a, b) => words[r(out)] = (float(words, a) < float(words, b)).into(),
            LessOrEqualFloat(out, a, b) => words[r(out)] = (float(words, a) <= float(words, b)).into(),
            Not(out, a) => words[r(out)] = words[r(a)] ^ 1,
            And(out, a, b) => words[r(out)] = words[r(a)] & words[r(b)],
            Or(out, a, b) => words[r(out)] = words[r(a)] | words[r(b)],
            Scalars(row) => return scalar_prim(&tables.scalars[r(row)], at, words),
            JumpTable(a, row) => match tables.jumps[r(row)].get(words[r(a)] as usize) {
                Some(target) => return After::Jump(*target),
                None => return fails(at, operations::never()),
            },
            Load(out, slot) => words[r(out)] = word_of(&slots[r(slot)]),
            Store(slot, a, scalar) => Scalar::ALL[r(scalar)].store(words[r(a)], &mut slots[r(slot)]),
            LoadRecord(_) | StoreRecord(_) | PushRecord(_) => self.transfer(instruction, words, slots),
            LoadElement(row, index) => {
                let index = words[r(index)].cast_signed();
                return load_element(&tables.records[r(row)], index, at, words, slots);
            }
            LoadChoice(out, switch) => words[r(out)] = outside.choices[r(switch)].into(),
            StoreChoice(switch, a) => outside.choices[r(switch)] = words[r(a)] as u32,
            TakeValue(to, from) => {
                let value = slots[r(from)].take();
                slots[r(to)].put(value);
            }
            CloneValue(to, from) => clone_slot(slots, r(to), r(from)),
            ConstantValue(to, constant) => self.constants[r(constant)].clone_to(&mut slots[r(to)]),
            Clear(first, count) => slots[r(first)..r(first) + r(count)].iter_mut().for_each(Value::empty),
            Length(out, slot) => words[r(out)] = length(&slots[r(slot)]),
            Rounds(row) => return self.rounds_at_once(row, at, words, outside),
            BeginMap(to) => slots[r(to)] = Value::List(Elements::default()),
            FirstWord(row, ..) | FirstValue(row, ..) | FirstElement(row, _)
                if let Some(split) = self.split_of_row(row, outside.borders.loop_beginnings) =>
            {
                return After::Stop(RegionStop::LoopBegins(split, at));
            }
            FirstWord(..) | FirstValue(..) | NextValue(..) => return self.list(instruction, at, words, outside),
            FirstElement(..) | AppendParts(_) => return self.step_on_elements(instruction, at, words, outside),
            PushValue(list, from) => push_value(slots, r(list), r(from)),
            EndFor(_) | BeginPart(_) | EndPart(_) => return at_border(instruction, outside.borders),
            Return(row) | Fail(row) => return self.end(instruction, row, at, slots),
            End => return After::Stop(RegionStop::Done),
            _ => return fails(at, operations::never()),
        }
        After::Next
    }
}

/// Returns the word of an element of a list of scalars.
#[inline(always)]
fn word_at(elements: &Elements, index: usize) -> Option<u64> {
    match elements.word(index) {
        Some(word) => Some(word),
        None => word_at_of_others(elements, index),
    }
}

#[cold]
#[inline(never)]
fn word_at_of_others(elements: &Elements, index: usize) -> Option<u64> {
    elements.get(index).map(|element| word_of(&element))
}

#[cold]
#[inline(never)]
fn field_of_others(elements: &Elements, index: usize, field: usize) -> u64 {
    elements.field(index, field).map_or(0, |field| word_of(&field))
}

/// Loads the words of an element of a list of records.
fn load_element(row: &RecordTransfer, index: i64, at: usize, words: &mut [u64], slots: &[Value]) -> After {
    let list = &slots[r(row.slot)];
    let Value::List(elements) = list else { return fails(at, operations::never()) };
    // No list has as many elements as the number that a negative index becomes.
    let position = index.cast_unsigned() as usize;
    if let Some(fields) = elements.record_words(position) {
        row.registers.iter().zip(fields).for_each(|(register, word)| words[r(*register)] = *word);
        return After::Next;
    }
    match elements.borrowed(position) {
        Some(element) => row.load(element, words),
        None => match Prim::Index.apply(&[list, &Value::Int(index)]) {
            Ok(element) => row.load(&element, words),
            Err(failure) => return fails(at, failure),
        },
    }
    After::Next
}

/// Puts an element of a list into a slot: moved out if nobody else holds the list, cloned otherwise.
fn take_element(slots: &mut [Value], list: usize, index: usize, to: usize) {
    if let Ok([Value::List(elements), to]) = slots.get_disjoint_mut([list, to]) {
        elements.take_to(index, to);
    }
}

/// Clones the value of a slot to another one.
fn clone_slot(slots: &mut [Value], to: usize, from: usize) {
    if let Ok([to, from]) = slots.get_disjoint_mut([to, from]) {
        from.clone_to(to);
    }
}

/// Executes a primitive of scalars.
#[inline(never)]
fn scalar_prim(row: &ScalarPrim, at: usize, words: &mut [u64]) -> After {
    match scalars(row, words) {
        Ok(value) => {
            words[r(row.out)] = word_of(&value);
            After::Next
        }
        Err(failure) => fails(at, failure),
    }
}

/// Applies a primitive to scalars.
fn scalars(row: &ScalarPrim, words: &[u64]) -> Result<Value, Box<Failure>> {
    let operands: SmallVec<[Value; 2]> =
        row.operands.iter().map(|(register, scalar)| scalar.value(words[r(*register)])).collect();
    row.prim.apply(&operands.iter().collect::<SmallVec<[&Value; 2]>>())
}

/// Stops at a border behind or before which another thread runs something.
fn at_border(instruction: Instruction, borders: RegionBorders) -> After {
    let has = |set: u64, number: TableIndex| set >> number & 1 != 0;
    match instruction {
        Instruction::EndFor(split) if has(borders.loop_ends, split) => After::Stop(RegionStop::LoopEnds(split.into())),
        Instruction::BeginPart(part) if has(borders.part_beginnings, part) => {
            After::Stop(RegionStop::PartBegins(part.into()))
        }
        Instruction::EndPart(part) if has(borders.part_ends, part) => After::Stop(RegionStop::PartEnds),
        _ => After::Next,
    }
}

fn float(words: &[u64], register: Register) -> f64 {
    f64::from_bits(words[r(register)])
}

fn length(value: &Value) -> u64 {
    match value {
        Value::List(elements) => elements.len() as u64,
        // Lengths do not fail.
        other => Prim::Length.apply(&[other]).map_or(0, |length| word_of(&length)),
    }
}

/// Moves a value to the end of the results of a `for`, which are behind the list that it goes over.
fn push_value(slots: &mut [Value], list: usize, from: usize) {
    let value = slots[from].take();
    let expected = match slots.get(list.wrapping_sub(1)) {
        Some(Value::List(elements)) => elements.len(),
        _ => 1,
    };
    if let Value::List(elements) = &mut slots[list] {
        elements.push_expecting(value, expected);
    }
}

impl RecordTransfer {
    /// Loads the words of a record.
    fn load(&self, record: &Value, words: &mut [u64]) {
        let mut registers = self.registers.iter();
        self.shape.words(record, &mut |word| {
            registers.next().into_iter().for_each(|register| words[r(*register)] = word);
        });
    }
}

impl Region {
    /// Loads or stores the words of a record, or adds the record to a list.
    fn transfer(&self, instruction: Instruction, words: &mut [u64], slots: &mut [Value]) {
        match instruction {
            Instruction::LoadRecord(row) => {
                let row = &self.tables.records[r(row)];
                row.load(&slots[r(row.slot)], words);
            }
            Instruction::StoreRecord(row) => {
                let row = &self.tables.records[r(row)];
                let value = row.shape.value(&mut row.registers.iter().map(|register| words[r(*register)]));
                slots[r(row.slot)].put(value);
            }
            Instruction::PushRecord(row) => {
                let row = &self.tables.records[r(row)];
                let Value::List(elements) = &mut slots[r(row.slot)] else { return };
                let mut fields = row.registers.iter().map(|register| words[r(*register)]);
                if !elements.push_record(fields.clone()) {
                    elements.push(row.shape.value(&mut fields));
                }
            }
            _ => {}
        }
    }

    /// Applies a primitive to slots.
    #[inline(never)]
    pub(super) fn prim(&self, row: TableIndex, at: usize, outside: &mut Outside<'_>) -> After {
        let step = &self.tables.prims[r(row)];
        outside.units.spend_data(operations::units_of(step, outside.slots, &self.constants));
        match apply(step, outside.slots, &self.constants) {
            Ok(()) => After::Next,
            Err(failure) => fails(at, failure),
        }
    }

    /// Ends the flow with an answer or a failure.
    #[cold]
    #[inline(never)]
    fn end(&self, instruction: Instruction, row: TableIndex, at: usize, slots: &mut [Value]) -> After {
        let value = operations::value(self.tables.arguments[r(row)], slots, &self.constants);
        let end = if matches!(instruction, Instruction::Return(_)) { Ok(value) } else { Err(failure_of(value)) };
        After::Stop(RegionStop::Ends(at, end))
    }

    /// Takes an element of a list to a slot or register, the first one or the next one.
    fn list(&self, instruction: Instruction, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        let (row, is_first) = match instruction {
            Instruction::FirstWord(row, ..) | Instruction::FirstValue(row, ..) => (&self.tables.loops[r(row)], true),
            Instruction::NextValue(row, ..) => (&self.tables.loops[r(row)], false),
            _ => return fails(at, operations::never()),
        };
        if is_first {
            words[r(row.count)] = 0;
        }
        let index = words[r(row.count)];
        let Value::List(elements) = &mut outside.slots[r(row.list)] else { return fails(at, operations::never()) };
        let has_more = index < elements.len() as u64;
        words[r(row.count)] += u64::from(has_more);
        match instruction {
            Instruction::FirstWord(_, out, _) if has_more => {
                words[r(out)] = word_of(&operations::element(elements, index as usize));
            }
            Instruction::FirstWord(_, _, end) | Instruction::FirstValue(_, _, end) if !has_more => {
                return After::Jump(end);
            }
            Instruction::FirstValue(_, to, _) => take_element(outside.slots, r(row.list), index as usize, r(to)),
            Instruction::NextValue(_, to, head) => {
                if has_more {
                    take_element(outside.slots, r(row.list), index as usize, r(to));
                }
                let next = if has_more { usize::from(head) } else { at + 1 };
                if outside.spend(row.units) {
                    return After::Stop(outside.yields(at, next));
                }
                return After::Jump(next as u16);
            }
            _ => {}
        }
        After::Next
    }

    #[inline(never)]
    pub(super) fn switch(&self, row: TableIndex, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        let row = &self.tables.switches[r(row)];
        let Some(look_up) = &row.look_up else { return self.switch_on_value(row, at, outside) };
        if let Some(update) = &look_up.update {
            match update_entry(look_up, update, words, outside.slots) {
                EntryState::Updated => return updated(update, outside),
                EntryState::Missing => {
                    forget(&look_up.dead, outside.slots);
                    return arm_of(look_up.none, &row.arms, at);
                }
                EntryState::Unknown => {}
            }
        }
        self.look_up(look_up, &row.arms, at, words, outside)
    }

    /// Jumps to the arm for a value.
    #[inline(never)]
    fn switch_on_value(&self, row: &ValueSwitch, at: usize, outside: &mut Outside<'_>) -> After {
        let subject = match row.subject {
            Argument::Slot { index, .. } => &outside.slots[index as usize],
            Argument::Constant(index) => &self.constants[index as usize],
            Argument::Shared(_) => &Value::Absent,
        };
        let chosen = row.arms.iter().find(|arm| test_holds(&arm.test, subject));
        let Some(arm) = chosen else { return fails(at, operations::no_arm(subject)) };
        unpack(row.subject, &arm.ports, row.moves, outside.slots, &self.constants);
        After::Jump(arm.target)
    }

    /// Makes the failure of an instruction that failed in the interpreter's loop.
    #[cold]
    #[inline(never)]
    pub(crate) fn failed(&self, at: usize, words: &[u64], outside: &Outside<'_>) -> RegionStop {
        let tables = &self.tables;
        let failure = match self.code[at] {
            Instruction::Index(_, list, index) => {
                let index = Value::Int(words[r(index)].cast_signed());
                Prim::Index.apply(&[&outside.slots[r(list)], &index]).err()
            }
            other if other.again().is_some() => other.again().map(|row| rounds_exceeded(tables.loops[r(row)].at_most)),
            _ => {
                let found = tables.fallible.binary_search_by_key(&at, |(at, _)| *at).ok();
                found.and_then(|found| self.failure_of_scalars(at, &tables.scalars[tables.fallible[found].1], words))
            }
        };
        RegionStop::Ends(at, Err(failure.unwrap_or_else(operations::never)))
    }
}

impl Region {
    /// Makes the failure of an instruction on scalars. The row of its table has the types of its operands; their registers
    /// are those of the instruction.
    fn failure_of_scalars(&self, at: usize, row: &ScalarPrim, words: &[u64]) -> Option<Box<Failure>> {
        let (mut instruction, mut registers) = (self.code[at], Vec::new());
        instruction.registers(&mut |register, usage| {
            if usage == RegisterAccess::Read {
                registers.push(*register);
            }
        });
        let operands = registers.into_iter().zip(&row.operands).map(|(register, (_, scalar))| (register, *scalar));
        scalars(&ScalarPrim { prim: row.prim, operands: operands.collect(), out: row.out }, words).err()
    }
}
