//! The interpreter: runs the code of a region over words and slots.
//!
//! The loop of [`Region::run`] has the instructions on words; all others are behind one call, so that the loop stays
//! small enough for its state to live in processor registers. Everything that the interpreter knows between two
//! instructions is in the words and slots, except for the number of the instruction: a region that yields is resumed by
//! that number alone.

use weir_host::{Environment, Shared, UnitBudget, Value};

use super::instruction::{Instruction, Register, TableIndex, Target};
use super::outcome::Outside;
use super::outside::word_at;
use super::stop::{After, RegionStop};
use crate::platform::Platform;
use crate::region::code::{LoopRow, Region};
use crate::units::{Spent, Units};

/// The state that a region works on.
pub(crate) struct Machine<'a> {
    /// The slots of the frame, at least [`Region::slots`].
    pub(crate) slots: &'a mut [Value],
    /// The words; [`Region::begin`] sets their number.
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
}

/// Leaves the interpreter's loop if the instruction fails.
macro_rules! or_fail {
    ($succeeds:expr) => {
        if !$succeeds {
            break;
        }
    };
}

/// Leaves the interpreter behind this instruction if the slice is over.
macro_rules! or_yield {
    ($is_over:expr, $at:expr) => {
        if $is_over {
            return RegionStop::Yields($at.wrapping_add(1));
        }
    };
}

impl Region {
    /// Sets the words to their initial state, for a run that begins at instruction 0.
    pub(crate) fn begin(&self, words: &mut Vec<u64>) {
        if words.len() < self.registers {
            words.resize(self.registers, 0);
        }
        for (register, word) in &self.words {
            words[usize::from(*register)] = *word;
        }
    }

    /// Runs the code from an instruction on.
    pub(crate) fn run(&self, machine: Machine<'_>, mut at: usize, units: &Units) -> RegionStop {
        use Instruction::*;
        let Machine { slots, words, choices, shared, environment, platform, call_budget, at: current } = machine;
        let words = &mut words[..];
        let mut outside = Outside { slots, choices, shared, environment, platform, call_budget, current };
        loop {
            match self.code[at] {
                Move(out, a) => words[r(out)] = words[r(a)],
                AddInt(out, a, b) => or_fail!(put(words, out, int(words, a).checked_add(int(words, b)))),
                SubtractInt(out, a, b) => or_fail!(put(words, out, int(words, a).checked_sub(int(words, b)))),
                MultiplyInt(out, a, b) => or_fail!(put(words, out, int(words, a).checked_mul(int(words, b)))),
                DivideInt(out, a, b) => or_fail!(put(words, out, int(words, a).checked_div(int(words, b)))),
                RemainderInt(out, a, b) => or_fail!(put(words, out, remainder(int(words, a), int(words, b)))),
                AddFloat(out, a, b) => words[r(out)] = (float(words, a) + float(words, b)).to_bits(),
                SubtractFloat(out, a, b) => words[r(out)] = (float(words, a) - float(words, b)).to_bits(),
                MultiplyFloat(out, a, b) => words[r(out)] = (float(words, a) * float(words, b)).to_bits(),
                DivideFloat(out, a, b) => words[r(out)] = (float(words, a) / float(words, b)).to_bits(),
                EqualWords(out, a, b) => words[r(out)] = (words[r(a)] == words[r(b)]).into(),
                NotEqualWords(out, a, b) => words[r(out)] = (words[r(a)] != words[r(b)]).into(),
                LessInt(out, a, b) => words[r(out)] = (int(words, a) < int(words, b)).into(),
                LessOrEqualInt(out, a, b) => words[r(out)] = (int(words, a) <= int(words, b)).into(),
                LessFloat(out, a, b) => words[r(out)] = (float(words, a) < float(words, b)).into(),
                LessOrEqualFloat(out, a, b) => words[r(out)] = (float(words, a) <= float(words, b)).into(),
                EqualFloat(out, a, b) => words[r(out)] = (float(words, a) == float(words, b)).into(),
                Not(out, a) => words[r(out)] = words[r(a)] ^ 1,
                And(out, a, b) => words[r(out)] = words[r(a)] & words[r(b)],
                Or(out, a, b) => words[r(out)] = words[r(a)] | words[r(b)],
                Jump(target) => at = before(target),
                JumpIf(a, target) => at = next(words[r(a)] != 0, at, target),
                JumpUnless(a, target) => at = next(words[r(a)] == 0, at, target),
                JumpIfEqual(a, b, target) => at = next(words[r(a)] == words[r(b)], at, target),
                JumpIfNotEqual(a, b, target) => at = next(words[r(a)] != words[r(b)], at, target),
                JumpIfLess(a, b, target) => at = next(int(words, a) < int(words, b), at, target),
                JumpIfLessOrEqual(a, b, target) => at = next(int(words, a) <= int(words, b), at, target),
                Index(out, list, a) => or_fail!(put(words, out, outside.element(list, int(words, a)))),
                NextWord(row, out, target) => {
                    at = next(self.next_word(row, out, words, &outside), at, target);
                    or_yield!(self.is_slice_over(row, units, platform), at);
                }
                NextElement(row, target) => {
                    at = next(self.next_element(row, words, &outside), at, target);
                    or_yield!(self.is_slice_over(row, units, platform), at);
                }
                AgainUnless(_, done, _) if words[r(done)] != 0 => {}
                AgainUnless(row, _, target) => {
                    or_fail!(self.begin_round(row, words));
                    at = before(target);
                    or_yield!(self.is_slice_over(row, units, platform), at);
                }
                other => match self.step(other, at, words, &mut outside, units) {
                    After::Next => {}
                    After::Jump(target) => at = before(target),
                    After::Stop(stop) => return stop,
                },
            }
            at = at.wrapping_add(1);
        }
        self.failed(at, words, &outside)
    }

    /// Puts the next element of a list of scalars into a register; returns false if there is none.
    #[inline(always)]
    fn next_word(&self, row: TableIndex, out: Register, words: &mut [u64], outside: &Outside<'_>) -> bool {
        let LoopRow { list, count, .. } = self.tables.loops[usize::from(row)];
        let Value::List(elements) = &outside.slots[usize::from(list)] else { return false };
        let Some(word) = word_at(elements, words[r(count)] as usize) else { return false };
        words[r(count)] += 1;
        words[r(out)] = word;
        true
    }

    /// Goes on with the next element of a list, which stays there; returns false if there is none.
    #[inline(always)]
    fn next_element(&self, row: TableIndex, words: &mut [u64], outside: &Outside<'_>) -> bool {
        let LoopRow { list, count, .. } = self.tables.loops[usize::from(row)];
        let Value::List(elements) = &outside.slots[usize::from(list)] else { return false };
        let has_more = words[r(count)] < elements.len() as u64;
        words[r(count)] += u64::from(has_more);
        has_more
    }

    /// Spends the units of a round; returns true if the slice is over.
    #[inline(always)]
    fn is_slice_over(&self, row: TableIndex, units: &Units, platform: &dyn Platform) -> bool {
        units.spend_timed(self.tables.loops[usize::from(row)].units, platform) == Spent::Yield
    }

    /// Counts a round of a `loop`; returns false if there may be no further one.
    #[inline(always)]
    fn begin_round(&self, row: TableIndex, words: &mut [u64]) -> bool {
        let LoopRow { count, at_most, .. } = self.tables.loops[usize::from(row)];
        words[r(count)] += 1;
        words[r(count)] < at_most
    }
}

#[inline(always)]
fn r(register: Register) -> usize {
    usize::from(register)
}

/// Returns the number of the instruction before a target: the loop continues with the one behind it.
#[inline(always)]
fn before(target: Target) -> usize {
    usize::from(target).wrapping_sub(1)
}

/// Returns the number of the instruction before the next one: the target if the jump is taken.
#[inline(always)]
fn next(is_taken: bool, at: usize, target: Target) -> usize {
    if is_taken { before(target) } else { at }
}

#[inline(always)]
fn int(words: &[u64], register: Register) -> i64 {
    words[r(register)].cast_signed()
}

#[inline(always)]
fn float(words: &[u64], register: Register) -> f64 {
    f64::from_bits(words[r(register)])
}

/// Returns the remainder with the sign of the dividend; that of the least integer by -1 is 0.
#[inline(always)]
fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}

/// Writes a result; returns false if there is none, because the instruction fails.
#[inline(always)]
fn put(words: &mut [u64], out: Register, computed: Option<i64>) -> bool {
    let Some(value) = computed else { return false };
    words[r(out)] = value.cast_unsigned();
    true
}
