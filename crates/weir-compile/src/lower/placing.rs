//! Places the changes of transactions: a change whose failure can only end the flow is sent to the database, and its flow goes on
//! before it is answered (`tables.place_insert` and others).
//!
//! The failure, when it is learned, ends the flow as if it had been there at once, and takes back the transaction. So a change is
//! placed if its failure takes back the transaction and ends the flow without another effect, and if the step that follows changes
//! nothing but tables. The failure carries its own place in the source.
//!
//! In the same way, the commit of such a step is placed: the step ends, and with it its locks, when the commit is sent, and the flow
//! waits for it behind the step (`tables.place_commit`, `tables.committed`). Whoever holds the locks next follows on the same
//! connection. The commit of a step that has a time limit is not placed: if the time is up behind the step, the flow would be told that
//! it is, instead of the result of what is committed.

use std::collections::BTreeSet;

use weir_host::{Passing, Text, Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Call, Let, Op, Origin};
use weir_ir::prim::Prim;
use weir_ir::program::Var;

use super::Lowering;
use super::table_description::{option, record};
use crate::lang_items::{BEGIN, COMMIT, COMMITTED, PLACE_COMMIT, ROLL_BACK, TABLES};

/// The changes that can be placed.
const PLACED: [&str; 3] = ["insert", "upsert", "replace"];

impl Lowering<'_, '_> {
    /// Places changes in the transactions of a body, and lets these be executed again if the database refuses them.
    pub(super) fn place_changes(&mut self, body: &mut Block) {
        if !self.program.declarations.tables.is_empty() {
            self.place_changes_in(body, false);
        }
    }

    /// Places changes in the transactions of a block. Their commits are placed unless the block is `inside` an `atomic`, which keeps
    /// its locks, or a body that may be given up.
    fn place_changes_in(&mut self, block: &mut Block, inside: bool) {
        for mut binding in std::mem::take(&mut block.lets) {
            let is_limited = matches!(binding.op, Op::Within { .. } | Op::Race { .. });
            let (mut is_inside, mut is_transaction, mut behind) = (inside || is_limited, false, None);
            if let Op::Atomic { body, .. } = &mut binding.op {
                is_inside = true;
                if let Some(transaction) = transaction_of(body) {
                    is_transaction = true;
                    if self.changes_only_tables_and(&BTreeSet::new(), body) {
                        place_in(body, transaction);
                        let may_place = !inside && binding.bound.ty != Type::Never;
                        behind = (may_place && self.may_place_commits(body, transaction)).then_some(transaction);
                    }
                    self.expect_rows(body, transaction);
                    self.send_reads_together(body, transaction);
                }
            }
            binding.op.blocks_mut().for_each(|inner| self.place_changes_in(inner, is_inside));
            let from = block.lets.len();
            match behind {
                Some(transaction) => self.place_commit(binding, transaction, &mut block.lets),
                None => block.lets.push(binding),
            }
            if is_transaction {
                self.repeat_if_refused(&mut block.lets, from);
            }
        }
    }

    /// Returns whether the commits of a step can be placed: their failures end the flow, or have a value behind the step, as that of an
    /// `update` outside of `atomic` has not; and all their tables are stored, because one in memory cannot be taken back behind the step.
    fn may_place_commits(&self, block: &Block, transaction: Var) -> bool {
        block.lets.iter().enumerate().all(|(at, binding)| match &binding.op {
            Op::Call(call) if call.function == Text::from(COMMIT) => {
                let is_stored = matches!(call.arguments.first(), Some(Atom::Shared(table)) if self.is_stored(table));
                let ends_flow = failure_of(binding, block.lets.get(at + 1)).is_some();
                is_stored && (ends_flow || self.has_refused_commit(transaction))
            }
            op => op.blocks().all(|inner| self.may_place_commits(inner, transaction)),
        })
    }

    /// Places the commit of a step, and waits for it behind the step.
    fn place_commit(&mut self, mut step: Let, transaction: Var, lets: &mut Vec<Let>) {
        let origin = step.origin;
        let Op::Atomic { body, .. } = &mut step.op else { return lets.push(step) };
        place_commit_in(body, false);
        let pair = Type::Tuple([step.bound.ty.clone(), Type::Int].into_iter().collect());
        let (inside, outside) = (self.vars.variable("", pair.clone()), self.vars.variable("", pair));
        let parts = vec![body.result.clone(), Atom::Var(transaction)];
        body.result = Atom::Var(inside.var);
        body.lets.push(Let { bound: inside, op: Op::Prim(Prim::Record, parts), origin });
        let both = Atom::Var(outside.var);
        let value = std::mem::replace(&mut step.bound, outside);
        lets.push(step);
        let number = self.vars.variable("", Type::Int);
        let committed = self.vars.variable("", Type::result(Type::Unit, Type::Failure));
        let site = self.unique(COMMITTED.to_owned()).into();
        let call = Call::new(COMMITTED.into(), site, vec![Atom::Var(number.var)]);
        let end = Atom::Var(committed.var);
        lets.push(Let { bound: number, op: Op::Prim(Prim::Field(1), vec![both.clone()]), origin });
        lets.push(Let { bound: committed, op: Op::Call(call), origin });
        match self.refused_commits.remove(&transaction) {
            Some(refused) => lets.push(self.value_unless_refused((end, refused), (both, value), origin)),
            None => {
                lets.push(self.end_unless_committed(end, origin));
                lets.push(Let { bound: value, op: Op::Prim(Prim::Field(0), vec![both]), origin });
            }
        }
    }

    /// Returns the operation that ends the flow with the failure of a commit, if it has failed.
    fn end_unless_committed(&mut self, committed: Atom, origin: Origin) -> Let {
        let unit = Atom::Value(Value::Unit);
        let (done, failure) = (self.vars.variable("", Type::Unit), self.vars.variable("", Type::Failure));
        let fails = Op::Fail(Atom::Var(failure.var));
        let failing = vec![Let { bound: self.vars.variable("", Type::Never), op: fails, origin }];
        let arm = |tag, payload, lets| Arm {
            test: ArmTest::Tag(tag),
            payload: vec![payload],
            body: Block { lets, result: unit.clone() },
        };
        let arms = vec![arm(Value::OK, done, Vec::new()), arm(Value::ERR, failure, failing)];
        Let { bound: self.vars.variable("", Type::Unit), op: Op::Switch { subject: committed, arms }, origin }
    }

    /// Returns whether no call of a step changes a value that flows share and that is neither a table nor one of these.
    pub(super) fn changes_only_tables_and(&self, others: &BTreeSet<Text>, body: &Block) -> bool {
        let tables = &self.program.declarations.tables;
        let mut only_tables = true;
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let Some(function) = self.context.library.function(&call.function) else { return };
            let signature = &function.signature;
            let changes_other = call.arguments.iter().zip(&signature.parameters).any(|(atom, parameter)| {
                matches!(atom, Atom::Shared(name) if !tables.contains_key(name.as_str()) && !others.contains(name))
                    && parameter.passing == Passing::Change
            });
            only_tables &= !changes_other && signature.state.is_none();
        });
        only_tables
    }
}

/// Places the commits of the last table of a step. One before a `return` is waited for: behind the step, the transaction could not be
/// executed again.
fn place_commit_in(block: &mut Block, returns: bool) {
    let returns = returns || matches!(block.lets.last(), Some(Let { op: Op::Return(_), .. }));
    for binding in &mut block.lets {
        match &mut binding.op {
            Op::Call(call) if call.function == Text::from(COMMIT) && !returns => {
                if call.arguments.last() == Some(&Atom::Value(Value::Bool(true))) {
                    call.function = PLACE_COMMIT.into();
                }
            }
            op => op.blocks_mut().for_each(|inner| place_commit_in(inner, returns)),
        }
    }
}

/// Returns the variable with the number of the transaction that a step begins.
fn transaction_of(body: &Block) -> Option<Var> {
    let begins = |binding: &&Let| matches!(&binding.op, Op::Call(call) if call.function == Text::from(BEGIN));
    body.lets.iter().find(begins).map(|binding| binding.bound.var)
}

/// Places the changes of a transaction. In a body that may be cancelled, the failure of one might end the body only.
fn place_in(body: &mut Block, transaction: Var) {
    for at in 0..body.lets.len() {
        let (before, behind) = body.lets.split_at_mut(at + 1);
        let binding = &mut before[at];
        if let Some(site) = site_of(binding, behind.first(), transaction)
            && let Op::Call(call) = &mut binding.op
        {
            let statement = call.function.rsplit('.').next().unwrap_or_default().to_owned();
            call.function = format!("{TABLES}.place_{statement}").into();
            call.arguments.push(Atom::Value(option(Some(site))));
        }
        if let Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } | Op::Loop { .. } = &binding.op {
            binding.op.blocks_mut().for_each(|inner| place_in(inner, transaction));
        }
    }
}

/// Returns the description, of the type `tables.FailureSite`, of the place to which the failure of a change belongs, if the change
/// can be placed.
fn site_of(binding: &Let, next: Option<&Let>, transaction: Var) -> Option<Value> {
    let Op::Call(call) = &binding.op else { return None };
    let statement = call.function.strip_prefix(TABLES)?.strip_prefix('.')?;
    if !PLACED.contains(&statement) || call.arguments.get(1) != Some(&Atom::Var(transaction)) {
        return None;
    }
    let (passed, left_at) = failure_of(binding, next)?;
    let passed = passed.unwrap_or_else(|| Value::list(Vec::new()));
    let is_in_flow = matches!(&passed, Value::List(places) if places.is_empty());
    if is_in_flow && binding.origin.inlined_call.is_some() {
        return None;
    }
    let position = if is_in_flow { binding.origin.start } else { left_at };
    Some(record([passed, Value::Int(position.into())]))
}

/// Returns the places that the failure of a call passes and the position where it leaves the flow, if the operation behind the call
/// does nothing else with it.
fn failure_of(binding: &Let, next: Option<&Let>) -> Option<(Option<Value>, u32)> {
    let Op::Switch { subject, arms } = &next?.op else { return None };
    if *subject != Atom::Var(binding.bound.var) || arms.len() != 2 {
        return None;
    }
    leaves_flow(arms.iter().find(|arm| arm.test == ArmTest::Tag(Value::ERR))?)
}

/// Returns the places that a failure passes and the position where it leaves the flow, if an arm does nothing but take back the
/// transaction and end the flow with it.
fn leaves_flow(arm: &Arm) -> Option<(Option<Value>, u32)> {
    let mut failure = Atom::Var(arm.payload.first()?.var);
    let mut passed = None;
    let (last, before) = arm.body.lets.split_last()?;
    for binding in before {
        match &binding.op {
            Op::Call(call) if call.function == Text::from(ROLL_BACK) => {}
            Op::Prim(Prim::Propagate, operands) if operands.first() == Some(&failure) && passed.is_none() => {
                let Some(Atom::Value(places)) = operands.get(1) else { return None };
                passed = Some(places.clone());
                failure = Atom::Var(binding.bound.var);
            }
            _ => return None,
        }
    }
    matches!(&last.op, Op::Fail(ends) if *ends == failure).then_some((passed, last.origin.start))
}
