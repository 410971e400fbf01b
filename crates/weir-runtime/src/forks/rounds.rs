//! Rounds on several threads: the rounds that are left of a loop are shared with all idle cores, and joined behind the last one.

use std::sync::Arc;
use std::task::Context;

use weir_host::{Elements, Value};

use super::ForkEnd;
use super::hand_over::JoinedPiece;
use super::pieces::ForkedPiece;
use super::region_run::{AfterJoin, FORKED_MIN_NS, Offers, Pace, RegionForks, RegionRun};
use super::rounds_ahead::RoundsAhead;
use crate::region::{LoopOutcome, LoopRow, PartialStates, ReducedMap, Reductions, RegionPiece};

/// The units that joining an entry of a map takes: two look-ups.
const ENTRY_UNITS: u64 = 40;

/// The number of rounds for each key of a map from which on the rounds run on several threads. Chosen by judgement: joining an
/// entry takes about two rounds.
const ROUNDS_PER_KEY: u64 = 4;

/// The rounds that are left of a loop.
pub(super) struct RoundsLeft {
    split: usize,
    /// The number of elements that were taken out of the list.
    taken: u64,
    left: u64,
}

impl RegionRun<'_> {
    /// Returns the rounds that are left of the outermost loop around an instruction that has any.
    pub(super) fn rounds_around(&self, at: usize) -> Option<RoundsLeft> {
        self.region.splits_around(at).find_map(|split| self.rounds_left(split, at))
    }

    fn rounds_left(&self, split: usize, at: usize) -> Option<RoundsLeft> {
        // A fork has only rounds of its own loop, and of those inside.
        if matches!(self.scene.fork, Some((_, RegionPiece::Rounds(own))) if split < own) {
            return None;
        }
        let row = self.row(split);
        let Value::List(list) = &self.slots[usize::from(row.list)] else { return None };
        let is_begun = at > usize::from(self.region.splits[split].first);
        let taken = if is_begun { self.words[usize::from(row.count)] } else { 0 };
        let left = (list.len() as u64).checked_sub(taken).filter(|left| *left > 0)?;
        Some(RoundsLeft { split, taken, left })
    }

    /// Notes the pace of a loop at a heartbeat.
    pub(super) fn note_rounds(&mut self, rounds: &RoundsLeft) {
        self.note_pace(rounds.split, rounds.taken);
    }

    /// Notes the pace of a loop since it was noted last. At the first time it is that of an earlier run.
    fn note_pace(&mut self, split: usize, taken: u64) {
        let (at_ns, cost) = (self.scene.instance.platform.now_ns(), &self.region.round_costs[split]);
        if let Some(last) = self.forks.pace.filter(|last| last.split == split && last.taken < taken) {
            cost.note(at_ns.saturating_sub(last.at_ns) / (taken - last.taken));
            self.region.slow_loops.note(split, cost);
        }
        self.forks.pace = Some(Pace { split, taken, at_ns, ns_per_round: cost.ns() });
    }

    /// Begins a loop whose rounds may be slow: shares them with idle cores if they are, or if they call functions of the host
    /// and it is not known how long these take. A slow round would otherwise come to a heartbeat only behind it.
    pub(super) fn begin_loop(&mut self, split: usize) {
        let Value::List(list) = &self.slots[usize::from(self.row(split).list)] else { return };
        let count = list.len();
        let rounds = RoundsLeft { split, taken: 0, left: count as u64 };
        self.note_pace(split, 0);
        let Some(offers) = self.scene.offers() else { return };
        let is_known = self.region.round_costs[split].ns() > 0;
        let forks = match is_known || !self.region.calls_in_rounds(split) {
            true => self.forks_that_pay(&rounds, offers.wanted),
            false => offers.wanted,
        };
        // The first round is this thread's.
        let forks = forks.min(count.saturating_sub(1));
        if forks > 0 {
            self.share_rounds(&rounds, forks, &offers);
        }
    }

    /// Returns the number of forks that seem to pay for the rounds that are left, at most as many as cores are idle.
    pub(super) fn forks_that_pay(&self, rounds: &RoundsLeft, idle: usize) -> usize {
        if self.scene.instance.helpers.fork_always() {
            return idle;
        }
        if self.has_many_keys(rounds) {
            return 0;
        }
        let pace = self.forks.pace.filter(|pace| pace.split == rounds.split);
        let left_ns = pace.map_or(0, |pace| pace.ns_per_round.saturating_mul(rounds.left));
        idle.min((left_ns / FORKED_MIN_NS) as usize)
    }

    /// Divides the rounds that are left of a loop, which has begun, among this thread and so many forks.
    pub(super) fn share_rounds(&mut self, rounds: &RoundsLeft, forks: usize, offers: &Offers<'_>) {
        let RoundsLeft { split, taken, left } = *rounds;
        let row = self.row(split);
        let (list, count) = (usize::from(row.list), usize::from(row.count));
        let Value::List(elements) = self.slots[list].take() else { return };
        let mut own = RoundsAhead::new(elements, taken as usize);
        for part in own.cut_off(forks.min(left as usize)) {
            self.offer_rounds(split, part, offers);
        }
        // The current round may need its element.
        let current = taken.min(1);
        own.begin_before(current as usize);
        self.take_elements(split, &own);
        self.words[count] = current;
        self.forks.pace.iter_mut().for_each(|pace| pace.taken = current);
    }

    /// Begins rounds that nobody else has begun, after sharing them with idle cores if that seems to pay.
    pub(super) fn begin_rounds(&mut self, split: usize, mut own: RoundsAhead) {
        // The first round is this thread's.
        let rounds = RoundsLeft { split, taken: 0, left: own.len().saturating_sub(1) as u64 };
        if let Some(offers) = self.scene.offers() {
            let forks = self.forks_that_pay(&rounds, offers.wanted).min(rounds.left as usize);
            for part in own.cut_off(forks) {
                self.offer_rounds(split, part, &offers);
            }
        }
        self.take_elements(split, &own);
        let at_ns = self.scene.instance.platform.now_ns();
        self.forks.pace.iter_mut().for_each(|pace| (pace.taken, pace.at_ns) = (0, at_ns));
    }

    /// Offers rounds of a loop.
    fn offer_rounds(&mut self, split: usize, ahead: RoundsAhead, offers: &Offers<'_>) {
        let row = &self.region.splits[split];
        let mut slots = vec![Value::Absent; self.region.slots];
        for captured in &row.captured {
            slots[*captured as usize] = self.slots[*captured as usize].clone();
        }
        let mut words = self.words[..self.region.window()].to_vec();
        let repeated = match &row.outcome {
            LoopOutcome::List(results) => {
                slots[usize::from(*results)] = Value::List(Elements::default());
                None
            }
            LoopOutcome::Reductions(reductions) => {
                reductions.begin(&mut PartialStates { words: &mut words, slots: &mut slots });
                Some(ahead.clone())
            }
        };
        let forked = ForkedPiece {
            region: Arc::clone(self.region),
            piece: RegionPiece::Rounds(split),
            at: usize::from(row.first),
            ahead: Some(ahead),
            slots,
            words,
            choices: self.choices.clone(),
            forks: RegionForks { handles: Vec::new(), pace: self.forks.pace },
            is_begun: false,
            long: None,
        };
        self.offer_fork(forked, repeated, offers);
    }

    /// Puts the elements of rounds where the loop takes them from. Rounds of a `fold` may have to run once more.
    fn take_elements(&mut self, split: usize, rounds: &RoundsAhead) {
        let elements = match self.region.splits[split].outcome {
            LoopOutcome::List(_) => rounds.take(),
            LoopOutcome::Reductions(_) => rounds.copy(),
        };
        let list = usize::from(self.row(split).list);
        self.slots[list] = Value::List(elements);
    }

    fn row(&self, split: usize) -> &LoopRow {
        &self.region.tables.loops[usize::from(self.region.splits[split].row)]
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

    /// Joins the forks of a loop whose own rounds have all run.
    pub(super) fn join_rounds(&mut self, split: usize, context: &Context<'_>) -> AfterJoin {
        let piece = RegionPiece::Rounds(split);
        let taken = self.words[usize::from(self.row(split).count)];
        if self.forks.pace.is_some_and(|pace| pace.split == split && pace.taken < taken) {
            self.note_pace(split, taken);
        }
        let row = &self.region.splits[split];
        // The last fork of a loop has its lowest rounds.
        while let Some(lowest) = self.forks.handles.iter().rposition(|handle| handle.piece == piece) {
            match self.take(lowest, context) {
                JoinedPiece::Here(rounds) if !rounds.is_begun => {
                    self.forks.handles.remove(lowest);
                    if let Some(ahead) = rounds.ahead {
                        self.begin_rounds(split, ahead);
                    }
                    return AfterJoin::GoOn(row.first.into());
                }
                JoinedPiece::Here(rounds) => {
                    if let Some(stops) = self.go_on_with(lowest, rounds, row.end, context) {
                        return stops;
                    }
                }
                JoinedPiece::Ended(ForkEnd::Results(more)) => {
                    self.forks.handles.remove(lowest);
                    if let LoopOutcome::List(results) = row.outcome
                        && let Value::List(results) = &mut self.slots[usize::from(results)]
                    {
                        results.append(more);
                    }
                }
                JoinedPiece::Ended(end) => {
                    let Some(reductions) = row.reductions() else {
                        let ForkEnd::Exit(at, how) = end else { unreachable!("a `for` has results") };
                        return AfterJoin::Ends(at, how);
                    };
                    let repeated = self.forks.handles.remove(lowest).repeated.take();
                    if !self.join_states(reductions, end) {
                        // The rounds run once more, in their order, and fail where that fails.
                        repeated.iter().for_each(|rounds| self.take_elements(split, rounds));
                        return AfterJoin::GoOn(row.first.into());
                    }
                }
                JoinedPiece::UnderWay => {
                    if let Some(waits) = self.wait(lowest, row.end) {
                        return waits;
                    }
                }
            }
        }
        self.forks.pace.take_if(|pace| pace.split == split);
        match self.scene.fork {
            Some((_, own)) if own == piece => AfterJoin::Through,
            _ => AfterJoin::GoOn(row.end + 1),
        }
    }
}
