//! Rounds on several threads: the rounds that are left of a loop are halved, and joined behind the last one.

use std::sync::Arc;
use std::task::Context;

use weir_host::{Elements, Value};

use super::pieces::ForkedPiece;
use super::region_run::{AfterJoin, FORKED_MIN_NS, Pace, RegionForks, RegionRun};
use super::{ForkEnd, JoinedFork};
use crate::region::{LoopOutcome, PartialStates, ReducedMap, Reductions, RegionPiece};

/// The units that joining an entry of a map takes: two look-ups.
const ENTRY_UNITS: u64 = 40;

/// The number of rounds for each key of a map from which on the rounds run on several threads. Chosen by judgement: joining an
/// entry takes about two rounds.
const ROUNDS_PER_KEY: u64 = 4;

/// The rounds that are left of a loop.
pub(super) struct RoundsLeft {
    split: usize,
    /// The number of rounds that have begun.
    taken: u64,
    left: u64,
}

impl RegionRun<'_> {
    /// Returns the rounds that are left of the outermost loop around an instruction that has any.
    pub(super) fn rounds_around(&self, at: usize) -> Option<RoundsLeft> {
        self.region.splits_around(at).find_map(|split| self.rounds_left(split))
    }

    fn rounds_left(&self, split: usize) -> Option<RoundsLeft> {
        // A fork has only rounds of its own loop, and of those inside.
        if matches!(self.scene.fork, Some((_, RegionPiece::Rounds(own))) if split < own) {
            return None;
        }
        let row = &self.region.tables.loops[usize::from(self.region.splits[split].row)];
        let Value::List(list) = &self.slots[usize::from(row.list)] else { return None };
        let taken = self.words[usize::from(row.count)];
        let left = (list.len() as u64).checked_sub(taken).filter(|left| *left > 0)?;
        Some(RoundsLeft { split, taken, left })
    }

    /// Returns true if the rounds that are left seem to take long enough, at the pace since the last heartbeat.
    pub(super) fn pays(&mut self, rounds: &RoundsLeft) -> bool {
        let RoundsLeft { split, taken, left } = *rounds;
        if self.has_many_keys(rounds) {
            return false;
        }
        let at_ns = self.scene.instance.platform.now_ns();
        let last = self.forks.pace.replace(Pace { split, taken, at_ns });
        let Some(last) = last.filter(|last| last.split == split && last.taken <= taken) else { return false };
        let ns_per_round = at_ns.saturating_sub(last.at_ns) / (taken - last.taken).max(1);
        ns_per_round.saturating_mul(left) >= FORKED_MIN_NS
    }

    /// Moves the upper half of the rounds that are left to a fork.
    pub(super) fn divide(&mut self, rounds: &RoundsLeft) -> ForkedPiece {
        let row = &self.region.splits[rounds.split];
        let list = usize::from(self.region.tables.loops[usize::from(row.row)].list);
        let mut slots = vec![Value::Absent; self.region.slots];
        if let Value::List(elements) = &mut self.slots[list] {
            let from = (rounds.taken + rounds.left / 2) as usize;
            slots[list] = Value::List(elements.range(from, elements.len()));
            elements.keep(0, from);
        }
        for captured in &row.captured {
            slots[*captured as usize] = self.slots[*captured as usize].clone();
        }
        let mut words = self.words[..self.region.window()].to_vec();
        match &row.outcome {
            LoopOutcome::List(results) => slots[usize::from(*results)] = Value::List(Elements::default()),
            LoopOutcome::Reductions(reductions) => {
                reductions.begin(&mut PartialStates { words: &mut words, slots: &mut slots });
            }
        }
        ForkedPiece {
            region: Arc::clone(self.region),
            piece: RegionPiece::Rounds(rounds.split),
            at: usize::from(row.first),
            slots,
            words,
            choices: self.choices.clone(),
            forks: RegionForks::default(),
        }
    }

    /// Joins the states of a fork; returns false, and changes nothing, if its rounds have to run in their order.
    fn join_states(&mut self, reductions: &Reductions, end: ForkEnd) -> bool {
        let ForkEnd::Piece(mut rounds) = end else { return false };
        let entries: usize = reductions.maps.iter().map(|map| map.len(&rounds.slots)).sum();
        self.scene.units.spend_data(ENTRY_UNITS * entries as u64);
        let mut states = PartialStates { words: self.words, slots: self.slots };
        reductions.join(&mut states, PartialStates { words: &mut rounds.words, slots: &mut rounds.slots })
    }

    /// Returns true if the rounds of a `fold` have made so many keys that joining them would take as long as the rounds.
    fn has_many_keys(&self, rounds: &RoundsLeft) -> bool {
        let Some(reductions) = self.region.splits[rounds.split].reductions() else { return false };
        let is_many = |map: &ReducedMap| map.len(self.slots) as u64 > rounds.taken / ROUNDS_PER_KEY;
        reductions.maps.iter().any(is_many)
    }

    /// Returns the elements of a fork whose rounds may have to run once more.
    pub(super) fn elements_to_repeat(&self, forked: &ForkedPiece) -> Elements {
        let RegionPiece::Rounds(split) = forked.piece else { return Elements::default() };
        let split = &self.region.splits[split];
        match (&split.outcome, &forked.slots[usize::from(self.region.tables.loops[usize::from(split.row)].list)]) {
            (LoopOutcome::Reductions(_), Value::List(elements)) => elements.clone(),
            _ => Elements::default(),
        }
    }

    /// Joins the forks of a loop whose own rounds have all run.
    pub(super) fn join_rounds(&mut self, split: usize, context: &Context<'_>) -> AfterJoin {
        let piece = RegionPiece::Rounds(split);
        let row = &self.region.splits[split];
        let list = usize::from(self.region.tables.loops[usize::from(row.row)].list);
        // The last fork of a loop has its lowest rounds.
        while let Some(lowest) = self.forks.handles.iter().rposition(|handle| handle.piece == piece) {
            match self.take(lowest, context) {
                JoinedFork::Unbegun(mut rounds) => {
                    self.forks.handles.remove(lowest);
                    self.slots[list] = rounds.slots[list].take();
                    return AfterJoin::GoOn(row.first.into());
                }
                JoinedFork::Ended(ForkEnd::Results(more)) => {
                    self.forks.handles.remove(lowest);
                    if let LoopOutcome::List(results) = row.outcome
                        && let Value::List(results) = &mut self.slots[usize::from(results)]
                    {
                        results.append(more);
                    }
                }
                JoinedFork::Ended(end) => {
                    let Some(reductions) = row.reductions() else {
                        let ForkEnd::Exit(at, how) = end else { unreachable!("a `for` has results") };
                        return AfterJoin::Ends(at, how);
                    };
                    let elements = std::mem::take(&mut self.forks.handles[lowest].elements);
                    self.forks.handles.remove(lowest);
                    if !self.join_states(reductions, end) {
                        // The rounds run once more, in their order, and fail where that fails.
                        self.slots[list] = Value::List(elements);
                        return AfterJoin::GoOn(row.first.into());
                    }
                }
                JoinedFork::UnderWay => {
                    if let Some(waits) = self.wait(lowest, row.end) {
                        return waits;
                    }
                }
            }
        }
        match self.scene.fork {
            Some((_, own)) if own == piece => AfterJoin::Through,
            _ => AfterJoin::GoOn(row.end + 1),
        }
    }
}
