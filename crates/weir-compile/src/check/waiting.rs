//! Checks `within`, `race` and `retry`.

use weir_syntax::ast::{Argument, Block, Expr, ExprKind, LiteralValue};
use weir_syntax::{Code, Diagnostic};

use super::{Expected, TypeChecker};
use crate::lang_items::WAIT_FOR_ATTEMPT;
use crate::types::Ty;

/// The highest number of tries of a `retry`.
const TRIES_MAX: i64 = 1_000;

impl<'a> TypeChecker<'a, '_> {
    /// Checks `value within limit`, a `Result` that also fails on a timeout. A `Result` that fails with a `Failure`
    /// keeps its type.
    pub(super) fn within(&mut self, value: &'a Expr, limit: &'a Expr) -> Ty {
        let ty = self.expr(value, None);
        self.expr(limit, Some(&Expected::new(Ty::DURATION, limit.span, "a limit is a `Duration`")));
        match self.inference.shallow(&ty) {
            Ty::Result(pair) if self.inference.unify(&pair.1, &Ty::FAILURE) => Ty::Result(pair),
            Ty::Error => Ty::Error,
            ty if ty.is_never() => Ty::NEVER,
            ty => Ty::result(ty, Ty::FAILURE),
        }
    }

    /// Checks `race { a, b }`, whose bodies have one common type.
    pub(super) fn race(&mut self, race: &Expr, bodies: &'a [Expr], expected: Option<&Expected>) -> Ty {
        if bodies.is_empty() {
            let diagnostic = Diagnostic::new(Code::MissingArgument, "this `race` has no bodies")
                .at(race.span, "expected at least one expression")
                .hint("add expressions: `race { a(), b() }`");
            self.report(diagnostic);
            return Ty::Error;
        }
        let mut join = super::control::Join::new(expected);
        for body in bodies {
            let ty = self.expr(body, join.expected());
            join.saw(body.span, ty);
        }
        join.ty()
    }

    /// Checks `retry(3) { … }`, a `Result`. A `?` inside fails the try, not the flow.
    pub(super) fn retry(&mut self, expr: &'a Expr, arguments: &'a [Argument], body: &'a Block) -> Ty {
        self.retry_arguments(expr, arguments);
        let failure = self.inference.fresh();
        let outer = self.retried.replace(failure.clone());
        let ty = self.block(body, None);
        self.retried = outer;
        let (ok, failure) = match self.inference.shallow(&ty) {
            Ty::Result(pair) => {
                self.agree(
                    body.span,
                    Ty::result(pair.0.clone(), pair.1.clone()),
                    &Expected::plain(Ty::result(pair.0.clone(), failure)),
                );
                (pair.0.clone(), pair.1.clone())
            }
            ty => (ty, failure),
        };
        if let Ty::Unknown(_) = self.inference.shallow(&failure) {
            let diagnostic = Diagnostic::new(Code::CannotFail, "nothing in this `retry` can fail")
                .at(body.span, "no `?`, and its value is not a `Result`")
                .hint("remove the `retry`");
            self.report(diagnostic);
            self.inference.unify(&failure, &Ty::Error);
        }
        let ok = if ok.is_never() { self.inference.fresh() } else { ok };
        Ty::result(ok, failure)
    }

    fn retry_arguments(&mut self, expr: &Expr, arguments: &'a [Argument]) {
        let mut tries = None;
        for argument in arguments {
            match argument.name.as_ref().map(weir_syntax::ast::Name::as_str) {
                None | Some("times") => {
                    self.expr(
                        &argument.value,
                        Some(&Expected::new(Ty::INT, argument.span, "the number of tries is an `Int`")),
                    );
                    tries = Some(&argument.value);
                }
                Some("backoff") => {
                    let why = "the back-off is a `Duration`";
                    self.expr(&argument.value, Some(&Expected::new(Ty::DURATION, argument.span, why)));
                    if self.context.library.function(WAIT_FOR_ATTEMPT).is_none() {
                        let diagnostic = Diagnostic::new(
                            Code::UnknownModule,
                            format!("`backoff` needs the function `{WAIT_FOR_ATTEMPT}`"),
                        )
                        .at(argument.span, "the library lacks it")
                        .hint("remove it");
                        self.report(diagnostic);
                    }
                }
                Some(_) => {
                    let diagnostic = Diagnostic::new(Code::UnknownArgument, "`retry` has no such parameter")
                        .at(argument.span, "no such parameter")
                        .hint("it takes a number and `backoff`");
                    self.report(diagnostic);
                    self.expr(&argument.value, None);
                }
            }
        }
        self.tries_of(expr, tries);
    }

    fn tries_of(&mut self, expr: &Expr, tries: Option<&Expr>) {
        let known = match tries.map(|tries| &tries.kind) {
            Some(ExprKind::Literal(literal)) => match literal.value {
                LiteralValue::Int(tries) => Some(tries),
                _ => return,
            },
            Some(ExprKind::Error) => return,
            _ => None,
        };
        match known {
            Some(tries) if (1..=TRIES_MAX).contains(&tries) => {
                _ = self.typed.of_mut(expr.id).at_most.insert(expr.id, tries as u64)
            }
            _ => {
                let span = tries.map_or(expr.span, |tries| tries.span);
                let diagnostic = Diagnostic::new(Code::NotConstant, "the number of tries must be a number")
                    .at(span, format!("expected a number from 1 to {TRIES_MAX}"))
                    .hint("write the number, as in `retry(3) { … }`");
                self.report(diagnostic);
            }
        }
    }
}
