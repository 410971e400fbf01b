//! The uses of registers, and where their values are needed.

use std::ops::Range;

use super::views::{targets_of, visit};
use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, Register, RegisterAccess};

/// The uses of each register: the instruction and the kind of use.
pub(super) struct RegisterUses {
    uses: Vec<Vec<(usize, RegisterAccess)>>,
    /// For each register, true if it has its word before the first instruction.
    is_initial: Vec<bool>,
    /// The instructions that may run before each instruction.
    before: Vec<Vec<usize>>,
}

impl RegisterUses {
    pub(super) fn of(emitter: &mut CodeEmitter) -> RegisterUses {
        let mut uses = vec![Vec::new(); emitter.registers];
        let mut is_initial = vec![false; emitter.registers];
        emitter.words.values().for_each(|register| is_initial[usize::from(*register)] = true);
        for mut instruction in emitter.prologue.clone() {
            let mut see = |register: &mut Register, _| is_initial[usize::from(*register)] = true;
            emitter.tables.registers(instruction, &mut see);
            instruction.registers(&mut see);
        }
        let mut before = vec![Vec::new(); emitter.code.len() + 1];
        for at in 0..emitter.code.len() {
            visit(emitter, at, &mut |register, access| uses[usize::from(*register)].push((at, access)));
            targets_of(emitter, at).into_iter().for_each(|target| before[target].push(at));
            if !emitter.code[at].leaves() {
                before[at + 1].push(at);
            }
        }
        RegisterUses { uses, is_initial, before }
    }

    /// Returns the number of uses of a register.
    pub(super) fn count(&self, register: Register) -> usize {
        self.uses[usize::from(register)].len()
    }

    /// Returns the only definition of a register, if the code has exactly one.
    pub(super) fn definition(&self, register: Register) -> Option<usize> {
        let mut definitions = self.definitions(register);
        let first = definitions.next()?;
        definitions.next().is_none().then_some(first)
    }

    /// Returns the instructions that write a register.
    pub(super) fn definitions(&self, register: Register) -> impl Iterator<Item = usize> {
        let uses = self.uses[usize::from(register)].iter();
        uses.filter(|(_, access)| *access == RegisterAccess::Write).map(|(at, _)| *at)
    }

    /// Returns the instructions that read a register.
    pub(super) fn reads(&self, register: Register) -> impl Iterator<Item = usize> {
        let uses = self.uses[usize::from(register)].iter();
        uses.filter(|(_, access)| *access == RegisterAccess::Read).map(|(at, _)| *at)
    }

    /// Returns true if the register has its word before the first instruction.
    pub(super) fn is_initial(&self, register: Register) -> bool {
        self.is_initial[usize::from(register)]
    }

    /// Returns true if one of these instructions writes a register that the instruction reads.
    pub(super) fn reads_change(&self, mut instruction: Instruction, within: Range<usize>) -> bool {
        let mut changes = false;
        instruction.registers(&mut |register, access| {
            let written = || self.definitions(*register).any(|at| within.contains(&at));
            changes = changes || (access == RegisterAccess::Read && written());
        });
        changes
    }

    /// Returns, for each instruction, true if the word that the register has behind it may be read later.
    pub(super) fn live_behind(&self, register: Register) -> Vec<bool> {
        let uses = &self.uses[usize::from(register)];
        let mut is_live = vec![false; self.before.len()];
        let mut work: Vec<usize> =
            uses.iter().filter(|(_, access)| *access == RegisterAccess::Read).map(|(at, _)| *at).collect();
        while let Some(at) = work.pop() {
            for before in &self.before[at] {
                if !std::mem::replace(&mut is_live[*before], true) && !uses.contains(&(*before, RegisterAccess::Write))
                {
                    work.push(*before);
                }
            }
        }
        is_live
    }

    /// Notes that the registers which an instruction reads are read by another one instead.
    pub(super) fn move_reads(&mut self, mut instruction: Instruction, from: usize, to: usize) {
        instruction.registers(&mut |register, _| {
            let uses = &mut self.uses[usize::from(*register)];
            uses.iter_mut().filter(|(at, _)| *at == from).for_each(|(at, _)| *at = to);
        });
    }

    /// Forgets the uses of a register that is no longer used.
    pub(super) fn forget(&mut self, register: Register) {
        self.uses[usize::from(register)].clear();
    }

    /// Makes the uses of one register those of another one, and returns the instructions. Those by this instruction, the
    /// copy of one to the other, end.
    pub(super) fn join(&mut self, from: Register, to: Register, copy: usize) -> Vec<usize> {
        let mut moved = std::mem::take(&mut self.uses[usize::from(from)]);
        moved.retain(|(at, _)| *at != copy);
        let instructions = moved.iter().map(|(at, _)| *at).collect();
        let kept = &mut self.uses[usize::from(to)];
        kept.retain(|(at, _)| *at != copy);
        kept.append(&mut moved);
        instructions
    }
}
