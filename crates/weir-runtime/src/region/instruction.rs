//! The instruction set of regions: register bytecode over words and slots.
//!
//! A *register* is a word of the region's window; a *slot* holds a value. An instruction has at most three operands of
//! 16 bits and takes 8 bytes. Whatever needs more names a row of a table of the region ([`crate::region::code::Tables`]).

/// The number of a register.
pub(crate) type Register = u16;

/// The number of a slot of the frame.
pub(crate) type FrameSlot = u16;

/// A target of jumps: the number of a label while the code is built, and the index of an instruction afterwards.
pub(crate) type Target = u16;

/// The index of a row in a table.
pub(crate) type TableIndex = u16;

/// One instruction. The first operand is the register or slot that it writes, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Does nothing; removed before the code runs.
    Nothing,
    /// Copies a register.
    Move(Register, Register),
    /// Checked addition of integers, durations, or a time and a duration.
    AddInt(Register, Register, Register),
    /// Checked subtraction.
    SubtractInt(Register, Register, Register),
    /// Checked multiplication.
    MultiplyInt(Register, Register, Register),
    /// Checked division, towards zero.
    DivideInt(Register, Register, Register),
    /// Remainder with the sign of the dividend; fails if the divisor is 0.
    RemainderInt(Register, Register, Register),
    /// Addition of floats.
    AddFloat(Register, Register, Register),
    /// Subtraction of floats.
    SubtractFloat(Register, Register, Register),
    /// Multiplication of floats.
    MultiplyFloat(Register, Register, Register),
    /// Division of floats.
    DivideFloat(Register, Register, Register),
    /// Adds the product of two floats to the first register, which it also reads. Both operations round.
    AddProductFloat(Register, Register, Register),
    /// Checked addition of the second register to the first one, a state of a `fold`: notes the least and the greatest sum in
    /// the third register and the one behind it. Only in the code for threads that run rounds of the `fold`.
    AddSum(Register, Register, Register),
    /// The less of two signed words.
    LeastInt(Register, Register, Register),
    /// The greater of two signed words.
    GreatestInt(Register, Register, Register),
    /// Equality of words that are no floats.
    EqualWords(Register, Register, Register),
    /// Inequality of words that are no floats.
    NotEqualWords(Register, Register, Register),
    /// Less-than of signed words.
    LessInt(Register, Register, Register),
    /// Less-or-equal of signed words.
    LessOrEqualInt(Register, Register, Register),
    /// Equality of floats.
    EqualFloat(Register, Register, Register),
    /// Inequality of floats.
    NotEqualFloat(Register, Register, Register),
    /// Less-than of floats.
    LessFloat(Register, Register, Register),
    /// Less-or-equal of floats.
    LessOrEqualFloat(Register, Register, Register),
    /// Negation of a truth value.
    Not(Register, Register),
    /// Conjunction of two truth values.
    And(Register, Register, Register),
    /// Disjunction of two truth values.
    Or(Register, Register, Register),
    /// Any other primitive of scalars: a row of `scalars`.
    Scalars(TableIndex),
    /// Jumps.
    Jump(Target),
    /// Jumps if the register is true.
    JumpIf(Register, Target),
    /// Jumps if the register is false.
    JumpUnless(Register, Target),
    /// Jumps if two words are equal that are no floats.
    JumpIfEqual(Register, Register, Target),
    /// Jumps if two words are not equal that are no floats.
    JumpIfNotEqual(Register, Register, Target),
    /// Jumps if the first signed word is less than the second.
    JumpIfLess(Register, Register, Target),
    /// Jumps if the first signed word is less than or equal to the second.
    JumpIfLessOrEqual(Register, Register, Target),
    /// Jumps if the first float is less than the second.
    JumpIfLessFloat(Register, Register, Target),
    /// Jumps if the first float is less than or equal to the second.
    JumpIfLessOrEqualFloat(Register, Register, Target),
    /// Jumps if the first float is not less than the second: greater, equal, or not ordered.
    JumpUnlessLessFloat(Register, Register, Target),
    /// Jumps if the first float is not less than or equal to the second.
    JumpUnlessLessOrEqualFloat(Register, Register, Target),
    /// Jumps to the target that a register chooses from a row of `jumps`.
    JumpTable(Register, TableIndex),
    /// Loads the word of a scalar from a slot.
    Load(Register, FrameSlot),
    /// Loads the words of a record from a slot: a row of `records`.
    LoadRecord(TableIndex),
    /// Stores a scalar of the type `Scalar::ALL[scalar]` in a slot: slot, register, scalar.
    Store(FrameSlot, Register, u16),
    /// Stores the words of a record in a slot: a row of `records`.
    StoreRecord(TableIndex),
    /// Loads the words of an element of a list: a row of `records`, whose slot is that of the list, and the register of the
    /// index.
    LoadElement(TableIndex, Register),
    /// Adds a record with words at the end of a list: a row of `records`, whose slot is that of the list.
    PushRecord(TableIndex),
    /// Loads the arm that a switch outside of the region has chosen.
    LoadChoice(Register, u16),
    /// Notes the arm that a switch has chosen, for steps outside of the region: switch, register of the arm.
    StoreChoice(u16, Register),
    /// Moves a value to another slot.
    TakeValue(FrameSlot, FrameSlot),
    /// Clones a value to another slot.
    CloneValue(FrameSlot, FrameSlot),
    /// Puts a constant of the region into a slot.
    ConstantValue(FrameSlot, u16),
    /// Drops the values of slots: the first, and their number.
    Clear(FrameSlot, u16),
    /// Applies a primitive to slots: a row of `prims`.
    Prim(TableIndex),
    /// Loads the scalar element of a list: register, slot of the list, register of the index.
    Index(Register, FrameSlot, Register),
    /// The length of a list, map, text or bytes.
    Length(Register, FrameSlot),
    /// Loads a scalar field of a record: register, slot, field.
    Field(Register, FrameSlot, u16),
    /// Calls a host function with slots: a row of `calls`.
    Call(TableIndex),
    /// Calls the typed entry point of a host function with registers: a row of `word_calls`.
    CallWords(Register, TableIndex),
    /// Tests a value and jumps to the arm: a row of `switches`.
    Switch(TableIndex),
    /// Replaces an element of a list or map in its slot: a row of `replacements`.
    Replace(TableIndex),
    /// Replaces a scalar in a list and skips the next instruction, if the list stores scalars without their tags and nobody
    /// else holds it. The next instruction is the [`Instruction::Replace`] that does the same for every list: slot, register
    /// of the index, register of the scalar.
    SetWord(FrameSlot, Register, Register),
    /// Adds the parts of an interpolation at the end of a text in its slot: a row of `prims`, whose result is the text.
    AppendParts(TableIndex),
    /// Puts an empty list for the results of a `for` into a slot.
    BeginMap(FrameSlot),
    /// Begins a loop over a list of scalars with its first element, or jumps if there is none: a row of `loops`, the
    /// register of the element, the target.
    FirstWord(TableIndex, Register, Target),
    /// Goes on with the next element and jumps, or falls through if there is none. A safe point.
    NextWord(TableIndex, Register, Target),
    /// Does what [`Instruction::FirstWord`] does, with a slot for the element.
    FirstValue(TableIndex, FrameSlot, Target),
    /// Does what [`Instruction::NextWord`] does, with a slot for the element.
    NextValue(TableIndex, FrameSlot, Target),
    /// Begins a loop over a list whose elements stay in it, or jumps if there is none: a row of `loops`, the target.
    FirstElement(TableIndex, Target),
    /// Goes on with the next element, which stays in the list, and jumps; falls through if there is none. A safe point.
    NextElement(TableIndex, Target),
    /// Loads a scalar field of the current element: register, a row of `loops`, field.
    ElementWord(Register, TableIndex, u16),
    /// Loads several scalar fields of the current element: a row of `element_words`.
    ElementWords(TableIndex),
    /// Clones a field of the current element to a slot: slot, a row of `loops`, field.
    ElementField(FrameSlot, TableIndex, u16),
    /// Does the same for the only read of the field, which moves out of a list that is not shared.
    TakeElementField(FrameSlot, TableIndex, u16),
    /// Adds a scalar at the end of a list: slot of the list, register, scalar.
    Push(FrameSlot, Register, u16),
    /// Moves a value to the end of a list: slot of the list, slot of the value.
    PushValue(FrameSlot, FrameSlot),
    /// Ends a `for` or `fold` whose rounds may run on several threads: stops the region if some of them do, and otherwise does nothing.
    /// The number of the loop in [`Region::splits`](crate::region::Region::splits).
    EndFor(TableIndex),
    /// Begins a part that may run on another thread: stops the region if it does, and otherwise does nothing. The number of
    /// the part in [`Region::parts`](crate::region::Region::parts).
    BeginPart(TableIndex),
    /// Ends it: stops a region that runs the part alone, and otherwise does nothing.
    EndPart(TableIndex),
    /// Runs rounds of the loop that begins here, as many as can run at once: a row of `rounds`.
    Rounds(TableIndex),
    /// Ends a round of a `loop`: falls through if the register is true, fails if it was the last round that is allowed,
    /// and jumps to the head of the loop otherwise: a row of `loops`, the register. A safe point.
    AgainUnless(TableIndex, Register),
    /// Does the same, and falls through if two words are equal that are no floats.
    AgainUnlessEqual(TableIndex, Register, Register),
    /// Does the same, and falls through if two words are not equal that are no floats.
    AgainUnlessNotEqual(TableIndex, Register, Register),
    /// Does the same, and falls through if the first signed word is less than the second.
    AgainUnlessLess(TableIndex, Register, Register),
    /// Does the same, and falls through if the first signed word is less than or equal to the second.
    AgainUnlessLessOrEqual(TableIndex, Register, Register),
    /// Ends the flow with an answer: a row of `arguments`.
    Return(TableIndex),
    /// Ends the flow with a failure: a row of `arguments`.
    Fail(TableIndex),
    /// Is never reached, because an earlier step ends the flow.
    Never,
    /// Ends the region.
    End,
}

/// The use that an instruction makes of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegisterAccess {
    Read,
    Write,
}

impl Instruction {
    /// Calls `see` for each register that the instruction itself names; those of its row in a table are visited by
    /// [`crate::region::code::Tables::registers`].
    pub(crate) fn registers(&mut self, see: &mut dyn FnMut(&mut Register, RegisterAccess)) {
        use Instruction::*;
        match self {
            AddInt(out, a, b)
            | SubtractInt(out, a, b)
            | MultiplyInt(out, a, b)
            | DivideInt(out, a, b)
            | RemainderInt(out, a, b)
            | AddFloat(out, a, b)
            | SubtractFloat(out, a, b)
            | MultiplyFloat(out, a, b)
            | DivideFloat(out, a, b)
            | LeastInt(out, a, b)
            | GreatestInt(out, a, b)
            | EqualWords(out, a, b)
            | NotEqualWords(out, a, b)
            | LessInt(out, a, b)
            | LessOrEqualInt(out, a, b)
            | EqualFloat(out, a, b)
            | NotEqualFloat(out, a, b)
            | LessFloat(out, a, b)
            | LessOrEqualFloat(out, a, b)
            | And(out, a, b)
            | Or(out, a, b) => {
                see(a, RegisterAccess::Read);
                see(b, RegisterAccess::Read);
                see(out, RegisterAccess::Write);
            }
            AddProductFloat(sum, a, b) | AddSum(sum, a, b) => {
                [&mut sum.clone(), a, b].into_iter().for_each(|register| see(register, RegisterAccess::Read));
                see(sum, RegisterAccess::Write);
            }
            Move(out, a) | Not(out, a) | Index(out, _, a) => {
                see(a, RegisterAccess::Read);
                see(out, RegisterAccess::Write);
            }
            JumpIf(a, _)
            | JumpUnless(a, _)
            | JumpTable(a, _)
            | StoreChoice(_, a)
            | Store(_, a, _)
            | Push(_, a, _)
            | LoadElement(_, a)
            | AgainUnless(_, a) => {
                see(a, RegisterAccess::Read);
            }
            Load(out, _)
            | LoadChoice(out, _)
            | Length(out, _)
            | Field(out, _, _)
            | CallWords(out, _)
            | ElementWord(out, _, _)
            | FirstWord(_, out, _)
            | NextWord(_, out, _) => see(out, RegisterAccess::Write),
            other => {
                other.registers_read().into_iter().flatten().for_each(|register| see(register, RegisterAccess::Read))
            }
        }
    }

    /// Returns the two registers that the instruction reads, if it reads two and writes none.
    fn registers_read(&mut self) -> Option<[&mut Register; 2]> {
        use Instruction::*;
        match self {
            JumpIfEqual(a, b, _)
            | JumpIfNotEqual(a, b, _)
            | JumpIfLess(a, b, _)
            | JumpIfLessOrEqual(a, b, _)
            | JumpIfLessFloat(a, b, _)
            | JumpIfLessOrEqualFloat(a, b, _)
            | JumpUnlessLessFloat(a, b, _)
            | JumpUnlessLessOrEqualFloat(a, b, _)
            | AgainUnlessEqual(_, a, b)
            | AgainUnlessNotEqual(_, a, b)
            | AgainUnlessLess(_, a, b)
            | AgainUnlessLessOrEqual(_, a, b)
            | SetWord(_, a, b) => Some([a, b]),
            _ => None,
        }
    }

    /// Returns the target of the jump, if the instruction itself names one; those of its row in a table are visited by
    /// [`crate::region::code::Tables::targets`].
    pub(crate) fn target(&mut self) -> Option<&mut Target> {
        use Instruction::*;
        match self {
            Jump(target)
            | JumpIf(_, target)
            | JumpUnless(_, target)
            | JumpIfEqual(_, _, target)
            | JumpIfNotEqual(_, _, target)
            | JumpIfLess(_, _, target)
            | JumpIfLessOrEqual(_, _, target)
            | JumpIfLessFloat(_, _, target)
            | JumpIfLessOrEqualFloat(_, _, target)
            | JumpUnlessLessFloat(_, _, target)
            | JumpUnlessLessOrEqualFloat(_, _, target)
            | FirstWord(_, _, target)
            | NextWord(_, _, target)
            | FirstValue(_, _, target)
            | NextValue(_, _, target)
            | FirstElement(_, target)
            | NextElement(_, target) => Some(target),
            _ => None,
        }
    }

    /// Returns true if the instruction never continues with the one behind it.
    pub(crate) fn leaves(self) -> bool {
        use Instruction::*;
        matches!(self, Jump(_) | JumpTable(..) | Switch(_) | Return(_) | Fail(_) | Never | End)
    }

    /// Returns true if the instruction computes with registers alone, and then goes on with the next
    /// one or ends the flow.
    pub(crate) fn is_on_words(self) -> bool {
        use Instruction::*;
        let copies = matches!(self, Nothing | Move(..) | Not(..) | And(..) | Or(..));
        let computes = matches!(
            self,
            AddFloat(..) | SubtractFloat(..) | MultiplyFloat(..) | DivideFloat(..) | LeastInt(..) | GreatestInt(..)
        );
        let counts = matches!(self, AddInt(..) | SubtractInt(..) | MultiplyInt(..) | DivideInt(..) | RemainderInt(..));
        let compares = matches!(self, EqualWords(..) | NotEqualWords(..) | LessInt(..) | LessOrEqualInt(..));
        copies || computes || counts || compares || matches!(self, LessFloat(..) | LessOrEqualFloat(..))
    }

    /// Returns true if the instruction is a safe point: the back edge of a loop.
    pub(crate) fn is_safe_point(self) -> bool {
        use Instruction::*;
        matches!(self, NextWord(..) | NextValue(..) | NextElement(..)) || self.again().is_some()
    }

    /// Returns the row of the `loop` that the instruction repeats.
    pub(crate) fn again(self) -> Option<TableIndex> {
        use Instruction::*;
        match self {
            AgainUnless(row, _)
            | AgainUnlessEqual(row, ..)
            | AgainUnlessNotEqual(row, ..)
            | AgainUnlessLess(row, ..)
            | AgainUnlessLessOrEqual(row, ..) => Some(row),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_eight_bytes() {
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
