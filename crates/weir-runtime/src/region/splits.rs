//! The loops of a region whose rounds may run on several threads, as forks look for them.

use super::code::{Region, SPLITS_MAX, SplitLoop};
use super::instruction::{Instruction, TableIndex};
use super::place::CodePlace;

impl Region {
    /// Returns the numbers of the loops around an instruction whose rounds may run on several threads, the outermost first.
    pub(crate) fn splits_around(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let contains = move |split: &SplitLoop| usize::from(split.first) <= at && at <= split.end;
        self.splits.iter().enumerate().filter(move |(_, split)| contains(split)).map(|(index, _)| index)
    }

    /// Returns the loops that are in no other one, and that are reached: a set of bits.
    pub(crate) fn outermost(splits: &[SplitLoop]) -> u64 {
        let mut until = 0;
        let outer = splits.iter().enumerate().filter(|(_, split)| {
            let is_outer = split.end > until;
            until = until.max(split.end);
            is_outer
        });
        outer.fold(0, |set, (number, _)| set | 1 << number)
    }

    /// Returns the loop with this row if its number is in the set.
    #[inline]
    pub(super) fn split_of_row(&self, row: TableIndex, set: u64) -> Option<usize> {
        if set == 0 {
            return None;
        }
        let mut splits = self.splits.iter().enumerate();
        splits.find(|(number, split)| split.row == row && set >> number & 1 != 0).map(|(number, _)| number)
    }

    /// Returns true if a round of this loop calls host functions.
    pub(crate) fn calls_in_rounds(&self, split: usize) -> bool {
        let split = &self.splits[split];
        let is_call = |code: &Instruction| matches!(code, Instruction::Call(_) | Instruction::CallWords(..));
        self.code[usize::from(split.first)..=split.end].iter().any(is_call)
    }

    /// Returns true if no further loop of the region may run its rounds on several threads.
    pub(crate) fn has_all_splits(&self) -> bool {
        self.splits.len() == SPLITS_MAX
    }

    /// Returns whether the rounds of the loop at this place may run on several threads.
    pub(crate) fn splits_at(&self, place: &CodePlace) -> bool {
        self.splits.iter().any(|split| split.end > 0 && self.place(split.end) == place)
    }
}
