//! Constant folding: evaluates primitives of constants, and chooses the arms of switches on constants.
//!
//! *Source.* Partial evaluation of the expression IR; conditional constant propagation restricted to structured control
//! (Wegman and Zadeck, TOPLAS 1991, §2).
//!
//! *Law.* A primitive is a function of its operands. If they are constants and it yields, its result replaces it; if it
//! fails, it stays, so that the flow fails where the text says. An arm is chosen only if it yields whenever the switch
//! does, and if the arms that go make no private state. A copy of a value that never changes is that value.

use weir_host::{Element, Value};

use super::facts::Facts;
use super::rewrite::{Simplified, Simplify, rewrite};
use crate::evaluate::test_holds;
use crate::expr::{Arm, Atom, Block, Let, Op};
use crate::prim::Prim;

/// The number of parts and bytes up to which a result is kept as a constant, so that folding never blows a program up.
const SIZE_MAX: usize = 256;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    rewrite(body, facts, &mut ConstantFolding);
}

struct ConstantFolding;

impl Simplify for ConstantFolding {
    fn simplify(&mut self, binding: &Let, _: &mut Facts<'_>) -> Simplified {
        match &binding.op {
            Op::Prim(Prim::Copy, operands) => Simplified::Value(operands[0].clone()),
            // The pass `aggregates` knows whether it is a payload of this variant.
            Op::Prim(Prim::Payload(_), _) => Simplified::Keep,
            Op::Prim(prim, operands) => folded(*prim, operands).map_or(Simplified::Keep, Simplified::Value),
            Op::Switch { subject: Atom::Value(subject), arms } => chosen(subject, arms),
            _ => Simplified::Keep,
        }
    }
}

/// Returns the result of a primitive of constants, unless it fails or is too large.
fn folded(prim: Prim, operands: &[Atom]) -> Option<Atom> {
    let constant = |atom: &'_ Atom| if let Atom::Value(value) = atom { Some(value.clone()) } else { None };
    let values: Vec<Value> = operands.iter().map(constant).collect::<Option<_>>()?;
    let result = prim.apply(&values.iter().collect::<Vec<_>>()).ok()?;
    (size(&result) <= SIZE_MAX).then_some(Atom::Value(result))
}

fn size(value: &Value) -> usize {
    let bytes = |value: Element<'_>| match &*value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 1,
    };
    value.walk().take(SIZE_MAX + 1).map(bytes).sum()
}

/// Returns the arm that a constant chooses.
fn chosen(subject: &Value, arms: &[Arm]) -> Simplified {
    let Some(index) = arms.iter().position(|arm| test_holds(&arm.test, subject)) else { return Simplified::Keep };
    let payload = match subject {
        Value::Variant(_, Some(payload)) => payload.iter().cloned().map(Atom::Value).collect(),
        _ => Vec::new(),
    };
    Simplified::Arm(index, payload)
}
