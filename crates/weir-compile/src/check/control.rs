//! Checks control flow: branches, failures, loops, closures.

use weir_host::Value;
use weir_syntax::ast::{Arm, Block, ClosureParameter, Expr, ExprKind, Pattern, QueryClauses};
use weir_syntax::{Code, Diagnostic, Span};

use super::constant_patterns::PatternPlace;
use super::{ExhaustivenessCheck, Exits, Expected, TypeChecker};
use crate::typed_tree::{CallTarget, FailureTarget, Resolution, ResolvedTry};
use crate::types::Ty;

/// The highest bound of a `loop`.
const LOOP_ROUNDS_MAX: i64 = 1_000_000_000;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn fallible(&self, ty: &Ty) -> bool {
        matches!(self.inference.shallow(ty), Ty::Result(_))
    }

    /// Returns the type inside a `Result` or `Option`, and the type of the failure, if any.
    pub(super) fn unwrapped(&self, ty: &Ty) -> Option<(Ty, Option<Ty>)> {
        match self.inference.shallow(ty) {
            Ty::Result(pair) => Some((pair.0.clone(), Some(pair.1.clone()))),
            Ty::Option(some) => Some(((*some).clone(), None)),
            _ => None,
        }
    }

    pub(super) fn cannot_fail(&mut self, span: Span, ty: &Ty, what: &str) {
        let ty = self.inference.resolve(ty);
        if ty == Ty::Error || ty.is_never() {
            return;
        }
        let diagnostic = Diagnostic::new(Code::CannotFail, format!("{what} follows a value that cannot fail"))
            .at(span, format!("this is `{ty}`, neither a `Result` nor an `Option`"));
        self.report(match ty == Ty::DURATION && what == "`?`" {
            true => diagnostic.hint("put a value and its time limit into parentheses: `(value within 1s)?`"),
            false => diagnostic.hint(format!("remove the {what}")),
        });
    }

    pub(super) fn try_(&mut self, expr: &'a Expr, value: &'a Expr) -> Ty {
        let ty = self.expr(value, None);
        let Some((inner, failure)) = self.unwrapped(&ty) else {
            self.cannot_fail(value.span, &ty, "`?`");
            return if ty.is_never() { Ty::NEVER } else { Ty::Error };
        };
        let Some(failure) = failure else {
            let diagnostic = Diagnostic::new(Code::CannotFail, "`?` needs a `Result`, and this is an `Option`")
                .at(value.span, format!("this is `{}`", self.inference.resolve(&ty)))
                .hint("handle `None`: `else { … }`, or end the flow there: `else { fail(\"…\") }`");
            self.report(diagnostic);
            return inner;
        };
        let to = self.try_to(value.span, &failure);
        let of = self.failed_call(value);
        self.typed.of_mut(expr.id).tries.insert(expr.id, ResolvedTry { to, of });
        inner
    }

    /// Returns the function that would have failed if the value is a failure.
    fn failed_call(&self, value: &Expr) -> Option<CallTarget> {
        if let Some(call) = self.typed.call(value.id) {
            return Some(call.target.clone());
        }
        match self.typed.resolution(value.id) {
            Some(Resolution::Local(local)) => self.local_calls.get(local).cloned(),
            _ => None,
        }
    }

    /// Returns the target of a failure of this type in the current body, and reports a type that does not fit.
    pub(super) fn try_to(&mut self, span: Span, failure: &Ty) -> FailureTarget {
        if let Some(retried) = self.retried.clone() {
            let expected = Expected::new(retried, span, "a `retry` has one failure type");
            self.agree(span, failure.clone(), &expected);
            return FailureTarget::Retry;
        }
        let result = match self.exits.clone() {
            Exits::Function(result) => result,
            Exits::Default(default) => {
                self.report(default.left_by_failure(span));
                return FailureTarget::Flow;
            }
            Exits::Flow(_) | Exits::Start => return FailureTarget::Flow,
        };
        let Ty::Result(pair) = self.inference.shallow(&result.ty) else { return FailureTarget::Flow };
        if !self.inference.unify(failure, &pair.1) {
            let (found, wanted) = (self.inference.resolve(failure), self.inference.resolve(&pair.1));
            let advice = match &wanted {
                _ if wanted.parameter_name().is_some() => {
                    format!("handle it with `else`, or let the `fn` fail with `{found}`")
                }
                Ty::Plain(weir_host::Type::Failure) if found.parameter_name().is_some() => {
                    "handle it with `else`: a value of any type need not have a text".to_owned()
                }
                Ty::Plain(weir_host::Type::Failure) => {
                    format!("write `else as failure {{ fail(\"{{failure}}\") }}`, or let the `fn` fail with `{found}`")
                }
                _ if self.in_closure => {
                    format!("convert it: `else as failure {{ fail(…) }}`, or let the `fn` fail with `{found}`")
                }
                _ => format!("convert it: `else as failure {{ return Err(…) }}`, or let the `fn` fail with `{found}`"),
            };
            let mut diagnostic = super::failures::failure_types_differ(&found, &wanted, span).hint(advice);
            if let Some((place, why)) = result.why {
                diagnostic = diagnostic.because(place, why);
            }
            self.report(diagnostic);
        }
        FailureTarget::Caller
    }

    pub(super) fn if_(
        &mut self,
        condition: &'a Expr,
        then: &'a Block,
        otherwise: Option<&'a Expr>,
        expected: Option<&Expected>,
    ) -> Ty {
        self.expr(condition, Some(&Expected::new(Ty::BOOL, condition.span, "a condition is a `Bool`")));
        let Some(otherwise) = otherwise else {
            self.block(then, Some(&Expected::plain(Ty::UNIT)));
            return Ty::UNIT;
        };
        let mut join = Join::new(expected);
        let ty = self.block(then, join.expected());
        join.saw(then.span, ty);
        let ty = self.expr(otherwise, join.expected());
        join.saw(otherwise.span, ty);
        join.ty()
    }

    pub(super) fn match_(&mut self, value: &'a Expr, arms: &'a [Arm], expected: Option<&Expected>) -> Ty {
        let ty = self.expr(value, None);
        let mut join = Join::new(expected);
        let mut clean = true;
        for arm in arms {
            let mark = self.scope.mark();
            self.constants_in_pattern(&arm.pattern, PatternPlace::Arm);
            clean &= self.pattern(&arm.pattern, &ty);
            if let Some(guard) = &arm.guard {
                self.expr(guard, Some(&Expected::new(Ty::BOOL, guard.span, "a guard is a `Bool`")));
            }
            let found = self.expr(&arm.body, join.expected());
            join.saw(arm.body.span, found);
            self.scope.leave(mark);
        }
        let only_seems_empty = arms.is_empty() && !self.context.parsed.diagnostics.is_empty();
        if clean && !only_seems_empty {
            self.matches.push(ExhaustivenessCheck::Match(value, arms));
        }
        if ty.is_never() { Ty::NEVER } else { join.ty() }
    }

    fn elements(&mut self, items: &'a Expr) -> Ty {
        let ty = self.expr(items, None);
        match self.inference.shallow(&ty) {
            Ty::List(element) => (*element).clone(),
            Ty::Map(pair) => Ty::tuple(vec![pair.0.clone(), pair.1.clone()]),
            other => self.not_a_collection(items.span, &other, "iterated with `for`"),
        }
    }

    pub(super) fn for_(
        &mut self,
        pattern: &'a Pattern,
        items: &'a Expr,
        query: &'a QueryClauses,
        body: &'a Block,
    ) -> Ty {
        let table = self.table_named(items);
        let element = match table {
            Some(table) => self.rows_of(table, items),
            None => self.elements(items),
        };
        self.query_limit(table, query);
        let mark = self.scope.mark();
        self.irrefutable_pattern(pattern, &element);
        self.query_clauses(table, pattern, query);
        let ty = self.block(body, None);
        self.scope.leave(mark);
        // A body that always diverges yields no element, but the list may be empty.
        let list = Ty::list(if ty.is_never() { Ty::UNIT } else { ty });
        let page = |list| Ty::result(Ty::tuple(vec![list, Ty::option(Ty::TEXT)]), Ty::FAILURE);
        if query.after.is_some() { page(list) } else { list }
    }

    pub(super) fn fold(
        &mut self,
        (accumulator, initial): (&'a Pattern, &'a Expr),
        (pattern, items): (&'a Pattern, &'a Expr),
        body: &'a Block,
        expected: Option<&Expected>,
    ) -> Ty {
        let ty = self.initial_state(initial, expected);
        let element = self.elements(items);
        let mark = self.scope.mark();
        self.irrefutable_pattern(accumulator, &ty);
        self.irrefutable_pattern(pattern, &element);
        self.block(body, Some(&Expected::new(ty.clone(), initial.span, "the initial value of the fold")));
        self.scope.leave(mark);
        ty
    }

    /// Checks the initial value of a `fold` or `loop`, whose type is that of the whole. Where a `Result` is expected, and the initial
    /// value is none, the whole lacks an `Ok(…)`, and not the initial value.
    fn initial_state(&mut self, initial: &'a Expr, expected: Option<&Expected>) -> Ty {
        let is_no_call = match &initial.kind {
            ExprKind::Name(name) => name.as_str().starts_with(char::is_lowercase),
            ExprKind::Literal(_) | ExprKind::Text(_) | ExprKind::Record { .. } => true,
            ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Map(_) => true,
            _ => false,
        };
        let expects_result = expected.is_some_and(|expected| self.fallible(&expected.ty));
        self.expr(initial, expected.filter(|_| !(is_no_call && expects_result)))
    }

    pub(super) fn loop_(
        &mut self,
        expr: &'a Expr,
        (state, initial): (&'a Pattern, &'a Expr),
        body: &'a Block,
        until: &'a Expr,
        at_most: &'a Expr,
        expected: Option<&Expected>,
    ) -> Ty {
        let ty = self.initial_state(initial, expected);
        let mark = self.scope.mark();
        self.irrefutable_pattern(state, &ty);
        self.block(body, Some(&Expected::new(ty.clone(), initial.span, "the initial value of the loop")));
        self.expr(until, Some(&Expected::new(Ty::BOOL, until.span, "a condition is a `Bool`")));
        self.scope.leave(mark);
        self.expr(at_most, Some(&Expected::new(Ty::INT, at_most.span, "the bound is an `Int`")));
        self.rounds(expr, at_most);
        ty
    }

    fn rounds(&mut self, expr: &Expr, at_most: &Expr) {
        if matches!(at_most.kind, ExprKind::Error) {
            return;
        }
        match self.typed.constant(at_most) {
            Ok(Value::Int(rounds)) if (1..=LOOP_ROUNDS_MAX).contains(&rounds) => {
                _ = self.typed.of_mut(expr.id).at_most.insert(expr.id, rounds as u64)
            }
            // Its type has been reported.
            Ok(value) if !matches!(value, Value::Int(_)) => {}
            _ => {
                let diagnostic = Diagnostic::new(Code::NotConstant, "the bound of a loop must be a constant number")
                    .at(at_most.span, format!("expected a number from 1 to {LOOP_ROUNDS_MAX}"))
                    .hint("write the number, as in `at most 100`, or name a `const`");
                self.report(diagnostic);
            }
        }
    }

    pub(super) fn return_(&mut self, span: Span, value: Option<&'a Expr>) -> Ty {
        let expected = match self.exits.clone() {
            Exits::Flow(expected) | Exits::Function(expected) if !self.in_closure => expected,
            Exits::Default(default) if !self.in_closure => {
                self.report(default.left_by_return(span));
                value.map(|value| self.expr(value, None));
                return Ty::NEVER;
            }
            _ => {
                let place = if self.in_closure { "a closure" } else { "this place" };
                let diagnostic = Diagnostic::new(Code::NothingToLeave, format!("`return` cannot leave {place}"))
                    .at(span, "not inside a `fn` or the body of an entry point")
                    .hint("make the value the last expression");
                self.report(diagnostic);
                value.map(|value| self.expr(value, None));
                return Ty::NEVER;
            }
        };
        match value {
            Some(value) => _ = self.expr(value, Some(&expected)),
            None => _ = self.agree(span, Ty::UNIT, &expected),
        }
        Ty::NEVER
    }

    pub(super) fn closure(&mut self, parameters: &'a [ClosureParameter], body: &'a Expr, expected: Option<&Ty>) -> Ty {
        let wanted = match expected.map(|ty| self.inference.shallow(ty)) {
            Some(Ty::Function(wanted)) if wanted.0.len() == parameters.len() => Some(wanted),
            _ => None,
        };
        let mark = self.scope.mark();
        let in_closure = std::mem::replace(&mut self.in_closure, true);
        let mut taken = Vec::new();
        for (at, parameter) in parameters.iter().enumerate() {
            let known = wanted.as_ref().map(|wanted| wanted.0[at].clone());
            let ty = match (&parameter.ty, known) {
                (Some(written), _) => self.resolve_type(written),
                (None, Some(known)) => known,
                // The callee, which would say the type, is unknown.
                (None, None) if expected == Some(&Ty::Error) => Ty::Error,
                (None, None) => self.inference.fresh(),
            };
            self.irrefutable_pattern(&parameter.pattern, &ty);
            taken.push(ty);
        }
        let result = wanted.map(|wanted| Expected::plain(wanted.1.clone()));
        let ty = self.expr(body, result.as_ref());
        self.in_closure = in_closure;
        self.scope.leave(mark);
        Ty::function(taken, result.map_or(ty, |result| result.ty))
    }
}

/// The reason why a branch has the type of another one.
pub(super) const ALL_BRANCHES: &str = "all branches have the type of this one";

/// The common type of several branches: the expected one, or that of the first branch that yields a value.
pub(super) struct Join {
    expected: Option<Expected>,
    all_leave: bool,
}

impl Join {
    pub(super) fn new(expected: Option<&Expected>) -> Self {
        Join { expected: expected.cloned(), all_leave: true }
    }

    pub(super) fn expected(&self) -> Option<&Expected> {
        self.expected.as_ref()
    }

    pub(super) fn saw(&mut self, span: Span, ty: Ty) {
        if ty.is_never() {
            return;
        }
        self.all_leave = false;
        self.expected.get_or_insert_with(|| Expected::new(ty, span, ALL_BRANCHES));
    }

    pub(super) fn ty(self) -> Ty {
        if self.all_leave { Ty::NEVER } else { self.expected.map_or(Ty::UNIT, |expected| expected.ty) }
    }
}
