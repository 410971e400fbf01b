//! The interpreter: runs the code of a region over words and slots.
//!
//! The loop of [`Region::run`] has the instructions on words; all others are behind one call, so that the loop stays
//! small enough for its state to live in processor registers. Everything that the interpreter knows between two
//! instructions is in the words and slots, except for the number of the instruction: a region that yields is resumed by
//! that number alone.

use weir_host::{Environment, Shared, UnitBudget, Value};

use super::instruction::{Instruction, Register, TableIndex};
use super::outcome::Outside;
use super::stop::{After, RegionBorders, RegionStop};
use crate::platform::Platform;
use crate::region::code::{LoopRow, Region};
use crate::units::{self, Units};

/// The state that a region works on.
pub(crate) struct Machine<'a> {
    /// The slots of the frame, at least [`Region::slots`].
    pub(crate) slots: &'a mut [Value],
    /// The words, at least as many as a window has; [`Region::begin`] sets their number.
    pub(crate) words: &'a mut Vec<u64>,
    /// The choices of the frame's switches.
    pub(crate) choices: &'a mut [u32],
    /// The shared values of the program.
    pub(crate) shared: &'a [Shared],
    /// The environment of host functions.
    pub(crate) environment: &'a Environment,
    /// The clock, which is read after calls now and then.
    pub(crate) platform: &'a dyn Platform,
    /// The units that a call may take on this thread.
    pub(crate) call_budget: UnitBudget,
    /// The instruction that is reported if a host function panics.
    pub(crate) at: &'a mut usize,
    /// The borders of loops and parts at which the region stops.
    pub(crate) borders: RegionBorders,
    /// True if the states of a `fold` are partial results ([`Region::reducing_code`]).
    pub(crate) reduces: bool,
}

/// The pattern of the instructions that are not in the interpreter's loop. With these names instead of `_`, the jump to an
/// instruction's code needs no test.
macro_rules! out_of_line {
    () => {
        Instruction::Nothing
            | Instruction::EqualFloat(..)
            | Instruction::NotEqualFloat(..)
            | Instruction::LessFloat(..)
            | Instruction::LessOrEqualFloat(..)
            | Instruction::Not(..)
            | Instruction::And(..)
            | Instruction::Or(..)
            | Instruction::Scalars(_)
            | Instruction::JumpTable(..)
            | Instruction::Load(..)
            | Instruction::LoadRecord(_)
            | Instruction::Store(..)
            | Instruction::StoreRecord(_)
            | Instruction::LoadElement(..)
            | Instruction::PushRecord(_)
            | Instruction::LoadChoice(..)
            | Instruction::StoreChoice(..)
            | Instruction::TakeValue(..)
            | Instruction::CloneValue(..)
            | Instruction::ConstantValue(..)
            | Instruction::Clear(..)
            | Instruction::Length(..)
            | Instruction::AppendParts(_)
            | Instruction::BeginMap(_)
            | Instruction::FirstWord(..)
            | Instruction::FirstValue(..)
            | Instruction::NextValue(..)
            | Instruction::FirstElement(..)
            | Instruction::PushValue(..)
            | Instruction::Rounds(_)
            | Instruction::EndFor(_)
            | Instruction::BeginPart(_)
            | Instruction::EndPart(_)
            | Instruction::Return(_)
            | Instruction::Fail(_)
            | Instruction::Never
            | Instruction::End
    };
}

/// Leaves the interpreter's loop if the instruction fails.
macro_rules! or_fail {
    ($succeeds:expr) => {
        if !$succeeds {
            break;
        }
    };
}

/// Jumps if the condition holds.
macro_rules! jump_if {
    ($condition:expr, $at:ident, $target:expr) => {
        if $condition {
            $at = usize::from($target);
        }
    };
}

/// Continues as an instruction says that is not in the interpreter's loop.
macro_rules! go_on {
    ($after:expr, $at:ident) => {
        match $after {
            After::Next => {}
            After::Jump(target) => $at = usize::from(target),
            After::Stop(stop) => return stop,
        }
    };
}

/// Leaves the interpreter at the safe point of the instruction before `$at` if the slice is over, to go on at `$next`.
macro_rules! or_yield {
    ($is_over:expr, $outside:ident, $at:ident, $next:expr) => {
        if $is_over {
            return $outside.yields($at - 1, $next);
        }
    };
}

/// Calls a typed entry point; ends the flow if it fails, and yields behind the call if the slice is over.
macro_rules! call_words {
    ($region:ident, $out:ident, $row:ident, $words:ident, $outside:ident, $at:ident) => {{
        match $region.call_words($row, $at - 1, $words.0, &mut $outside) {
            Ok(word) => $words.set($out, word),
            Err(failure) => return RegionStop::Ends($at - 1, Err(failure)),
        }
        or_yield!($outside.spend(units::CALL), $outside, $at, $at);
    }};
}

/// Goes on with the next element of a list if there is one; yields if the slice is over.
macro_rules! next {
    ($region:ident, $next:ident($row:ident $(, $out:ident)?), $words:ident, $outside:ident, $at:ident, $target:ident) => {{
        let row = &$region.tables.loops[usize::from($row)];
        let next = if $next(row $(, $out)?, $words, &$outside) { usize::from($target) } else { $at };
        or_yield!($outside.spend(row.units), $outside, $at, next);
        $at = next;
    }};
}

/// Ends a round of a `loop`, and begins another one if the condition holds; yields if the slice is over.
macro_rules! again {
    ($condition:expr, $region:ident, $row:ident, $words:ident, $outside:ident, $at:ident) => {{
        let row = &$region.tables.loops[usize::from($row)];
        if let Some((to, from)) = row.carry {
            $words.set(to, $words.get(from));
        }
        if $condition {
            or_fail!(begin_round(row, $words));
            let head = usize::from(row.head);
            or_yield!($outside.spend(row.units), $outside, $at, head);
            $at = head;
        }
    }};
}

/// The number of words in the window of most regions. A register then is a byte, so that no access needs a test.
const WINDOW: usize = 1 << 8;
/// The number of words in the window of large regions.
pub(crate) const LARGE_WINDOW: usize = 1 << 12;

/// The code of a region, and the index of the instruction at which a run begins.
type Start<'c> = (&'c [Instruction], usize);

/// The words of a region. A power of two of them, so that a register is reduced to a position by its lowest bits instead
/// of being tested: it is less than the number of words already.
struct Window<'w, const SIZE: usize>(&'w mut [u64; SIZE]);

impl<const SIZE: usize> Window<'_, SIZE> {
    #[inline(always)]
    fn get(&self, register: Register) -> u64 {
        self.0[usize::from(register) % SIZE]
    }

    #[inline(always)]
    fn set(&mut self, register: Register, word: impl Into<u64>) {
        self.0[usize::from(register) % SIZE] = word.into();
    }

    #[inline(always)]
    fn int(&self, register: Register) -> i64 {
        self.get(register).cast_signed()
    }

    #[inline(always)]
    fn float(&self, register: Register) -> f64 {
        f64::from_bits(self.get(register))
    }

    /// Returns true if the first float is less than the other, and false if they are not ordered.
    #[inline(always)]
    fn is_less(&self, a: Register, b: Register) -> bool {
        self.float(a) < self.float(b)
    }

    /// Returns true if the first float is less than or equal to the other, and false if they are not ordered.
    #[inline(always)]
    fn is_at_most(&self, a: Register, b: Register) -> bool {
        self.float(a) <= self.float(b)
    }

    #[inline(always)]
    fn set_float(&mut self, register: Register, number: f64) {
        self.set(register, number.to_bits());
    }

    /// Adds the product of two floats to a register.
    #[inline(always)]
    fn add_product(&mut self, sum: Register, a: Register, b: Register) {
        self.set_float(sum, self.float(sum) + self.float(a) * self.float(b));
    }

    /// Adds to a partial sum, and notes the least and the greatest one; returns false if it leaves the range.
    #[inline(always)]
    fn add_sum(&mut self, sum: Register, a: Register, least: Register) -> bool {
        let Some(next) = self.int(sum).checked_add(self.int(a)) else { return false };
        self.set(sum, next.cast_unsigned());
        self.set(least, self.int(least).min(next).cast_unsigned());
        self.set(least + 1, self.int(least + 1).max(next).cast_unsigned());
        true
    }

    /// Writes a result; returns false if there is none, because the instruction fails.
    #[inline(always)]
    fn put(&mut self, out: Register, computed: Option<u64>) -> bool {
        computed.map(|word| self.set(out, word)).is_some()
    }

    /// Does the same with an integer.
    #[inline(always)]
    fn put_int(&mut self, out: Register, computed: Option<i64>) -> bool {
        self.put(out, computed.map(i64::cast_unsigned))
    }
}

impl Region {
    /// Returns the number of words that the region works on.
    pub(crate) fn window(&self) -> usize {
        if self.registers <= WINDOW { WINDOW } else { LARGE_WINDOW }
    }

    /// Sets the words to their initial state, for a run that begins at instruction 0.
    pub(crate) fn begin(&self, words: &mut Vec<u64>) {
        let size = self.window();
        if words.len() < size {
            words.resize(size, 0);
        }
        for (register, word) in &self.words {
            words[usize::from(*register)] = *word;
        }
    }

    /// Runs the code from an instruction on.
    pub(crate) fn run(&self, machine: Machine<'_>, at: usize, units: &Units) -> RegionStop {
        let Machine { slots, words, choices, shared, environment, platform, call_budget, .. } = machine;
        let (current, borders) = (machine.at, machine.borders);
        let code = if machine.reduces { &self.reducing_code } else { &self.code };
        let outside = Outside { slots, choices, shared, environment, platform, units, call_budget, current, borders };
        let window = if self.registers <= WINDOW { words.first_chunk_mut::<WINDOW>() } else { None };
        if let Some(window) = window {
            return self.run_in((code, at), &mut Window(window), outside);
        }
        let window = words.first_chunk_mut::<LARGE_WINDOW>().expect("the builder makes no region with more registers");
        self.run_in((code, at), &mut Window(window), outside)
    }

    #[inline(never)]
    fn run_in<const N: usize>(&self, from: Start<'_>, words: &mut Window<'_, N>, outside: Outside<'_>) -> RegionStop {
        use Instruction::*;
        let ((code, mut at), mut outside) = (from, outside);
        loop {
            at += 1;
            match code[at - 1] {
                Move(out, a) => words.set(out, words.get(a)),
                AddInt(out, a, b) => or_fail!(words.put_int(out, words.int(a).checked_add(words.int(b)))),
                SubtractInt(out, a, b) => or_fail!(words.put_int(out, words.int(a).checked_sub(words.int(b)))),
                MultiplyInt(out, a, b) => or_fail!(words.put_int(out, words.int(a).checked_mul(words.int(b)))),
                DivideInt(out, a, b) => or_fail!(words.put_int(out, words.int(a).checked_div(words.int(b)))),
                RemainderInt(out, a, b) => or_fail!(words.put_int(out, remainder(words.int(a), words.int(b)))),
                AddFloat(out, a, b) => words.set_float(out, words.float(a) + words.float(b)),
                SubtractFloat(out, a, b) => words.set_float(out, words.float(a) - words.float(b)),
                MultiplyFloat(out, a, b) => words.set_float(out, words.float(a) * words.float(b)),
                DivideFloat(out, a, b) => words.set_float(out, words.float(a) / words.float(b)),
                AddProductFloat(sum, a, b) => words.add_product(sum, a, b),
                AddSum(sum, a, least) => or_fail!(words.add_sum(sum, a, least)),
                LeastInt(out, a, b) => words.set(out, words.int(a).min(words.int(b)).cast_unsigned()),
                GreatestInt(out, a, b) => words.set(out, words.int(a).max(words.int(b)).cast_unsigned()),
                EqualWords(out, a, b) => words.set(out, words.get(a) == words.get(b)),
                NotEqualWords(out, a, b) => words.set(out, words.get(a) != words.get(b)),
                LessInt(out, a, b) => words.set(out, words.int(a) < words.int(b)),
                LessOrEqualInt(out, a, b) => words.set(out, words.int(a) <= words.int(b)),
                Jump(target) => at = usize::from(target),
                JumpIf(a, target) => jump_if!(words.get(a) != 0, at, target),
                JumpUnless(a, target) => jump_if!(words.get(a) == 0, at, target),
                JumpIfEqual(a, b, target) => jump_if!(words.get(a) == words.get(b), at, target),
                JumpIfNotEqual(a, b, target) => jump_if!(words.get(a) != words.get(b), at, target),
                JumpIfLess(a, b, target) => jump_if!(words.int(a) < words.int(b), at, target),
                JumpIfLessOrEqual(a, b, target) => jump_if!(words.int(a) <= words.int(b), at, target),
                JumpIfLessFloat(a, b, target) => jump_if!(words.is_less(a, b), at, target),
                JumpIfLessOrEqualFloat(a, b, target) => jump_if!(words.is_at_most(a, b), at, target),
                JumpUnlessLessFloat(a, b, target) => jump_if!(!words.is_less(a, b), at, target),
                JumpUnlessLessOrEqualFloat(a, b, target) => jump_if!(!words.is_at_most(a, b), at, target),
                Index(out, list, a) => or_fail!(words.put(out, outside.word(list, words.int(a)))),
                SetWord(list, key, value) => at += outside.set_word(list, words.int(key), words.get(value)),
                NextWord(row, out, target) => next!(self, next_word(row, out), words, outside, at, target),
                NextElement(row, target) => next!(self, next_element(row), words, outside, at, target),
                AgainUnless(row, done) => again!(words.get(done) == 0, self, row, words, outside, at),
                AgainUnlessEqual(row, a, b) => again!(words.get(a) != words.get(b), self, row, words, outside, at),
                AgainUnlessNotEqual(row, a, b) => again!(words.get(a) == words.get(b), self, row, words, outside, at),
                AgainUnlessLess(row, a, b) => again!(words.int(a) >= words.int(b), self, row, words, outside, at),
                AgainUnlessLessOrEqual(row, a, b) => again!(words.int(a) > words.int(b), self, row, words, outside, at),
                Push(list, a, scalar) => outside.push_word(list, words.get(a), scalar),
                Field(out, slot, field) => words.set(out, outside.field(slot, field)),
                ElementWord(out, row, field) => words.set(out, self.field_of_element(row, words, &outside, field)),
                ElementWords(row) => self.load_fields(row, words.0, &outside),
                CallWords(out, row) => call_words!(self, out, row, words, outside, at),
                Call(row) => go_on!(self.call_step(row, at - 1, words.0, &mut outside), at),
                Prim(row) => go_on!(self.prim(row, at - 1, &mut outside), at),
                ElementField(out, row, field) => self.element_field(row, field, false, words.0, outside.slots, out),
                TakeElementField(out, row, field) => self.element_field(row, field, true, words.0, outside.slots, out),
                Replace(row) => go_on!(self.replace(row, at - 1, words.0, &mut outside), at),
                Switch(row) => go_on!(self.switch(row, at - 1, words.0, &mut outside), at),
                instruction @ out_of_line!() => go_on!(self.step(instruction, at - 1, words.0, &mut outside), at),
            }
        }
        self.failed(at - 1, words.0, &outside)
    }

    /// Returns the word of a scalar field of the record that is the current element of a loop.
    #[inline(always)]
    fn field_of_element<const SIZE: usize>(
        &self,
        row: TableIndex,
        words: &Window<'_, SIZE>,
        outside: &Outside<'_>,
        field: u16,
    ) -> u64 {
        let row = &self.tables.loops[usize::from(row)];
        outside.field_of_element(row, words.get(row.count), field)
    }
}

/// Puts the next element of a list of scalars into a register; returns false if there is none.
#[inline(always)]
fn next_word<const SIZE: usize>(
    row: &LoopRow,
    out: Register,
    words: &mut Window<'_, SIZE>,
    outside: &Outside<'_>,
) -> bool {
    let taken = words.get(row.count);
    let Some(word) = outside.word(row.list, taken.cast_signed()) else { return false };
    words.set(row.count, taken + 1);
    words.set(out, word);
    true
}

/// Goes on with the next element of a list, which stays there; returns false if there is none.
#[inline(always)]
fn next_element<const SIZE: usize>(row: &LoopRow, words: &mut Window<'_, SIZE>, outside: &Outside<'_>) -> bool {
    let Value::List(elements) = &outside.slots[usize::from(row.list)] else { return false };
    let taken = words.get(row.count);
    let has_more = taken < elements.len() as u64;
    words.set(row.count, taken + u64::from(has_more));
    has_more
}

/// Counts a round of a `loop`; returns false if there may be no further one.
#[inline(always)]
fn begin_round<const SIZE: usize>(row: &LoopRow, words: &mut Window<'_, SIZE>) -> bool {
    let rounds = words.get(row.count) + 1;
    words.set(row.count, rounds);
    rounds < row.at_most
}

/// Returns the remainder with the sign of the dividend; that of the least integer by -1 is 0.
#[inline(always)]
fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}
