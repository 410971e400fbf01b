//! Loops whose rounds may run on several threads, as the simplified code has them: folds of which all states are reductions, and
//! only loops whose elements can be copied.

use std::ops::Range;

use weir_host::Argument;

use super::emitter::CodeEmitter;
use crate::region::{
    EntryChange, EntryUpdate, FoldObstacle, FrameSlot, Instruction, LoopOutcome, MapReduction, ReducedMap,
    ReducedState, ReductionKind, Reductions, Register, SplitLoop, StateLocation, TableIndex, ValueSwitch,
    reduction_kind,
};

/// Finds the reductions among the states of each fold that are words. The end of a loop that has another state, or elements
/// that can only be moved, becomes nothing: its rounds run one after the other.
pub(super) fn find(emitter: &mut CodeEmitter) {
    for index in 0..emitter.tables.splits.len() {
        let SplitLoop { row, outcome, .. } = emitter.tables.splits[index].clone();
        let Some((range, end)) = range_of(emitter, index) else { continue };
        let moves = emitter.code[range.clone()].iter().any(|code| moves_out(emitter, *code, row));
        let found = match outcome {
            LoopOutcome::List(_) if moves => {
                emitter.code[end] = Instruction::Nothing;
                continue;
            }
            LoopOutcome::List(_) => continue,
            LoopOutcome::Reductions(_) if moves => Err(FoldObstacle::MovesElements),
            LoopOutcome::Reductions(Reductions { states, maps }) => {
                let found = states.iter().map(|state| reduction(emitter, range.clone(), state.state));
                found.collect::<Result<_, _>>().map(|states| Reductions { states, maps })
            }
        };
        decide(emitter, (index, end), found);
    }
}

/// Finds the reductions among the states that are maps, when look-ups update entries.
pub(super) fn find_maps(emitter: &mut CodeEmitter) {
    for index in 0..emitter.tables.splits.len() {
        let LoopOutcome::Reductions(Reductions { states, maps }) = emitter.tables.splits[index].outcome.clone() else {
            continue;
        };
        let Some((range, end)) = range_of(emitter, index) else { continue };
        let found = maps.iter().map(|map| reduced_map(emitter, (range.clone(), end), map.slot));
        let found = found.collect::<Result<_, _>>().map(|maps| Reductions { states, maps });
        decide(emitter, (index, end), found);
    }
}

/// Returns the instructions of a loop whose rounds may run on several threads, and the end behind them.
fn range_of(emitter: &CodeEmitter, index: usize) -> Option<(Range<usize>, usize)> {
    let end = emitter.code.iter().position(|code| *code == Instruction::EndFor(index as TableIndex))?;
    let first = emitter.labels[usize::from(emitter.tables.splits[index].first)]?;
    Some((first..end, end))
}

/// Notes the reductions of a `fold`, or the reason why its rounds run one after the other.
fn decide(emitter: &mut CodeEmitter, (index, end): (usize, usize), found: Result<Reductions, FoldObstacle>) {
    match found {
        Ok(reductions) => emitter.tables.splits[index].outcome = LoopOutcome::Reductions(reductions),
        Err(obstacle) => {
            let place = emitter.place_at(end);
            emitter.tables.folds_in_turn.push((place, obstacle));
            emitter.code[end] = Instruction::Nothing;
        }
    }
}

/// Returns true if an instruction moves something out of the list of a loop even if the list is shared, so that its rounds cannot
/// run once more.
fn moves_out(emitter: &CodeEmitter, code: Instruction, row: TableIndex) -> bool {
    match code {
        Instruction::FirstValue(of, slot, _)
        | Instruction::NextValue(of, slot, _)
        | Instruction::TakeElementField(slot, of, _) => of == row && emitter.move_only.contains(&slot),
        _ => false,
    }
}

/// Returns the reduction that the instructions of a loop are of a state.
///
/// # Errors
/// Fails if they are none.
fn reduction(emitter: &mut CodeEmitter, range: Range<usize>, state: Register) -> Result<ReducedState, FoldObstacle> {
    let mut kind = ReductionKind::Kept;
    for at in range {
        if !uses(emitter, at, StateLocation::Register(state)) {
            continue;
        }
        let place = emitter.place_at(at);
        let found = match reduction_kind(emitter.code[at], state) {
            Some(found) => found,
            None if adds_floats(emitter.code[at]) => return Err(FoldObstacle::AddsFloats(place)),
            None => return Err(FoldObstacle::Uses(place)),
        };
        if kind != ReductionKind::Kept && kind != found {
            return Err(FoldObstacle::Mixes(place));
        }
        kind = found;
    }
    Ok(ReducedState { state, kind })
}

/// Returns the reduction that the instructions of a loop are of a map in this slot: all of them are updates of entries, and
/// the replacements with which these end.
fn reduced_map(
    emitter: &mut CodeEmitter,
    (range, end): (Range<usize>, usize),
    slot: FrameSlot,
) -> Result<ReducedMap, FoldObstacle> {
    let (mut kind, mut replacements) = (None, Vec::new());
    for at in range {
        if !uses(emitter, at, StateLocation::Slot(slot)) || replacements.contains(&at) {
            continue;
        }
        let place = emitter.place_at(at);
        let Instruction::Switch(row) = emitter.code[at] else { return Err(FoldObstacle::UsesMap(place)) };
        let Some(update) = update_of(emitter, row, slot) else { return Err(FoldObstacle::UsesMap(place)) };
        kind = match update.change {
            EntryChange::AddInt(_) | EntryChange::AddNotedInt(..) => Some(MapReduction::Sums(0)),
            EntryChange::Push(..) | EntryChange::PushValue(_) => Some(MapReduction::Lists),
            EntryChange::AddFloat(_) => return Err(FoldObstacle::AddsFloats(place)),
        };
        if !update.begins_empty {
            return Err(FoldObstacle::Begins(place));
        }
        replacements.extend(emitter.labels[usize::from(update.behind)].map(|behind| behind - 1));
    }
    let kind = kind.ok_or_else(|| FoldObstacle::UsesMap(emitter.place_at(end)))?;
    Ok(ReducedMap { slot, kind })
}

/// Returns the update of an entry of the map in this slot by a switch.
fn update_of(emitter: &CodeEmitter, row: TableIndex, slot: FrameSlot) -> Option<&EntryUpdate> {
    let look_up = emitter.tables.switches[usize::from(row)].look_up.as_ref()?;
    let is_of_map = matches!(look_up.map, Argument::Slot { index, .. } if index == u32::from(slot));
    look_up.update.as_ref().filter(|_| is_of_map)
}

/// Returns true if an instruction reads or changes a location.
fn uses(emitter: &mut CodeEmitter, at: usize, location: StateLocation) -> bool {
    let mut is_used = false;
    emitter.tables.accesses(emitter.code[at], &mut |seen, _| is_used |= seen == location);
    is_used
}

fn adds_floats(code: Instruction) -> bool {
    matches!(code, Instruction::AddFloat(..) | Instruction::AddProductFloat(..))
}

/// Returns the code for threads that run rounds of these loops, in which each addition to a state notes the least and the
/// greatest sum, and each addition under a key of a map the sums of negative and positive terms; empty if there is none. The
/// sums get registers for these.
pub(super) fn reducing_code(
    code: &[Instruction],
    splits: &mut [SplitLoop],
    (switches, registers): (&mut Vec<ValueSwitch>, &mut usize),
) -> Box<[Instruction]> {
    let mut reducing = Vec::new();
    for split in splits.iter_mut().filter(|split| split.end > 0) {
        let range = usize::from(split.first)..split.end;
        let LoopOutcome::Reductions(Reductions { states, maps }) = &mut split.outcome else { continue };
        if reducing.is_empty() {
            reducing = code.to_vec();
        }
        for ReducedState { state, kind } in states {
            let ReductionKind::Sum(least) = kind else { continue };
            *least = two_registers(registers);
            for instruction in &mut reducing[range.clone()] {
                if let Instruction::AddInt(out, a, b) = *instruction
                    && out == *state
                {
                    *instruction = Instruction::AddSum(out, if a == out { b } else { a }, *least);
                }
            }
        }
        for ReducedMap { slot, kind } in maps {
            let MapReduction::Sums(negative) = kind else { continue };
            *negative = two_registers(registers);
            for instruction in &mut reducing[range.clone()] {
                if let Instruction::Switch(row) = instruction
                    && let Some(noting) = noting(&switches[usize::from(*row)], *slot, *negative)
                {
                    switches.push(noting);
                    *row = (switches.len() - 1) as TableIndex;
                }
            }
        }
    }
    reducing.into()
}

fn two_registers(registers: &mut usize) -> Register {
    *registers += 2;
    (*registers - 2) as Register
}

/// Returns a switch that notes what it adds under a key of the map in this slot; `None` if it adds nothing there.
fn noting(switch: &ValueSwitch, map: FrameSlot, negative: Register) -> Option<ValueSwitch> {
    let mut noting = switch.clone();
    let look_up = noting.look_up.as_mut()?;
    let is_of_map = matches!(look_up.map, Argument::Slot { index, .. } if index == u32::from(map));
    let update = look_up.update.as_mut().filter(|_| is_of_map)?;
    let EntryChange::AddInt(added) = update.change else { return None };
    update.change = EntryChange::AddNotedInt(added, negative);
    Some(noting)
}
