//! Loops whose rounds may run at once, because each stores one word, or adds one to the results:
//!
//! ```text
//! head: set_word list, position, word        head: push results, word
//!       replace …                                  next_element ->head
//!       add_int next, position, step
//!       again_unless_less_or_equal bound, next, position = next, ->head
//! ```
//!
//! Before the first instruction of each loop stands a place for the instruction that runs them.

use super::views::next_real;
use crate::prepare::regions::build::emitter::{CodeEmitter, add};
use crate::region::{Instruction, Register, RoundEffect, RoundsAtOnce, TableIndex, Target};

/// Lets rounds run at once.
pub(super) fn run_rounds_at_once(emitter: &mut CodeEmitter) {
    for end in 0..emitter.code.len() {
        let found = match emitter.code[end] {
            Instruction::AgainUnlessLessOrEqual(row, bound, next) => stores(emitter, end, row, (bound, next)),
            Instruction::NextElement(row, head) => pushes(emitter, end, row, head),
            _ => None,
        };
        if let Some((head, rounds)) = found {
            emitter.code[head] = Instruction::Rounds(add(&mut emitter.tables.rounds, rounds));
        }
    }
}

/// Returns the free place at the beginning of a round, and the instructions of the round, up to its end.
fn round(emitter: &CodeEmitter, head: Target, end: usize) -> Option<(usize, Vec<Instruction>)> {
    let head = emitter.labels[usize::from(head)].filter(|head| *head < end)?;
    let is_free = emitter.code[head] == Instruction::Nothing;
    let mut round = Vec::new();
    let mut at = next_real(emitter, head);
    while at < end {
        round.push(emitter.code[at]);
        at = next_real(emitter, at + 1);
    }
    (is_free && at == end).then_some((head, round))
}

fn stores(
    emitter: &CodeEmitter,
    end: usize,
    row: TableIndex,
    (bound, next): (Register, Register),
) -> Option<(usize, RoundsAtOnce)> {
    let of_loop = emitter.tables.loops[usize::from(row)];
    let (head, instructions) = round(emitter, of_loop.head, end)?;
    let (sum, one, other, list, position, word, replacement) = match instructions[..] {
        [
            Instruction::SetWord(list, position, word),
            Instruction::Replace(replacement),
            Instruction::AddInt(sum, one, other),
        ]
        | [
            Instruction::AddInt(sum, one, other),
            Instruction::SetWord(list, position, word),
            Instruction::Replace(replacement),
        ] => (sum, one, other, list, position, word, replacement),
        _ => return None,
    };
    let step = if one == position { other } else { one };
    let is_next = sum == next && [one, other].contains(&position);
    // The position of the store is the one of the round.
    let is_carried = match of_loop.carry {
        Some(copied) => copied == (position, next),
        None => position == next && matches!(instructions[0], Instruction::SetWord(..)),
    };
    let stays = |register: Register| register != position && register != next;
    let is_of_list = emitter.tables.replacements[usize::from(replacement)].whole == list;
    let effect = RoundEffect::Store { list, position, word, step, bound };
    (is_next && is_carried && is_of_list && [step, word, bound].into_iter().all(stays))
        .then_some((head, RoundsAtOnce { row, effect }))
}

fn pushes(emitter: &CodeEmitter, end: usize, row: TableIndex, head: Target) -> Option<(usize, RoundsAtOnce)> {
    let (head, instructions) = round(emitter, head, end)?;
    let [Instruction::Push(results, word, _)] = instructions[..] else { return None };
    let list = emitter.tables.loops[usize::from(row)];
    let effect = RoundEffect::Push { results, word };
    (results != list.list && word != list.count).then_some((head, RoundsAtOnce { row, effect }))
}
