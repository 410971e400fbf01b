//! Calls of host functions, with slots or with the words of a typed entry point.

use std::sync::Arc;

use smallvec::SmallVec;
use weir_host::{Call, Failure, Outcome, UnitBudget, Value};

use super::code::{Region, SlotCall, WordCall};
use super::instruction::{Instruction, TableIndex};
use super::outcome::{Outside, fails, r, spent_call};
use super::stop::{After, LongCall, RegionStop};
use crate::operations::{self, Out};

impl WordCall {
    /// Calls the typed entry point with the words of the arguments.
    #[inline(always)]
    pub(super) fn call(&self, words: &[u64]) -> Result<u64, Box<Failure>> {
        match self.arguments[..] {
            [a] => (self.code)(&[words[r(a)]]),
            [a, b] => (self.code)(&[words[r(a)], words[r(b)]]),
            _ => (self.code)(&self.arguments.iter().map(|a| words[r(*a)]).collect::<SmallVec<[u64; 4]>>()),
        }
    }
}

impl Region {
    /// Calls a host function with slots.
    #[inline(never)]
    pub(super) fn call_step(&self, row: TableIndex, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        self.call(&self.tables.calls[r(row)], at, words, outside)
    }

    #[inline]
    pub(super) fn call(&self, row: &SlotCall, at: usize, words: &mut [u64], outside: &mut Outside<'_>) -> After {
        *outside.current = at;
        let out = if let Out::Value(slot) = row.out { Some(slot) } else { None };
        out.into_iter().for_each(|slot| outside.slots[slot as usize].clear());
        let mut call = Call {
            slots: outside.slots,
            constants: &self.constants,
            shared: outside.shared,
            state: None,
            arguments: &row.arguments,
            out,
            environment: outside.environment,
            units: outside.call_budget,
            awaited: None,
        };
        let mut outcome = (row.code)(&mut call);
        let declared = call.units.declared;
        if matches!(outcome, Outcome::ExceedsUnits) {
            if row.effects.changed.is_empty()
                && let Some(call) = call.detach()
            {
                let (code, path) = (Arc::clone(&row.code), Arc::clone(&row.path));
                return After::Stop(RegionStop::Calls(at, LongCall { call, code, path }));
            }
            call.units = UnitBudget::UNLIMITED;
            outcome = (row.code)(&mut call);
        }
        match answered(row, outcome, words, outside.slots) {
            Ok(()) => {
                outside.units.spend_declared(declared);
                spent_call(at, outside)
            }
            Err(failure) => fails(at, failure),
        }
    }

    /// Puts the answer of the call of an instruction where it belongs.
    ///
    /// # Errors
    /// Fails if the call ends the flow.
    pub(crate) fn answer_call(
        &self,
        at: usize,
        outcome: Outcome,
        words: &mut [u64],
        slots: &mut [Value],
    ) -> Result<(), Box<Failure>> {
        match self.code[at] {
            Instruction::Call(row) => answered(&self.tables.calls[r(row)], outcome, words, slots),
            _ => Err(operations::never()),
        }
    }

    /// Calls the typed entry point of a host function, and returns the word of its result.
    ///
    /// # Errors
    /// Fails if the function does.
    #[inline(never)]
    pub(super) fn call_words(
        &self,
        row: TableIndex,
        at: usize,
        words: &[u64],
        outside: &mut Outside<'_>,
    ) -> Result<u64, Box<Failure>> {
        let row = &self.tables.word_calls[r(row)];
        *outside.current = at;
        row.call(words)
    }
}

/// Puts the answer of a call where it belongs, and drops what it has borrowed for the last time.
fn answered(row: &SlotCall, outcome: Outcome, words: &mut [u64], slots: &mut [Value]) -> Result<(), Box<Failure>> {
    for dead in &row.dead {
        slots[*dead as usize].put(Value::Absent);
    }
    let outcome = match row.kept_failure {
        None => outcome,
        Some(kept) => kept.seen(outcome),
    };
    if let Some((choice, arm)) = operations::answer(outcome, &row.out, slots)? {
        words[choice as usize] = arm.into();
    }
    Ok(())
}
