//! Declares the migrations of tables, when all tables and functions are declared: `migrate OldUser: upgraded`.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_host::Type;
use weir_syntax::Span;
use weir_syntax::ast::{self, ItemKind, Name, TableClauseKind};
use weir_syntax::{Code, Diagnostic};

use super::Declarer;
use crate::declarations::{DeclaredMigration, DeclaredTable, TableColumn};
use crate::symbol::Symbol;

impl Declarer<'_, '_> {
    /// Resolves the migrations of all tables.
    pub(super) fn migrations(&mut self) {
        let tree = self.context.tree();
        for item in &tree.items {
            let ItemKind::Table(table) = &item.kind else { continue };
            self.begin(item);
            let clause = table.clauses.iter().find_map(|clause| match &clause.kind {
                TableClauseKind::Migrate { old, change, batched } => {
                    Some((old, change, batched.is_some(), clause.span))
                }
                _ => None,
            });
            let Some((old, change, batched, span)) = clause else { continue };
            let whole: Arc<str> = self.declarations.own(&table.name.text).into();
            let Some(declared) = self.declarations.tables.get_mut(&whole).map(std::mem::take) else {
                continue;
            };
            let migration = self.migration(&declared, (old, change), (batched, span));
            self.declarations.tables.insert(whole, DeclaredTable { migration, ..declared });
        }
    }

    /// Returns a migration; `None` if it is reported.
    fn migration(
        &mut self,
        declared: &DeclaredTable,
        (old, change): (&ast::Type, &Name),
        (batched, span): (bool, Span),
    ) -> Option<DeclaredMigration> {
        if declared.soft.is_some() {
            let message = "the table is kept in memory, and a restart forgets its rows".to_owned();
            self.table_fault(span, message, "leave out `migrate`");
            return None;
        }
        let (row, fields) = self.row_of(old)?;
        let columns = self.columns(&row, &fields, old.span);
        let new = declared.row.clone()?;
        if columns.len() < fields.len() || change.is_missing() {
            return None;
        }
        let key = declared.key.iter().map(|at| &declared.columns[*at]);
        if let Some(lacking) =
            key.clone().find(|key| columns.iter().all(|old| old.name != key.name || old.ty != key.ty))
        {
            let message = format!("`{row}` has no `{}: {}`, which is part of the key", lacking.name, lacking.ty);
            self.table_fault(old.span, message, "a migration keeps the key; give a table with another key a new name");
            return None;
        }
        if are_equal(&columns, &declared.columns) {
            let message = if *row == *new {
                format!("`migrate` names the type that the rows already have: `{row}`")
            } else {
                format!("`{row}` has the same columns as `{new}`, so that no start would convert a row")
            };
            let hint = "the columns tell old rows from converted ones: give a column whose values change another name, as `cents` for \
                        `price`, or leave out `migrate`";
            self.table_fault(span, message, hint);
            return None;
        }
        let at = self.change_of(change, &row, &new)?;
        Some(DeclaredMigration { old: row, columns, change: at, batched, span })
    }

    /// Returns the index of the `fn` that converts rows.
    fn change_of(&mut self, change: &Name, old: &str, new: &str) -> Option<usize> {
        let wanted = format!("fn {change}(row: {old}) -> {new} {{ … }}");
        let name = self.declarations.own(change.as_str()).to_owned();
        let Some((at, _, function)) = self.declarations.functions.get_full(name.as_str()) else {
            let diagnostic =
                Diagnostic::new(Code::TableDeclaration, format!("there is no `fn` `{change}` in this file"))
                    .at(change.span, "converts a row of the old type")
                    .hint(format!("declare it: `{wanted}`"));
            self.context.report(diagnostic);
            return None;
        };
        let new = Type::named(new);
        let results = [new.clone(), Type::result(new, Type::Failure)];
        let takes: Vec<Type> = function.parameters.iter().map(|parameter| parameter.ty.to_type()).collect();
        let fits = function.type_parameters.is_empty()
            && takes == [Type::named(old)]
            && results.contains(&function.result.to_type());
        self.declarations.refer(change.span, Symbol::Function(name.as_str().into()));
        if !fits {
            let message = format!("`{change}` does not convert rows of the type `{old}` into rows of the table");
            let diagnostic = Diagnostic::new(Code::TableDeclaration, message)
                .at(change.span, "is the `fn` of a migration")
                .hint(format!("declare it so: `{wanted}`; it may return a `Result`, too"));
            self.context.report(diagnostic);
            return None;
        }
        Some(at)
    }
}

/// Returns whether two records have the same columns, in any order: their names and the types of their values.
fn are_equal(one: &[TableColumn], other: &[TableColumn]) -> bool {
    let of = |column: &TableColumn| (column.name.clone(), column.kind, column.variants.clone(), column.optional);
    let sorted = |columns: &[TableColumn]| columns.iter().map(of).collect::<BTreeSet<_>>();
    sorted(one) == sorted(other)
}
