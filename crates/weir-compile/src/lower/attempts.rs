//! Lets transactions be executed again that the database refuses, because another program is in the way or the connection is lost
//! ([`Op::Transaction`]): the program does not see that.
//!
//! A transaction can be executed again if all that it changes is taken back with it: rows of tables, and shared values that its step
//! restores. One that also changes a value of its flow, or calls a function that has a state or an effect outside, is executed once, and
//! its refusal is a failure of the kind `conflict`.

use std::collections::BTreeSet;

use weir_host::{Passing, Text, Type, Value, World};
use weir_ir::expr::{Atom, Block, Let, Op};

use super::Lowering;
use crate::lang_items::{BEGIN, TABLES};

impl Lowering<'_, '_> {
    /// Makes one operation of those from this one on, which are a transaction, if it can be executed again.
    pub(super) fn repeat_if_refused(&mut self, lets: &mut Vec<Let>, from: usize) {
        let mut body = Block { lets: lets.split_off(from), result: Atom::Value(Value::Unit) };
        if !self.can_be_repeated(&body) {
            return lets.append(&mut body.lets);
        }
        let is_last = self.vars.variable("", Type::Bool);
        body.each_binding_mut(&mut |binding| {
            if let Op::Call(call) = &mut binding.op
                && call.function == Text::from(BEGIN)
            {
                call.arguments[0] = Atom::Var(is_last.var);
            }
        });
        let Some(last) = body.lets.last_mut() else { return };
        let inside = self.vars.variable("", last.bound.ty.clone());
        if inside.ty != Type::Never {
            body.result = Atom::Var(inside.var);
        }
        let (bound, origin) = (std::mem::replace(&mut last.bound, inside), last.origin);
        lets.push(Let { bound, op: Op::Transaction { is_last, body }, origin });
    }

    fn can_be_repeated(&self, body: &Block) -> bool {
        self.uses_stored_tables(body)
            && self.changes_only_tables_and(&restored_in(body), body)
            && self.has_no_effect_outside(body)
            && self.keeps_captured_values(body)
    }

    /// Returns whether a transaction uses a stored table: one in memory refuses nothing.
    fn uses_stored_tables(&self, body: &Block) -> bool {
        let mut uses = false;
        body.each_binding(&mut |binding| {
            if let Op::Call(call) = &binding.op
                && let Some(Atom::Shared(table)) = call.arguments.first()
            {
                uses |= self.is_stored(table);
            }
        });
        uses
    }

    /// Returns whether a block has no effect but those of statements on tables. The function of an `update` may have others.
    fn has_no_effect_outside(&self, body: &Block) -> bool {
        let mut has_none = true;
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let signature = self.context.library.function(&call.function).map(|function| &function.signature);
            has_none &= signature.is_some_and(|signature| {
                signature.module.as_str() == TABLES || signature.effects.world != World::Writes
            });
        });
        has_none
    }

    /// Returns whether a block leaves the values of its flow as they are.
    fn keeps_captured_values(&self, body: &Block) -> bool {
        let captured = body.free_variables(&[]);
        let mut changes = false;
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let signature = self.context.library.function(&call.function).map(|function| &function.signature);
            let parameters = signature.map_or(&[][..], |signature| &signature.parameters);
            changes |= call.arguments.iter().zip(parameters).any(|(argument, parameter)| {
                parameter.passing == Passing::Change && argument.variable().is_some_and(|var| captured.contains(&var))
            });
        });
        !changes && !captured.iter().any(|var| self.vars.type_of(*var).is_none_or(|ty| self.is_move_only(ty)))
    }
}

/// Returns the shared values that the steps of a block restore.
fn restored_in(body: &Block) -> BTreeSet<Text> {
    let mut restored = BTreeSet::new();
    body.each_binding(&mut |binding| {
        if let Op::Atomic { restores, .. } = &binding.op {
            restored.extend(restores.iter().cloned());
        }
    });
    restored
}
