//! Rounds that run at once: those of a loop that only stores a scalar at every n-th position of a list, those of a loop that
//! only adds the same scalar to its results, as `for _ in numbers { 0 }` does, and those of a loop that only makes a typed call
//! and adds its result, as `for n in numbers { host.small(n) }` does.
//!
//! The instruction stands before the first one of a round. It runs as many whole rounds as are followed by another one and meet
//! no check of the slice, and leaves the state that they would have left. The others, the last round in any case, run as they
//! stand. A round that could fail without a call is one of those; a call that fails ends the flow where it stands in the round.
//! So nothing but the time of these rounds depends on the instruction.

use weir_host::Value;

use super::changes::{PushedCall, PushedWord, RoundEffect, RoundsAtOnce, StoredWord};
use super::code::{LoopRow, Region};
use super::entries::push_word;
use super::instruction::{Instruction, Register, TableIndex};
use super::outcome::{Outside, fails, r};
use super::stop::After;
use crate::units;

impl StoredWord {
    /// Stores words, at most so many; returns the number of rounds.
    fn run(&self, row: &LoopRow, words: &mut [u64], list: &mut Value, most: u64) -> u64 {
        let (Value::List(list), word) = (list, words[r(self.word)]) else { return 0 };
        let number = |register: Register| words[r(register)].cast_signed();
        let (Ok(from), Ok(step), Ok(bound)) =
            (u64::try_from(number(self.position)), u64::try_from(number(self.step)), u64::try_from(number(self.bound)))
        else {
            return 0;
        };
        let length = list.len() as u64;
        if step == 0 || from >= bound || from >= length {
            return 0;
        }
        let (to_bound, to_end) = ((bound - 1 - from) / step, (length - 1 - from) / step + 1);
        let allowed = row.at_most.saturating_sub(words[r(row.count)]).saturating_sub(1);
        let rounds = most.min(allowed).min(to_bound).min(to_end);
        if rounds == 0 || !list.set_words(from as usize, step as usize, rounds as usize, word) {
            return 0;
        }
        // Less than the bound, which is an `i64`.
        words[r(self.position)] = from + rounds * step;
        rounds
    }
}

impl PushedWord {
    /// Adds words, at most so many; returns the number of rounds.
    fn run(&self, row: &LoopRow, words: &[u64], slots: &mut [Value], most: u64) -> u64 {
        let Value::List(list) = &slots[r(row.list)] else { return 0 };
        let rounds = most.min((list.len() as u64).saturating_sub(words[r(row.count)]));
        let Value::List(results) = &mut slots[r(self.results)] else { return 0 };
        if results.push_words(words[r(self.word)], rounds as usize) { rounds } else { 0 }
    }
}

impl Region {
    /// Runs rounds at once.
    #[inline(never)]
    pub(super) fn rounds_at_once(
        &self,
        rounds: TableIndex,
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        let RoundsAtOnce { row, effect } = self.tables.rounds[r(rounds)];
        let row = &self.tables.loops[r(row)];
        let most = outside.units.rounds_before_check(row.units);
        let rounds = match effect {
            RoundEffect::Store(store) => store.run(row, words, &mut outside.slots[r(store.list)], most),
            RoundEffect::Push(push) => push.run(row, words, outside.slots, most),
            RoundEffect::Call(call) => return self.calls_at_once(call, row, at, words, outside),
        };
        words[r(row.count)] += rounds;
        outside.units.spend_rounds(rounds, row.units);
        After::Next
    }

    /// Runs rounds of calls at once.
    fn calls_at_once(
        &self,
        round: PushedCall,
        row: &LoopRow,
        at: usize,
        words: &mut [u64],
        outside: &mut Outside<'_>,
    ) -> After {
        let call = &self.tables.word_calls[r(round.call)];
        let units_each = row.units.saturating_add(units::CALL);
        let most = outside.units.rounds_before_check(units_each);
        let Ok([list, results]) = outside.slots.get_disjoint_mut([r(row.list), r(round.results)]) else {
            return After::Next;
        };
        let (Value::List(list), Value::List(results)) = (list, results) else { return After::Next };
        let first = words[r(row.count)];
        let last = first.saturating_add(most).min(list.len() as u64);
        if first >= last {
            return After::Next;
        }
        let is_call = |at: &usize| matches!(self.code[*at], Instruction::CallWords(..));
        let Some(call_at) = (at + 1..self.code.len()).find(is_call) else { return After::Next };
        *outside.current = call_at;
        let mut taken = first;
        // Each of these rounds is followed by another one, which takes the next element.
        while taken < last {
            let Some(next) = list.word(taken as usize) else { break };
            match call.call(words) {
                Ok(word) => push_word(results, word, round.scalar),
                Err(failure) => return fails(call_at, failure),
            }
            words[r(round.element)] = next;
            taken += 1;
            if taken == first + 1 {
                results.reserve_words(list.len() - first as usize);
            }
        }
        words[r(row.count)] = taken;
        outside.units.spend_rounds(taken - first, units_each);
        After::Next
    }
}
