//! Views of the code under construction: the registers of an instruction, the targets of jumps, and the next instruction that
//! does something.

use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, Register, RegisterAccess};

/// Calls `see` for each register of an instruction, which may be changed.
pub(super) fn visit(emitter: &mut CodeEmitter, at: usize, see: &mut dyn FnMut(&mut Register, RegisterAccess)) {
    let mut instruction = emitter.code[at];
    emitter.tables.registers(instruction, see);
    instruction.registers(see);
    emitter.code[at] = instruction;
}

/// Returns, for each instruction, true if a jump goes to it.
pub(super) fn targets(emitter: &mut CodeEmitter) -> Vec<bool> {
    let mut is_target = vec![false; emitter.code.len() + 1];
    for at in 0..emitter.code.len() {
        for target in targets_of(emitter, at) {
            is_target[target] = true;
        }
    }
    is_target
}

/// Returns the instructions to which an instruction may jump.
pub(super) fn targets_of(emitter: &mut CodeEmitter, at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut instruction = emitter.code[at];
    let labels = &emitter.labels;
    emitter.tables.targets(&mut instruction, &mut |label| found.extend(labels[usize::from(*label)]));
    found
}

/// Returns the first instruction from here on that does something.
pub(super) fn next_real(emitter: &CodeEmitter, from: usize) -> usize {
    let real = |at: &usize| emitter.code[*at] != Instruction::Nothing;
    (from..emitter.code.len()).find(real).unwrap_or(emitter.code.len())
}
