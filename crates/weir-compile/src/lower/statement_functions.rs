//! The functions of statements such as `update` in a transaction: they write no tables.
//!
//! A statement whose function writes tables is a transaction, and a transaction contains no other one. If the statement failed, and the
//! program handled that inside of the transaction around it, what the function has written would stay.

use weir_host::Text;
use weir_ir::expr::Atom;
use weir_syntax::{Code, Diagnostic, Span};

use super::{InnerStatement, Lowering};

impl Lowering<'_, '_> {
    /// Returns the statement at this place if it is in a transaction.
    pub(super) fn inner_statement(&self, name: &'static str, table: &Text, span: Span) -> Option<InnerStatement> {
        self.steps.iter().rfind(|step| step.transaction.is_some())?;
        let (around, frame_count) = (self.called_in_transaction(), self.frames.len());
        Some(InnerStatement { name, table: table.clone(), span, frame_count, around, is_reported: false })
    }

    /// Lowers a call of the function of a statement.
    pub(super) fn in_function_of<T>(
        &mut self,
        statement: Option<&InnerStatement>,
        call: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outside = self.inner_statements.len();
        self.inner_statements.extend(statement.cloned());
        let value = call(self);
        self.inner_statements.truncate(outside);
        value
    }

    /// Lowers a failure handler of a frame, for which the statements inside of the frame are over.
    pub(super) fn behind_statements_in(&mut self, frame: usize, handle: impl FnOnce(&mut Self) -> Atom) -> Atom {
        let left = self.inner_statements.iter().position(|statement| statement.frame_count > frame);
        let left = self.inner_statements.split_off(left.unwrap_or(self.inner_statements.len()));
        let value = handle(self);
        self.inner_statements.extend(left);
        value
    }

    /// Reports a table that the function of a statement in a transaction writes here.
    pub(super) fn writes_in_function(&mut self, table: &str, span: Span) {
        let Some(statement) = self.inner_statements.first_mut() else { return };
        if std::mem::replace(&mut statement.is_reported, true) {
            return;
        }
        let InnerStatement { name, table: changed, span: place, around, .. } = statement.clone();
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
}
