//! Loops whose rounds may run on several threads, as the simplified code has them: folds of which all states are reductions, and
//! only loops whose elements can be copied.

use std::ops::Range;

use super::emitter::CodeEmitter;
use crate::region::{
    Instruction, LoopOutcome, ReducedState, ReductionKind, Register, SplitLoop, StateLocation, TableIndex,
    reduction_kind,
};

/// Finds the reductions among the states of each fold. The end of a loop that has another state, or elements that can only be
/// moved, becomes nothing: its rounds run one after the other.
pub(super) fn find(emitter: &mut CodeEmitter) {
    for index in 0..emitter.tables.splits.len() {
        let SplitLoop { row, first, outcome, .. } = emitter.tables.splits[index].clone();
        let end = emitter.code.iter().position(|code| *code == Instruction::EndFor(index as TableIndex));
        let (Some(first), Some(end)) = (emitter.labels[usize::from(first)], end) else { continue };
        let stays = !emitter.code[first..end].iter().any(|code| moves_out(emitter, *code, row));
        let outcome = match outcome {
            LoopOutcome::Reductions(states) => {
                let found = states.iter().map(|state| reduction(emitter, first..end, state.state));
                found.collect::<Option<_>>().map(LoopOutcome::Reductions)
            }
            list @ LoopOutcome::List(_) => Some(list),
        };
        match outcome.filter(|_| stays) {
            Some(outcome) => emitter.tables.splits[index].outcome = outcome,
            None => emitter.code[end] = Instruction::Nothing,
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

/// Returns the reduction that the instructions of a loop are of a state; `None` if they are none.
fn reduction(emitter: &mut CodeEmitter, range: Range<usize>, state: Register) -> Option<ReducedState> {
    let mut kind = ReductionKind::Kept;
    for at in range {
        let mut is_used = false;
        let mut see = |location, _| is_used |= location == StateLocation::Register(state);
        emitter.tables.accesses(emitter.code[at], &mut see);
        if is_used {
            let found = reduction_kind(emitter.code[at], state)?;
            if kind != ReductionKind::Kept && kind != found {
                return None;
            }
            kind = found;
        }
    }
    Some(ReducedState { state, kind })
}

/// Returns the code for threads that run rounds of these loops, in which each addition to a state notes the least and the
/// greatest sum; empty if there is none. The sums get registers for these.
pub(super) fn reducing_code(
    code: &[Instruction],
    splits: &mut [SplitLoop],
    registers: &mut usize,
) -> Box<[Instruction]> {
    let mut reducing = Vec::new();
    for split in splits.iter_mut().filter(|split| split.end > 0) {
        let range = usize::from(split.first)..split.end;
        let LoopOutcome::Reductions(reductions) = &mut split.outcome else { continue };
        if reducing.is_empty() {
            reducing = code.to_vec();
        }
        for ReducedState { state, kind } in reductions {
            let ReductionKind::Sum(least) = kind else { continue };
            *least = *registers as Register;
            *registers += 2;
            for instruction in &mut reducing[range.clone()] {
                if let Instruction::AddInt(out, a, b) = *instruction
                    && out == *state
                {
                    *instruction = Instruction::AddSum(out, if a == out { b } else { a }, *least);
                }
            }
        }
    }
    reducing.into()
}
