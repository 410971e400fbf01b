//! Rounds that run at once: those of a loop that only stores a scalar at every n-th position of a list, and those of a loop
//! that only adds the same scalar to its results, as `for _ in numbers { 0 }` does.
//!
//! The instruction stands before the first one of a round. It runs as many whole rounds as are followed by another one, fail
//! nowhere, and meet no check of the slice, and leaves the state that they would have left. The others, the last round in any
//! case, run as they stand. So nothing but the time of these rounds depends on the instruction.

use weir_host::Value;

use super::changes::{RoundEffect, RoundsAtOnce};
use super::code::LoopRow;
use super::instruction::Register;
use super::outcome::r;
use crate::units::Units;

impl RoundsAtOnce {
    /// Runs rounds.
    #[inline(never)]
    pub(super) fn run(&self, loops: &[LoopRow], words: &mut [u64], slots: &mut [Value], units: &Units) {
        let row = &loops[r(self.row)];
        let most = units.rounds_before_check(row.units);
        let rounds = match self.effect {
            RoundEffect::Store { list, .. } => self.store(row, words, &mut slots[r(list)], most),
            RoundEffect::Push { results, word } => {
                let word = words[r(word)];
                let Value::List(list) = &slots[r(row.list)] else { return };
                let rounds = most.min((list.len() as u64).saturating_sub(words[r(row.count)]));
                let Value::List(results) = &mut slots[r(results)] else { return };
                if results.push_words(word, rounds as usize) { rounds } else { 0 }
            }
        };
        words[r(row.count)] += rounds;
        units.spend_rounds(rounds, row.units);
    }

    /// Stores words, at most so many; returns the number of rounds.
    fn store(&self, row: &LoopRow, words: &mut [u64], list: &mut Value, most: u64) -> u64 {
        let RoundEffect::Store { position, word, step, bound, .. } = self.effect else { return 0 };
        let (Value::List(list), word) = (list, words[r(word)]) else { return 0 };
        let number = |register: Register| words[r(register)].cast_signed();
        let (Ok(from), Ok(step), Ok(bound)) =
            (u64::try_from(number(position)), u64::try_from(number(step)), u64::try_from(number(bound)))
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
        words[r(position)] = from + rounds * step;
        rounds
    }
}
