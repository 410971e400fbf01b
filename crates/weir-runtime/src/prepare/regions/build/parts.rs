//! Parts: finds computations that may run beside the code before them, and marks where they begin and end.
//!
//! A *computation* is a loop, or a call that declares its units. Its part begins at the first instruction behind the
//! computation before it on which it depends, so that a thread that runs the part alone computes its arguments too. From
//! there one goes back while
//!
//! * every path comes to the part: no jump leaves, and nothing ends the flow by the text;
//! * nothing changes a location that the part needs, or writes a resource that it reads.
//!
//! If another computation lies within, the two may run beside each other. That the code before the part overwrites a location
//! that the part changes too, or reads it, is no obstacle: a fork has locations of its own, and what it has changed is
//! put where it belongs when the code before it has run. What the code before may fail at is no obstacle either, as the part
//! has no effects: it is then given up.

use std::collections::BTreeSet;
use std::ops::Range;

use weir_host::{Mode, Resource};

use super::emitter::CodeEmitter;
use crate::region::{
    CallEffects, CodePlace, ComputationOrder, FrameSlot, Instruction, PARTS_MAX, PartObstacle, RegionPart, StateAccess,
    StateLocation, Target,
};
use survey::{CodeSurvey, RangeState};

pub(super) use markers::positions;

mod markers;
mod survey;

/// Marks the parts of the code that may run beside others.
pub(super) fn mark(emitter: &mut CodeEmitter) {
    let survey = CodeSurvey::of(emitter);
    if survey.computations.len() < 2 {
        return;
    }
    let (mut parts, mut orders) = (Vec::new(), Vec::new());
    for computation in &survey.computations {
        let Some(candidate) = PartCandidate::of(&survey, computation) else { continue };
        let mut order = candidate.order();
        if order.obstacle.is_none() && parts.len() == PARTS_MAX {
            order.obstacle = Some(PartObstacle::TooMany);
        }
        if order.obstacle.is_none() && !order.beside.is_empty() {
            parts.push(candidate.part());
        }
        if order.obstacle.is_some() || !order.beside.is_empty() {
            orders.push(order);
        }
    }
    leave_shared(&mut parts, &survey);
    emitter.tables.computations = orders;
    markers::insert(emitter, parts);
}

/// Lets parts clone what other parts need, too: each may be on another thread before another one goes there. What can only be
/// moved stays with a part and one within it, which are never on other threads at the same time; a part that would have to
/// clone it runs in its turn.
fn leave_shared(parts: &mut Vec<RegionPart>, survey: &CodeSurvey<'_>) {
    let needed = |part: &RegionPart| part.moved.iter().chain(&part.cloned).copied().collect::<BTreeSet<FrameSlot>>();
    let needed: Vec<_> = parts.iter().map(|part| (part.begin..part.end, needed(part))).collect();
    let is_move_only = |slot: FrameSlot| survey.is_move_only(StateLocation::Slot(slot));
    for (index, part) in parts.iter_mut().enumerate() {
        let (begin, end) = (part.begin, part.end);
        let may_meet = |other: &Range<usize>, slot| !is_move_only(slot) || end < other.start || other.end < begin;
        let others = needed.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let is_shared =
            |slot: &FrameSlot| others.clone().any(|(range, needed)| needed.contains(slot) && may_meet(range, *slot));
        let (cloned, moved): (Vec<FrameSlot>, Vec<FrameSlot>) = part.moved.iter().copied().partition(is_shared);
        part.cloned = part.cloned.iter().copied().chain(cloned).collect();
        part.moved = moved.into();
    }
    parts.retain(|part| !part.cloned.iter().any(|slot| is_move_only(*slot)));
}

/// A computation with the instructions that only it needs, and the code before it.
struct PartCandidate<'s, 'e> {
    survey: &'s CodeSurvey<'e>,
    computation: &'s Range<usize>,
    range: Range<usize>,
    state: RangeState,
    /// The first instruction from which on the part may run beside the code before it.
    from: usize,
    /// The first instruction from which on every path comes to the part.
    block: usize,
    /// The reason why the part may not run beside the code from there on.
    obstacle: Option<PartObstacle>,
}

impl<'s, 'e> PartCandidate<'s, 'e> {
    /// Returns the candidate of a computation; `None` if its instructions are no piece with one beginning and one end.
    fn of(survey: &'s CodeSurvey<'e>, computation: &'s Range<usize>) -> Option<PartCandidate<'s, 'e>> {
        let range = survey.with_arguments(computation)?;
        let state = survey.state(&range);
        let (from, block) = (range.start, range.start);
        let mut candidate = PartCandidate { survey, computation, range, state, from, block, obstacle: None };
        candidate.look_back();
        candidate.obstacle = candidate.own_obstacle().or(candidate.obstacle);
        Some(candidate)
    }

    /// Goes back from the part.
    fn look_back(&mut self) {
        let mut back = usize::MAX;
        for at in (0..self.range.start).rev() {
            let targets = &self.survey.targets[at];
            if targets.iter().any(|target| *target > self.range.start) {
                return;
            }
            back = targets.iter().copied().fold(back, usize::min);
            self.note(self.obstacle_at(at));
            // Inside a loop one may still come to the instructions before it.
            if back >= at {
                self.block = at;
                // Rounds that nobody has begun run where the forks of a loop are joined, too.
                if self.obstacle.is_none() && !matches!(self.survey.code[at], Instruction::EndFor(_)) {
                    self.from = at;
                }
            }
        }
    }

    /// Notes an obstacle, unless there is one nearer to the part. A dependency says more than an end of the flow in between.
    fn note(&mut self, obstacle: Option<PartObstacle>) {
        match (&self.obstacle, &obstacle) {
            (None, _) | (Some(PartObstacle::Ends(_)), Some(PartObstacle::Needs(_))) => self.obstacle = obstacle,
            _ => {}
        }
    }

    /// Returns the reason why the part may not run beside this instruction before it.
    fn obstacle_at(&self, at: usize) -> Option<PartObstacle> {
        let survey = self.survey;
        if matches!(survey.code[at], Instruction::Return(_) | Instruction::Fail(_)) {
            return Some(PartObstacle::Ends(survey.place(at).clone()));
        }
        for (location, access) in &survey.accesses[at] {
            if !self.state.needed.contains(location) {
                continue;
            }
            if *access != StateAccess::Read {
                return Some(PartObstacle::Needs(survey.place(at).clone()));
            }
            if survey.is_move_only(*location) {
                return Some(PartObstacle::MoveOnly);
            }
        }
        let reads = |resource: &Resource| self.uses().any(|(read, _)| read == resource);
        let written = survey.effects(at).and_then(|effects| written(effects).find(|resource| reads(resource)));
        written.map(|resource| PartObstacle::ReadsWritten(survey.place(at).clone(), resource.clone()))
    }

    /// Returns the reason why the part may run beside nothing.
    fn own_obstacle(&self) -> Option<PartObstacle> {
        let before = self.survey.effects_in(self.block..self.range.start);
        let before: Vec<&Resource> = before.flat_map(written).collect();
        self.uses().find_map(|(resource, mode)| match (mode, resource) {
            (Mode::Write, resource) if before.contains(&resource) => Some(PartObstacle::BothWrite(resource.clone())),
            (Mode::Write, resource) => Some(PartObstacle::Writes(resource.clone())),
            (Mode::Read, Resource::World(_)) => None,
            (Mode::Read, resource) => Some(PartObstacle::ReadsLocked(resource.clone())),
        })
    }

    /// Returns the resources that the part touches.
    fn uses(&self) -> impl Iterator<Item = (&Resource, Mode)> {
        let effects = self.survey.effects_in(self.range.clone());
        effects.flat_map(|effects| effects.uses.iter().map(|used| (&used.resource, used.mode)))
    }

    /// Returns the computations between an instruction and the part that are not within others there.
    fn computations_from(&self, first: usize) -> impl Iterator<Item = &'s Range<usize>> {
        let is_there = move |range: &&Range<usize>| range.start >= first && range.end <= self.range.start;
        let all = &self.survey.computations;
        all.iter()
            .filter(is_there)
            .filter(move |range| !all.iter().filter(is_there).any(|other| other != *range && contains(other, range)))
    }

    /// Returns the relation to the computations before the part.
    fn order(&self) -> ComputationOrder {
        let place = |computation: &Range<usize>| self.survey.place(computation.end - 1).clone();
        let is_alone = self.computations_from(self.block).next().is_none();
        let may_run = self.own_obstacle().is_none();
        let beside: Vec<CodePlace> = self.computations_from(self.from).filter(|_| may_run).map(place).collect();
        let obstacle = self.obstacle.clone().filter(|_| beside.is_empty() && !is_alone);
        ComputationOrder { place: place(self.computation), beside, obstacle }
    }

    /// Returns the part.
    fn part(&self) -> RegionPart {
        let before = self.from..self.range.start;
        // Steps beside the region may need what the part only reads, even if the region fails before the part.
        let stays = |slot: &FrameSlot| {
            let location = StateLocation::Slot(*slot);
            !self.state.changed.contains(&location) || self.survey.has_access(before.clone(), location)
        };
        let needed: Vec<FrameSlot> = self.state.needed.iter().filter_map(slot).collect();
        let (cloned, moved): (Vec<FrameSlot>, Vec<FrameSlot>) = needed.into_iter().partition(stays);
        let registers = self.state.changed.iter().filter_map(|location| match location {
            StateLocation::Register(register) => Some(*register),
            _ => None,
        });
        let choices = self.state.changed.iter().filter_map(|location| match location {
            StateLocation::Choice(choice) => Some(*choice),
            _ => None,
        });
        RegionPart {
            from: self.from as Target,
            begin: self.range.start,
            end: self.range.end,
            moved: moved.into(),
            cloned: cloned.into(),
            slots: self.state.changed.iter().filter_map(slot).collect(),
            registers: registers.collect(),
            choices: choices.collect(),
        }
    }
}

fn slot(location: &StateLocation) -> Option<FrameSlot> {
    if let StateLocation::Slot(slot) = location { Some(*slot) } else { None }
}

/// Returns the resources that a call writes.
fn written(effects: &CallEffects) -> impl Iterator<Item = &Resource> {
    effects.uses.iter().filter(|used| used.mode == Mode::Write).map(|used| &used.resource)
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
