//! Lowers aggregates: `max`, `min`, `sum` and `length` of a query whose body is a column. The table computes them, so that
//! its rows need not be read.

use weir_host::{Type, Value};
use weir_ir::expr::Atom;
use weir_syntax::ast::{Block, Expr, ExprKind, Pattern};

use super::queries::DividedCondition;
use super::table_description::record;
use super::tables::outside;
use super::{Binding, Lowering};
use crate::typed_tree::CallTarget;

/// An aggregate of a list.
#[derive(Clone, Copy, PartialEq)]
enum ColumnAggregate {
    Max,
    Min,
    Sum,
    Length,
}

/// A query whose body is a column.
struct ColumnQuery<'a> {
    table: weir_host::Text,
    pattern: &'a Pattern,
    body: &'a Block,
    column: usize,
    condition: DividedCondition<'a>,
}

impl<'a> Lowering<'a, '_> {
    /// Lowers the call of a function on a query, if it is an aggregate that the table computes.
    pub(super) fn aggregate(&mut self, expr: &'a Expr, target: &CallTarget, query: &'a Expr) -> Option<Atom> {
        let aggregate = match target {
            CallTarget::Length => ColumnAggregate::Length,
            CallTarget::Host(path) if **path == *"list.max" => ColumnAggregate::Max,
            CallTarget::Host(path) if **path == *"list.min" => ColumnAggregate::Min,
            CallTarget::Host(path) if **path == *"list.sum" => ColumnAggregate::Sum,
            _ => return None,
        };
        let of = self.column_query(query)?;
        let span = expr.span;
        let column = Atom::Value(Value::Int(of.column as i64));
        match aggregate {
            ColumnAggregate::Max | ColumnAggregate::Min => {
                let order = record([Value::Int(of.column as i64), Value::Bool(aggregate == ColumnAggregate::Max)]);
                let first = Some(Atom::Value(Value::Int(1)));
                let rows = self.select(&of.table, &of.condition, vec![order], first, span);
                let values = self.for_each(query, rows, of.pattern, of.body);
                let given = vec![Some(Binding::Atom(values))];
                let CallTarget::Host(path) = target else { return None };
                Some(self.call_host(path, given, self.ty(expr), (span, &[])))
            }
            ColumnAggregate::Sum | ColumnAggregate::Length => {
                let (query, arguments) = self.description(&of.table, &of.condition, Vec::new(), None, span);
                let table = Atom::Shared(of.table);
                if aggregate == ColumnAggregate::Length {
                    return Some(self.call_tables("count", vec![table, outside(), query, arguments], Type::Int, span));
                }
                let given = vec![table, outside(), query, arguments, column];
                Some(self.call_tables("sum", given, Type::Int, span))
            }
        }
    }

    /// Returns the query that an expression is, if its body is a required column that has an order, the table can search the
    /// whole condition, and there is no limit.
    fn column_query(&self, query: &'a Expr) -> Option<ColumnQuery<'a>> {
        const ORDERED: [&str; 7] = ["Int", "Float", "Text", "Bytes", "Time", "Duration", "Size"];
        let ExprKind::For { pattern, items, query, body } = &query.kind else { return None };
        let table = self.table_named(items)?;
        let row = self.typed.pattern_local(pattern.id)?;
        let (true, Some(value)) = (body.statements.len() == 1, body.value()) else { return None };
        let column = self.column_of(row, value)? as usize;
        let declared = &self.table(&table).columns[column];
        if query.limit.is_some() || declared.optional || !ORDERED.contains(&declared.kind) {
            return None;
        }
        let condition = self.divide(&table, Some(row), query.condition.as_ref());
        let is_whole = condition.left.is_empty();
        is_whole.then_some(ColumnQuery { table, pattern, body, column, condition })
    }
}
