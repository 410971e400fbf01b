//! Compile-time constants: propagates values through the emitted operations, for the arguments of private states.
//!
//! Every `fn` is inlined, so that a value built from literals and operators is known through any `let`s and parameters.
//! Values with more than [`PARTS_MAX`](crate::constant::PARTS_MAX) parts, or nested deeper than
//! [`NESTED_MAX`](crate::constant::NESTED_MAX), are not tracked.

use std::collections::BTreeMap;

use weir_host::{Parameter, Passing, Signature, Text, Value, World};
use weir_ir::expr::{Atom, Op, Var};
use weir_ir::prim::Prim;
use weir_syntax::{Code, Diagnostic, Span};

use super::Lowering;
use crate::constant::is_small;

/// The variables whose values are known.
#[derive(Default)]
pub(super) struct Constants(BTreeMap<Var, Value>);

impl Constants {
    pub(super) fn value<'k>(&'k self, atom: &'k Atom) -> Option<&'k Value> {
        match atom {
            Atom::Value(value) => Some(value),
            Atom::Var(var) => self.0.get(var),
            Atom::Shared(_) => None,
        }
    }

    /// Records the value of a binding, if its operands are known.
    pub(super) fn follow(&mut self, bound: &Atom, op: &Op) {
        let (Atom::Var(var), Op::Prim(prim, operands)) = (bound, op) else { return };
        let operands: Option<Vec<&Value>> = operands.iter().map(|operand| self.value(operand)).collect();
        let Some(operands) = operands.filter(|operands| follows(*prim, operands)) else { return };
        if let Ok(value) = prim.apply(&operands)
            && is_small(&value)
        {
            self.0.insert(*var, value);
        }
    }
}

/// Returns whether the operation can be evaluated out of context. The payload of a variant cannot, because the variant
/// may be untested; nor can operands that are `()`, which represents unreachable values.
fn follows(prim: Prim, operands: &[&Value]) -> bool {
    match prim {
        Prim::List | Prim::Map | Prim::Record | Prim::Variant(_) => true,
        Prim::Payload(_) => false,
        _ => operands.iter().all(|operand| **operand != Value::Unit),
    }
}

impl Lowering<'_, '_> {
    /// Returns the constant that an argument of a state's constructor is, or reports that it is not known.
    pub(super) fn constant_argument(&mut self, argument: Atom, path: &Text, parameter: &Parameter, span: Span) -> Atom {
        if let Some(value) = self.constants.value(&argument) {
            return Atom::Value(value.clone());
        }
        if !self.alone && !self.too_large && !self.builder().has_ended() {
            let name = &parameter.name;
            let message = format!("the argument `{name}` of `{path}` must be a constant");
            let diagnostic = Diagnostic::new(Code::NotConstant, message)
                .at(span, "depends on a request or an element")
                .note(format!("each call of `{path}` has a private state, which is created when the program starts"))
                .hint("compute it from literals with `let` and operators, here or in the caller");
            self.context.report_once(diagnostic);
        }
        argument
    }

    /// Makes the private state of a pure function from its constant arguments, as the start of the program will, and reports
    /// the failure: a regular expression, for example, may have an error.
    pub(super) fn state_is_made(&mut self, signature: &Signature, arguments: &[Atom], span: Span) {
        let Some(state) = signature.state.as_ref().filter(|_| signature.effects.world == World::Pure) else { return };
        let starts = arguments.iter().zip(&signature.parameters).filter(|(_, taken)| taken.passing == Passing::Start);
        let values =
            starts.map(|(argument, _)| if let Atom::Value(value) = argument { Some(value.clone()) } else { None });
        let Some(values) = values.collect::<Option<Vec<Value>>>() else { return };
        if let Err(failure) = (state.make)(&values) {
            let message = format!("`{}` is called with an argument that it refuses", signature.path());
            let diagnostic = Diagnostic::new(Code::NotConstant, message).at(span, "refused").note(failure.to_string());
            self.context.report_once(diagnostic);
        }
    }
}
