//! Checks blocks and statements.

use weir_syntax::ast::{Block, Expr, ExprKind, Let, PatternKind, Statement, StatementKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::{ExhaustivenessCheck, Expected, TypeChecker};
use crate::typed_tree::UnreachableCode;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Checks a block. Returns the type of its value, or [`Ty::NEVER`] if its end is unreachable.
    pub(super) fn block(&mut self, block: &'a Block, expected: Option<&Expected>) -> Ty {
        let mark = self.scope.mark();
        let ty = self.open_block(block, expected);
        self.scope.leave(mark);
        ty
    }

    /// Checks a block like [`TypeChecker::block`], whose names stay in scope.
    pub(super) fn open_block(&mut self, block: &'a Block, expected: Option<&Expected>) -> Ty {
        let value = block.value();
        let gives_unit = expected.is_some_and(|expected| self.inference.shallow(&expected.ty) == Ty::UNIT);
        let (mut diverges, mut found_unreachable) = (false, false);
        let mut ty = Ty::UNIT;
        for (at, statement) in block.statements.iter().enumerate() {
            let is_value = value.is_some() && at + 1 == block.statements.len();
            if diverges && !found_unreachable {
                found_unreachable = true;
                let (leaves, rest) = (block.statements[at - 1].span, &block.statements[at..]);
                let has_handler = rest.iter().any(|each| matches!(each.kind, StatementKind::FailureHandler(_)));
                let end = rest.last().filter(|_| !has_handler).map(|last| last.span.end);
                self.typed.here().unreachable.push(UnreachableCode { leaves, first: statement.span, end });
            }
            if let (StatementKind::Expr(expr), true, false) = (&statement.kind, is_value, gives_unit) {
                // A value after a diverging statement is unreachable, so that its type does not matter.
                ty = self.expr(expr, expected.filter(|_| !diverges));
            } else {
                diverges |= self.statement(statement).is_never();
            }
        }
        if gives_unit && value.is_some() {
            self.typed.here().unit_blocks.insert(block.span.start);
        }
        if diverges || ty.is_never() {
            return Ty::NEVER;
        }
        match expected {
            Some(expected) if value.is_none() => self.without_value(block, expected),
            _ => ty,
        }
    }

    /// Reports a block without a value in a place that expects one.
    fn without_value(&mut self, block: &Block, expected: &Expected) -> Ty {
        if self.inference.unify(&Ty::UNIT, &expected.ty) {
            return Ty::UNIT;
        }
        let wanted = self.inference.resolve(&expected.ty);
        let mut diagnostic =
            Diagnostic::new(Code::TypeMismatch, format!("expected `{wanted}`, but this block has no value"))
                .at(end_of(block), "it ends here");
        if let Some((place, why)) = &expected.why {
            diagnostic = diagnostic.because(*place, why.clone());
        }
        self.report(match block.statements.last().map(|last| (&last.kind, last.span)) {
            Some((StatementKind::Let(binding), span)) => match &binding.pattern.kind {
                PatternKind::Bind(name) => {
                    diagnostic.suggest(format!("add the value: `{name}`"), span.at_end(), format!("\n{name}"))
                }
                _ => diagnostic.hint("end the block with the value"),
            },
            _ => diagnostic.hint(format!("end the block with a value of the type `{wanted}`")),
        });
        Ty::Error
    }

    fn statement(&mut self, statement: &'a Statement) -> Ty {
        match &statement.kind {
            StatementKind::Let(binding) => self.let_(binding),
            StatementKind::Expr(expr) => {
                let ty = self.expr(expr, None);
                self.dropped(expr, &ty);
                ty
            }
            StatementKind::Expect(condition) => {
                self.expect(condition);
                Ty::UNIT
            }
            // Handlers are checked before the body that contains them.
            StatementKind::FailureHandler(_) => Ty::UNIT,
        }
    }

    /// Warns of a discarded `Result`.
    fn dropped(&mut self, expr: &Expr, ty: &Ty) {
        let resolved = self.inference.resolve(ty);
        let diagnostic = Diagnostic::new(Code::UnhandledFailure, "this failure is not handled")
            .at(expr.span, format!("has the type `{resolved}`"));
        let advice = "add `?` to end the flow if it fails, or handle it with `else { … }`";
        let diagnostic = match resolved {
            Ty::Result(_) => diagnostic.suggest(advice, expr.span.at_end(), "?"),
            Ty::List(of) if self.fallible(&of) => diagnostic.hint("handle it for each element, inside the `for`"),
            _ => return,
        };
        self.report(diagnostic);
    }

    fn let_(&mut self, binding: &'a Let) -> Ty {
        let written = binding.ty.as_ref().map(|ty| {
            let written = self.resolve_type(ty);
            Expected::new(written, ty.span, "the declared type")
        });
        let unwraps = binding.otherwise.is_some() && !super::pattern::names_outcome(&binding.pattern);
        let value = if unwraps { self.expr(&binding.value, None) } else { self.expr(&binding.value, written.as_ref()) };
        let mut ty = if self.one_armed(&binding.value) { Ty::Error } else { value.clone() };
        let mut failure = None;
        if unwraps && let Some((inner, failed)) = self.unwrapped(&value) {
            ty = match &written {
                Some(written) => self.agree(binding.value.span, inner, written),
                None => inner,
            };
            failure = Some(failed);
        }
        if let Some(otherwise) = &binding.otherwise {
            self.let_otherwise(binding, otherwise, failure, &ty);
        }
        if let (Some(written), true) = (written, ty == Ty::Error || ty.is_never()) {
            ty = written.ty;
        }
        let clean = self.pattern(&binding.pattern, &ty);
        if let (Some(local), Some(call)) =
            (self.typed.pattern_local(binding.pattern.id), self.typed.call(binding.value.id))
        {
            self.local_calls.insert(local, call.target.clone());
        }
        if clean && binding.otherwise.is_none() {
            self.matches.push(ExhaustivenessCheck::Irrefutable(&binding.pattern));
        }
        if value.is_never() { Ty::NEVER } else { Ty::UNIT }
    }

    /// Reports an `if` without `else` as the value of a name.
    fn one_armed(&mut self, value: &Expr) -> bool {
        let ExprKind::If { then, otherwise: None, .. } = &value.kind else { return false };
        if then.value().is_none() {
            return false;
        }
        let diagnostic = Diagnostic::new(Code::TypeMismatch, "this `if` has no `else`, and so no value")
            .at(value.span, "no value if the condition is false")
            .hint("add the other value: `else { … }`");
        self.report(diagnostic);
        true
    }

    /// Checks the `else` of a `let`, which returns a value for the pattern, or diverges if the pattern is refutable.
    fn let_otherwise(
        &mut self,
        binding: &'a Let,
        otherwise: &'a weir_syntax::ast::Otherwise,
        failure: Option<Option<Ty>>,
        ty: &Ty,
    ) {
        let refutable = binding.pattern.is_refutable();
        let cannot_fail = failure.is_none() && !refutable && *ty != Ty::Error;
        let failure = failure.flatten();
        match &otherwise.failure {
            _ if cannot_fail => self.else_cannot_fail(&binding.value, ty),
            Some(name) if failure.is_none() => self.no_failure(name, &binding.value),
            _ => {}
        }
        let expected = Expected::new(ty.clone(), binding.value.span, "replaces this value");
        let found = self.with_failure(otherwise.failure.as_ref(), failure, &otherwise.body, Some(&expected));
        if refutable && !found.is_never() && found != Ty::Error {
            let diagnostic = Diagnostic::new(Code::ElseFallsThrough, "the `else` of this `let` must not fall through")
                .at(otherwise.body.span, "continues with nothing bound")
                .because(binding.pattern.span, "this pattern may not match")
                .hint("end it with `return …`");
            self.report(diagnostic);
        }
    }
}

fn end_of(block: &Block) -> Span {
    match block.statements.last() {
        Some(last) => last.span,
        None => block.span,
    }
}
