//! Conditions of queries: the part that compares columns with values goes to the table, the rest is evaluated by the program.
//!
//! A comparison is *searchable* if one side is a column of the row, and the other does not mention the row. A comparison of a
//! `Float` is not searchable: databases disagree about NaN. So is the comparison of a value that may be absent, in
//! `match row.ends { Some(ends) => ends < now, None => false }`: no absent value fulfils it.

use weir_host::{Text, Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::ast::{
    Arm, BinaryOperator, Expr, ExprKind, Literal, LiteralValue, Pattern, PatternKind, UnaryOperator, Visitor, walk_expr,
};

use super::Lowering;
use super::table_description::record;
use crate::typed_tree::{LocalId, Resolution, TypedTree};

/// A condition, divided into what the table searches and what is left.
#[derive(Default)]
pub(super) struct DividedCondition<'a> {
    /// The searchable comparisons, as values of the type `tables.Condition`.
    pub(super) searched: Vec<Value>,
    /// The values that they compare with.
    pub(super) values: Vec<ComparedValue<'a>>,
    pub(super) left: Vec<&'a Expr>,
}

/// A value that a column is compared with.
pub(super) enum ComparedValue<'a> {
    Of(&'a Expr),
    /// The same in a `Some`.
    SomeOf(&'a Expr),
    Bool(bool),
}

/// A searchable comparison.
struct Searchable<'a> {
    column: u32,
    comparison: &'static str,
    value: ComparedValue<'a>,
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
                Some(Searchable { column, comparison, value }) => {
                    let at = Value::Int(column.into());
                    divided.searched.push(record([at, Value::text(comparison)]));
                    divided.values.push(value);
                }
                None => divided.left.push(part),
            }
        }
        divided
    }

    /// Lowers a value that a column is compared with. Returns it and its type.
    pub(super) fn compared_value(&mut self, value: &ComparedValue<'a>) -> (Atom, Type) {
        match value {
            ComparedValue::Bool(value) => (Atom::Value(Value::Bool(*value)), Type::Bool),
            ComparedValue::Of(value) => (self.expr(value), self.ty(value)),
            ComparedValue::SomeOf(value) => {
                let (present, ty) = (self.expr(value), Type::option(self.ty(value)));
                (self.prim(Prim::Variant(Value::SOME), vec![present], ty.clone(), value.span), ty)
            }
        }
    }

    /// Returns the searchable comparison that a part of a condition is.
    fn searchable(&self, table: &Text, row: LocalId, part: &'a Expr) -> Option<Searchable<'a>> {
        let found = match &part.kind {
            ExprKind::Binary { .. } => self.compared(row, part, |side| self.column_of(row, side))?,
            ExprKind::Match { value, arms } => self.compared_if_present(row, value, arms)?,
            ExprKind::Field { .. } => {
                Searchable { column: self.column_of(row, part)?, comparison: "==", value: ComparedValue::Bool(true) }
            }
            ExprKind::Unary { operator: UnaryOperator::Not, operand } => {
                let column = self.column_of(row, operand)?;
                Searchable { column, comparison: "==", value: ComparedValue::Bool(false) }
            }
            _ => return None,
        };
        let columns = &self.program.declarations.tables[table.as_str()].columns;
        columns.get(found.column as usize).is_some_and(|column| column.kind != "Float").then_some(found)
    }

    /// Returns the comparison of a column with a value that does not mention the row. `column_of` returns the column that a side
    /// is.
    fn compared(
        &self,
        row: LocalId,
        part: &'a Expr,
        column_of: impl Fn(&Expr) -> Option<u32>,
    ) -> Option<Searchable<'a>> {
        let ExprKind::Binary { operator, left, right, .. } = &part.kind else { return None };
        let comparison = symbol(*operator)?;
        let (column, comparison, value) = match (column_of(left), column_of(right)) {
            (Some(column), None) => (column, comparison, right),
            (None, Some(column)) => (column, flipped(comparison), left),
            _ => return None,
        };
        (!self.mentions(row, value)).then_some(Searchable { column, comparison, value: ComparedValue::Of(value) })
    }

    /// Returns the comparison in `match row.column { Some(present) => present < value, None => false }`.
    fn compared_if_present(&self, row: LocalId, matched: &Expr, arms: &'a [Arm]) -> Option<Searchable<'a>> {
        let column = self.column_of(row, matched)?;
        let (some, none) = match arms {
            [first, second] if variant(&first.pattern) == Some("Some") => (first, second),
            [first, second] if variant(&first.pattern) == Some("None") => (second, first),
            _ => return None,
        };
        let is_false = matches!(none.body.kind, ExprKind::Literal(Literal { value: LiteralValue::Bool(false), .. }));
        let is_none = variant(&none.pattern) == Some("None") || none.pattern.kind == PatternKind::Wildcard;
        if !is_none || !is_false || some.guard.is_some() || none.guard.is_some() {
            return None;
        }
        let PatternKind::Variant { path, arguments } = &some.pattern.kind else { return None };
        let present = match &arguments[..] {
            [only] if path.last().as_str() == "Some" => self.typed.pattern_local(only.pattern.id)?,
            _ => return None,
        };
        let is_present = |side: &Expr| self.typed.resolution(side.id) == Some(&Resolution::Local(present));
        let found = self.compared(row, &some.body, |side| is_present(side).then_some(column))?;
        match found.value {
            // The table takes `!=` for true if the value is absent.
            ComparedValue::Of(value) if found.comparison != "!=" && !self.mentions(present, value) => {
                Some(Searchable { value: ComparedValue::SomeOf(value), ..found })
            }
            _ => None,
        }
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

/// Returns the name of the variant that a pattern matches.
fn variant(pattern: &Pattern) -> Option<&str> {
    match &pattern.kind {
        PatternKind::Variant { path, .. } => Some(path.last().as_str()),
        _ => None,
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
