//! Constant conditions: warns of conditions that are always true or always false.
//!
//! A condition is constant if it is a literal, compares literals, compares a name with itself, asks whether a length is
//! negative, or combines such conditions.

use std::collections::BTreeMap;

use weir_syntax::ast::{
    Arm, BinaryOperator, Block, Expr, ExprId, ExprKind, Literal, LiteralValue, StatementKind, UnaryOperator,
};
use weir_syntax::{Code, Diagnostic, Edit, Span};

use super::total_expressions::TotalExpressions;
use crate::context::CheckContext;
use crate::exhaustiveness::removed_arm;
use crate::typed_tree::{CallTarget, Resolution, TypedTree};
use crate::types::Ty;
use crate::whole_lines::{alone_on_lines, has_comment};

/// The warnings of every condition that is always true or always false.
pub(super) struct ConstantConditions<'t> {
    text: &'t str,
    total: TotalExpressions<'t>,
    typed: &'t TypedTree,
    /// The lines of each `if` whose value nobody uses and that is alone on its lines.
    statements: BTreeMap<ExprId, Span>,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> ConstantConditions<'t> {
    pub(super) fn new(context: &CheckContext<'t>, typed: &'t TypedTree) -> Self {
        let total = TotalExpressions { library: context.library, typed };
        ConstantConditions { text: context.text, total, typed, statements: BTreeMap::new(), found: Vec::new() }
    }

    /// Looks at the statements of a block, before their expressions.
    pub(super) fn block(&mut self, block: &Block) {
        let drops_all = self.typed.is_unit_block(block);
        let dropped = block.statements.len() - usize::from(block.value().is_some() && !drops_all);
        for statement in &block.statements[..dropped] {
            if let StatementKind::Expr(Expr { id, kind: ExprKind::If { .. }, span, .. }) = &statement.kind {
                self.statements.extend(alone_on_lines(self.text, *span).map(|lines| (*id, lines)));
            }
        }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::If { condition, then, otherwise } => {
                let otherwise = otherwise.as_ref().map(|other| other.span);
                let statement = self.statements.get(&expr.id).copied();
                let text = self.text;
                self.condition(condition, |value| match if value { Some(then.span) } else { otherwise } {
                    Some(kept) => only(text, expr.span, kept),
                    None => statement
                        .filter(|lines| !has_comment(text, *lines))
                        .map(|span| Edit { span, replacement: String::new() }),
                });
            }
            ExprKind::Match { arms, .. } => self.guards(arms),
            // `until false` is a loop that ends at its limit.
            ExprKind::Loop { until, .. } if self.value(until) == Some(true) => self.condition(until, |_| None),
            _ => {}
        }
    }

    fn guards(&mut self, arms: &[Arm]) {
        let text = self.text;
        for (at, arm) in arms.iter().enumerate() {
            let Some(guard) = &arm.guard else { continue };
            self.condition(guard, |value| {
                let without_guard = Span { start: arm.pattern.span.end, end: guard.span.end, ..guard.span };
                let span = if value { without_guard } else { removed_arm(text, arms, at)? };
                (!has_comment(text, span)).then(|| Edit { span, replacement: String::new() })
            });
        }
    }

    /// Reports a condition that is constant. `edit` returns the edit that leaves only what its value chooses; it is offered
    /// only if the condition has no effect and never fails.
    fn condition(&mut self, condition: &Expr, edit: impl FnOnce(bool) -> Option<Edit>) {
        let Some(value) = self.value(condition) else { return };
        let diagnostic = Diagnostic::new(Code::ConstantCondition, format!("this condition is always {value}"))
            .at(condition.span, "the other case never happens");
        let advice = "compare with a value that changes, or remove the condition";
        let edit = if self.total.contain(condition) { edit(value) } else { None };
        self.found.push(match edit {
            Some(Edit { span, replacement }) => diagnostic.suggest(advice, span, replacement),
            None => diagnostic.hint(advice),
        });
    }

    /// Returns the value of a condition that is the same for every input.
    fn value(&self, condition: &Expr) -> Option<bool> {
        match &condition.kind {
            ExprKind::Literal(Literal { value: LiteralValue::Bool(value), .. }) => Some(*value),
            ExprKind::Unary { operator: UnaryOperator::Not, operand } => self.value(operand).map(|value| !value),
            ExprKind::Binary { operator: BinaryOperator::And, left, right, .. } => {
                match (self.value(left), self.value(right)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            ExprKind::Binary { operator: BinaryOperator::Or, left, right, .. } => {
                match (self.value(left), self.value(right)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                }
            }
            ExprKind::Binary { operator, left, right, .. } => self.comparison(*operator, left, right),
            _ => None,
        }
    }

    fn comparison(&self, operator: BinaryOperator, left: &Expr, right: &Expr) -> Option<bool> {
        if self.is_length(left) && integer(right) == Some(0) {
            return match operator {
                BinaryOperator::Less => Some(false),
                BinaryOperator::GreaterEqual => Some(true),
                _ => None,
            };
        }
        let order = match (integer(left), integer(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ if self.is_same_local(left, right) => std::cmp::Ordering::Equal,
            _ => return None,
        };
        match operator {
            BinaryOperator::Equal => Some(order.is_eq()),
            BinaryOperator::NotEqual => Some(order.is_ne()),
            BinaryOperator::Less => Some(order.is_lt()),
            BinaryOperator::LessEqual => Some(order.is_le()),
            BinaryOperator::Greater => Some(order.is_gt()),
            BinaryOperator::GreaterEqual => Some(order.is_ge()),
            _ => None,
        }
    }

    fn is_length(&self, expr: &Expr) -> bool {
        let call = self.typed.call(expr.id);
        call.is_some_and(|call| match &call.target {
            CallTarget::Length => true,
            CallTarget::Host(path) => path.ends_with(".length"),
            _ => false,
        })
    }

    /// Returns whether both are the same local. A `Float` may be `NaN`, which differs from itself.
    fn is_same_local(&self, left: &Expr, right: &Expr) -> bool {
        let local = |expr: &Expr| match self.typed.resolution(expr.id) {
            Some(Resolution::Local(local)) => Some(*local),
            _ => None,
        };
        let ordered = matches!(self.typed.expr_type(left.id), &Ty::INT | &Ty::TEXT | &Ty::BOOL | &Ty::TIME | &Ty::SIZE);
        ordered && local(left).is_some() && local(left) == local(right)
    }
}

/// Returns the edit that leaves only `kept` of `whole`; `None` if it would remove comments.
fn only(text: &str, whole: Span, kept: Span) -> Option<Edit> {
    let (before, behind) = (Span { end: kept.start, ..whole }, Span { start: kept.end, ..whole });
    let replacement = text.get(kept.range())?.to_owned();
    (!has_comment(text, before) && !has_comment(text, behind)).then_some(Edit { span: whole, replacement })
}

fn integer(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Literal(Literal { value: LiteralValue::Int(value), .. }) => Some(*value),
        _ => None,
    }
}
