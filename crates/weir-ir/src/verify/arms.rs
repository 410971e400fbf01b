//! Verification of the arms of a switch in either IR.

use weir_host::{Type, Value};

use super::operand::TypedOperand;
use super::types::TypeTable;
use crate::expr::ArmTest;
use crate::print::TypeText;

/// Checks that tests can hold and cover every value.
pub(super) fn covers(tests: &[&ArmTest], subject: TypedOperand<'_>, types: &TypeTable<'_>) -> Result<(), String> {
    let variants = subject.ty().and_then(|ty| types.variants(ty));
    for test in tests {
        match (test, subject) {
            (_, TypedOperand::Unknown) | (ArmTest::Otherwise, _) => {}
            (ArmTest::Tag(tag), TypedOperand::Constant(value)) if !matches!(value, Value::Variant(..)) => {
                return Err(format!("tag {tag} is tested of {}", subject.describe()));
            }
            (ArmTest::Value(_) | ArmTest::Tag(_), TypedOperand::Constant(_)) => {}
            (ArmTest::Tag(tag), _) => {
                if variants.as_ref().is_none_or(|variants| variants.len() <= *tag as usize) {
                    return Err(format!("{} has no variant {tag}", subject.describe()));
                }
            }
            (ArmTest::Value(value), TypedOperand::Typed(ty) | TypedOperand::Shared(ty)) => {
                TypedOperand::Constant(value).must_be("the tested value", ty, types)?;
            }
        }
    }
    let has = |wanted: &ArmTest| tests.contains(&wanted);
    let all = match (subject, subject.ty()) {
        _ if has(&ArmTest::Otherwise) => true,
        (TypedOperand::Unknown, _) => true,
        (TypedOperand::Constant(value), _) => tests.iter().any(|test| crate::evaluate::test_holds(test, value)),
        (_, Some(Type::Bool)) => [true, false].into_iter().all(|value| has(&ArmTest::Value(Value::Bool(value)))),
        (_, Some(Type::Unit)) => has(&ArmTest::Value(Value::Unit)),
        _ => variants.is_some_and(|variants| (0..).zip(&variants).all(|(tag, _)| has(&ArmTest::Tag(tag)))),
    };
    if all { Ok(()) } else { Err(format!("the tests leave some values out of {}", subject.describe())) }
}

/// Checks the types that an arm gives to the payload; an arm without names is always right.
pub(super) fn payload_fits(
    test: &ArmTest,
    payload: &[&Type],
    subject: TypedOperand<'_>,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    if payload.is_empty() {
        return Ok(());
    }
    let ArmTest::Tag(tag) = test else { return Err("only an arm that tests a tag has a payload".into()) };
    let Some(ty) = subject.ty() else { return Ok(()) };
    let fields = types.variants(ty).and_then(|variants| variants.into_iter().nth(*tag as usize)).unwrap_or_default();
    if fields.len() != payload.len() {
        return Err(format!("variant {tag} has {} fields, not {}", fields.len(), payload.len()));
    }
    match fields.iter().zip(payload).find(|(field, ty)| field != *ty) {
        Some((field, ty)) => Err(format!("a field of {} is bound as {}", TypeText(field), TypeText(ty))),
        None => Ok(()),
    }
}
