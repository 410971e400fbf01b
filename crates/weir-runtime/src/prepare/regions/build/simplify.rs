//! Simplification of built code: comparisons become part of jumps, copies become part of computations, and jumps to the
//! next instruction disappear.
//!
//! *Copies.* `r = …; …; to = r` becomes `to = …` (copy coalescing; Chaitin 1982) if nobody can tell: `r` has this one
//! definition, nothing reads or writes `to` between the definition and the copy, nothing writes it up to the last use of
//! `r` (or the end of a loop that repeats this use), and both instructions are in the same loops. Thus the state of a loop is computed where it is kept.

use std::ops::Range;

use super::emitter::CodeEmitter;
use crate::region::{Instruction, Register, RegisterAccess};

/// Simplifies the code.
pub(super) fn simplify(emitter: &mut CodeEmitter) {
    remove_unreachable(emitter);
    let mut accesses = RegisterUses::of(emitter);
    fuse_comparisons(emitter, &mut accesses);
    join_copies(emitter, &mut accesses);
    thread_jumps(emitter);
    remove_jumps_to_next(emitter);
    compact(emitter);
}

/// The uses of each register: the instruction and the kind of use, in ascending order.
struct RegisterUses(Vec<Vec<(usize, RegisterAccess)>>);

impl RegisterUses {
    fn of(emitter: &mut CodeEmitter) -> RegisterUses {
        let mut accesses = RegisterUses(vec![Vec::new(); emitter.registers]);
        let prologue = emitter.prologue.clone();
        for instruction in prologue {
            // In front of all others, where nothing is changed.
            visit(emitter, instruction, None, &mut |register, _| {
                accesses.0[usize::from(register)].push((0, RegisterAccess::Write))
            });
        }
        for at in 0..emitter.code.len() {
            let instruction = emitter.code[at];
            visit(emitter, instruction, None, &mut |register, usage| {
                accesses.0[usize::from(register)].push((at, usage));
            });
        }
        accesses
    }

    /// Returns the only definition of a register, if the code has exactly one.
    fn definition(&self, register: Register) -> Option<usize> {
        let mut writes = self.0[usize::from(register)].iter().filter(|(_, usage)| *usage == RegisterAccess::Write);
        let first = writes.next()?;
        writes.next().is_none().then_some(first.0)
    }

    /// Returns the last instruction that may use the register: a use in a loop that the definition is not in may be
    /// repeated until the end of the loop.
    fn last_use(&self, register: Register, definition: usize, loops: &[Range<usize>]) -> usize {
        let uses = self.0[usize::from(register)].iter().map(|(at, _)| *at);
        let repeats = |at: usize| {
            let around = loops.iter().filter(move |range| range.contains(&at) && !range.contains(&definition));
            around.map(|range| range.end - 1)
        };
        uses.flat_map(|at| repeats(at).chain([at])).max().unwrap_or(definition)
    }

    fn within(&self, register: Register, from: usize, to: usize) -> impl Iterator<Item = &(usize, RegisterAccess)> {
        self.0[usize::from(register)].iter().filter(move |(at, _)| (from..to).contains(at))
    }
}

/// Calls `see` for each register of an instruction; with `to`, replaces the first of the pair by the second.
fn visit(
    emitter: &mut CodeEmitter,
    mut instruction: Instruction,
    to: Option<(Register, Register)>,
    see: &mut dyn FnMut(Register, RegisterAccess),
) -> Instruction {
    let mut each = |register: &mut Register, usage: RegisterAccess| {
        see(*register, usage);
        if let Some((_, to)) = to.filter(|(from, _)| from == register) {
            *register = to;
        }
    };
    emitter.tables.registers(instruction, &mut each);
    instruction.registers(&mut each);
    instruction
}

/// Returns, for each instruction, true if a label stands before it.
fn labelled(emitter: &CodeEmitter) -> Vec<bool> {
    let mut labelled = vec![false; emitter.code.len() + 1];
    emitter.labels.iter().flatten().for_each(|at| labelled[*at] = true);
    labelled
}

fn remove_unreachable(emitter: &mut CodeEmitter) {
    let (labelled, mut is_reached) = (labelled(emitter), true);
    for (instruction, is_target) in emitter.code.iter_mut().zip(labelled) {
        is_reached = is_reached || is_target;
        let leaves = instruction.leaves();
        if !is_reached && *instruction != Instruction::End {
            *instruction = Instruction::Nothing;
        }
        is_reached = is_reached && !leaves;
    }
}

/// Makes a comparison part of the jump behind it, if nothing else uses its truth value.
fn fuse_comparisons(emitter: &mut CodeEmitter, accesses: &mut RegisterUses) {
    let labelled = labelled(emitter);
    for (at, is_target) in labelled.into_iter().enumerate().take(emitter.code.len()).skip(1) {
        let (truth, is_wanted) = match emitter.code[at] {
            Instruction::JumpIf(truth, _) => (truth, true),
            Instruction::JumpUnless(truth, _) => (truth, false),
            _ => continue,
        };
        let Some(label) = emitter.code[at].target().copied() else { continue };
        let is_alone = accesses.0[usize::from(truth)].len() == 2 && accesses.definition(truth) == Some(at - 1);
        if let Some(fused) = fused(emitter.code[at - 1], is_wanted, label).filter(|_| is_alone && !is_target) {
            emitter.code[at] = fused;
            let before = std::mem::replace(&mut emitter.code[at - 1], Instruction::Nothing);
            visit(emitter, before, None, &mut |register, _| {
                accesses.0[usize::from(register)]
                    .iter_mut()
                    .filter(|(user, _)| *user == at - 1)
                    .for_each(|user| user.0 = at);
            });
            accesses.0[usize::from(truth)].clear();
        }
    }
}

/// Returns the jump that does a comparison itself. Of floats there is none: they may be unordered.
fn fused(comparison: Instruction, is_wanted: bool, label: u16) -> Option<Instruction> {
    use Instruction::*;
    Some(match (comparison, is_wanted) {
        (EqualWords(_, a, b), true) | (NotEqualWords(_, a, b), false) => JumpIfEqual(a, b, label),
        (EqualWords(_, a, b), false) | (NotEqualWords(_, a, b), true) => JumpIfNotEqual(a, b, label),
        (LessInt(_, a, b), true) | (LessOrEqualInt(_, b, a), false) => JumpIfLess(a, b, label),
        (LessInt(_, b, a), false) | (LessOrEqualInt(_, a, b), true) => JumpIfLessOrEqual(a, b, label),
        (Not(_, a), true) => JumpUnless(a, label),
        (Not(_, a), false) => JumpIf(a, label),
        _ => return None,
    })
}

fn join_copies(emitter: &mut CodeEmitter, accesses: &mut RegisterUses) {
    let loops = loops(emitter);
    for copy in 0..emitter.code.len() {
        let Instruction::Move(to, from) = emitter.code[copy] else { continue };
        let Some(definition) = accesses.definition(from).filter(|at| *at < copy) else { continue };
        let is_in_code = matches!(emitter.code.get(definition), Some(instruction) if writes(*instruction, from));
        let same_loops = loops.iter().all(|range| range.contains(&definition) == range.contains(&copy));
        let last = accesses.last_use(from, definition, &loops).max(copy);
        let is_free = accesses.within(to, definition + 1, copy).next().is_none()
            && accesses.within(to, copy + 1, last + 1).all(|(_, usage)| *usage == RegisterAccess::Read);
        if is_in_code && same_loops && is_free && to != from {
            replace(emitter, accesses, (from, to), copy);
        }
    }
}

/// Returns true if the instruction itself, not the row of a table, writes the register.
fn writes(mut instruction: Instruction, register: Register) -> bool {
    let mut found = false;
    instruction.registers(&mut |written, usage| found |= usage == RegisterAccess::Write && *written == register);
    found
}

/// Removes the copy, and replaces one register by the other.
fn replace(emitter: &mut CodeEmitter, accesses: &mut RegisterUses, (from, to): (Register, Register), copy: usize) {
    emitter.code[copy] = Instruction::Nothing;
    let mut moved = std::mem::take(&mut accesses.0[usize::from(from)]);
    moved.retain(|(at, _)| *at != copy);
    for at in moved.iter().map(|(at, _)| *at) {
        emitter.code[at] = visit(emitter, emitter.code[at], Some((from, to)), &mut |_, _| {});
    }
    let kept = &mut accesses.0[usize::from(to)];
    kept.retain(|(at, _)| *at != copy);
    kept.append(&mut moved);
    kept.sort_by_key(|(at, _)| *at);
}

/// Returns the instructions of each loop.
fn loops(emitter: &CodeEmitter) -> Vec<Range<usize>> {
    let mut loops = Vec::new();
    for (at, instruction) in emitter.code.iter().enumerate() {
        let mut instruction = *instruction;
        if let Some(head) = instruction.target().and_then(|label| emitter.labels[usize::from(*label)])
            && head <= at
        {
            loops.push(head..at + 1);
        }
    }
    loops
}

/// Returns the first instruction from here on that does something.
fn next_real(emitter: &CodeEmitter, from: usize) -> usize {
    let real = |at: &usize| emitter.code[*at] != Instruction::Nothing;
    (from..emitter.code.len()).find(real).unwrap_or(emitter.code.len())
}

/// Lets jumps to jumps go where those go.
fn thread_jumps(emitter: &mut CodeEmitter) {
    for label in 0..emitter.labels.len() {
        // A circle of jumps would have no safe point, and is never built.
        while let Some(at) = emitter.labels[label]
            && let Some(Instruction::Jump(further)) = emitter.code.get(next_real(emitter, at))
            && emitter.labels[usize::from(*further)] > Some(at)
        {
            emitter.labels[label] = emitter.labels[usize::from(*further)];
        }
    }
}

fn remove_jumps_to_next(emitter: &mut CodeEmitter) {
    for at in (0..emitter.code.len()).rev() {
        if let Instruction::Jump(label) = emitter.code[at]
            && emitter.labels[usize::from(label)].is_some_and(|to| to > at && next_real(emitter, at + 1) >= to)
        {
            emitter.code[at] = Instruction::Nothing;
        }
    }
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
