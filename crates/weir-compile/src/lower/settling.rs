//! The waits of flows until what they have read and written in tables is durable.
//!
//! A flow that only reads tables, and meets other flows nowhere else, depends on the commits that its reads have seen, and waits
//! for these only. Every other flow waits for all commits before: it may have learned of one from a shared value. A write of an existing
//! database is an effect outside.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{Atom, Block, Op};
use weir_syntax::Span;

use super::branch::FallibleValue;
use super::statement_place::READS;
use super::{Binding, Lowering};
use crate::lang_items::{SETTLE, TABLES};

impl Lowering<'_, '_> {
    /// Waits until what the flow has read and written is durable, before its answer and before effects outside. `span` is the
    /// place of the wait if the flow has no statement before it.
    pub(super) fn settle(&mut self, span: Span) {
        let stored = self.program.declarations.tables.values().any(|table| table.soft.is_none());
        if !stored || !self.answers || self.builder().has_ended() {
            return;
        }
        let span = self.statement.write.or(self.statement.read).unwrap_or(span);
        let of = Type::result(Type::Unit, Type::Failure);
        let all = vec![Some(Binding::Atom(Atom::Value(Value::Bool(true))))];
        let subject = self.call_host(&SETTLE.into(), all, of.clone(), (span, &[]));
        self.match_fallible(FallibleValue { subject, of }, &Type::Unit, span, |lowering, failure| {
            lowering.fail(failure.unwrap_or(Atom::Value(Value::Unit)), span)
        });
    }

    /// Waits before a write of these tables, if they are of an existing database, until what the flow has written in the program's own one
    /// is durable: others see the write at once, and behind a crash it would be there alone.
    pub(super) fn settle_before_existing<'t>(&mut self, mut tables: impl Iterator<Item = &'t str>, span: Span) {
        let declarations = &self.program.declarations;
        let has_own = declarations.tables.values().any(|table| table.soft.is_none() && table.existing.is_none());
        let is_existing = |table: &str| declarations.existing_database(table).is_some();
        if has_own && self.steps.is_empty() && tables.any(is_existing) {
            self.settle(span);
        }
    }

    /// Has a flow that only reads tables wait for what it has read.
    pub(super) fn settle_only_reads(&self, body: &mut Block) {
        if self.answers && self.only_reads_tables(body) {
            wait_for_reads(body);
        }
    }

    fn only_reads_tables(&self, body: &Block) -> bool {
        let mut only_reads = true;
        body.each_operand(&mut |atom| only_reads &= atom.shared().is_none_or(|name| self.is_stored(name)));
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let statement = call.function.strip_prefix(TABLES).and_then(|rest| rest.strip_prefix('.'));
            only_reads &= match statement {
                Some(statement) => READS.contains(&statement),
                None => self.has_no_state(&call.function),
            };
        });
        only_reads
    }

    /// Returns whether the calls of a function have no private state, in which flows could meet.
    fn has_no_state(&self, function: &Text) -> bool {
        self.context.library.function(function).is_some_and(|function| function.signature.state.is_none())
    }
}

/// Makes each wait of a body one for what the flow has read.
fn wait_for_reads(body: &mut Block) {
    for binding in &mut body.lets {
        match &mut binding.op {
            Op::Call(call) if call.function.as_str() == SETTLE => {
                call.arguments = vec![Atom::Value(Value::Bool(false))]
            }
            op => op.blocks_mut().for_each(wait_for_reads),
        }
    }
}
