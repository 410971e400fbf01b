//! Choices between two words that an instruction computes without a jump: the less or the greater of the words that are
//! compared, and a truth value as 0 or 1.
//!
//! ```text
//! at:    jump_if_… x, y, ->chosen
//!        move out, other
//!        jump ->end
//! chosen: move out, taken
//! end:
//! ```
//!
//! And counting under a condition, which adds the truth value:
//!
//! ```text
//! at:    jump_unless truth, ->end
//!        add_int count, count, 1
//! end:
//! ```

use super::views::{next_real, targets_of};
use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, Register};

/// Replaces the choices that an instruction can compute.
pub(super) fn compute(emitter: &mut CodeEmitter) {
    let jumps = number_of_jumps(emitter);
    for at in 0..emitter.code.len() {
        let Some(choice) = choice_at(emitter, at, &jumps) else { continue };
        let Some(computed) = computed(emitter, emitter.code[at], &choice) else { continue };
        choice.instructions.into_iter().for_each(|at| emitter.code[at] = Instruction::Nothing);
        emitter.code[at] = computed;
    }
}

/// Replaces the jumps over additions of 1, once copies are part of the additions.
pub(super) fn count(emitter: &mut CodeEmitter) {
    let jumps = number_of_jumps(emitter);
    for at in 0..emitter.code.len() {
        let Instruction::JumpUnless(truth, end) = emitter.code[at] else { continue };
        let added = next_real(emitter, at + 1);
        let Some(Instruction::AddInt(out, a, b)) = emitter.code.get(added).copied() else { continue };
        let is_count = (out == a && is_one(emitter, b)) || (out == b && is_one(emitter, a));
        let end = emitter.labels[usize::from(end)].filter(|end| *end > added);
        let goes_behind = end.is_some_and(|end| next_real(emitter, end) == next_real(emitter, added + 1));
        if is_count && goes_behind && jumps[at + 1..=added].iter().all(|jumps| *jumps == 0) {
            let (a, b) = if out == a { (a, truth) } else { (truth, b) };
            emitter.code[added] = Instruction::AddInt(out, a, b);
            emitter.code[at] = Instruction::Nothing;
        }
    }
}

/// Returns true if a register has the constant 1.
fn is_one(emitter: &CodeEmitter, register: Register) -> bool {
    emitter.words.get(&1) == Some(&register)
}

/// A choice between the words of two registers.
struct RegisterChoice {
    out: Register,
    /// The register that is chosen if the jump is taken, and the one that is chosen otherwise.
    taken: Register,
    other: Register,
    /// The instructions behind the jump.
    instructions: [usize; 3],
}

/// Returns, for each instruction, the number of jumps to it.
fn number_of_jumps(emitter: &mut CodeEmitter) -> Vec<usize> {
    let mut jumps = vec![0; emitter.code.len() + 1];
    for at in 0..emitter.code.len() {
        targets_of(emitter, at).into_iter().for_each(|target| jumps[target] += 1);
    }
    jumps
}

/// Returns the choice that begins with this instruction, if no other jump goes into it.
fn choice_at(emitter: &mut CodeEmitter, at: usize, jumps: &[usize]) -> Option<RegisterChoice> {
    let mut jump = emitter.code[at];
    let target = emitter.labels[usize::from(*jump.target().filter(|_| !emitter.code[at].leaves())?)]?;
    let first = next_real(emitter, at + 1);
    let jump = next_real(emitter, first + 1);
    let second = next_real(emitter, jump + 1);
    let (Instruction::Move(out, other), Instruction::Jump(end), Instruction::Move(same, taken)) =
        (*emitter.code.get(first)?, *emitter.code.get(jump)?, *emitter.code.get(second)?)
    else {
        return None;
    };
    let end = emitter.labels[usize::from(end)]?;
    let goes_to = |from: usize, to: usize| from > at && next_real(emitter, from) == to;
    let is_entered_once = jumps[at + 1..=second].iter().sum::<usize>() == 1;
    (out == same && goes_to(target, second) && goes_to(end, next_real(emitter, second + 1)) && is_entered_once)
        .then_some(RegisterChoice { out, taken, other, instructions: [first, jump, second] })
}

/// Returns the instruction that computes what a jump chooses.
fn computed(emitter: &CodeEmitter, jump: Instruction, choice: &RegisterChoice) -> Option<Instruction> {
    use Instruction::*;
    let RegisterChoice { out, taken, other, .. } = *choice;
    let constant =
        |register: Register| emitter.words.iter().find(|(_, known)| **known == register).map(|(word, _)| *word);
    if let JumpIfLess(a, b, _) | JumpIfLessOrEqual(a, b, _) = jump {
        if (taken, other) == (a, b) {
            return Some(LeastInt(out, a, b));
        }
        if (taken, other) == (b, a) {
            return Some(GreatestInt(out, a, b));
        }
    }
    let is_wanted = match (constant(taken)?, constant(other)?) {
        (1, 0) => true,
        (0, 1) => false,
        _ => return None,
    };
    Some(match (jump, is_wanted) {
        (JumpIf(a, _), true) | (JumpUnless(a, _), false) => Move(out, a),
        (JumpIf(a, _), false) | (JumpUnless(a, _), true) => Not(out, a),
        (JumpIfEqual(a, b, _), true) | (JumpIfNotEqual(a, b, _), false) => EqualWords(out, a, b),
        (JumpIfEqual(a, b, _), false) | (JumpIfNotEqual(a, b, _), true) => NotEqualWords(out, a, b),
        (JumpIfLess(a, b, _), true) | (JumpIfLessOrEqual(b, a, _), false) => LessInt(out, a, b),
        (JumpIfLessOrEqual(a, b, _), true) | (JumpIfLess(b, a, _), false) => LessOrEqualInt(out, a, b),
        _ => return None,
    })
}
