//! Copy coalescing (Chaitin, "Register Allocation & Spilling via Graph Coloring", 1982): the two registers of a copy become
//! one if neither is written while the word of the other one is still needed. Thus the state of a loop is computed where it
//! is kept, and the arms of a switch compute the result of its select.

use super::uses::RegisterUses;
use super::views::visit;
use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, Register};

/// Removes the copies whose registers can be one.
pub(super) fn join_copies(emitter: &mut CodeEmitter, uses: &mut RegisterUses) {
    for copy in 0..emitter.code.len() {
        let Instruction::Move(to, from) = emitter.code[copy] else { continue };
        if to != from && (uses.is_initial(from) || uses.is_initial(to) || interfere(emitter, uses, (to, from))) {
            continue;
        }
        emitter.code[copy] = Instruction::Nothing;
        if to != from {
            for at in uses.join(from, to, copy) {
                visit(emitter, at, &mut |register, _| {
                    if *register == from {
                        *register = to;
                    }
                });
            }
        }
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
