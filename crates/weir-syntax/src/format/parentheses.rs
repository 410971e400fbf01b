//! Parentheses: decides where an expression needs them to be parsed back as the same tree.
//!
//! Each place requires a minimum tightness. An expression that binds less tightly gets parentheses there.

use crate::ast::{BinaryOperator, Expr, ExprKind, LiteralValue};

/// Binding strength of an expression, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Tightness(u8);

impl Tightness {
    /// Any expression.
    pub(super) const EXPRESSION: Self = Self(0);
    /// Any expression but `else`.
    pub(super) const NO_ELSE: Self = Self(1);
    /// No expression that extends as far right as possible (`else`, `return`, closures).
    pub(super) const LIMITED: Self = Self(2);
    /// Also no `within`.
    pub(super) const OPERATORS: Self = Self(3);
    /// Also no pipe; the levels of the operators follow.
    pub(super) const BINARY: Self = Self(4);
    /// No binary operator.
    pub(super) const UNARY: Self = Self(9);
    /// No operator.
    pub(super) const OPERAND: Self = Self(10);

    /// Returns the tightness of a binary expression.
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

    /// Returns the next tighter level.
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Returns the tightness of `expr` without parentheses of its own.
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

/// Returns true for a pipe, or a pipe with a suffix (`a |> f()?`).
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

/// Returns the object of the last suffix.
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

/// Returns the subexpression that ends where `expr` ends, unless a bracket does.
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

/// Returns the innermost subexpression of `expr` that ends it and is printed without parentheses.
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

/// Returns true if an `else` after the expression would attach to an `if` inside it.
pub(super) fn takes_else(expr: &Expr) -> bool {
    let last = very_last(expr);
    !expr.parenthesized && !last.parenthesized && matches!(last.kind, ExprKind::If { otherwise: None, .. })
}

/// Returns true if a brace after the expression would become the value of a `return` inside it.
pub(super) fn takes_brace(expr: &Expr) -> bool {
    let last = very_last(expr);
    !expr.parenthesized && !last.parenthesized && matches!(last.kind, ExprKind::Return(None))
}

/// Returns the innermost subexpression without parentheses that begins where `expr` begins.
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

/// Returns true if the first character is a brace.
pub(super) fn begins_with_brace(expr: &Expr) -> bool {
    let first = very_first(expr);
    !first.parenthesized && matches!(first.kind, ExprKind::Block(_))
}

/// Returns true if the expression begins with `||`, which would continue the line before.
pub(super) fn begins_with_bars(expr: &Expr) -> bool {
    let first = very_first(expr);
    let bare = |parameters: &[_]| parameters.is_empty();
    !first.parenthesized && matches!(&first.kind, ExprKind::Closure { parameters, .. } if bare(parameters))
}

/// Returns true if a minus before the expression would become part of its number.
pub(super) fn begins_with_number(expr: &Expr) -> bool {
    let first = very_first(expr);
    let ExprKind::Literal(literal) = &first.kind else { return false };
    let is_number = matches!(literal.value, LiteralValue::Int(_) | LiteralValue::Float(_));
    !first.parenthesized && is_number && !literal.raw.starts_with('-')
}
