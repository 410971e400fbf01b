//! The uses of results in an attempt of a `retry`: the next attempt has other results of writes that it repeats, because the row is there
//! or gone by then.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::Value;
use weir_ir::expr::{ArmTest, Atom, Block, Let, Op, Var, Variable};
use weir_ir::prim::Prim;

use super::block_builder::{OpenBlock, Terminator};

/// The uses of the results in an attempt.
#[derive(Default)]
pub(super) struct ResultUses {
    /// The variables that something uses.
    used: BTreeSet<Var>,
    /// The variables that a call, a condition or a primitive takes, beside one that passes them on.
    taken: BTreeSet<Var>,
    /// The variables that have the value of another one, such as the parameters of inlined functions.
    copies: BTreeMap<Var, Var>,
    /// The arms of switches: the subject, the variant, and the variables of its values.
    arms: Vec<(Var, u32, Vec<Var>)>,
}

impl ResultUses {
    pub(super) fn of(attempt: &OpenBlock) -> ResultUses {
        let mut uses = ResultUses::default();
        uses.see_open(attempt);
        uses
    }

    /// Returns whether the attempt goes on in another way if a statement has failed, without passing its failure on.
    pub(super) fn decides_by_failure(&self, result: Var) -> bool {
        let mut failed = self.arms_of(result, Value::ERR);
        self.taken.contains(&result) || failed.any(|values| values.iter().all(|value| !self.used.contains(value)))
    }

    /// Returns whether the attempt uses what a statement has returned.
    pub(super) fn uses_value(&self, result: Var) -> bool {
        let mut done = self.arms_of(result, Value::OK);
        self.taken.contains(&result) || done.any(|values| values.iter().any(|value| self.taken.contains(value)))
    }

    fn arms_of(&self, result: Var, variant: u32) -> impl Iterator<Item = &Vec<Var>> {
        let of = self.arms.iter().filter(move |(subject, tag, _)| (*subject, *tag) == (result, variant));
        of.map(|(_, _, values)| values)
    }

    /// Returns the variable whose value this one has.
    fn original(&self, var: Var) -> Var {
        self.copies.get(&var).copied().unwrap_or(var)
    }

    fn see_open(&mut self, block: &OpenBlock) {
        block.lets.iter().for_each(|binding| self.see(binding));
        match &block.end {
            Terminator::FallThrough(value) | Terminator::Exit(_, value, _) => self.used.extend(value.variable()),
            Terminator::Diverge => {}
            Terminator::Switch { subject, arms, .. } => {
                for arm in arms {
                    self.see_arm(subject, &arm.test, &arm.payload);
                    self.see_open(&arm.body);
                }
            }
        }
    }

    fn see_block(&mut self, block: &Block) {
        block.lets.iter().for_each(|binding| self.see(binding));
        self.used.extend(block.result.variable());
    }

    fn see(&mut self, Let { bound, op, .. }: &Let) {
        match op {
            Op::Switch { subject, arms } => {
                arms.iter().for_each(|arm| self.see_arm(subject, &arm.test, &arm.payload));
            }
            Op::Prim(Prim::Copy, _) => {
                self.used.extend(op.uses());
                self.copy(op.uses().next(), bound.var);
            }
            Op::Prim(Prim::Variant(_), _) => self.used.extend(op.uses()),
            Op::Call(_) | Op::Prim(..) => {
                self.used.extend(op.uses());
                self.taken.extend(op.uses().map(|of| self.copies.get(&of).copied().unwrap_or(of)));
            }
            _ => self.used.extend(op.uses()),
        }
        op.blocks().for_each(|inner| self.see_block(inner));
        // A statement that is no part of a transaction is a step.
        if let Op::Atomic { body, .. } | Op::Transaction { body, .. } = op {
            self.copy(body.result.variable(), bound.var);
        }
    }

    fn copy(&mut self, of: Option<Var>, to: Var) {
        let original = of.map(|of| self.original(of));
        self.copies.extend(original.map(|original| (to, original)));
    }

    fn see_arm(&mut self, subject: &Atom, test: &ArmTest, values: &[Variable]) {
        let Atom::Var(subject) = subject else { return };
        match test {
            ArmTest::Tag(tag) => {
                self.arms.push((self.original(*subject), *tag, values.iter().map(|value| value.var).collect()));
            }
            // A truth value or number decides.
            _ => _ = self.taken.insert(self.original(*subject)),
        }
    }
}
