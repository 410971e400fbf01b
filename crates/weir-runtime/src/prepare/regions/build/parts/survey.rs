//! A survey of code: its computations, its jumps, and the accesses of its instructions.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{CallEffects, CodePlace, Instruction, StateAccess, StateLocation, TableIndex, Target};

/// The maximum number of computations that are looked at, so that preparation stays linear in large regions.
const COMPUTATIONS_MAX: usize = 256;

/// Code that is surveyed.
pub(super) struct CodeSurvey<'e> {
    pub code: &'e [Instruction],
    emitter: &'e CodeEmitter,
    /// The accesses of each instruction.
    pub accesses: Vec<Vec<(StateLocation, StateAccess)>>,
    /// The targets of each instruction.
    pub targets: Vec<Vec<usize>>,
    /// All jumps.
    jumps: Vec<(usize, usize)>,
    /// The computations, by their first instructions. Those in loops whose rounds may run on several threads are left out.
    pub computations: Vec<Range<usize>>,
}

/// The locations that a range of instructions works on.
#[derive(Default)]
pub(super) struct RangeState {
    /// The locations whose content it may need.
    pub needed: BTreeSet<StateLocation>,
    /// The locations whose content it may change.
    pub changed: BTreeSet<StateLocation>,
}

impl<'e> CodeSurvey<'e> {
    pub(super) fn of(emitter: &'e mut CodeEmitter) -> CodeSurvey<'e> {
        let computations = computations(emitter);
        let (mut accesses, mut targets) = (Vec::new(), Vec::new());
        // Most regions have no two computations, and need no more.
        if computations.len() >= 2 {
            accesses = (0..emitter.code.len()).map(|at| accesses_of(emitter, at)).collect();
            targets = (0..emitter.code.len()).map(|at| targets_of(emitter, at)).collect();
        }
        let jumps = targets.iter().enumerate().flat_map(|(at, targets)| targets.iter().map(move |to| (at, *to)));
        let jumps = jumps.collect();
        CodeSurvey { code: &emitter.code, emitter, accesses, targets, jumps, computations }
    }

    /// Returns the place of an instruction.
    pub(super) fn place(&self, at: usize) -> &'e CodePlace {
        let after = self.emitter.places.partition_point(|(first, _)| *first <= at);
        &self.emitter.places[after.saturating_sub(1)].1
    }

    /// Returns the effects of an instruction, if it is a call.
    pub(super) fn effects(&self, at: usize) -> Option<&'e CallEffects> {
        effects(self.emitter, self.code[at])
    }

    /// Returns the effects of the calls in a range.
    pub(super) fn effects_in(&self, range: Range<usize>) -> impl Iterator<Item = &'e CallEffects> {
        range.filter_map(|at| self.effects(at))
    }

    /// Returns true if a location is a slot for values that can only be moved.
    pub(super) fn is_move_only(&self, location: StateLocation) -> bool {
        matches!(location, StateLocation::Slot(slot) if self.emitter.move_only.contains(&slot))
    }

    /// Returns true if an instruction of the range has access to the location.
    pub(super) fn has_access(&self, mut range: Range<usize>, location: StateLocation) -> bool {
        range.any(|at| self.accesses[at].iter().any(|(other, _)| *other == location))
    }

    /// Returns the locations that a range of instructions needs and changes.
    pub(super) fn state(&self, range: &Range<usize>) -> RangeState {
        let (mut state, mut overwritten, mut reach) = (RangeState::default(), BTreeSet::new(), range.start);
        for at in range.clone() {
            // No jump before leads over the instruction.
            let is_certain = reach <= at;
            for (location, access) in &self.accesses[at] {
                if *access != StateAccess::Read {
                    state.changed.insert(*location);
                }
                if overwritten.contains(location) {
                    continue;
                }
                if *access == StateAccess::Overwrite && is_certain {
                    overwritten.insert(*location);
                } else {
                    state.needed.insert(*location);
                }
            }
            reach = self.targets[at].iter().copied().fold(reach, usize::max);
        }
        state
    }

    /// Returns a computation with the instructions before it, behind the computation before it, that it needs; `None` if
    /// the computation is no piece with one beginning and one end.
    pub(super) fn with_arguments(&self, computation: &Range<usize>) -> Option<Range<usize>> {
        let before = self.computations.iter().map(|other| other.end).filter(|end| *end <= computation.start);
        let first = before.max().unwrap_or(0);
        let mut range = self.closed(computation.clone(), computation.start)?;
        loop {
            let needed = self.state(&range).needed;
            let changes = |at: &usize| {
                let mut accesses = self.accesses[*at].iter();
                accesses.any(|(location, access)| *access != StateAccess::Read && needed.contains(location))
            };
            let Some(at) = (first..range.start).rev().find(changes) else { break };
            let Some(wider) = self.closed(at..range.end, first) else { break };
            range = wider;
        }
        let is_repeated = self.jumps.iter().any(|(at, to)| *to == range.start && range.contains(at));
        (!is_repeated).then_some(range)
    }

    /// Makes a range wider, until no jump leads into the middle of it; `None` if it would begin before the first
    /// instruction that is allowed, or if a jump leaves it.
    fn closed(&self, mut range: Range<usize>, first: usize) -> Option<Range<usize>> {
        loop {
            let is_into = |(at, to): &&(usize, usize)| !range.contains(at) && range.start < *to && *to < range.end;
            match self.jumps.iter().find(is_into) {
                None => break,
                Some((at, _)) if first <= *at && *at < range.start => range.start = *at,
                Some(_) => return None,
            }
        }
        let leaves = |(at, to): &(usize, usize)| range.contains(at) && !(range.start..=range.end).contains(to);
        (!self.jumps.iter().any(leaves)).then_some(range)
    }
}

fn accesses_of(emitter: &mut CodeEmitter, at: usize) -> Vec<(StateLocation, StateAccess)> {
    let mut found = Vec::new();
    emitter.tables.accesses(emitter.code[at], &mut |location, access| found.push((location, access)));
    found
}

fn targets_of(emitter: &mut CodeEmitter, at: usize) -> Vec<usize> {
    let (mut found, mut instruction, labels) = (Vec::new(), emitter.code[at], &emitter.labels);
    emitter.tables.targets(&mut instruction, &mut |label| found.extend(labels[usize::from(*label)]));
    found
}

fn effects(emitter: &CodeEmitter, instruction: Instruction) -> Option<&CallEffects> {
    match instruction {
        Instruction::Call(row) => Some(&emitter.tables.calls[usize::from(row)].effects),
        Instruction::CallWords(_, row) => Some(&emitter.tables.word_calls[usize::from(row)].effects),
        _ => None,
    }
}

/// Returns the computations of the code.
fn computations(emitter: &CodeEmitter) -> Vec<Range<usize>> {
    let code = &emitter.code;
    let found = (0..code.len()).filter_map(|at| match code[at] {
        Instruction::NextWord(row, ..) | Instruction::NextValue(row, ..) | Instruction::NextElement(row, _) => {
            let first = code[..at].iter().rposition(|code| begins(*code) == Some(row))?;
            let is_joined = matches!(code.get(at + 1), Some(Instruction::EndFor(_)));
            Some(first..at + 1 + usize::from(is_joined))
        }
        other => match other.again() {
            Some(row) => Some(label(emitter, emitter.tables.loops[usize::from(row)].head)?..at + 1),
            None => effects(emitter, other).filter(|effects| effects.declares_units).map(|_| at..at + 1),
        },
    });
    let mut found: Vec<Range<usize>> = found.take(COMPUTATIONS_MAX).collect();
    let splits = emitter.tables.splits.iter().enumerate().filter_map(|(index, split)| {
        let end = code.iter().position(|code| *code == Instruction::EndFor(index as TableIndex))?;
        Some(label(emitter, split.first)?..end)
    });
    let splits: Vec<Range<usize>> = splits.collect();
    found.retain(|range| !splits.iter().any(|split| split.start < range.start && range.end <= split.end));
    found.sort_by_key(|range| range.start);
    found
}

/// Returns the row of the loop over a list that an instruction begins.
fn begins(instruction: Instruction) -> Option<TableIndex> {
    match instruction {
        Instruction::FirstWord(row, ..) | Instruction::FirstValue(row, ..) | Instruction::FirstElement(row, _) => {
            Some(row)
        }
        _ => None,
    }
}

fn label(emitter: &CodeEmitter, label: Target) -> Option<usize> {
    emitter.labels[usize::from(label)]
}
