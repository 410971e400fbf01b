//! The check of session-scoped shared values: their initial value must be computable at once.
//!
//! It is computed when the first step of a session takes its locks. Nothing may wait there; no function may keep a
//! private state there, because sessions would share it; and no failure may occur there, because it would have no
//! target.

use weir_host::{FunctionCode, Library, Text};
use weir_ir::expr::{Block, Op, Origin, Program};
use weir_syntax::{Code, Diagnostic, SourceId, Span};

/// Checks the initial values of session-scoped shared values.
pub(crate) fn check(program: &Program, library: &Library, source: SourceId, diagnostics: &mut Vec<Diagnostic>) {
    for shared in program.shared.iter().filter(|shared| shared.per_session) {
        let mut check = SessionValueChecker { name: &shared.name, library, source, diagnostics };
        check.block(&shared.init);
    }
}

struct SessionValueChecker<'a> {
    name: &'a Text,
    library: &'a Library,
    source: SourceId,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl SessionValueChecker<'_> {
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
                let function = self.library.function(&call.function)?;
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
        let span = Span { source: self.source, start: at.start, end: at.end };
        let message =
            format!("the initial value of `{}`, which each session has, must be computable at once", self.name);
        let diagnostic = Diagnostic::new(Code::SessionValue, message)
            .at(span, does)
            .note("it is computed when a flow of a new session first uses it")
            .hint("start with an empty value and fill it in the flow");
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }
}
