//! Loops whose rounds may run at once, because each stores one word, or adds one, or the result of one call, to the results:
//!
//! ```text
//! head: set_word list, position, word        head: push results, word        head: call_words word, function
//!       replace …                                  next_element ->head             push results, word
//!       add_int next, position, step                                               next_word element, ->head
//!       again_unless_less_or_equal bound, next, position = next, ->head
//! ```
//!
//! Before the first instruction of each loop stands a place for the instruction that runs them.

use super::views::next_real;
use crate::prepare::regions::build::emitter::{CodeEmitter, add};
use crate::region::{
    Instruction, PushedCall, PushedWord, Register, RoundEffect, RoundsAtOnce, StoredWord, TableIndex, Target,
};

/// Lets rounds run at once.
pub(super) fn run_rounds_at_once(emitter: &mut CodeEmitter) {
    for end in 0..emitter.code.len() {
        let found = match emitter.code[end] {
            Instruction::AgainUnlessLessOrEqual(row, bound, next) => stores(emitter, end, row, (bound, next)),
            Instruction::NextElement(row, head) => pushes(emitter, end, row, head),
            Instruction::NextWord(row, element, head) => calls(emitter, end, row, (element, head)),
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
    let effect = RoundEffect::Store(StoredWord { list, position, word, step, bound });
    (is_next && is_carried && is_of_list && [step, word, bound].into_iter().all(stays))
        .then_some((head, RoundsAtOnce { row, effect }))
}

fn pushes(emitter: &CodeEmitter, end: usize, row: TableIndex, head: Target) -> Option<(usize, RoundsAtOnce)> {
    let (head, instructions) = round(emitter, head, end)?;
    let [Instruction::Push(results, word, _)] = instructions[..] else { return None };
    let list = emitter.tables.loops[usize::from(row)];
    let effect = RoundEffect::Push(PushedWord { results, word });
    (results != list.list && word != list.count).then_some((head, RoundsAtOnce { row, effect }))
}

fn calls(
    emitter: &CodeEmitter,
    end: usize,
    row: TableIndex,
    (element, head): (Register, Target),
) -> Option<(usize, RoundsAtOnce)> {
    let (head, instructions) = round(emitter, head, end)?;
    let [Instruction::CallWords(out, call), Instruction::Push(results, word, scalar)] = instructions[..] else {
        return None;
    };
    let list = emitter.tables.loops[usize::from(row)];
    let called = &emitter.tables.word_calls[usize::from(call)];
    let reads = |register: Register| called.arguments.contains(&register);
    let is_alone = out == word && out != element && ![out, element].contains(&list.count);
    let effect = RoundEffect::Call(PushedCall { call, element, results, scalar });
    (is_alone && !reads(out) && !reads(list.count) && results != list.list)
        .then_some((head, RoundsAtOnce { row, effect }))
}
