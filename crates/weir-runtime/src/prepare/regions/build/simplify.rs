//! Simplification of built code: comparisons become part of jumps, copies become part of computations, and jumps to the
//! next instruction disappear.

use indexmap::IndexMap;

use super::emitter::CodeEmitter;
use super::reductions;
use crate::region::{Instruction, Register};
use combine::{add_products, carry_copies, load_fields_together};
use copies::{join_chains, join_copies};
use keys::read_keys_in_place;
use rounds::run_rounds_at_once;
use updates::update_entries;
use uses::RegisterUses;
use views::{next_real, targets, targets_of, visit};

mod choices;
mod combine;
mod copies;
mod keys;
mod rounds;
mod updates;
mod uses;
mod views;

/// Simplifies the code.
pub(super) fn simplify(emitter: &mut CodeEmitter) {
    remove_unreachable(emitter);
    load_fields_together(emitter);
    let mut uses = RegisterUses::of(emitter);
    fuse_comparisons(emitter, &mut uses);
    add_products(emitter, &uses);
    simplify_jumps(emitter);
    choices::compute(emitter);
    uses = RegisterUses::of(emitter);
    join_copies(emitter, &mut uses);
    simplify_jumps(emitter);
    choices::count(emitter);
    join_chains(emitter);
    reductions::find(emitter);
    simplify_jumps(emitter);
    carry_copies(emitter);
    read_keys_in_place(emitter);
    update_entries(emitter);
    reductions::find_maps(emitter);
    run_rounds_at_once(emitter);
    compact(emitter);
    number_registers(emitter);
}

fn simplify_jumps(emitter: &mut CodeEmitter) {
    while invert_jumps(emitter) | thread_jumps(emitter) | remove_jumps_to_next(emitter) | remove_unreachable(emitter) {}
}

/// Removes the instructions that are never reached; returns true if there were some.
fn remove_unreachable(emitter: &mut CodeEmitter) -> bool {
    let (is_target, mut is_reached, mut has_changed) = (targets(emitter), true, false);
    for (instruction, is_target) in emitter.code.iter_mut().zip(is_target) {
        is_reached = is_reached || is_target;
        let leaves = instruction.leaves();
        if !is_reached && !matches!(instruction, Instruction::End | Instruction::Nothing) {
            *instruction = Instruction::Nothing;
            has_changed = true;
        }
        is_reached = is_reached && !leaves;
    }
    has_changed
}

/// Makes a comparison part of the jump behind it, if nothing else uses its truth value.
fn fuse_comparisons(emitter: &mut CodeEmitter, uses: &mut RegisterUses) {
    let is_target = targets(emitter);
    for at in 0..emitter.code.len() {
        let (truth, is_wanted) = match emitter.code[at] {
            Instruction::JumpIf(truth, _) | Instruction::AgainUnless(_, truth) => (truth, true),
            Instruction::JumpUnless(truth, _) => (truth, false),
            _ => continue,
        };
        let Some(made) = uses.definition(truth).filter(|made| *made < at && uses.count(truth) == 2) else { continue };
        let (comparison, between) = (emitter.code[made], made + 1..at);
        let is_straight = !is_target[made + 1..=at].contains(&true)
            && emitter.code[between.clone()].iter().all(|code| code.is_on_words());
        let fused = match emitter.code[at] {
            Instruction::AgainUnless(row, _) => again_unless(comparison, row),
            Instruction::JumpIf(_, label) | Instruction::JumpUnless(_, label) => jump(comparison, is_wanted, label),
            _ => None,
        };
        if let Some(fused) = fused.filter(|_| is_straight && !uses.reads_change(comparison, between)) {
            emitter.code[at] = fused;
            emitter.code[made] = Instruction::Nothing;
            uses.move_reads(comparison, made, at);
            uses.forget(truth);
        }
    }
}

/// Returns the jump that does a comparison itself.
fn jump(comparison: Instruction, is_wanted: bool, label: u16) -> Option<Instruction> {
    use Instruction::*;
    Some(match (comparison, is_wanted) {
        (EqualWords(_, a, b), true) | (NotEqualWords(_, a, b), false) => JumpIfEqual(a, b, label),
        (EqualWords(_, a, b), false) | (NotEqualWords(_, a, b), true) => JumpIfNotEqual(a, b, label),
        (LessInt(_, a, b), true) | (LessOrEqualInt(_, b, a), false) => JumpIfLess(a, b, label),
        (LessInt(_, b, a), false) | (LessOrEqualInt(_, a, b), true) => JumpIfLessOrEqual(a, b, label),
        // Floats may be unordered.
        (LessFloat(_, a, b), true) => JumpIfLessFloat(a, b, label),
        (LessFloat(_, a, b), false) => JumpUnlessLessFloat(a, b, label),
        (LessOrEqualFloat(_, a, b), true) => JumpIfLessOrEqualFloat(a, b, label),
        (LessOrEqualFloat(_, a, b), false) => JumpUnlessLessOrEqualFloat(a, b, label),
        (Not(_, a), true) => JumpUnless(a, label),
        (Not(_, a), false) => JumpIf(a, label),
        _ => return None,
    })
}

/// Returns the end of a round that does a comparison itself.
fn again_unless(comparison: Instruction, row: u16) -> Option<Instruction> {
    use Instruction::*;
    Some(match comparison {
        EqualWords(_, a, b) => AgainUnlessEqual(row, a, b),
        NotEqualWords(_, a, b) => AgainUnlessNotEqual(row, a, b),
        LessInt(_, a, b) => AgainUnlessLess(row, a, b),
        LessOrEqualInt(_, a, b) => AgainUnlessLessOrEqual(row, a, b),
        _ => return None,
    })
}

/// Returns the jump to another label that is taken if this one is not.
fn inverted(jump: Instruction, label: u16) -> Option<Instruction> {
    use Instruction::*;
    Some(match jump {
        JumpIf(a, _) => JumpUnless(a, label),
        JumpUnless(a, _) => JumpIf(a, label),
        JumpIfEqual(a, b, _) => JumpIfNotEqual(a, b, label),
        JumpIfNotEqual(a, b, _) => JumpIfEqual(a, b, label),
        JumpIfLess(a, b, _) => JumpIfLessOrEqual(b, a, label),
        JumpIfLessOrEqual(a, b, _) => JumpIfLess(b, a, label),
        JumpIfLessFloat(a, b, _) => JumpUnlessLessFloat(a, b, label),
        JumpUnlessLessFloat(a, b, _) => JumpIfLessFloat(a, b, label),
        JumpIfLessOrEqualFloat(a, b, _) => JumpUnlessLessOrEqualFloat(a, b, label),
        JumpUnlessLessOrEqualFloat(a, b, _) => JumpIfLessOrEqualFloat(a, b, label),
        _ => return None,
    })
}

/// Makes one jump of two, of which the first jumps over the second; returns true if there were some.
fn invert_jumps(emitter: &mut CodeEmitter) -> bool {
    let (is_target, mut has_changed) = (targets(emitter), false);
    for at in 0..emitter.code.len() {
        let second = next_real(emitter, at + 1);
        if let Some(Instruction::Jump(label)) = emitter.code.get(second).copied()
            && let Some(inverted) = inverted(emitter.code[at], label)
            && targets_of(emitter, at).iter().all(|to| *to > second && next_real(emitter, second + 1) >= *to)
            && !is_target[at + 1..=second].contains(&true)
        {
            emitter.code[at] = inverted;
            emitter.code[second] = Instruction::Nothing;
            has_changed = true;
        }
    }
    has_changed
}

/// Lets jumps to jumps go where those go; returns true if there were some.
fn thread_jumps(emitter: &mut CodeEmitter) -> bool {
    let mut has_changed = false;
    for label in 0..emitter.labels.len() {
        // A circle of jumps would have no safe point, and is never built.
        while let Some(at) = emitter.labels[label]
            && let Some(Instruction::Jump(further)) = emitter.code.get(next_real(emitter, at))
            && emitter.labels[usize::from(*further)] > Some(at)
        {
            emitter.labels[label] = emitter.labels[usize::from(*further)];
            has_changed = true;
        }
    }
    has_changed
}

/// Removes jumps to the next instruction; returns true if there were some.
fn remove_jumps_to_next(emitter: &mut CodeEmitter) -> bool {
    let mut has_changed = false;
    for at in (0..emitter.code.len()).rev() {
        if let Instruction::Jump(label) = emitter.code[at]
            && emitter.labels[usize::from(label)].is_some_and(|to| to > at && next_real(emitter, at + 1) >= to)
        {
            emitter.code[at] = Instruction::Nothing;
            has_changed = true;
        }
    }
    has_changed
}

/// Removes the instructions that do nothing.
fn compact(emitter: &mut CodeEmitter) {
    let mut kept = 0;
    let mut moved: Vec<usize> = Vec::with_capacity(emitter.code.len() + 1);
    for instruction in &emitter.code {
        moved.push(kept);
        kept += usize::from(*instruction != Instruction::Nothing);
    }
    moved.push(kept);
    emitter.labels.iter_mut().flatten().for_each(|at| *at = moved[*at]);
    emitter.places.iter_mut().for_each(|(first, _)| *first = moved[*first]);
    let mut places = std::mem::take(&mut emitter.places);
    // Of several places that begin at one instruction, the last one has instructions.
    places.reverse();
    places.dedup_by_key(|(first, _)| *first);
    places.reverse();
    emitter.places = places;
    let code = &emitter.code;
    emitter.tables.fallible.retain(|(at, _)| code[*at] != Instruction::Nothing);
    emitter.tables.fallible.iter_mut().for_each(|(at, _)| *at = moved[*at]);
    emitter.code.retain(|instruction| *instruction != Instruction::Nothing);
}

/// Numbers the registers that are left without gaps, so that fewer regions need a large window.
fn number_registers(emitter: &mut CodeEmitter) {
    let mut numbers: IndexMap<Register, ()> = IndexMap::new();
    for at in 0..emitter.code.len() {
        visit(emitter, at, &mut |register, _| _ = numbers.insert(*register, ()));
    }
    let (code, prologue, tables) = (&mut emitter.code, &mut emitter.prologue, &mut emitter.tables);
    for instruction in &mut *prologue {
        let mut see = |register: &mut Register, _| _ = numbers.insert(*register, ());
        tables.registers(*instruction, &mut see);
        instruction.registers(&mut see);
    }
    // Rows of instructions that were removed have registers without a number.
    let mut number = |register: &mut Register| *register = numbers.get_index_of(register).unwrap_or(0) as Register;
    code.iter_mut().chain(prologue).for_each(|instruction| instruction.registers(&mut |register, _| number(register)));
    tables.all_registers(&mut number);
    emitter.words.retain(|_, register| numbers.contains_key(register));
    emitter.words.values_mut().for_each(number);
    emitter.registers = numbers.len();
}
