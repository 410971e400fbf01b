//! Conditions of queries: the part that compares columns with values goes to the table, the rest is evaluated by the program.
//!
//! A comparison is *searchable* if one side is a column of the row, and the other does not mention the row. A comparison of a
//! `Float` is not searchable: databases disagree about NaN.

use weir_host::{Text, Value};
use weir_syntax::ast::{BinaryOperator, Expr, ExprKind, Literal, LiteralValue, UnaryOperator, Visitor, walk_expr};

use super::Lowering;
use super::table_description::record;
use crate::typed_tree::{LocalId, Resolution, TypedTree};

/// A condition, divided into what the table searches and what is left.
#[derive(Default)]
pub(super) struct DividedCondition<'a> {
    /// The searchable comparisons, as values of the type `tables.Condition`.
    pub(super) searched: Vec<Value>,
    /// The values that they compare with, and their types.
    pub(super) values: Vec<(&'a Expr, Option<Value>)>,
    pub(super) left: Vec<&'a Expr>,
}

impl<'a> Lowering<'a, '_> {
    /// Divides a condition.
    pub(super) fn divide(
        &self,
        table: &Text,
        row: Option<LocalId>,
        condition: Option<&'a Expr>,
    ) -> DividedCondition<'a> {
        let mut divided = DividedCondition::default();
        let mut open: Vec<&'a Expr> = condition.into_iter().collect();
        while let Some(part) = open.pop() {
            if let ExprKind::Binary { operator: BinaryOperator::And, left, right, .. } = &part.kind {
                open.extend([&**right, &**left]);
                continue;
            }
            if matches!(part.kind, ExprKind::Literal(Literal { value: LiteralValue::Bool(true), .. })) {
                continue;
            }
            match row.and_then(|row| self.searchable(table, row, part)) {
                Some((column, comparison, value, constant)) => {
                    let at = Value::Int(column.into());
                    divided.searched.push(record([at, Value::text(comparison)]));
                    divided.values.push((value, constant));
                }
                None => divided.left.push(part),
            }
        }
        divided
    }

    /// Returns the column, the comparison and the value of a searchable comparison.
    fn searchable(
        &self,
        table: &Text,
        row: LocalId,
        part: &'a Expr,
    ) -> Option<(u32, &'static str, &'a Expr, Option<Value>)> {
        let is_searched = |column: &u32| {
            let columns = &self.program.declarations.tables[table.as_str()].columns;
            columns.get(*column as usize).is_some_and(|column| column.kind != "Float")
        };
        let (column, comparison, value, constant) = match &part.kind {
            ExprKind::Binary { operator, left, right, .. } => {
                let comparison = symbol(*operator)?;
                match (self.column_of(row, left), self.column_of(row, right)) {
                    (Some(column), None) if !self.mentions(row, right) => (column, comparison, &**right, None),
                    (None, Some(column)) if !self.mentions(row, left) => (column, flipped(comparison), &**left, None),
                    _ => return None,
                }
            }
            ExprKind::Field { .. } => (self.column_of(row, part)?, "==", part, Some(Value::Bool(true))),
            ExprKind::Unary { operator: UnaryOperator::Not, operand } => {
                (self.column_of(row, operand)?, "==", part, Some(Value::Bool(false)))
            }
            _ => return None,
        };
        is_searched(&column).then_some((column, comparison, value, constant))
    }

    /// Returns the column if the expression is a field of the row.
    pub(super) fn column_of(&self, row: LocalId, expr: &Expr) -> Option<u32> {
        let ExprKind::Field { object, .. } = &expr.kind else { return None };
        let is_row = self.typed.resolution(object.id) == Some(&Resolution::Local(row));
        match self.typed.resolution(expr.id) {
            Some(Resolution::Field(column)) if is_row => Some(*column),
            _ => None,
        }
    }

    /// Returns `true` if an expression contains the name of this local.
    pub(super) fn mentions(&self, row: LocalId, expr: &'a Expr) -> bool {
        let mut search = LocalSearch { typed: self.typed, local: row, found: false };
        search.expr(expr);
        search.found
    }
}

/// Looks for the name of a row.
struct LocalSearch<'t> {
    typed: &'t TypedTree,
    local: LocalId,
    found: bool,
}

impl<'a> Visitor<'a> for LocalSearch<'_> {
    fn expr(&mut self, expr: &'a Expr) {
        self.found |= self.typed.resolution(expr.id) == Some(&Resolution::Local(self.local));
        walk_expr(self, expr);
    }
}

pub(super) fn symbol(operator: BinaryOperator) -> Option<&'static str> {
    match operator {
        BinaryOperator::Equal => Some("=="),
        BinaryOperator::NotEqual => Some("!="),
        BinaryOperator::Less => Some("<"),
        BinaryOperator::LessEqual => Some("<="),
        BinaryOperator::Greater => Some(">"),
        BinaryOperator::GreaterEqual => Some(">="),
        _ => None,
    }
}

/// Returns the comparison with its sides exchanged.
pub(super) fn flipped(comparison: &'static str) -> &'static str {
    match comparison {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}
