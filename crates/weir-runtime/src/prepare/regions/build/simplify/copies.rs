//! Copy coalescing (Chaitin, "Register Allocation & Spilling via Graph Coloring", 1982): the two registers of a copy become
//! one if neither is written while the word of the other one is still needed. Thus the state of a loop is computed where it
//! is kept, and the arms of a switch compute the result of its select. The same joins the steps of a chain of operations on
//! a state, such as `state + a + b`.

use super::uses::RegisterUses;
use super::views::visit;
use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, LoopOutcome, Register};

/// Removes the copies whose registers can be one.
pub(super) fn join_copies(emitter: &mut CodeEmitter, uses: &mut RegisterUses) {
    for copy in 0..emitter.code.len() {
        let Instruction::Move(to, from) = emitter.code[copy] else { continue };
        if to != from && (uses.is_initial(from) || uses.is_initial(to) || interfere(emitter, uses, (to, from))) {
            continue;
        }
        emitter.code[copy] = Instruction::Nothing;
        if to != from {
            let joined = uses.join(from, to, copy);
            rename(emitter, &joined, (from, to));
        }
    }
}

/// Computes each step of a chain of operations on a state of a fold where the state is kept: `t = state + a`, `state = t + b`
/// becomes `state = state + a`, `state = state + b`.
pub(super) fn join_chains(emitter: &mut CodeEmitter) {
    let states = emitter.tables.splits.iter().filter_map(|split| match &split.outcome {
        LoopOutcome::Reductions(reductions) => Some(reductions.states.iter().map(|state| state.state)),
        LoopOutcome::List(_) => None,
    });
    for state in states.flatten().collect::<Vec<_>>() {
        let mut uses = RegisterUses::of(emitter);
        // The last step comes first, because it makes the one before it the last.
        for at in (0..emitter.code.len()).rev() {
            let Some((out, operands)) = step(emitter.code[at]).filter(|(out, _)| *out == state) else { continue };
            let is_step = |made: usize| {
                let same = std::mem::discriminant(&emitter.code[made]) == std::mem::discriminant(&emitter.code[at]);
                same && made < at
            };
            let is_joined = |from: &Register| {
                *from != out
                    && !uses.is_initial(*from)
                    && uses.definitions(*from).all(is_step)
                    && !interfere(emitter, &uses, (out, *from))
            };
            if let Some(from) = operands.into_iter().find(is_joined) {
                let joined = uses.join(from, out, usize::MAX);
                rename(emitter, &joined, (from, out));
            }
        }
    }
}

/// Returns the result and the operands of an operation that may be a step of a reduction.
fn step(instruction: Instruction) -> Option<(Register, [Register; 2])> {
    use Instruction::{AddInt, And, GreatestInt, LeastInt, Or};
    let (AddInt(out, a, b) | LeastInt(out, a, b) | GreatestInt(out, a, b) | And(out, a, b) | Or(out, a, b)) =
        instruction
    else {
        return None;
    };
    Some((out, [a, b]))
}

fn rename(emitter: &mut CodeEmitter, instructions: &[usize], (from, to): (Register, Register)) {
    for at in instructions {
        visit(emitter, *at, &mut |register, _| {
            if *register == from {
                *register = to;
            }
        });
    }
}

/// Returns true if one of two registers is written, other than by a copy of the other one, while the word of the other one
/// is still needed.
fn interfere(emitter: &CodeEmitter, uses: &RegisterUses, (one, other): (Register, Register)) -> bool {
    let writes_needed = |written: Register, needed: Register| {
        let is_needed = uses.live_behind(needed);
        let mut definitions = uses.definitions(written);
        definitions.any(|at| is_needed[at] && emitter.code[at] != Instruction::Move(written, needed))
    };
    writes_needed(one, other) || writes_needed(other, one)
}
