//! Checks `value else as failure { … }`: the value, the name of its failure, and the alternative.

use weir_syntax::ast::{Block, Expr, ExprKind, Name, Visitor, walk_expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Exits, Expected, TypeChecker};
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks `value else { … }`.
    pub(super) fn else_(
        &mut self,
        value: &'a Expr,
        failure: Option<&'a Name>,
        otherwise: &'a Expr,
        expected: Option<&Expected>,
    ) -> Ty {
        let ty = self.expr(value, None);
        let (inner, failed) = match self.unwrapped(&ty) {
            Some((inner, failed)) => (inner, failed),
            None => {
                self.else_cannot_fail(value, &ty);
                (Ty::Error, Some(Ty::Error))
            }
        };
        let inner = match expected {
            Some(expected) => self.agree(value.span, inner, expected),
            None => inner,
        };
        let wanted = Expected::new(inner.clone(), value.span, "replaces this value");
        if let (Some(name), None) = (failure, &failed) {
            self.no_failure(name, value);
        }
        self.with_failure(failure, failed, otherwise, Some(&wanted));
        inner
    }

    /// Reports an `else` behind a value that cannot fail, such as one whose failure a `?` has passed on.
    pub(super) fn else_cannot_fail(&mut self, value: &Expr, ty: &Ty) {
        let resolved = self.inference.resolve(ty);
        match &value.kind {
            _ if resolved == Ty::Error || resolved.is_never() => {}
            // That its value is no `Result` has been reported.
            ExprKind::Try(_) if !self.typed.of(value.id).tries.contains_key(&value.id) => {}
            ExprKind::Try(_) => {
                let mark = Span { start: value.span.end - 1, ..value.span };
                let diagnostic = Diagnostic::new(Code::CannotFail, "`?` has passed the failure on before this `else`")
                    .at(mark, "leaves on a failure");
                self.report(diagnostic.fix("leave out the `?`: `else` handles the failure", mark, ""));
            }
            ExprKind::Atomic { body, .. } if passes_on(body) => self.step_cannot_fail(value.span, &resolved),
            _ => self.cannot_fail(value.span, ty, "`else`"),
        }
    }

    /// Reports an `else` behind an `atomic` whose failures leave the `fn` or the flow.
    fn step_cannot_fail(&mut self, step: Span, ty: &Ty) {
        let left = match (&self.retried, &self.exits) {
            (Some(_), _) => "`retry`",
            (None, Exits::Function(_)) => "`fn`",
            (None, _) => "flow",
        };
        let diagnostic = Diagnostic::new(Code::CannotFail, "`else` follows a value that cannot fail")
            .at(step, format!("this is `{ty}`: a `?` or `fail` in the block leaves the whole {left}"))
            .hint("move the `atomic` into a `fn` that returns a `Result`, and put the `else` behind its call");
        self.report(diagnostic);
    }

    /// Reports the name of the failure of a value that has none.
    pub(super) fn no_failure(&mut self, name: &Name, value: &Expr) {
        let diagnostic = Diagnostic::new(Code::CannotFail, "there is no failure to name here")
            .at(name.span, "`None` has no failure")
            .hint(match &value.kind {
                ExprKind::Try(_) => format!("remove `as {name}`: the `?` has passed the failure on"),
                _ => format!("remove `as {name}`"),
            });
        self.report(diagnostic);
    }

    /// Checks the alternative to a failure, with the failure bound to its name.
    pub(super) fn with_failure(
        &mut self,
        failure: Option<&'a Name>,
        ty: Option<Ty>,
        otherwise: &'a Expr,
        expected: Option<&Expected>,
    ) -> Ty {
        let mark = self.scope.mark();
        if let Some(name) = failure {
            let local = self.bind(name.text.clone(), name.span, ty.unwrap_or(Ty::Error));
            self.typed.of_mut(otherwise.id).failure_locals.insert(otherwise.id, local);
        }
        let found = self.expr(otherwise, expected);
        self.scope.leave(mark);
        found
    }
}

/// Returns whether a `?` or a `fail` of a block leaves it with a failure.
fn passes_on(block: &Block) -> bool {
    struct FoundExit(bool);
    impl<'a> Visitor<'a> for FoundExit {
        fn expr(&mut self, expr: &'a Expr) {
            match &expr.kind {
                ExprKind::Retry { .. } => {}
                ExprKind::Try(_) => self.0 = true,
                ExprKind::Call { function, .. } if matches!(&function.kind, ExprKind::Name(name) if name.as_str() == "fail") =>
                {
                    self.0 = true;
                }
                _ => walk_expr(self, expr),
            }
        }
    }
    let mut found = FoundExit(false);
    found.block(block);
    found.0
}
