//! Aggregates: a part that is taken out of a tuple, record or variant is the value that was put in.
//!
//! *Source.* Scalar replacement of aggregates (Muchnick 1997, §12.2), over the explicit data dependencies of Ohua thesis
//! §4.2.1; for variants, case of known constructor (Peyton Jones and Santos, SCP 1998, §3.1).
//!
//! *Law.* A `field` of a record yields the operand that the record was made of, and so do `payload` and the arms of a switch
//! on a variant, and `is_variant` is known. None of them can fail, and the operands never change. The aggregate itself stays;
//! dead code removes it if nothing else uses it. The states of loops and folds are split by [`super::loop_state`].

use std::collections::BTreeMap;

use weir_host::Value;

use super::facts::Facts;
use super::rewrite::{Simplified, Simplify, rewrite};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Var};
use crate::prim::Prim;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    rewrite(body, facts, &mut Aggregates::default());
}

/// The aggregates that have been made so far. A variable is used only where it is bound, so that entries never go.
#[derive(Default)]
struct Aggregates {
    known: BTreeMap<Var, Aggregate>,
}

/// The operands that an aggregate was made of.
#[derive(Clone)]
struct Aggregate {
    /// The tag of a variant.
    tag: Option<u32>,
    parts: Vec<Atom>,
}

impl Simplify for Aggregates {
    fn simplify(&mut self, binding: &Let, facts: &mut Facts<'_>) -> Simplified {
        if let Some(made) = self.made(&binding.op)
            && facts.never_changes(binding.bound.var)
            && made.parts.iter().all(|part| facts.is_steady(part))
        {
            self.known.insert(binding.bound.var, made);
        }
        self.part(binding, facts).unwrap_or(Simplified::Keep)
    }
}

impl Aggregates {
    /// Returns the aggregate that the operation makes.
    fn made(&self, op: &Op) -> Option<Aggregate> {
        let Op::Prim(prim, operands) = op else { return None };
        match (prim, &operands[..]) {
            (Prim::Record, _) => Some(Aggregate { tag: None, parts: operands.clone() }),
            (Prim::Variant(tag), _) => Some(Aggregate { tag: Some(*tag), parts: operands.clone() }),
            (Prim::WithField(index), [record, value]) => {
                let mut made = self.of(record)?;
                *made.parts.get_mut(*index as usize)? = value.clone();
                Some(made)
            }
            _ => None,
        }
    }

    /// Returns the aggregate that an operand is: one that was made before, or a constant.
    fn of(&self, operand: &Atom) -> Option<Aggregate> {
        let constants = |parts: &[Value]| parts.iter().cloned().map(Atom::Value).collect();
        match operand {
            Atom::Var(var) => self.known.get(var).cloned(),
            Atom::Value(Value::Record(parts)) => Some(Aggregate { tag: None, parts: constants(parts) }),
            Atom::Value(Value::Variant(tag, Some(parts))) => {
                Some(Aggregate { tag: Some(*tag), parts: constants(parts) })
            }
            _ => None,
        }
    }

    /// Returns the part that the operation takes out of a known aggregate.
    fn part(&self, binding: &Let, facts: &Facts<'_>) -> Option<Simplified> {
        match &binding.op {
            Op::Prim(Prim::Field(index) | Prim::Payload(index), operands) => {
                let part = self.of(&operands[0])?.parts.get(*index as usize)?.clone();
                facts.is_of(&part, &binding.bound.ty).then_some(Simplified::Value(part))
            }
            Op::Prim(Prim::IsVariant(tag), operands) => {
                let is = self.of(&operands[0])?.tag? == *tag;
                Some(Simplified::Value(Atom::Value(Value::Bool(is))))
            }
            Op::Switch { subject, arms } => {
                let known = self.of(subject)?;
                let index = arm_of(known.tag?, arms)?;
                let mut payload = arms[index].payload.iter().zip(&known.parts);
                payload
                    .all(|(variable, part)| facts.is_of(part, &variable.ty))
                    .then_some(Simplified::Arm(index, known.parts))
            }
            _ => None,
        }
    }
}

/// Returns the arm that a variant of this tag chooses.
fn arm_of(tag: u32, arms: &[Arm]) -> Option<usize> {
    let index = arms.iter().position(|arm| match &arm.test {
        ArmTest::Tag(tested) => *tested == tag,
        ArmTest::Otherwise | ArmTest::Value(_) => true,
    })?;
    // Only the evaluator compares whole values.
    (!matches!(arms[index].test, ArmTest::Value(_))).then_some(index)
}
