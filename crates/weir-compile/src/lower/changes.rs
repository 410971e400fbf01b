//! Lowers the statements that change the rows which they find: `update`, `update_all` and `delete_all`.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::Expr;

use super::own_transactions::OwnStatement;
use super::tables::{WriteFailure, outside};
use super::{Binding, CallingStatement, Lowering, TriedCall};
use crate::lang_items::TABLES;

impl<'a> Lowering<'a, '_> {
    /// Lowers an update of a row. `tried` is the `?` behind it.
    pub(super) fn update(
        &mut self,
        table: &Text,
        (key, change): (Atom, Binding<'a>),
        (ty, tried): (&Type, Option<TriedCall>),
        span: Span,
    ) -> Atom {
        let (row_type, Type::Result(pair)) = (self.row_type(table), ty) else { return Atom::Value(Value::Unit) };
        let steps = self.steps.len();
        let statement = self.calling_statement("update", table, span);
        let functions_write = self.may_write_tables([Some(&change), None]);
        self.holding(&OwnStatement { table, deletes: false, functions_write }, ty, span, |lowering| {
            let began = lowering.steps.get(steps).is_some_and(|step| step.transaction.is_some());
            let failure = match tried {
                // A function that writes tables may delete the row, which only the answer of the database tells.
                _ if began && !functions_write => WriteFailure::OfCommit,
                Some(tried) if lowering.steps.len() == steps => WriteFailure::Tried(tried),
                _ => WriteFailure::Returned,
            };
            let given = vec![Atom::Shared(table.clone()), outside(), key.clone()];
            let read = ("get", given, pair.0.clone());
            lowering.behind_read(table, read, (ty, failure.clone()), span, |lowering, found| {
                let old = lowering.vars.variable("", row_type.clone());
                let old_row = Atom::Var(old.var);
                let arms = vec![
                    lowering.arm(ArmTest::Tag(Value::SOME), vec![old], |lowering| {
                        let Binding::Callable(change) = change else { return Atom::Value(Value::Unit) };
                        let given = vec![Some(Binding::Atom(old_row))];
                        let new = lowering.in_function_of(&statement, |lowering| {
                            lowering.call_value(change, given, &row_type, (span, &[]))
                        });
                        lowering.replaced(table, (key, new), (ty, failure), span)
                    }),
                    lowering.arm(ArmTest::Tag(Value::NONE), Vec::new(), |lowering| {
                        let none = Atom::Value(Value::none());
                        lowering.prim(Prim::Variant(Value::OK), vec![none], ty.clone(), span)
                    }),
                ];
                lowering.switch(found, arms, ty, span)
            })
        })
    }

    /// Lowers an update of the rows that fulfil a condition, in one step.
    pub(super) fn update_all(
        &mut self,
        table: &Text,
        condition: (Option<Binding<'a>>, Option<&'a Expr>),
        change: Option<Binding<'a>>,
        ty: &Type,
        span: Span,
    ) -> Atom {
        let element = self.row_type(table);
        let functions_write = self.may_write_tables([condition.0.as_ref(), change.as_ref()]);
        let statement = self.calling_statement("update_all", table, span);
        self.holding(&OwnStatement { table, deletes: false, functions_write }, ty, span, |lowering| {
            lowering.behind_rows_where((table, &statement), condition, ty, span, |lowering, old| {
                let Some(Binding::Callable(change)) = change else { return Atom::Value(Value::Unit) };
                let rows = Type::list(element.clone());
                let new = lowering.collected((old.clone(), ""), (&element, &rows), span, |lowering, item, kept| {
                    let given = vec![Some(Binding::Atom(item.clone()))];
                    let changed = lowering.in_function_of(&statement, |lowering| {
                        lowering.call_value(change, given, &element, (span, &[]))
                    });
                    lowering.appended(kept, &changed, &rows, span)
                });
                let given = [Atom::Shared(table.clone()), outside(), old, new];
                let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
                lowering.call_host(&format!("{TABLES}.replace_rows").into(), given, ty.clone(), (span, &[]))
            })
        })
    }

    /// Lowers a deletion: by the table, if it can search the whole condition; otherwise of the rows that are found here, in
    /// one step.
    pub(super) fn delete_all(
        &mut self,
        table: &Text,
        (condition, written): (Option<Binding<'a>>, Option<&'a Expr>),
        ty: &Type,
        span: Span,
    ) -> Atom {
        let host = |name: &str| format!("{TABLES}.{name}").into();
        let bound = |atoms: Vec<Atom>| atoms.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        let functions_write = self.may_write_tables([condition.as_ref(), None]);
        let searched = self.searched_whole(table, condition.as_ref(), written);
        if let Some(divided) = searched.filter(|_| !functions_write) {
            let (query, arguments) = self.description(table, &divided, Vec::new(), None, span);
            let given = bound(vec![Atom::Shared(table.clone()), outside(), query, arguments]);
            return self.call_host(&host("delete_all"), given, ty.clone(), (span, &[]));
        }
        let statement = self.calling_statement("delete_all", table, span);
        self.holding(&OwnStatement { table, deletes: true, functions_write }, ty, span, |lowering| {
            lowering.behind_rows_where((table, &statement), (condition, written), ty, span, |lowering, rows| {
                let given = bound(vec![Atom::Shared(table.clone()), outside(), rows]);
                lowering.call_host(&host("delete_rows"), given, ty.clone(), (span, &[]))
            })
        })
    }

    /// Reads the rows that fulfil the condition of a statement that writes, and goes on with them. Its result is the failure if they
    /// cannot be read.
    fn behind_rows_where(
        &mut self,
        (table, statement): (&Text, &CallingStatement),
        condition: (Option<Binding<'a>>, Option<&'a Expr>),
        ty: &Type,
        span: Span,
        then: impl FnOnce(&mut Self, Atom) -> Atom,
    ) -> Atom {
        let divided = self.divided(table, condition.1);
        let (query, arguments) =
            self.in_function_of(statement, |lowering| lowering.description(table, &divided, Vec::new(), None, span));
        let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
        let read = ("select", given, Type::list(self.row_type(table)));
        self.behind_read(table, read, (ty, WriteFailure::Returned), span, |lowering, rows| {
            let rows = lowering
                .in_function_of(statement, |lowering| lowering.rows_left(table, rows, (condition, &divided), span));
            then(lowering, rows)
        })
    }
}
