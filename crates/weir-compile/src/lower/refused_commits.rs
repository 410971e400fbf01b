//! Commits that the database refuses, because a rule that it checks only there is broken, such as one of a deferred trigger, or because
//! other programs hinder it again and again.
//!
//! In an existing database every failure of a commit is one of the transaction. In the tables of the program only a refusal is: what
//! else fails, such as a connection that is lost at the commit, ends the flow, which does not try the transaction again by itself.
//!
//! The end of the transaction is known in its step, or behind it if its commit is placed. So its failure is lowered for both places.

use weir_host::{FailureKind, Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Let, Op, Origin, Variable};
use weir_ir::prim::Prim;
use weir_ir::program::Var;
use weir_syntax::Span;

use super::block_builder::OpenBlock;
use super::{Lowering, RefusedCommit, Transaction};
use crate::lang_items::COMMIT;

/// The kinds of the failure of a commit that has certainly taken no effect.
const REFUSALS: &[FailureKind] = &[FailureKind::Constraint, FailureKind::Conflict];

impl Lowering<'_, '_> {
    /// Lowers the failure of the commit of a step with so many frames around it.
    pub(super) fn commit_failed(
        &mut self,
        (transaction, around): (&Transaction, usize),
        failure: Atom,
        (ty, span): (&Type, Span),
    ) -> Atom {
        match self.is_of_existing(transaction) {
            true => self.step_failed(around, failure, span),
            false => self.step_failed_by(REFUSALS, around, failure, (ty, span)),
        }
    }

    /// Returns the `Err` of a `Result` for the failure of the commit of a transaction with that value.
    pub(super) fn err_of_commit(&mut self, is_any: bool, failure: Atom, (ty, span): (&Type, Span)) -> Atom {
        let failed = failure.clone();
        let err = |lowering: &mut Self| lowering.prim(Prim::Variant(Value::ERR), vec![failed], ty.clone(), span);
        match is_any {
            true => err(self),
            false => self.if_of_kinds(REFUSALS, failure, (ty, span), err),
        }
    }

    /// Lowers the failure of the placed commit of a step: for a transaction on the tables of the program, and if it may not end the flow.
    pub(super) fn lower_refused_commit(
        &mut self,
        (transaction, step): (&Transaction, &OpenBlock),
        ty: &Type,
        span: Span,
    ) {
        let Atom::Var(number) = transaction.number else { return };
        let is_result = matches!(ty, Type::Result(pair) if pair.1 == Type::Failure);
        let around = self.frames.len();
        // One that a `return` in the step follows is the result of that.
        if self.is_of_existing(transaction) || is_result && last_commits(step) > 1 {
            return;
        }
        if !is_result && self.frame_that_fails(around).is_none() {
            return;
        }
        let failure = self.vars.variable("", Type::Failure);
        let failed = Atom::Var(failure.var);
        let value = self.build_block(|lowering| match is_result {
            true => lowering.err_of_commit(false, failed, (ty, span)),
            false => lowering.commit_failed((transaction, around), failed, (ty, span)),
        });
        let (exits, own) = (step.exits(), value.exits());
        if own.targets.iter().any(|target| !exits.targets.contains(target)) {
            return;
        }
        let value = match exits.is_empty() {
            true => self.close_without_exits(value, ty),
            false => self.close_to_control_flow(value, ty, &exits),
        };
        self.refused_commits.insert(number, RefusedCommit { failure, value });
    }

    /// Returns the operation behind a placed commit: the value of the step, which is a part of `both`, or that for its failure.
    pub(super) fn value_unless_refused(
        &mut self,
        (committed, refused): (Atom, RefusedCommit),
        (both, value): (Atom, Variable),
        origin: Origin,
    ) -> Let {
        let (done, kept) = (self.vars.variable("", Type::Unit), self.vars.variable("", value.ty.clone()));
        let result = Atom::Var(kept.var);
        let lets = vec![Let { bound: kept, op: Op::Prim(Prim::Field(0), vec![both]), origin }];
        let arms = vec![
            Arm { test: ArmTest::Tag(Value::OK), payload: vec![done], body: Block { lets, result } },
            Arm { test: ArmTest::Tag(Value::ERR), payload: vec![refused.failure], body: refused.value },
        ];
        Let { bound: value, op: Op::Switch { subject: committed, arms }, origin }
    }

    /// Returns whether a refused commit of a transaction is no end of the flow, and has a value behind the step.
    pub(super) fn has_refused_commit(&self, transaction: Var) -> bool {
        self.refused_commits.contains_key(&transaction)
    }
}

/// Returns the number of commits in a step that end its transaction.
fn last_commits(step: &OpenBlock) -> usize {
    let mut count = 0;
    step.each_binding(&mut |binding| {
        if let Op::Call(call) = &binding.op {
            let is_last = call.arguments.last() == Some(&Atom::Value(Value::Bool(true)));
            count += usize::from(*call.function == *COMMIT && is_last);
        }
    });
    count
}
