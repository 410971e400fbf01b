//! Where an expression needs parentheses to be read back as it is.
//!
//! Each place asks for a least tightness; an expression that is less tight gets parentheses there.

use crate::ast::{BinaryOperator, Expr, ExprKind, LiteralValue};

/// How tightly an expression holds together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Tightness(u8);

impl Tightness {
    /// Anything.
    pub(super) const EXPRESSION: Self = Self(0);
    /// Anything but `else`.
    pub(super) const NO_ELSE: Self = Self(1);
    /// Nothing that takes all that follows it (`else`, `return`, closures).
    pub(super) const LIMITED: Self = Self(2);
    /// No `within` either.
    pub(super) const OPERATORS: Self = Self(3);
    /// No pipe either; the operators' own levels follow.
    pub(super) const BINARY: Self = Self(4);
    /// No operator with two operands.
    pub(super) const UNARY: Self = Self(9);
    /// No operator.
    pub(super) const OPERAND: Self = Self(10);

    /// The tightness of a binary expression.
    pub(super) fn of_operator(operator: BinaryOperator) -> Self {
        use BinaryOperator as B;
        Self(match operator {
            B::Or => 4,
            B::And => 5,
            B::Add | B::Subtract => 7,
            B::Multiply | B::Divide | B::Remainder => 8,
            _ => 6,
        })
    }

    /// One step tighter.
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// How tightly `expr` holds together, without parentheses of its own.
pub(super) fn tightness(expr: &Expr) -> Tightness {
    match &expr.kind {
        ExprKind::Else { .. } => Tightness::EXPRESSION,
        ExprKind::Return(_) | ExprKind::Closure { .. } => Tightness::NO_ELSE,
        ExprKind::Within { .. } => Tightness::LIMITED,
        ExprKind::Pipe { .. } | ExprKind::Loop { .. } => Tightness::OPERATORS,
        ExprKind::Binary { operator, .. } => Tightness::of_operator(*operator),
        ExprKind::Unary { .. } => Tightness::UNARY,
        _ if is_piped(expr) => Tightness::OPERATORS,
        _ => Tightness::OPERAND,
    }
}

/// Whether it is a pipe, or a pipe with something behind it (`a |> f()?`).
pub(super) fn is_piped(expr: &Expr) -> bool {
    let mut expr = expr;
    while let Some(object) = object(expr) {
        if object.parenthesized {
            return false;
        }
        expr = object;
    }
    matches!(expr.kind, ExprKind::Pipe { .. })
}

/// What the last suffix stands behind.
pub(super) fn object(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Field { object, .. } | ExprKind::TupleIndex { object, .. } | ExprKind::Index { object, .. } => {
            Some(object)
        }
        ExprKind::Try(object) => Some(object),
        ExprKind::Call { function, .. } => Some(function),
        _ => None,
    }
}

/// The expression that ends where `expr` ends, unless a bracket does.
fn last(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Binary { right, .. } => Some(right),
        ExprKind::Unary { operand, .. } => Some(operand),
        ExprKind::Within { limit, .. } => Some(limit),
        ExprKind::Loop { at_most, .. } => Some(at_most),
        ExprKind::Else { otherwise, .. } => Some(otherwise),
        ExprKind::If { otherwise, .. } => otherwise.as_deref(),
        ExprKind::Closure { body, .. } => Some(body),
        ExprKind::Return(value) => value.as_deref(),
        _ => None,
    }
}

/// The last expression of all in `expr` for which no parentheses are written.
fn very_last(expr: &Expr) -> &Expr {
    let mut expr = expr;
    while let Some(inner) = last(expr) {
        if inner.parenthesized {
            return inner;
        }
        expr = inner;
    }
    expr
}

/// Whether an `else` behind it would belong to an `if` in it.
pub(super) fn takes_else(expr: &Expr) -> bool {
    let last = very_last(expr);
    !expr.parenthesized && !last.parenthesized && matches!(last.kind, ExprKind::If { otherwise: None, .. })
}

/// Whether a brace behind it would be the value of a `return` in it.
pub(super) fn takes_brace(expr: &Expr) -> bool {
    let last = very_last(expr);
    !expr.parenthesized && !last.parenthesized && matches!(last.kind, ExprKind::Return(None))
}

/// The expression that begins where `expr` begins, of all without parentheses the innermost.
fn very_first(expr: &Expr) -> &Expr {
    let mut expr = expr;
    loop {
        let first = match &expr.kind {
            ExprKind::Binary { left, .. } => Some(&**left),
            ExprKind::Pipe { value, .. } | ExprKind::Else { value, .. } | ExprKind::Within { value, .. } => {
                Some(&**value)
            }
            _ => object(expr),
        };
        match first {
            Some(first) if !expr.parenthesized => expr = first,
            _ => return expr,
        }
    }
}

/// Whether its first character is a brace.
pub(super) fn begins_with_brace(expr: &Expr) -> bool {
    let first = very_first(expr);
    !first.parenthesized && matches!(first.kind, ExprKind::Block(_))
}

/// Whether it begins with `||`, which would go on with the line before.
pub(super) fn begins_with_bars(expr: &Expr) -> bool {
    let first = very_first(expr);
    let bare = |parameters: &[_]| parameters.is_empty();
    !first.parenthesized && matches!(&first.kind, ExprKind::Closure { parameters, .. } if bare(parameters))
}

/// Whether a minus before it would become part of its number.
pub(super) fn begins_with_number(expr: &Expr) -> bool {
    let first = very_first(expr);
    let ExprKind::Literal(literal) = &first.kind else { return false };
    let is_number = matches!(literal.value, LiteralValue::Int(_) | LiteralValue::Float(_));
    !first.parenthesized && is_number && !literal.raw.starts_with('-')
}
