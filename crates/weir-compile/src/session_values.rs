//! The check of session-scoped shared values: their initial value must be computable at once.
//!
//! It is computed when the first step of a session takes its locks. Nothing may wait there; no function may keep a
//! private state there, because sessions would share it; and no failure may occur there, because it would have no
//! target.

use weir_host::{FunctionCode, Text};
use weir_ir::expr::{Block, Op, Origin, Program};
use weir_syntax::{Code, Diagnostic};

use crate::context::CheckContext;

/// Checks the initial values of session-scoped shared values.
pub(crate) fn check(program: &Program, context: &mut CheckContext<'_>) {
    for shared in program.shared.iter().filter(|shared| shared.per_session) {
        let mut check = SessionValueChecker { name: &shared.name, context };
        check.block(&shared.init);
    }
}

struct SessionValueChecker<'a, 'c> {
    name: &'a Text,
    context: &'a mut CheckContext<'c>,
}

impl SessionValueChecker<'_, '_> {
    fn block(&mut self, block: &Block) {
        block.each_binding(&mut |binding| {
            if let Some(does) = self.fault(&binding.op) {
                self.report(&does, binding.origin);
            }
        });
    }

    /// Returns why an operation may not be part of an initial value.
    fn fault(&self, op: &Op) -> Option<String> {
        match op {
            Op::Call(call) => {
                let function = self.context.library.function(&call.function)?;
                let waits = !matches!(function.code, FunctionCode::Immediate(_));
                let keeps = function.signature.state.is_some();
                let fault = waits.then_some("may wait").or(keeps.then_some("keeps a state of its own"))?;
                Some(format!("`{}` {fault}", call.function))
            }
            Op::Fail(_) => Some("may fail".into()),
            Op::Loop { .. } => Some("may fail at its limit".into()),
            _ => None,
        }
    }

    fn report(&mut self, does: &str, at: Origin) {
        let span = self.context.span(at);
        let message =
            format!("the initial value of `{}`, which each session has, must be computable at once", self.name);
        let diagnostic = Diagnostic::new(Code::SessionValue, message)
            .at(span, does)
            .note("it is computed when a flow of a new session first uses it")
            .hint("start with an empty value and fill it in the flow");
        self.context.report_once(diagnostic);
    }
}
