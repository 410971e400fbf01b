//! Lowers a query with `after`, which returns one page: the values of its rows, and the cursor behind the last one if more
//! rows follow.
//!
//! The cursor is checked first, so that one that belongs to no page of the query is a failure that the program handles. The
//! table then reads one row more than the page has, which tells whether there is a next page.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom};
use weir_ir::prim::Prim;
use weir_syntax::ast::{Block, Expr, Pattern, QueryClauses};

use super::table_description::record;
use super::tables::outside;
use super::{Binding, Lowering};
use crate::lang_items::TABLES;

impl<'a> Lowering<'a, '_> {
    /// Lowers a query with `after`.
    pub(super) fn page(
        &mut self,
        expr: &'a Expr,
        table: &Text,
        (pattern, clauses): (&'a Pattern, &'a QueryClauses),
        body: &'a Block,
    ) -> Atom {
        let (ty, span) = (self.ty(expr), expr.span);
        let (Type::Result(pair), Some(limit), Some(after)) = (&ty, &clauses.limit, &clauses.after) else {
            return Atom::Value(Value::Unit);
        };
        let Type::Tuple(parts) = &pair.0 else { return Atom::Value(Value::Unit) };
        let order = self.order(clauses);
        let limit = self.expr(limit);
        let cursor = self.expr(after);
        let query = Atom::Value(record([Value::list(Vec::new()), Value::list(order.clone())]));
        let given = [Atom::Shared(table.clone()), outside(), query.clone(), cursor.clone(), limit.clone()];
        let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        let checked = Type::result(Type::Unit, Type::Failure);
        let checked = self.call_host(&format!("{TABLES}.check_cursor").into(), given, checked, (span, &[]));
        let unit = self.vars.variable("", Type::Unit);
        let failure = self.vars.variable("", Type::Failure);
        let failed = Atom::Var(failure.var);
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![unit], |lowering| {
                let row = lowering.typed.pattern_local(pattern.id);
                let divided = lowering.divide(table, row, clauses.condition.as_ref());
                let left = divided.left.clone();
                lowering.page_scan(table, &divided, &order, span);
                let early = left.is_empty().then(|| limit.clone());
                let after = (cursor, Type::option(Type::Text));
                let reads = lowering.keyed_reads(&left, body);
                let joins = row.map(|row| lowering.joins(table, row, reads)).unwrap_or_default();
                let found = lowering.select_joined(table, (joins, divided), span, |lowering, divided| {
                    lowering.description_after(table, divided, order, (early, after), span)
                });
                let mut found = lowering.filtered_pairs(found, pattern, &left, span);
                let rows = lowering.elements_of_pairs(&found, span);
                let given = vec![Atom::Shared(table.clone()), outside(), query, rows, limit.clone()];
                let next = lowering.call_tables("next_page", given, parts[1].clone(), span);
                let given = vec![Some(Binding::Atom(found.list)), Some(Binding::Atom(limit))];
                let pairs = Type::list(found.element_type.clone());
                found.list = lowering.call_host(&"list.take".into(), given, pairs, (span, &[]));
                let values = lowering.for_each_pair((&parts[0], span), found, pattern, body);
                let page = lowering.prim(Prim::Record, vec![values, next], pair.0.clone(), span);
                lowering.prim(Prim::Variant(Value::OK), vec![page], ty.clone(), span)
            }),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.prim(Prim::Variant(Value::ERR), vec![failed], ty.clone(), span)
            }),
        ];
        self.switch(checked, arms, &ty, span)
    }
}
