//! Parts on several threads: a part behind the current instruction runs beside the code before it, and is joined where it
//! begins.

use std::sync::Arc;
use std::task::Context;

use weir_host::Value;

use super::ForkEnd;
use super::hand_over::JoinedPiece;
use super::pieces::ForkedPiece;
use super::region_run::{AfterJoin, FORKED_MIN_NS, RegionForks, RegionRun};
use crate::operations;
use crate::region::RegionPiece;

impl RegionRun<'_> {
    /// Returns the part behind an instruction that another thread should run: of those that may run already, and of those
    /// the nearest one of the outermost ones.
    pub(super) fn part_behind(&self, at: usize) -> Option<usize> {
        let parts = self.region.parts.iter().enumerate();
        let ready = parts.filter(|(number, part)| {
            usize::from(part.from) <= at && at < part.begin && self.is_own(*number) && !self.overlaps_forked(*number)
        });
        let first = ready.min_by_key(|(_, part)| (part.from, part.begin)).map(|(number, _)| number);
        first.filter(|part| {
            let is_forced = self.scene.instance.helpers.fork_always();
            is_forced || self.region.part_costs[*part].is_at_least(FORKED_MIN_NS)
        })
    }

    /// Returns true if a part lies within the piece that runs.
    fn is_own(&self, part: usize) -> bool {
        let part = &self.region.parts[part];
        match self.scene.fork {
            None => true,
            Some((_, RegionPiece::Rounds(split))) => {
                let split = &self.region.splits[split];
                usize::from(split.first) <= part.begin && part.end <= split.end
            }
            Some((_, RegionPiece::Part(own))) => {
                let own = &self.region.parts[own];
                own.begin < part.begin && part.end <= own.end
            }
        }
    }

    /// Returns true if a fork runs the part, or a part around it or within it: whoever runs a part also runs those within.
    fn overlaps_forked(&self, part: usize) -> bool {
        let part = &self.region.parts[part];
        let overlaps = |other: usize| {
            let other = &self.region.parts[other];
            part.begin <= other.end && other.begin <= part.end
        };
        self.forks.handles.iter().any(|handle| matches!(handle.piece, RegionPiece::Part(other) if overlaps(other)))
    }

    /// Moves what a part needs to a fork of it.
    pub(super) fn split_off(&mut self, part: usize) -> ForkedPiece {
        let row = &self.region.parts[part];
        let mut slots = vec![Value::Absent; self.region.slots];
        for slot in row.moved.iter().copied().map(usize::from) {
            slots[slot] = self.slots[slot].take();
        }
        for slot in row.cloned.iter().copied().map(usize::from) {
            slots[slot] = self.slots[slot].clone();
        }
        ForkedPiece {
            region: Arc::clone(self.region),
            piece: RegionPiece::Part(part),
            at: row.begin + 1,
            ahead: None,
            slots,
            words: self.words[..self.region.window()].to_vec(),
            choices: self.choices.clone(),
            forks: RegionForks::default(),
            is_begun: false,
            long: None,
        }
    }

    /// Joins the fork of a part whose turn it is.
    pub(super) fn join_part(&mut self, part: usize, context: &Context<'_>) -> AfterJoin {
        let (begin, end) = (self.region.parts[part].begin, self.region.parts[part].end);
        let piece = RegionPiece::Part(part);
        loop {
            let Some(handle) = self.forks.handles.iter().position(|handle| handle.piece == piece) else {
                return AfterJoin::GoOn(begin + 1);
            };
            match self.take(handle, context) {
                JoinedPiece::Here(mut forked) if !forked.is_begun => {
                    self.forks.handles.remove(handle);
                    self.take_back(part, &mut forked);
                    return AfterJoin::GoOn(begin + 1);
                }
                JoinedPiece::Here(forked) => {
                    if let Some(stops) = self.go_on_with(handle, forked, begin, context) {
                        return stops;
                    }
                }
                JoinedPiece::Ended(ForkEnd::Piece(mut forked)) => {
                    self.forks.handles.remove(handle);
                    self.take_back(part, &mut forked);
                    self.take_changes(part, &mut forked);
                    return AfterJoin::GoOn(end + 1);
                }
                JoinedPiece::Ended(ForkEnd::Exit(at, how)) => return AfterJoin::Ends(at, how),
                // Forks of parts end with their state.
                JoinedPiece::Ended(ForkEnd::Results(_)) => return AfterJoin::Ends(begin, Err(operations::never())),
                JoinedPiece::UnderWay => {
                    if let Some(waits) = self.wait(handle, begin) {
                        return waits;
                    }
                }
            }
        }
    }

    /// Moves the values back that the part has not changed.
    fn take_back(&mut self, part: usize, forked: &mut ForkedPiece) {
        for slot in self.region.parts[part].moved.iter().copied().map(usize::from) {
            self.slots[slot] = forked.slots[slot].take();
        }
    }

    /// Puts what the part has changed where it belongs.
    fn take_changes(&mut self, part: usize, forked: &mut ForkedPiece) {
        let row = &self.region.parts[part];
        let moved = |slot: &&u16| !row.moved.contains(slot);
        for slot in row.slots.iter().filter(moved).copied().map(usize::from) {
            self.slots[slot] = forked.slots[slot].take();
        }
        for register in row.registers.iter().copied().map(usize::from) {
            self.words[register] = forked.words[register];
        }
        for choice in row.choices.iter().copied().map(usize::from) {
            self.choices[choice] = forked.choices[choice];
        }
    }
}
