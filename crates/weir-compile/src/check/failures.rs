//! Checks `Failure(message)`, which makes a failure, and `fail(…)`, which fails with one.
//!
//! `fail(why)` has the same target as a `?` at its position. A text becomes a [`weir_host::Failure`] with that message,
//! unless the `fn` fails with texts.

use weir_host::Type;
use weir_syntax::ast::Name;
use weir_syntax::{Code, Diagnostic, Span};

use super::arguments::{CallArguments, CalleeParameter};
use super::generics::stands_for_any;
use super::{Exits, TypeChecker};
use crate::typed_tree::{ArgumentSource, CallTarget, FailureTarget, ResolvedCall, ResolvedTry};
use crate::types::Ty;

const FAILURE: Ty = Ty::Plain(Type::Failure);

impl<'a> TypeChecker<'a, '_> {
    /// Checks a call of a function that needs no `use`. Returns the arguments unchanged if there is no such function.
    pub(super) fn call_prelude(&mut self, name: &Name, given: CallArguments<'a>) -> Result<Ty, CallArguments<'a>> {
        match name.as_str() {
            "Failure" => {
                let message = CalleeParameter { name: Some("message".into()), ..CalleeParameter::positional(Ty::TEXT) };
                self.arguments("Failure", CallTarget::Failure, vec![message], given);
                Ok(FAILURE)
            }
            "fail" => Ok(self.fail(given)),
            _ => Err(given),
        }
    }

    fn fail(&mut self, given: CallArguments<'a>) -> Ty {
        let call = given.call.expect("a call in a body has its expression");
        let gives = given.piped.is_some() || !given.arguments.is_empty();
        let why = if gives { self.inference.fresh() } else { Ty::TEXT };
        let taken = vec![CalleeParameter { name: Some("why".into()), ..CalleeParameter::positional(why.clone()) }];
        let span = given.arguments.first().map_or(call.span, |argument| argument.span);
        let supplied = self.supplied("fail", taken, given);
        if supplied == [ArgumentSource::Default] {
            return Ty::NEVER;
        }
        let says = self.inference.shallow(&why) == Ty::TEXT && self.place_fails_with() != Some(Ty::TEXT);
        let to = self.fails_with(span, &if says { FAILURE } else { why });
        self.typed.of_mut(call.id).calls.insert(call.id, ResolvedCall { target: CallTarget::Fail { says }, supplied });
        self.typed.of_mut(call.id).tries.insert(call.id, ResolvedTry { to, of: None });
        Ty::NEVER
    }

    /// Returns the failure type of the enclosing `fn` or `retry`, if known.
    fn place_fails_with(&self) -> Option<Ty> {
        if let Some(retried) = &self.retried {
            return Some(self.inference.shallow(retried));
        }
        let Exits::Function(result) = &self.exits else { return None };
        match self.inference.shallow(&result.ty) {
            Ty::Result(pair) => Some(self.inference.shallow(&pair.1)),
            _ => None,
        }
    }

    /// Returns the target of a failure of this type in the current body.
    fn fails_with(&mut self, span: Span, failure: &Ty) -> FailureTarget {
        match self.place_fails_with() {
            Some(wanted) if self.retried.is_none() && !self.inference.unify(failure, &wanted) => {
                let (found, wanted) = (self.inference.resolve(failure), self.inference.resolve(&wanted));
                let advice = match &wanted {
                    _ if wanted.parameter_name().is_some() => format!("let the `fn` fail with `{found}`"),
                    Ty::Plain(Type::Failure) => "fail with a text: `fail(\"…\")`".to_owned(),
                    _ => format!("fail with a value of the type `{wanted}`"),
                };
                self.report(failure_types_differ(&found, &wanted, span).hint(advice));
                FailureTarget::Caller
            }
            _ => self.try_to(span, failure),
        }
    }
}

/// Returns the error for a failure of another type than that of the `fn`.
pub(super) fn failure_types_differ(found: &Ty, wanted: &Ty, span: Span) -> Diagnostic {
    let message = format!("this fails with `{found}`, but its `fn` with `{wanted}`");
    let diagnostic = Diagnostic::new(Code::FailureType, message).at(span, format!("fails with `{found}`"));
    match found.parameter_name().or(wanted.parameter_name()) {
        Some(parameter) => diagnostic.note(stands_for_any(parameter)),
        None => diagnostic,
    }
}
