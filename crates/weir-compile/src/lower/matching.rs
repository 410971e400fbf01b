//! Lowers `match`: to one switch if all patterns are flat, otherwise to a chain of tests.

use weir_host::{Type, TypeShape};
use weir_ir::expr::{ArmTest, Atom, Variable};
use weir_syntax::Span;
use weir_syntax::ast::{Arm, Expr, Pattern};

use super::block_builder::OpenArm;
use super::pattern::{Projection, has_names};
use super::{Lowering, pattern_name};
use crate::types::Ty;

impl<'a> Lowering<'a, '_> {
    pub(super) fn match_(&mut self, expr: &'a Expr, value: &'a Expr, arms: &'a [Arm]) -> Atom {
        let subject = self.expr(value);
        let of = self.typed.expr_type(value.id);
        let ty = self.ty(expr);
        let tests: Option<Vec<ArmTest>> =
            arms.iter().map(|arm| if arm.guard.is_some() { None } else { self.direct_test(&arm.pattern) }).collect();
        match tests {
            Some(tests) => self.direct_match(expr.span, (subject, of), arms, tests, &ty),
            None => self.arms_in_turn(expr.span, &subject, arms, &ty),
        }
    }

    fn direct_match(
        &mut self,
        span: Span,
        (subject, of): (Atom, &Ty),
        arms: &'a [Arm],
        tests: Vec<ArmTest>,
        ty: &Type,
    ) -> Atom {
        let mut drafts: Vec<OpenArm> = Vec::new();
        let mut covered = false;
        for (arm, test) in arms.iter().zip(tests) {
            // An arm after a catch-all, or after an arm with the same test, is unreachable.
            if covered || drafts.iter().any(|open_block| open_block.test == test) {
                continue;
            }
            covered = test == ArmTest::Otherwise;
            drafts.push(self.direct_arm(&subject, arm, test));
        }
        if !covered && !self.all_tags(of, &drafts) {
            drafts.push(self.arm(ArmTest::Otherwise, Vec::new(), |lowering| lowering.no_case(span)));
        }
        self.switch(subject, drafts, ty, span)
    }

    /// Returns whether the arms cover every variant of the type. `Bool` has two, and the last becomes the catch-all
    /// arm.
    fn all_tags(&self, of: &Ty, drafts: &[OpenArm]) -> bool {
        let count = match of {
            Ty::Option(_) | Ty::Result(_) => 2,
            other => {
                let definition =
                    other.name().and_then(|name| self.program.declarations.definition(self.context.library, name));
                match definition.map(|definition| &definition.shape) {
                    Some(TypeShape::Enum(variants)) => variants.len(),
                    _ => return false,
                }
            }
        };
        drafts.len() == count
    }

    fn direct_arm(&mut self, subject: &Atom, arm: &'a Arm, test: ArmTest) -> OpenArm {
        let payload = match test {
            ArmTest::Tag(_) => self.payload(&arm.pattern),
            _ => Vec::new(),
        };
        let atoms: Vec<Atom> = payload.iter().map(|variable| Atom::Var(variable.var)).collect();
        self.arm(test, payload, |lowering| {
            if atoms.is_empty() {
                lowering.bind(&arm.pattern, subject.clone());
            } else {
                for part in lowering.parts_of(&arm.pattern) {
                    if let Projection::Payload(index) = part.at
                        && let Some(atom) = atoms.get(index as usize)
                    {
                        lowering.bind(part.pattern, atom.clone());
                    }
                }
            }
            lowering.expr(&arm.body)
        })
    }

    /// Returns variables for the payload of a variant pattern, if it binds any.
    fn payload(&mut self, pattern: &'a Pattern) -> Vec<Variable> {
        if !has_names(pattern) {
            return Vec::new();
        }
        let mut parts = self.parts_of(pattern);
        parts.sort_by_key(|part| match part.at {
            Projection::Payload(index) => index,
            _ => 0,
        });
        let variables = parts.iter().map(|part| {
            let ty = self.pattern_type(part.pattern.id);
            self.vars.variable(pattern_name(part.pattern), ty)
        });
        variables.collect()
    }

    fn arms_in_turn(&mut self, span: Span, subject: &Atom, arms: &'a [Arm], ty: &Type) -> Atom {
        let Some((arm, others)) = arms.split_first() else { return self.no_case(span) };
        self.depth += 1;
        if self.depth > super::DEPTH_MAX {
            self.too_large(span);
        }
        let matches = self.matches(arm, subject, others.is_empty());
        let value = match matches {
            None => self.arm_body(arm, subject),
            Some(matches) => self.choose(
                matches,
                ty,
                arm.span,
                |lowering| lowering.arm_body(arm, subject),
                |lowering| lowering.arms_in_turn(span, subject, others, ty),
            ),
        };
        self.depth -= 1;
        value
    }

    fn arm_body(&mut self, arm: &'a Arm, subject: &Atom) -> Atom {
        self.bind(&arm.pattern, subject.clone());
        self.expr(&arm.body)
    }

    /// Returns whether the arm matches, as a `Bool`; `None` if it always does. Exhaustiveness implies that the last arm
    /// does.
    fn matches(&mut self, arm: &'a Arm, subject: &Atom, last: bool) -> Option<Atom> {
        let fits = if last && arm.guard.is_none() { None } else { self.test(&arm.pattern, subject) };
        let Some(guard) = &arm.guard else { return fits };
        self.boolean_and(fits, arm.span, |lowering| {
            lowering.bind(&arm.pattern, subject.clone());
            Some(lowering.expr(guard))
        })
    }
}
