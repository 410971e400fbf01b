//! The verifier of regions: checks code before it runs, so that the interpreter may rely on it.
//!
//! * Every jump goes to an instruction, and the code ends by itself.
//! * Every backward jump is a safe point, so that no loop runs without spending units (invariant I4).
//! * Every part ends behind its beginning, which is behind the code beside which it may run.
//! * Every register and slot exists, and every register is written before it is read, on every path.

use super::instruction::{RegisterAccess, Target};
use crate::region::code::Region;

impl Region {
    /// Checks the code.
    ///
    /// # Errors
    /// Fails with a description of the first mistake.
    pub(crate) fn verify(&mut self) -> Result<(), String> {
        if !self.code.last().is_some_and(|last| last.leaves()) {
            return Err("the code has no end".into());
        }
        for at in 0..self.code.len() {
            for target in self.targets(at) {
                if usize::from(target) >= self.code.len() {
                    return Err(format!("instruction {at} jumps behind the end"));
                }
                if usize::from(target) <= at && !self.code[at].is_safe_point() {
                    return Err(format!("instruction {at} jumps back without a safe point"));
                }
            }
        }
        if self.parts.iter().any(|part| usize::from(part.from) > part.begin || part.begin >= part.end) {
            return Err("a part ends before it begins".into());
        }
        self.verify_registers()
    }

    /// Returns the targets of an instruction.
    fn targets(&mut self, at: usize) -> Vec<Target> {
        let mut targets = Vec::new();
        self.tables.targets(&mut self.code[at], &mut |target| targets.push(*target));
        targets
    }

    /// Checks that every register is written before it is read: a forward data-flow analysis, in which the written
    /// registers of an instruction are those that all instructions before it agree on.
    fn verify_registers(&mut self) -> Result<(), String> {
        let constants: Vec<bool> = self.initial();
        let mut before: Vec<Option<Vec<bool>>> = vec![None; self.code.len()];
        before[0] = Some(constants);
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            let Some(mut written) = before[at].clone() else { continue };
            self.execute(at, &mut written)?;
            let mut next: Vec<usize> = self.targets(at).into_iter().map(usize::from).collect();
            if !self.code[at].leaves() {
                next.push(at + 1);
            }
            for next in next {
                if meet(&mut before[next], &written) {
                    work.push(next);
                }
            }
        }
        Ok(())
    }

    /// Returns, for each register, true if it has a constant.
    fn initial(&self) -> Vec<bool> {
        let mut written = vec![false; self.registers];
        self.words.iter().for_each(|(register, _)| written[usize::from(*register)] = true);
        written
    }

    /// Notes the registers that an instruction writes, after checking those that it reads.
    fn execute(&mut self, at: usize, written: &mut [bool]) -> Result<(), String> {
        let mut instruction = self.code[at];
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut see = |register: &mut u16, usage: RegisterAccess| match usage {
            RegisterAccess::Read => reads.push(usize::from(*register)),
            RegisterAccess::Write => writes.push(usize::from(*register)),
        };
        self.tables.registers(instruction, &mut see);
        instruction.registers(&mut see);
        if let Some(unknown) = reads.iter().find(|register| written.get(**register) != Some(&true)) {
            return Err(format!("instruction {at}, {instruction:?}, reads register {unknown} before it is written"));
        }
        for register in writes {
            *written.get_mut(register).ok_or_else(|| format!("there is no register {register}"))? = true;
        }
        Ok(())
    }
}

/// Keeps what both agree on; returns true if that has changed.
fn meet(known: &mut Option<Vec<bool>>, found: &[bool]) -> bool {
    let Some(known) = known else {
        *known = Some(found.to_vec());
        return true;
    };
    let mut changed = false;
    for (known, found) in known.iter_mut().zip(found) {
        changed |= *known && !found;
        *known &= found;
    }
    changed
}
