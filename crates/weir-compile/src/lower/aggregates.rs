//! Lowers aggregates of a query whose body is a column: `max`, `min`, `sum`, `average`, `length` and the number of different
//! values. The table computes them, so that its rows need not be read.

use weir_host::Value;
use weir_ir::expr::Atom;
use weir_syntax::ast::{Argument, Block, Expr, ExprKind, Pattern, QueryClauses};

use super::conditions::DividedCondition;
use super::table_description::record;
use super::tables::outside;
use super::{Binding, Lowering};
use crate::typed_tree::CallTarget;

/// An aggregate of a list.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ListAggregate {
    Max,
    Min,
    Sum,
    Average,
    Length,
    /// The number of different values.
    Distinct,
}

/// The kinds of columns by which every database orders rows as programs do.
const ORDERED: [&str; 9] = ["Bool", "Int", "Float", "Text", "Bytes", "Time", "Duration", "Size", "Enum"];

/// A query whose body is a column, or the row: then there is none.
struct ColumnQuery<'a> {
    table: weir_host::Text,
    pattern: &'a Pattern,
    body: &'a Block,
    column: Option<usize>,
    condition: DividedCondition<'a>,
}

impl<'a> Lowering<'a, '_> {
    /// Returns the aggregate that an expression is, and the list that it is one of.
    pub(super) fn aggregate_of(&self, expr: &'a Expr) -> Option<(ListAggregate, &'a Expr)> {
        let (target, list, arguments) = self.method_call(expr)?;
        let aggregate = match target {
            CallTarget::Length => match self.method_call(list) {
                Some((CallTarget::Host(path), list, [])) if **path == *"list.unique" => {
                    return Some((ListAggregate::Distinct, list));
                }
                _ => ListAggregate::Length,
            },
            CallTarget::Host(path) => match path.as_str() {
                "list.max" => ListAggregate::Max,
                "list.min" => ListAggregate::Min,
                "list.sum" => ListAggregate::Sum,
                "list.average" => ListAggregate::Average,
                _ => return None,
            },
            _ => return None,
        };
        arguments.is_empty().then_some((aggregate, list))
    }

    /// Returns the function that an expression calls on a value with a dot, the value, and the other arguments.
    pub(super) fn method_call(&self, expr: &'a Expr) -> Option<(&'a CallTarget, &'a Expr, &'a [Argument])> {
        let ExprKind::Call { function, arguments } = &expr.kind else { return None };
        let ExprKind::Field { object, .. } = &function.kind else { return None };
        let call = self.typed.call(expr.id)?;
        Some((&call.target, object, arguments))
    }

    /// Lowers the call of a function on a query, if it is an aggregate that the table computes.
    pub(super) fn aggregate(&mut self, expr: &'a Expr) -> Option<Atom> {
        let (aggregate, query) = self.aggregate_of(expr)?;
        let of = self.column_query(query, aggregate)?;
        let span = expr.span;
        if let (ListAggregate::Max | ListAggregate::Min, Some(column)) = (aggregate, of.column) {
            let order = record([Value::Int(column as i64), Value::Bool(aggregate == ListAggregate::Max)]);
            let first = Some(Atom::Value(Value::Int(1)));
            let rows = self.select(&of.table, &of.condition, vec![order], first, span);
            let values = self.for_each((&self.ty(query), query.span), rows, of.pattern, of.body);
            let given = vec![Some(Binding::Atom(values))];
            let path = if aggregate == ListAggregate::Max { "list.max" } else { "list.min" };
            return Some(self.call_host(&path.into(), given, self.ty(expr), (span, &[])));
        }
        let (query, arguments) = self.description(&of.table, &of.condition, Vec::new(), None, span);
        let mut given = vec![Atom::Shared(of.table), outside(), query, arguments];
        let function = match aggregate {
            ListAggregate::Distinct => "distinct",
            ListAggregate::Sum => "sum",
            ListAggregate::Average => "average",
            _ => "count",
        };
        given.extend(of.column.filter(|_| function != "count").map(|column| Atom::Value(Value::Int(column as i64))));
        Some(self.call_tables(function, given, self.ty(expr), span))
    }

    /// Lowers a query of a soft table whose body is a column, if the table can search the whole condition: it returns the values of the
    /// column instead of the rows. A database would need another statement, which saves it little.
    pub(super) fn column_list(
        &mut self,
        expr: &'a Expr,
        table: &weir_host::Text,
        (pattern, clauses): (&'a Pattern, &'a QueryClauses),
        body: &'a Block,
    ) -> Option<Atom> {
        self.table(table).soft.as_ref()?;
        let row = self.typed.pattern_local(pattern.id)?;
        let (true, Some(value)) = (body.statements.len() == 1, body.value()) else { return None };
        let column = Atom::Value(Value::Int(self.column_of(row, value)?.into()));
        let condition = self.divide(table, Some(row), clauses.condition.as_ref());
        if !condition.left.is_empty() {
            return None;
        }
        let order = self.order(clauses);
        let limit = clauses.limit.as_ref().map(|limit| self.expr(limit));
        let (query, arguments) = self.description(table, &condition, order, limit, expr.span);
        let given = vec![Atom::Shared(table.clone()), outside(), query, arguments, column];
        Some(self.call_tables("column", given, self.ty(expr), expr.span))
    }

    /// Returns the query that an expression is, if its body is a column of which the table computes the aggregate, the table
    /// can search the whole condition, and there is no limit.
    fn column_query(&self, query: &'a Expr, aggregate: ListAggregate) -> Option<ColumnQuery<'a>> {
        let ExprKind::For { pattern, items, query, body } = &query.kind else { return None };
        let table = self.table_named(items)?;
        let row = self.typed.pattern_local(pattern.id)?;
        let (true, Some(value)) = (body.statements.len() == 1, body.value()) else { return None };
        let column = self.column_of(row, value).map(|column| column as usize);
        let computes = match column {
            Some(column) => self.computes(&table, column, aggregate, &ORDERED),
            None => aggregate == ListAggregate::Length && self.is_local(value, row),
        };
        if query.limit.is_some() || !computes {
            return None;
        }
        let condition = self.divide(&table, Some(row), query.condition.as_ref());
        let is_whole = condition.left.is_empty();
        is_whole.then_some(ColumnQuery { table, pattern, body, column, condition })
    }

    /// Returns whether the table computes an aggregate of a column; `ordered` are the kinds of columns of which it has the
    /// least and the greatest value.
    pub(super) fn computes(&self, table: &str, column: usize, aggregate: ListAggregate, ordered: &[&str]) -> bool {
        let Some(declared) = self.table(table).columns.get(column) else { return false };
        match aggregate {
            ListAggregate::Length | ListAggregate::Distinct => true,
            ListAggregate::Sum | ListAggregate::Average => !declared.optional && declared.kind == "Int",
            ListAggregate::Max | ListAggregate::Min => !declared.optional && ordered.contains(&declared.kind),
        }
    }
}
