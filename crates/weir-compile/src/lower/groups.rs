//! Lowers a `for` over the groups of a query, such as `for (to, theirs) in (for m in messages { m }).group_by(|m| m.to)`, to
//! one statement, if it uses the rows of a group for aggregates only. The table computes these, so that its rows need not be
//! read.
//!
//! The name of the rows, `theirs`, then stands for the aggregates of the group. A sum is two numbers, and is put together
//! where the program uses it, so that a sum that does not fit into an `Int` ends the flow only there.

use weir_host::{Text, Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::ast::{Block, Expr, ExprKind, Pattern, PatternId, PatternKind, QueryClauses, Visitor, walk_expr};

use super::aggregates::ListAggregate;
use super::conditions::{ComparedValue, DividedCondition};
use super::group_clauses::{GroupClauses, GroupParts};
use super::queries::closure_of;
use super::repeat::ListClauses;
use super::table_description::{COUNT, GroupAggregate, GroupedRows, numbers, record};
use super::tables::outside;
use super::{Binding, Lowering};
use crate::typed_tree::{CallTarget, LocalId, Resolution};

/// The kinds of columns of which every database has the least and the greatest value of a group.
const ORDERED: [&str; 6] = ["Int", "Float", "Text", "Time", "Duration", "Size"];

/// The rows of a table that are grouped by columns.
struct GroupedQuery<'a> {
    table: Text,
    condition: DividedCondition<'a>,
    columns: Vec<usize>,
}

impl<'a> Lowering<'a, '_> {
    /// Lowers the groups over which a `for` iterates, if the table can compute them: pairs of the key and the aggregates.
    /// Returns them with the clauses that are left to the program.
    pub(super) fn groups(
        &mut self,
        pattern: &'a Pattern,
        items: &'a Expr,
        (clauses, body): (&'a QueryClauses, &'a Block),
    ) -> Option<(Atom, ListClauses<'a>)> {
        if self.module.is_some() || !self.replaced.is_empty() {
            return None;
        }
        let PatternKind::Tuple(parts) = &pattern.kind else { return None };
        let [_, rows_pattern] = &parts[..] else { return None };
        let query = self.grouped_query(items)?;
        let mut uses =
            GroupUses { lowering: self, table: &query.table, rows: None, aggregates: Vec::new(), other: false };
        match &rows_pattern.kind {
            PatternKind::Wildcard => {}
            PatternKind::Bind(_) => {
                uses.rows = Some(uses.lowering.typed.pattern_local(rows_pattern.id)?);
                clauses
                    .condition
                    .iter()
                    .chain(clauses.order.iter().map(|key| &key.value))
                    .for_each(|expr| uses.expr(expr));
                uses.block(body);
            }
            _ => return None,
        }
        let GroupUses { rows, mut aggregates, other, .. } = uses;
        if other {
            return None;
        }
        if aggregates.is_empty() {
            aggregates.push(COUNT);
        }
        let types: Vec<Type> = aggregates.iter().map(|of| self.type_of_aggregate(&query.table, *of)).collect();
        let group = Type::tuple(types.clone());
        let pair = Type::tuple(vec![self.pattern_type(parts[0].id), group.clone()]);
        let span = items.span;
        let GroupedQuery { table, mut condition, columns } = query;
        let parts = GroupParts { table: &table, key: &parts[0], columns: &columns, rows, aggregates: &aggregates };
        let GroupClauses { conditions, order, left } = self.group_clauses(&parts, clauses);
        let early = left.limit.is_none().then(|| clauses.limit.as_ref().map(|limit| self.expr(limit))).flatten();
        let conditions_of = conditions.iter().map(|(part, _)| part.clone()).collect();
        let grouping = grouping(&columns, &aggregates, conditions_of, order);
        condition.values.extend(conditions.into_iter().map(|(_, value)| ComparedValue::Of(value)));
        let (search, arguments) = self.description(&table, &condition, Vec::new(), early, span);
        let query = GroupedQuery { table, condition, columns };
        let given = vec![Atom::Shared(query.table.clone()), outside(), search, arguments, Atom::Value(grouping)];
        let groups = self.call_tables("group", given, Type::list(pair.clone()), span);
        if let Some(rows) = rows {
            self.grouped_rows.insert(rows, GroupedRows { table: query.table, aggregates, types });
        }
        self.group_patterns.insert(pattern.id, pair);
        self.group_patterns.insert(rows_pattern.id, group);
        self.note_group_rest(&left, span);
        Some((groups, left))
    }

    /// Returns the type of a pattern that binds a group or its rows, if the table computes its aggregates.
    pub(super) fn group_pattern(&self, id: PatternId) -> Option<&Type> {
        self.group_patterns.get(&id).filter(|_| self.module.is_none())
    }

    /// Lowers an aggregate of the rows of a group that the table has computed.
    pub(super) fn aggregate_of_group(&mut self, expr: &'a Expr) -> Option<Atom> {
        if self.grouped_rows.is_empty() || self.module.is_some() {
            return None;
        }
        let (aggregate, list) = self.aggregate_of(expr)?;
        let local = self.local_in_list(list)?;
        let table = self.grouped_rows.get(&local)?.table.clone();
        let column = self.column_of_group(&table, local, (aggregate, list))?;
        let Some(Binding::Atom(group)) = self.names.get(&local).cloned() else { return None };
        let (ty, span) = (self.ty(expr), expr.span);
        let part = |lowering: &mut Self, kind| {
            let rows = &lowering.grouped_rows[&local];
            let wanted = if kind == "count" { COUNT } else { GroupAggregate { kind, column } };
            let at = rows.aggregates.iter().position(|of| *of == wanted)?;
            let ty = rows.types[at].clone();
            Some(lowering.prim(Prim::Field(at as u32), vec![group.clone()], ty, span))
        };
        Some(match aggregate {
            ListAggregate::Length => part(self, "count")?,
            ListAggregate::Distinct => part(self, "distinct")?,
            ListAggregate::Max | ListAggregate::Min => {
                let value = part(self, if aggregate == ListAggregate::Max { "max" } else { "min" })?;
                self.prim(Prim::Variant(Value::SOME), vec![value], ty, span)
            }
            ListAggregate::Sum | ListAggregate::Average => {
                let sum = part(self, "sum")?;
                let mut half = |at| self.prim(Prim::Field(at), vec![sum.clone()], Type::Int, span);
                let mut given = vec![half(0), half(1)];
                if aggregate == ListAggregate::Sum {
                    return Some(self.call_tables("whole_sum", given, ty, span));
                }
                given.push(part(self, "count")?);
                self.call_tables("whole_average", given, ty, span)
            }
        })
    }

    /// Returns the rows and the columns of `(for row in table if condition { row }).group_by(|row| row.column)`.
    fn grouped_query(&self, items: &'a Expr) -> Option<GroupedQuery<'a>> {
        let (CallTarget::Weir(path), query, [key]) = self.method_call(items)? else { return None };
        let ExprKind::For { pattern, items, query, body } = &query.kind else { return None };
        let table = self.table_named(items).filter(|_| **path == *"list.group_by")?;
        let row = self.typed.pattern_local(pattern.id)?;
        let is_row = body.statements.len() == 1 && body.value().is_some_and(|value| self.is_local(value, row));
        if !is_row || !query.order.is_empty() || query.limit.is_some() {
            return None;
        }
        let condition = self.divide(&table, Some(row), query.condition.as_ref());
        let (parameter, key) = closure_of(Some(&key.value))?;
        let row = self.typed.pattern_local(parameter.id)?;
        let columns = match &key.kind {
            ExprKind::Tuple(parts) if parts.len() > 1 => parts.iter().map(|part| self.column_of(row, part)).collect(),
            _ => self.column_of(row, key).map(|column| vec![column]),
        };
        let columns: Vec<usize> = columns?.into_iter().map(|column| column as usize).collect();
        condition.left.is_empty().then_some(GroupedQuery { table, condition, columns })
    }

    fn type_of_aggregate(&self, table: &str, aggregate: GroupAggregate) -> Type {
        match aggregate.kind {
            "max" | "min" => self.table(table).columns[aggregate.column].ty.clone(),
            "sum" => Type::tuple(vec![Type::Int, Type::Int]),
            _ => Type::Int,
        }
    }

    /// Returns the name behind a list of the rows of a group or of a column of them: `theirs`, `theirs.map(|m| m.size)` or
    /// `for m in theirs { m.size }`.
    pub(super) fn local_in_list(&self, list: &'a Expr) -> Option<LocalId> {
        let rows = match &list.kind {
            ExprKind::For { items, query, .. } if query.is_empty() => items,
            ExprKind::Call { .. } => match self.method_call(list)? {
                (CallTarget::Weir(path), rows, [_]) if **path == *"list.map" => rows,
                _ => return None,
            },
            _ => list,
        };
        match self.typed.resolution(rows.id) {
            Some(Resolution::Local(local)) => Some(*local),
            _ => None,
        }
    }

    /// Returns the column of an aggregate of the rows of a group, if the table computes it. The number of rows uses none.
    pub(super) fn column_of_group(
        &self,
        table: &str,
        rows: LocalId,
        (aggregate, list): (ListAggregate, &'a Expr),
    ) -> Option<usize> {
        let (parameter, value) = match &list.kind {
            ExprKind::For { pattern, body, .. } if body.statements.len() == 1 => (&**pattern, body.value()?),
            ExprKind::Call { arguments, .. } => closure_of(arguments.first().map(|argument| &argument.value))?,
            _ => return (aggregate == ListAggregate::Length && self.is_local(list, rows)).then_some(COUNT.column),
        };
        let column = self.column_of(self.typed.pattern_local(parameter.id)?, value)? as usize;
        self.computes(table, column, aggregate, &ORDERED).then_some(column)
    }

    /// Returns whether an expression is a local name.
    pub(super) fn is_local(&self, expr: &Expr, local: LocalId) -> bool {
        matches!(expr.kind, ExprKind::Name(_)) && self.typed.resolution(expr.id) == Some(&Resolution::Local(local))
    }
}

/// Returns a grouping as a value of the type `tables.Grouping`.
fn grouping(columns: &[usize], aggregates: &[GroupAggregate], conditions: Vec<Value>, order: Vec<Value>) -> Value {
    let described = |of: &GroupAggregate| record([Value::text(of.kind), Value::Int(of.column as i64)]);
    let aggregates = aggregates.iter().map(described).collect();
    record([numbers(columns), Value::list(aggregates), Value::list(conditions), Value::list(order)])
}

/// Collects the aggregates of the rows of a group, and looks for other uses of them.
struct GroupUses<'s, 'a, 'd> {
    lowering: &'s Lowering<'a, 'd>,
    table: &'s str,
    /// The name of the rows.
    rows: Option<LocalId>,
    aggregates: Vec<GroupAggregate>,
    other: bool,
}

impl<'a> GroupUses<'_, 'a, '_> {
    /// Returns the aggregate that an expression is, and its column.
    fn aggregate(&self, expr: &'a Expr) -> Option<(ListAggregate, usize)> {
        let (aggregate, list) = self.lowering.aggregate_of(expr)?;
        let rows = self.lowering.local_in_list(list).filter(|local| Some(*local) == self.rows)?;
        Some((aggregate, self.lowering.column_of_group(self.table, rows, (aggregate, list))?))
    }

    fn add(&mut self, aggregate: GroupAggregate) {
        if !self.aggregates.contains(&aggregate) {
            self.aggregates.push(aggregate);
        }
    }
}

impl<'a> Visitor<'a> for GroupUses<'_, 'a, '_> {
    fn expr(&mut self, expr: &'a Expr) {
        if let Some((aggregate, column)) = self.aggregate(expr) {
            let of = |kind| GroupAggregate { kind, column };
            match aggregate {
                ListAggregate::Length => self.add(COUNT),
                ListAggregate::Distinct => self.add(of("distinct")),
                ListAggregate::Max => self.add(of("max")),
                ListAggregate::Min => self.add(of("min")),
                ListAggregate::Sum => self.add(of("sum")),
                ListAggregate::Average => {
                    self.add(of("sum"));
                    self.add(COUNT);
                }
            }
            return;
        }
        let named = self.lowering.typed.resolution(expr.id);
        self.other |= self.rows.is_some_and(|rows| named == Some(&Resolution::Local(rows)));
        walk_expr(self, expr);
    }
}
