//! Verification of calls against the signatures of their functions.

use weir_host::{Passing, Signature, Type};

use super::operand::TypedOperand;
use super::types::{Bindings, TypeTable, substitute, unify};
use crate::expr::Call;
use crate::print::TypeText;

/// Checks a call with these arguments whose value is used as of type `result`, and which may keep its failure.
pub(super) fn check(
    (signature, keeps_failure): (&Signature, bool),
    arguments: &[TypedOperand<'_>],
    result: &Type,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    let path = signature.path();
    if arguments.len() != signature.parameters.len() {
        return Err(format!("`{path}` takes {} arguments, not {}", signature.parameters.len(), arguments.len()));
    }
    let mut bindings = Bindings::new();
    let gives = Call::result(keeps_failure, signature.call_type());
    if !unify(&gives, result, &mut bindings) {
        return Err(format!("`{path}` gives {}, not {}", TypeText(&gives), TypeText(result)));
    }
    let both = || arguments.iter().zip(&signature.parameters);
    for (argument, parameter) in both() {
        if argument.ty().is_some_and(|ty| !unify(&parameter.ty, ty, &mut bindings)) {
            let expected = substitute(&parameter.ty, &bindings);
            return argument.must_be(&format!("argument `{}`", parameter.name), &expected, types);
        }
    }
    for (argument, parameter) in both() {
        if parameter.passing == Passing::Start && !matches!(argument, TypedOperand::Constant(_)) {
            return Err(format!("argument `{}` makes the state, and is no constant", parameter.name));
        }
        if let TypedOperand::Constant(_) = argument {
            let expected = substitute(&parameter.ty, &bindings);
            argument.must_be(&format!("argument `{}`", parameter.name), &expected, types)?;
            if parameter.passing == Passing::Change {
                return Err(format!("argument `{}` is changed, and a constant cannot be", parameter.name));
            }
        }
    }
    Ok(())
}
