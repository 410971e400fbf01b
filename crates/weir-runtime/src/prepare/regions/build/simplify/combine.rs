//! Combined instructions: a product that is added at once, fields of one record that are loaded together, and the copy of a
//! state at the end of a round. Each saves the decoding of the instructions that it replaces.

use super::uses::RegisterUses;
use super::views::{next_real, targets};
use crate::prepare::regions::build::emitter::{CodeEmitter, add};
use crate::region::{ElementWords, Instruction, Register, TableIndex};

/// Makes a product and the addition behind it one instruction, if nothing else uses the product. The other term is copied
/// to the register of the sum before, and that copy can usually be removed.
pub(super) fn add_products(emitter: &mut CodeEmitter, uses: &RegisterUses) {
    let is_target = targets(emitter);
    for at in 0..emitter.code.len() {
        let Instruction::MultiplyFloat(product, a, b) = emitter.code[at] else { continue };
        let next = next_real(emitter, at + 1);
        let Some(Instruction::AddFloat(sum, one, other)) = emitter.code.get(next).copied() else { continue };
        let term = match (one == product, other == product) {
            (true, false) => other,
            (false, true) => one,
            _ => continue,
        };
        let is_single = |register: Register| uses.definition(register).is_some();
        if is_single(product)
            && uses.count(product) == 2
            && is_single(sum)
            && ![a, b, term].contains(&sum)
            && !is_target[at + 1..=next].contains(&true)
        {
            emitter.code[at] = Instruction::Move(sum, term);
            emitter.code[next] = Instruction::AddProductFloat(sum, a, b);
        }
    }
}

/// Makes the last copy of a round of a `loop` a part of the instruction that ends the round.
pub(super) fn carry_copies(emitter: &mut CodeEmitter) {
    let is_target = targets(emitter);
    for copy in 0..emitter.code.len() {
        let Instruction::Move(to, from) = emitter.code[copy] else { continue };
        let end = next_real(emitter, copy + 1);
        let Some(row) = emitter.code.get(end).and_then(|code| code.again()) else { continue };
        let mut reads_copy = false;
        emitter.code[end].clone().registers(&mut |register, _| reads_copy |= *register == to);
        // An instruction reads before it writes.
        if !reads_copy && !is_target[copy + 1..=end].contains(&true) {
            emitter.tables.loops[usize::from(row)].carry = Some((to, from));
            emitter.code[copy] = Instruction::Nothing;
        }
    }
}

/// Loads the fields of an element together that are loaded one by one, between jumps and their targets. Until the next
/// element is taken, neither the element nor its number changes.
pub(super) fn load_fields_together(emitter: &mut CodeEmitter) {
    let is_target = targets(emitter);
    let mut loads: Vec<(usize, TableIndex)> = Vec::new();
    for (at, is_target) in is_target.into_iter().enumerate() {
        if is_target || emitter.code.get(at).is_none_or(|code| code.leaves()) {
            combine_loads(emitter, &std::mem::take(&mut loads));
        }
        if let Some(Instruction::ElementWord(_, row, _)) = emitter.code.get(at) {
            loads.push((at, *row));
        }
    }
}

/// Makes one instruction, in the place of the first, of those loads that belong to one loop.
fn combine_loads(emitter: &mut CodeEmitter, loads: &[(usize, TableIndex)]) {
    for (index, (first, row)) in loads.iter().enumerate() {
        let of_loop: Vec<usize> = loads[index..].iter().filter(|(_, other)| other == row).map(|(at, _)| *at).collect();
        let is_first = !loads[..index].iter().any(|(_, other)| other == row);
        if !is_first || of_loop.len() < 2 {
            continue;
        }
        let fields =
            of_loop.iter().filter_map(|at| match std::mem::replace(&mut emitter.code[*at], Instruction::Nothing) {
                Instruction::ElementWord(register, _, field) => Some((register, field)),
                _ => None,
            });
        let fields = fields.collect();
        let row = add(&mut emitter.tables.element_words, ElementWords { row: *row, fields });
        emitter.code[*first] = Instruction::ElementWords(row);
    }
}
