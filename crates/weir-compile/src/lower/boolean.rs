//! Lowers `&&`, `||` and conditions: speculates cheap operands and branches around the others.

use weir_host::{Type, Value};
use weir_ir::expr::{ArmTest, Atom};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{BinaryOperator, Expr, ExprKind, UnaryOperator};

use super::Lowering;

impl<'a> Lowering<'a, '_> {
    /// Lowers `if condition { then } else { otherwise }`.
    pub(super) fn choose(
        &mut self,
        condition: Atom,
        ty: &Type,
        span: Span,
        then: impl FnOnce(&mut Self) -> Atom,
        otherwise: impl FnOnce(&mut Self) -> Atom,
    ) -> Atom {
        let arms = vec![
            self.arm(ArmTest::Value(Value::Bool(true)), Vec::new(), then),
            self.arm(ArmTest::Otherwise, Vec::new(), otherwise),
        ];
        self.switch(condition, arms, ty, span)
    }

    pub(super) fn boolean_and(
        &mut self,
        first: Option<Atom>,
        span: Span,
        second: impl FnOnce(&mut Self) -> Option<Atom>,
    ) -> Option<Atom> {
        let Some(first) = first else { return second(self) };
        let yes = Atom::Value(Value::Bool(true));
        Some(self.choose(
            first,
            &Type::Bool,
            span,
            |lowering| second(lowering).unwrap_or(yes),
            |_| Atom::Value(Value::Bool(false)),
        ))
    }

    /// Lowers `left && right` and `left || right`.
    pub(super) fn connective(
        &mut self,
        expr: &'a Expr,
        operator: BinaryOperator,
        left: &'a Expr,
        right: &'a Expr,
    ) -> Atom {
        let is_and = operator == BinaryOperator::And;
        let left = self.expr(left);
        if self.is_cheap(right) {
            let operands = vec![left, self.expr(right)];
            return self.prim(if is_and { Prim::And } else { Prim::Or }, operands, Type::Bool, expr.span);
        }
        let decided = |_: &mut Self| Atom::Value(Value::Bool(!is_and));
        if is_and {
            self.choose(left, &Type::Bool, expr.span, |lowering| lowering.expr(right), decided)
        } else {
            self.choose(left, &Type::Bool, expr.span, decided, |lowering| lowering.expr(right))
        }
    }

    /// Returns whether evaluating a condition speculatively is cheaper than a branch and has no effects: it reads names
    /// and fields of scalar types, and cannot fail.
    fn is_cheap(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Binary { operator, left, right, .. } => {
                is_logical(*operator) && self.is_cheap(left) && self.is_cheap(right)
            }
            ExprKind::Unary { operator, operand } => *operator == UnaryOperator::Not && self.is_cheap(operand),
            ExprKind::Literal(_) | ExprKind::Name(_) => is_scalar(&self.ty(expr)),
            ExprKind::Field { object, .. } | ExprKind::TupleIndex { object, .. } => {
                is_scalar(&self.ty(expr)) && matches!(object.kind, ExprKind::Name(_))
            }
            _ => false,
        }
    }
}

fn is_logical(operator: BinaryOperator) -> bool {
    use BinaryOperator::{Add, Divide, Multiply, Remainder, Subtract};
    !matches!(operator, Add | Subtract | Multiply | Divide | Remainder)
}

fn is_scalar(ty: &Type) -> bool {
    matches!(ty, Type::Bool | Type::Int | Type::Float | Type::Time | Type::Duration | Type::Size)
}
