//! Checks the defaults of the parameters of `fn`s.
//!
//! A default is evaluated for a call that leaves the argument out, and before its `fn` begins: the handlers of the caller see
//! the value. So a failure or `return` in a default would leave neither the `fn` nor the caller, and is an error. A default that is
//! a closure is called when the `fn` has begun, which its failures leave.

use std::sync::Arc;

use weir_syntax::ast::{Expr, ExprKind, Name, Parameter};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Exits, Expected, TypeChecker};
use crate::types::Ty;

/// A parameter whose default is checked, and the `fn` that has it.
#[derive(Clone)]
pub(super) struct DefaultOfParameter {
    parameter: Arc<str>,
    ty: Ty,
    function: Arc<str>,
}

impl<'a> TypeChecker<'a, '_> {
    /// Checks the default of a parameter of this type.
    pub(super) fn default_of(&mut self, parameter: &'a Parameter, default: &'a Expr, (function, ty): (&Name, &Ty)) {
        let of_function = self.exits.clone();
        if !matches!(default.kind, ExprKind::Closure { .. }) {
            self.exits = Exits::Default(DefaultOfParameter {
                parameter: parameter.name.text.clone(),
                ty: ty.clone(),
                function: function.text.clone(),
            });
        }
        self.expr(default, Some(&Expected::new(ty.clone(), parameter.ty.span, "the parameter's type")));
        self.exits = of_function;
    }
}

impl DefaultOfParameter {
    /// Returns the error for a `?` or `fail` in the default.
    pub(super) fn left_by_failure(&self, span: Span) -> Diagnostic {
        let DefaultOfParameter { parameter, ty, function } = self;
        let diagnostic = self.left("a failure", span).hint("give a value for the failure, too: `else { … }`");
        match ty {
            Ty::Option(_) => diagnostic,
            _ => diagnostic.hint(format!(
                "or declare `{parameter}: Option({ty}) = None`, and evaluate this in `{function}` if it is `None`"
            )),
        }
    }

    /// Returns the error for a `return` in the default.
    pub(super) fn left_by_return(&self, span: Span) -> Diagnostic {
        self.left("`return`", span).hint("make the value the last expression")
    }

    fn left(&self, what: &str, span: Span) -> Diagnostic {
        Diagnostic::new(Code::NothingToLeave, format!("{what} cannot leave the default of `{}`", self.parameter))
            .at(span, format!("evaluated before `{}` begins", self.function))
    }
}
