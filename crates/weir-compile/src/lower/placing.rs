//! Places the changes of transactions: a change whose failure can only end the flow is sent to the database, and its flow goes on
//! before it is answered (`tables.place_insert` and others).
//!
//! The failure, when it is learned, ends the flow as if it had been there at once, and takes back the transaction. So a change is
//! placed if its failure takes back the transaction and ends the flow without another effect, and if the step that follows changes
//! nothing but tables. The failure carries its own place in the source.

use weir_host::{Passing, Text, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Let, Op};
use weir_ir::prim::Prim;
use weir_ir::program::Var;

use super::Lowering;
use super::table_description::{option, record};
use crate::lang_items::{ROLL_BACK, TABLES};

/// The changes that can be placed.
const PLACED: [&str; 3] = ["insert", "upsert", "replace"];

impl Lowering<'_, '_> {
    /// Places changes in the transactions of a body.
    pub(super) fn place_changes(&mut self, body: &mut Block) {
        if self.program.declarations.tables.is_empty() {
            return;
        }
        for binding in &mut body.lets {
            if let Op::Atomic { body, .. } = &mut binding.op
                && let Some(transaction) = transaction_of(body)
            {
                if self.changes_only_tables(body) {
                    place_in(body, transaction);
                }
                self.expect_rows(body, transaction);
            }
            binding.op.blocks_mut().for_each(|inner| self.place_changes(inner));
        }
    }

    /// Returns whether no call of a step changes a value that flows share and that is no table.
    fn changes_only_tables(&self, body: &Block) -> bool {
        let tables = &self.program.declarations.tables;
        let mut only_tables = true;
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let Some(function) = self.context.library.function(&call.function) else { return };
            let signature = &function.signature;
            let others = call.arguments.iter().zip(&signature.parameters).any(|(atom, parameter)| {
                matches!(atom, Atom::Shared(name) if !tables.contains_key(name.as_str()))
                    && parameter.passing == Passing::Change
            });
            only_tables &= !others && signature.state.is_none();
        });
        only_tables
    }
}

/// Returns the variable with the number of the transaction that a step begins.
fn transaction_of(body: &Block) -> Option<Var> {
    let begins = |binding: &&Let| matches!(&binding.op, Op::Call(call) if *call.function == format!("{TABLES}.begin"));
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
    let Op::Switch { subject, arms } = &next?.op else { return None };
    if *subject != Atom::Var(binding.bound.var) || arms.len() != 2 {
        return None;
    }
    let failed = arms.iter().find(|arm| arm.test == ArmTest::Tag(Value::ERR))?;
    let (passed, left_at) = leaves_flow(failed)?;
    let passed = passed.unwrap_or_else(|| Value::list(Vec::new()));
    let is_in_flow = matches!(&passed, Value::List(places) if places.is_empty());
    if is_in_flow && binding.origin.inlined_call.is_some() {
        return None;
    }
    let position = if is_in_flow { binding.origin.start } else { left_at };
    Some(record([passed, Value::Int(position.into())]))
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
