//! Divides the clauses of a `for` over the groups of a query into what the table evaluates and what is left to the program.
//!
//! The table compares and orders the numbers of rows and of different values, and the columns in which the rows of a group agree,
//! except for `Float`s. A sum may not fit into an `Int`, which ends the flow, so the program compares and orders sums itself.

use weir_host::Value;
use weir_syntax::Span;
use weir_syntax::ast::{BinaryOperator, Expr, ExprKind, Pattern, PatternKind, QueryClauses};

use super::Lowering;
use super::aggregates::ListAggregate;
use super::conditions::{flipped, symbol};
use super::repeat::ListClauses;
use super::table_description::{COUNT, GroupAggregate, record};
use crate::typed_tree::LocalId;

/// The parts of the groups of a query.
pub(super) struct GroupParts<'g> {
    pub(super) table: &'g str,
    /// The pattern of the columns in which the rows of a group agree.
    pub(super) key: &'g Pattern,
    pub(super) columns: &'g [usize],
    /// The name of the rows.
    pub(super) rows: Option<LocalId>,
    pub(super) aggregates: &'g [GroupAggregate],
}

/// The clauses of a `for` over groups, divided.
pub(super) struct GroupClauses<'a> {
    /// The conditions that the table evaluates, as values of the type `tables.GroupCondition`, each with what it compares with.
    pub(super) conditions: Vec<(Value, &'a Expr)>,
    /// The order by the table, as values of the type `tables.GroupOrder`.
    pub(super) order: Vec<Value>,
    /// The clauses of the program.
    pub(super) left: ListClauses<'a>,
}

impl<'a> Lowering<'a, '_> {
    /// Divides the clauses of a `for` over groups.
    pub(super) fn group_clauses(&self, parts: &GroupParts<'_>, clauses: &'a QueryClauses) -> GroupClauses<'a> {
        let mut divided = GroupClauses { conditions: Vec::new(), order: Vec::new(), left: ListClauses::default() };
        let mut open: Vec<&'a Expr> = clauses.condition.iter().collect();
        while let Some(part) = open.pop() {
            if let ExprKind::Binary { operator: BinaryOperator::And, left, right, .. } = &part.kind {
                open.extend([&**right, &**left]);
                continue;
            }
            match self.group_condition(parts, part) {
                Some(condition) => divided.conditions.push(condition),
                None => divided.left.conditions.push(part),
            }
        }
        let by = |key: &'a weir_syntax::ast::QueryOrder| {
            let part = self.part_of_group(parts, &key.value)?;
            Some(record([Value::Int(part as i64), Value::Bool(key.descending)]))
        };
        match clauses.order.iter().map(by).collect() {
            Some(order) => divided.order = order,
            None => divided.left.order = &clauses.order,
        }
        let is_whole = divided.left.conditions.is_empty() && divided.left.order.is_empty();
        divided.left.limit = clauses.limit.as_ref().filter(|_| !is_whole);
        divided
    }

    /// Returns a comparison that the table evaluates, and what it compares with.
    fn group_condition(&self, parts: &GroupParts<'_>, part: &'a Expr) -> Option<(Value, &'a Expr)> {
        let ExprKind::Binary { operator, left, right, .. } = &part.kind else { return None };
        let comparison = symbol(*operator)?;
        let (of, comparison, value) = match (self.part_of_group(parts, left), self.part_of_group(parts, right)) {
            (Some(of), None) => (of, comparison, &**right),
            (None, Some(of)) => (of, flipped(comparison), &**left),
            _ => return None,
        };
        let locals = self.locals_of(parts.key).into_iter().chain(parts.rows);
        let depends = locals.into_iter().any(|local| self.mentions(local, value));
        (!depends).then(|| (record([Value::Int(of as i64), Value::text(comparison)]), value))
    }

    /// Returns the place of a part of a group that the table compares and orders: the columns come first, then the aggregates.
    fn part_of_group(&self, parts: &GroupParts<'_>, expr: &'a Expr) -> Option<usize> {
        let is_exact = |at: &usize| self.table(parts.table).columns[parts.columns[*at]].kind != "Float";
        if let Some(at) = self.column_named(parts, expr) {
            return Some(at).filter(is_exact);
        }
        let (aggregate, list) = self.aggregate_of(expr)?;
        let rows = self.local_in_list(list).filter(|local| Some(*local) == parts.rows)?;
        let column = self.column_of_group(parts.table, rows, (aggregate, list))?;
        let wanted = match aggregate {
            ListAggregate::Length => COUNT,
            ListAggregate::Distinct => GroupAggregate { kind: "distinct", column },
            _ => return None,
        };
        let at = parts.aggregates.iter().position(|of| *of == wanted)?;
        Some(parts.columns.len() + at)
    }

    /// Returns the place of the column that a name of the key stands for.
    fn column_named(&self, parts: &GroupParts<'_>, expr: &Expr) -> Option<usize> {
        let names: Vec<&Pattern> = match &parts.key.kind {
            PatternKind::Tuple(names) if parts.columns.len() > 1 => names.iter().collect(),
            _ if parts.columns.len() == 1 => vec![parts.key],
            _ => return None,
        };
        let is_named = |name: &&Pattern| {
            let local = matches!(name.kind, PatternKind::Bind(_)).then(|| self.typed.pattern_local(name.id)).flatten();
            local.is_some_and(|local| self.is_local(expr, local))
        };
        names.iter().position(is_named)
    }

    fn locals_of(&self, pattern: &Pattern) -> Vec<LocalId> {
        let inner = match &pattern.kind {
            PatternKind::Tuple(parts) => parts.iter().flat_map(|part| self.locals_of(part)).collect(),
            _ => Vec::new(),
        };
        self.typed.pattern_local(pattern.id).into_iter().chain(inner).collect()
    }

    /// Notes the clauses that choose and order the groups of a table, which the program evaluates itself.
    pub(super) fn note_group_rest(&mut self, left: &ListClauses<'a>, query: Span) {
        if !left.conditions.is_empty() {
            let texts: Vec<String> = left.conditions.iter().map(|part| self.context.text_at(part.span)).collect();
            self.context.note_query_rest(query, format!("keeps the groups with `{}`", texts.join(" && ")));
        }
        if !left.order.is_empty() {
            let keys: Vec<String> = left.order.iter().map(|key| self.context.text_at(key.value.span)).collect();
            self.context.note_query_rest(query, format!("orders the groups by `{}`", keys.join(", ")));
        }
        if left.limit.is_some() {
            self.context.note_query_rest(query, "takes the first ones of these".to_owned());
        }
    }
}
