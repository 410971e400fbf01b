//! The functions of statements such as `update`: they do not wait, and in a transaction they write no tables.
//!
//! A statement holds its table while its function runs, so that other flows would wait for the table as long as the function waits.
//!
//! A statement whose function writes tables is a transaction, and a transaction contains no other one. If the statement failed, and the
//! program handled that inside of the transaction around it, what the function has written would stay.

use weir_host::{Signature, Text, Type};
use weir_ir::expr::Atom;
use weir_syntax::{Code, Diagnostic, Span};

use super::{CallingStatement, Lowering};
use crate::lang_items::WAIT_FOR_ATTEMPT;

impl Lowering<'_, '_> {
    /// Returns the statement at this place, which takes a function.
    pub(super) fn calling_statement(&self, name: &'static str, table: &Text, span: Span) -> CallingStatement {
        CallingStatement {
            name,
            table: table.clone(),
            span,
            frame_count: self.frames.len(),
            is_in_transaction: self.steps.iter().any(|step| step.transaction.is_some()),
            around: self.called_in_transaction(span),
            is_reported: false,
        }
    }

    /// Lowers a call of the function of a statement.
    pub(super) fn in_function_of<T>(&mut self, statement: &CallingStatement, call: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.calling_statements.len();
        self.calling_statements.push(statement.clone());
        let value = call(self);
        self.calling_statements.truncate(outside);
        value
    }

    /// Lowers a failure handler of a frame, for which the statements inside of the frame are over.
    pub(super) fn behind_statements_in(&mut self, frame: usize, handle: impl FnOnce(&mut Self) -> Atom) -> Atom {
        let left = self.calling_statements.iter().position(|statement| statement.frame_count > frame);
        let left = self.calling_statements.split_off(left.unwrap_or(self.calling_statements.len()));
        let value = handle(self);
        self.calling_statements.extend(left);
        value
    }

    /// Reports a table that the function of a statement in a transaction writes here.
    pub(super) fn writes_in_function(&mut self, table: &str, span: Span) {
        let Some(statement) = self.calling_statements.iter_mut().find(|statement| statement.is_in_transaction) else {
            return;
        };
        if std::mem::replace(&mut statement.is_reported, true) {
            return;
        }
        let CallingStatement { name, table: changed, span: place, around, .. } = statement.clone();
        let [written, changed] = [table, &changed].map(|table| self.context.name_at(table, place));
        let message =
            format!("a transaction inside a transaction: the function of `{changed}.{name}` writes `{written}`");
        let mut diagnostic = Diagnostic::new(Code::TransactionBody, message)
            .at(place, "a transaction of its own, because its function writes tables")
            .because(self.context.located(span), format!("writes `{written}`"));
        if let Some((place, why)) = around {
            diagnostic = diagnostic.because(place, why);
        }
        let hint = format!(
            "write `{written}` in the transaction around the `{name}`, before or behind it: both take effect together"
        );
        self.context.report_once(diagnostic.hint(hint));
    }

    /// Reports a call that waits here in the function of a statement.
    pub(super) fn waits_in_function(&mut self, signature: &Signature, span: Span) {
        let Some(CallingStatement { name, table, span: place, frame_count, .. }) = self.calling_statements.last()
        else {
            return;
        };
        let table = self.context.name_at(table, *place);
        let path = signature.path();
        let (waiting, advice) = match signature.result {
            _ if path == WAIT_FOR_ATTEMPT => {
                ("a `backoff`".to_owned(), format!("remove the `backoff`, or put the `retry` around the `{name}`"))
            }
            Type::Unit => (format!("`{path}`"), format!("move it out of the `{name}`")),
            _ => (format!("`{path}`"), format!("call it before the `{name}`, and use its value in the function")),
        };
        let message = format!("{waiting} waits, and may not stand in the function of `{table}.{name}`");
        let mut diagnostic = Diagnostic::new(Code::TransactionBody, message)
            .at(span, format!("other flows would wait for `{table}` meanwhile"))
            .because(*place, format!("holds `{table}` while its function runs"));
        if let Some(call) = self.call_in(*place, *frame_count, span) {
            diagnostic = diagnostic.because(call, "called in the function");
        }
        self.context.report_once(diagnostic.hint(advice));
    }
}
