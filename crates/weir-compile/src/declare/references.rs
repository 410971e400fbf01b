//! Declares the references of tables to rows of other tables, when all tables are declared.

use std::sync::Arc;

use weir_host::{Text, Type};
use weir_syntax::Span;
use weir_syntax::ast::{ItemKind, Name, TableClauseKind};
use weir_syntax::{Code, Diagnostic};

use super::Declarer;
use crate::declarations::{DeclaredReference, DeclaredTable};
use crate::suggest::nearest;
use crate::symbol::Symbol;

impl Declarer<'_, '_> {
    /// Resolves the references of all tables. A reference adds an index, unless the columns begin the key or an index:
    /// a deletion looks for the rows that reference the deleted one.
    pub(super) fn references(&mut self) {
        let tree = self.context.tree();
        for item in &tree.items {
            let ItemKind::Table(table) = &item.kind else { continue };
            self.begin(item);
            let is_first =
                self.declarations.shared.get(&table.name.text).is_some_and(|known| known.span == table.name.span);
            // Lent out, because a table may reference itself.
            let Some(mut declared) = self.declarations.tables.get_mut(&table.name.text).map(std::mem::take) else {
                continue;
            };
            for clause in table.clauses.iter().filter(|_| is_first) {
                if let TableClauseKind::References { columns, table: target, cascade } = &clause.kind
                    && let Some(columns) =
                        self.reference((table.name.as_str(), &declared), (columns, target), clause.span)
                {
                    if !declared.begins_with(&columns) {
                        declared.indexes.push((columns.clone(), false));
                    }
                    let (target, cascade) = (target.text.clone(), cascade.is_some());
                    declared.references.push(DeclaredReference { columns, target, cascade });
                }
            }
            self.declarations.tables.insert(table.name.text.clone(), declared);
        }
    }

    /// Returns the columns of a reference; `None` if it is reported.
    fn reference(
        &mut self,
        (name, declared): (&str, &DeclaredTable),
        (columns, target): (&[Name], &Name),
        place: Span,
    ) -> Option<Vec<usize>> {
        let columns = self.column_indices(columns, declared);
        if target.is_missing() {
            return None;
        }
        let is_itself = target.as_str() == name;
        let Some(other) =
            self.declarations.tables.get(&target.text).map(|other| if is_itself { declared } else { other })
        else {
            self.no_table(target);
            return None;
        };
        let has_key = !other.key.is_empty() && other.key.iter().all(|at| !other.columns[*at].optional);
        if columns.is_empty() || other.row.is_none() || !has_key {
            return None;
        }
        let key: Vec<(Text, Type)> =
            other.key.iter().map(|at| (other.columns[*at].name.clone(), other.columns[*at].ty.clone())).collect();
        let evicts = other.soft.is_some_and(|limits| limits.ttl.is_some() || limits.at_most.is_some());
        let is_of_others = other.existing.is_some() || declared.existing.is_some();
        let forgets = other.soft.is_some() && declared.soft.is_none();
        self.declarations.refer(target.span, Symbol::Shared(target.as_str().into()));
        if is_of_others {
            let message = "a table of an existing database has no references, and is not referenced".to_owned();
            self.table_fault(place, message, "leave out the reference: that database checks its own");
        } else if let Some((message, hint)) = mismatch((target.as_str(), &key), declared, &columns) {
            self.table_fault(place, message, &hint);
        } else if evicts {
            let message = format!("`{target}` forgets rows by itself, and nothing may reference them");
            self.table_fault(place, message, "leave out the reference, or the limits of `soft`");
        } else if forgets {
            let message = format!(
                "`{target}` is kept in memory, and `{name}` is stored: a restart would forget rows that are referenced"
            );
            self.table_fault(place, message, "leave out the reference, or store both tables");
        } else if declared.references.iter().any(|known| known.columns == columns && *known.target == *target.as_str())
        {
            let message = format!("these columns reference `{target}` already");
            self.table_fault(place, message, "leave out one of the two");
        } else {
            return Some(columns);
        }
        None
    }

    fn no_table(&mut self, target: &Name) {
        let mut diagnostic = Diagnostic::new(Code::TableDeclaration, format!("there is no table `{target}`"))
            .at(target.span, "not declared in this file");
        let known: Vec<Arc<str>> = self.declarations.tables.keys().cloned().collect();
        if let Some(near) = nearest(target.as_str(), known.iter().map(|name| &**name)) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), target.span, near);
        }
        self.context.report(diagnostic);
    }
}

/// Returns the message and the hint for columns that cannot hold the key of the other table.
fn mismatch(
    (target, key): (&str, &[(Text, Type)]),
    declared: &DeclaredTable,
    columns: &[usize],
) -> Option<(String, String)> {
    let names: Vec<&str> = key.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    if columns.len() != key.len() {
        let message = format!("the reference names another number of columns than the key of `{target}` has");
        return Some((message, format!("the key is ({names}): name a column for each of these, in their order")));
    }
    let column = |at: &usize| &declared.columns[*at];
    let wrong = columns.iter().map(column).zip(key).find(|(column, (_, ty))| column.held() != ty)?;
    let (column, (name, ty)) = wrong;
    let message = format!("`{}` is `{}`, and `{name}` of `{target}` is `{ty}`", column.name, column.ty);
    Some((message, format!("a reference holds the key of a row: give the column the type `{ty}`, or `Option({ty})`")))
}

impl DeclaredTable {
    /// Returns whether the key or an index begins with these columns, in any order.
    fn begins_with(&self, columns: &[usize]) -> bool {
        let begins = |index: &Vec<usize>| {
            index.get(..columns.len()).is_some_and(|first| first.iter().all(|at| columns.contains(at)))
        };
        begins(&self.key) || self.indexes.iter().any(|(index, _)| begins(index))
    }
}

impl crate::declarations::TableColumn {
    /// Returns the type of its values, without `Option`.
    fn held(&self) -> &Type {
        match &self.ty {
            Type::Option(held) => held,
            other => other,
        }
    }
}
