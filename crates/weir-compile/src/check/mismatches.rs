//! Values of another type than the expected one: their messages, with the usual fixes.

use weir_host::Type;
use weir_syntax::ast::{Expr, ExprKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::control::ALL_BRANCHES;
use super::generics::stands_for_any;
use super::tables::CURSOR;
use super::{Expected, TypeChecker};
use crate::lang_items::{HTML, JSON_VALUE, SECRET};
use crate::types::Ty;

impl TypeChecker<'_, '_> {
    /// Like [`Self::agree`], with hints that depend on the form of the expression.
    pub(super) fn agree_expr(&mut self, expr: &Expr, found: Ty, expected: &Expected) -> Ty {
        if found.is_never() || self.inference.unify(&found, &expected.ty) {
            return found;
        }
        let diagnostic = match &expr.kind {
            ExprKind::If { otherwise: None, .. } => self.without_else(expr.span, expected),
            ExprKind::For { .. } => {
                let diagnostic = self.mismatch(expr.span, &found, expected);
                diagnostic.hint("`for` returns a list; use `fold` for a single value")
            }
            _ => self.mismatch(expr.span, &found, expected),
        };
        self.report(diagnostic);
        Ty::Error
    }

    fn without_else(&mut self, span: Span, expected: &Expected) -> Diagnostic {
        let wanted = self.inference.resolve(&expected.ty);
        let message = format!("expected `{wanted}`, but this `if` has no `else`");
        let mut diagnostic =
            Diagnostic::new(Code::TypeMismatch, message).at(span, "no value if the condition is false");
        if let Some((place, why)) = &expected.why {
            diagnostic = diagnostic.because(*place, why.clone());
        }
        diagnostic.hint("add the other value: `else { … }`")
    }

    /// Unifies the type of an expression with the expected one and returns it; reports a mismatch.
    pub(super) fn agree(&mut self, span: Span, found: Ty, expected: &Expected) -> Ty {
        if found.is_never() || self.inference.unify(&found, &expected.ty) {
            return found;
        }
        let diagnostic = self.mismatch(span, &found, expected);
        self.report(diagnostic);
        Ty::Error
    }

    fn mismatch(&mut self, span: Span, found: &Ty, expected: &Expected) -> Diagnostic {
        let (found, wanted) = (self.inference.resolve(found), self.inference.resolve(&expected.ty));
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, format!("expected `{wanted}`, found `{found}`"))
            .at(span, format!("this is `{found}`"));
        if let Some((place, why)) = &expected.why {
            diagnostic = diagnostic.because(*place, why.clone());
        }
        let is_for = |reason: &str| expected.why.as_ref().is_some_and(|(_, why)| why == reason);
        let diagnostic = match (&found, &wanted) {
            (Ty::Function(taken), Ty::Function(given)) if taken.0.len() > given.0.len() => {
                self.closure_hint(diagnostic, span, given.0.len())
            }
            (found, _) if *found == Ty::TEXT && is_for(CURSOR) => diagnostic.hint(OPTIONAL_CURSOR),
            _ => self.mismatch_hint(diagnostic, span, &found, &wanted),
        };
        match found == Ty::UNIT || wanted == Ty::UNIT {
            true if is_for(ALL_BRANCHES) => diagnostic.hint("end each branch with `()` if nothing uses the value"),
            _ => diagnostic,
        }
    }

    /// Adds the fix of a function that takes more arguments than it is given, perhaps with defaults.
    fn closure_hint(&self, diagnostic: Diagnostic, span: Span, given: usize) -> Diagnostic {
        let arguments = ('a'..='z').take(given).map(String::from).collect::<Vec<_>>().join(", ");
        let function = self.context.text.get(span.range()).unwrap_or("f");
        diagnostic.hint(format!("pass a closure that calls it: `|{arguments}| {function}({arguments})`"))
    }

    /// Adds the fixes of a value that should be a `Result` of it.
    fn result_hint(&self, diagnostic: Diagnostic, span: Span) -> Diagnostic {
        let mark = Span { start: span.end.saturating_sub(1), ..span };
        let diagnostic = diagnostic.hint("wrap it: `Ok(…)`");
        match self.context.text.get(mark.range()) {
            Some("?") => diagnostic.offer("or leave out the `?`: without it, this is a `Result`", mark, ""),
            _ => diagnostic,
        }
    }

    /// Adds the usual fix for a mismatch of these two types.
    fn mismatch_hint(&mut self, diagnostic: Diagnostic, span: Span, found: &Ty, wanted: &Ty) -> Diagnostic {
        if let Some(name) = wanted.parameter_name().or(found.parameter_name()) {
            return diagnostic.note(stands_for_any(name));
        }
        if *wanted == Ty::named(RESPONSE)
            && let Some(function) = self.response_of(found)
        {
            return diagnostic.hint(format!("make it a response: `http.{function}(…)`"));
        }
        match (found, wanted) {
            (Ty::Result(pair), Ty::Result(_)) if pair.0 == *wanted => {
                diagnostic.hint("its value is a `Result` already: leave out `Ok(…)`, or add `?` inside of it")
            }
            (Ty::Result(pair), wanted) if pair.0 == *wanted => diagnostic.suggest(
                "add `?` to end the flow if it fails, or handle it with `else { … }`",
                span.at_end(),
                "?",
            ),
            (Ty::Option(some), wanted) if **some == *wanted => diagnostic.hint("handle `None`: `else { … }`"),
            (Ty::Option(_), wanted) if *wanted == Ty::BOOL => {
                diagnostic.hint("match it: `match value { Some(x) => …, None => … }`")
            }
            (Ty::List(_) | Ty::Map(_), wanted) if *wanted == Ty::BOOL => {
                diagnostic.suggest("ask for its length", span.at_end(), ".length() > 0")
            }
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::BOOL => {
                diagnostic.suggest("compare it", span.at_end(), " != \"\"")
            }
            (found, wanted) if *found == Ty::INT && *wanted == Ty::BOOL => {
                diagnostic.suggest("compare it", span.at_end(), " != 0")
            }
            (found, Ty::Option(some)) if *found == **some => diagnostic.hint("wrap it: `Some(…)`"),
            (found, Ty::Result(pair)) if *found == pair.0 => self.result_hint(diagnostic, span),
            (Ty::Result(found), Ty::Result(wanted)) if found.1 == Ty::TEXT && wanted.1 == Ty::FAILURE => {
                diagnostic.hint("create a failure from the text: `Err(Failure(…))`, or use `fail(…)`")
            }
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::named(HTML) => {
                diagnostic.hint("write a template, whose interpolations are escaped: `html\"…\"`")
            }
            (found, wanted) if *found == Ty::named(HTML) && *wanted == Ty::TEXT => {
                diagnostic.hint("answer with `http.html(page)`, or insert it into a template: `html\"{page}\"`; `to_text` returns its text")
            }
            (found, _) if *found == Ty::named(JSON_VALUE) => diagnostic
                .hint("read the JSON as that type: `response.decode_json()?` of a response, or `json.decode(text)?`"),
            (found, _) if *found == Ty::named(SECRET) => diagnostic
                .hint("pass it to a parameter that takes a secret, such as `bearer` of `client.get`: it is never a text"),
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::BYTES => {
                diagnostic.hint("take its bytes: `….to_bytes()`")
            }
            (found, wanted) if *found == Ty::BYTES && *wanted == Ty::TEXT => {
                diagnostic.hint("decode the bytes, which fails if they are not UTF-8: `….to_text()?`")
            }
            (Ty::Plain(_), wanted) if *wanted == Ty::TEXT => diagnostic.hint("convert it to a text: `\"{…}\"`"),
            (found, wanted) => match number_hint(found, wanted) {
                Some(hint) => diagnostic.hint(hint),
                None => diagnostic,
            },
        }
    }

    /// Returns the function of `http` that makes a response of a value.
    fn response_of(&self, found: &Ty) -> Option<&'static str> {
        match found {
            found if *found == Ty::TEXT => Some("text"),
            found if *found == Ty::named(HTML) => Some("html"),
            Ty::List(_) | Ty::Map(_) => Some("json"),
            Ty::Plain(Type::Named(name)) if !self.is_opaque(name.as_str()) => Some("json"),
            _ => None,
        }
    }
}

/// The advice on a cursor that is a text.
const OPTIONAL_CURSOR: &str =
    "declare it as an `Option`: `cursor: Option(Text)`, which is `None` if the request names none";

/// The type of the answers of a service.
const RESPONSE: &str = "http.Response";

/// Returns the usual fix for a number, or a list of numbers, of another type.
fn number_hint(found: &Ty, wanted: &Ty) -> Option<&'static str> {
    match (found, wanted) {
        (Ty::List(found), Ty::List(wanted)) if **found == Ty::FLOAT && **wanted == Ty::INT => {
            Some("functions of the module `float` take lists of `Float`s: `float.sum(list)`")
        }
        (found, wanted) if *found == Ty::INT && *wanted == Ty::FLOAT => {
            Some("write a literal with a decimal point, as in `1.0`, and convert other numbers: `n.to_float()`")
        }
        (found, wanted) if *found == Ty::FLOAT && *wanted == Ty::INT => {
            Some("convert it: `x.to_int()`, which is `None` if it does not fit, or `x.round().to_int()`")
        }
        (found, wanted) if *found == Ty::INT && *wanted == Ty::SIZE => Some("write a size, as in `64kb`"),
        (found, wanted) if *found == Ty::INT && *wanted == Ty::DURATION => Some("write a duration, as in `200ms`"),
        _ => None,
    }
}
