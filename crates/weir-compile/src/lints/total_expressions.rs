//! Total expressions: those whose evaluation has no effect and never fails, so that an edit may remove them.
//!
//! The answer is conservative: an expression that is not known to be total is not. Reading a shared value has no effect
//! either, but it may not be moved past a change, so it does not count as total here.

use weir_host::{Library, Passing, Signature, World};
use weir_syntax::ast::{Argument, BinaryOperator, Expr, ExprKind, TextPart, UnaryOperator};

use crate::typed_tree::{ArgumentSource, CallTarget, Resolution, ResolvedCall, TypedTree};
use crate::types::Ty;

/// Knows which expressions of a checked tree are total.
#[derive(Clone, Copy)]
pub(super) struct TotalExpressions<'t> {
    pub(super) library: &'t Library,
    pub(super) typed: &'t TypedTree,
}

impl TotalExpressions<'_> {
    /// Returns whether evaluating the expression has no effect and never fails.
    pub(super) fn contain(self, expr: &Expr) -> bool {
        let all = |exprs: &[Expr]| exprs.iter().all(|expr| self.contain(expr));
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Closure { .. } => true,
            ExprKind::Name(_) => self.is_total_name(expr),
            ExprKind::Text(text) => text.parts.iter().all(|part| match part {
                TextPart::Literal { .. } => true,
                TextPart::Expr(expr) => self.contain(expr),
            }),
            ExprKind::Field { object, .. } => match self.typed.resolution(expr.id) {
                Some(Resolution::Field(_)) => self.contain(object),
                Some(Resolution::Variant(_) | Resolution::Constant(_)) => true,
                _ => false,
            },
            ExprKind::TupleIndex { object, .. } => self.contain(object),
            ExprKind::Unary { operator: UnaryOperator::Not, operand } => self.contain(operand),
            ExprKind::Binary { operator, left, right, .. } if never_fails(*operator) => {
                self.contain(left) && self.contain(right)
            }
            ExprKind::Tuple(values) | ExprKind::List(values) => all(values),
            ExprKind::Map(entries) => {
                entries.iter().all(|entry| self.contain(&entry.key) && self.contain(&entry.value))
            }
            ExprKind::Record { base, fields, .. } => {
                base.iter().all(|base| self.contain(base)) && fields.iter().all(|field| self.contain(&field.value))
            }
            ExprKind::Call { function, arguments } => self.is_total_call(expr, receiver(function), arguments),
            ExprKind::Pipe { value, arguments, .. } => self.is_total_call(expr, Some(value), arguments),
            _ => self.typed.constant(expr).is_ok(),
        }
    }

    fn is_total_name(self, name: &Expr) -> bool {
        !matches!(self.typed.resolution(name.id), None | Some(Resolution::Shared(_) | Resolution::SharedNow(_)))
    }

    /// Looks at a call with its first argument, before the dot or the pipe, which may be a module instead.
    fn is_total_call(self, call: &Expr, first: Option<&Expr>, arguments: &[Argument]) -> bool {
        let Some(resolved) = self.typed.call(call.id) else { return false };
        let first = first.filter(|_| takes_first(resolved));
        let mut passed = first.into_iter().chain(arguments.iter().map(|argument| &argument.value));
        self.is_total_target(&resolved.target)
            && passed.all(|passed| self.contain(passed) && !matches!(self.typed.expr_type(passed.id), Ty::Function(_)))
    }

    fn is_total_target(self, target: &CallTarget) -> bool {
        match target {
            CallTarget::Variant(_) | CallTarget::Length | CallTarget::Failure => true,
            CallTarget::Host(path) => self.library.function(path).is_some_and(|function| {
                let signature = &function.signature;
                is_pure(signature) && signature.effects.total
            }),
            _ => false,
        }
    }
}

/// Returns whether the value before the dot or the pipe is an argument.
fn takes_first(call: &ResolvedCall) -> bool {
    call.target == CallTarget::Length
        || call.supplied.iter().any(|source| matches!(source, ArgumentSource::Object | ArgumentSource::Piped))
}

fn never_fails(operator: BinaryOperator) -> bool {
    match operator {
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterEqual
        | BinaryOperator::And
        | BinaryOperator::Or => true,
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Remainder => false,
    }
}

/// Returns whether a call of a host function has no effect other than its result, and does not wait.
pub(super) fn is_pure(signature: &Signature) -> bool {
    let changes = signature.parameters.iter().any(|parameter| parameter.passing == Passing::Change);
    let waits = signature.effects.waits || signature.effects.blocking;
    signature.effects.world == World::Pure && signature.state.is_none() && !changes && !waits
}

/// Returns the value before the dot of `value.function`.
pub(super) fn receiver(function: &Expr) -> Option<&Expr> {
    match &function.kind {
        ExprKind::Field { object, .. } => Some(object),
        _ => None,
    }
}
