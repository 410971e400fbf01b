//! Declares the references of tables to rows of other tables, when all tables are declared.

use std::sync::Arc;

use weir_host::{Text, Type};
use weir_syntax::Span;
use weir_syntax::ast::{ItemKind, Name, Path, TableClauseKind};
use weir_syntax::{Code, Diagnostic};

use super::{Declarer, private_item};
use crate::declarations::{DeclaredReference, DeclaredTable, SoftLimits, name_in_database};
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
            let whole: Arc<str> = self.declarations.own(&table.name.text).into();
            let is_first = self.declarations.shared.get(&whole).is_some_and(|known| known.span == table.name.span);
            // Lent out, because a table may reference itself.
            let Some(mut declared) = self.declarations.tables.get_mut(&whole).map(std::mem::take) else {
                continue;
            };
            for clause in table.clauses.iter().filter(|_| is_first) {
                if let TableClauseKind::References { columns, table: target, cascade } = &clause.kind
                    && let Some((columns, target)) = self.reference((&whole, &declared), (columns, target), clause.span)
                {
                    if !declared.begins_with(&columns) {
                        declared.indexes.push((columns.clone(), false));
                    }
                    let cascade = cascade.is_some();
                    declared.references.push(DeclaredReference { columns, target, cascade });
                }
            }
            self.declarations.tables.insert(whole, declared);
        }
    }

    /// Returns the columns of a reference and the name of the other table; `None` if it is reported.
    fn reference(
        &mut self,
        (name, declared): (&str, &DeclaredTable),
        (columns, path): (&[Name], &Path),
        place: Span,
    ) -> Option<(Vec<usize>, Arc<str>)> {
        let columns = self.column_indices(columns, declared);
        let target = self.referenced(path)?;
        let other = if *target == *name { declared } else { self.declarations.tables.get(&target)? };
        let has_key = !other.key.is_empty() && other.key.iter().all(|at| !other.columns[*at].optional);
        if columns.is_empty() || other.row.is_none() || !has_key {
            return None;
        }
        let key: Vec<(Text, Type)> =
            other.key.iter().map(|at| (other.columns[*at].name.clone(), other.columns[*at].ty.clone())).collect();
        let evicts = other.soft.is_some_and(SoftLimits::forget);
        let is_of_others = other.existing.is_some() || declared.existing.is_some();
        let forgets = other.soft.is_some() && declared.soft.is_none();
        let (is_hidden, own) = (path.qualifier().len() == 1 && !other.public, name_in_database(name));
        self.declarations.refer(path.last().span, Symbol::Shared((&*target).into()));
        if let Some(shared) = self.declarations.shared.get(&target).filter(|_| is_hidden) {
            let diagnostic = private_item(path.last(), path, shared.span);
            self.context.report(diagnostic);
        }
        if is_of_others {
            let message = "a table of an existing database has no references, and is not referenced".to_owned();
            self.table_fault(place, message, "leave out the reference: that database checks its own");
        } else if let Some((message, hint)) = mismatch((path, &key), declared, &columns) {
            self.table_fault(place, message, &hint);
        } else if evicts {
            let message = format!("`{path}` forgets rows by itself, and nothing may reference them");
            self.table_fault(place, message, "leave out the reference, or the limits of `soft`");
        } else if forgets {
            let message = format!(
                "`{path}` is kept in memory, and `{own}` is stored: a restart would forget rows that are referenced"
            );
            self.table_fault(place, message, "leave out the reference, or store both tables");
        } else if declared.references.iter().any(|known| known.columns == columns && known.target == target) {
            let message = format!("these columns reference `{path}` already");
            self.table_fault(place, message, "leave out one of the two");
        } else {
            return Some((columns, target));
        }
        None
    }

    /// Returns the name in the program of the table that a reference names; `None` if there is none, which is reported.
    fn referenced(&mut self, path: &Path) -> Option<Arc<str>> {
        let name = path.last();
        if path.names.iter().any(Name::is_missing) {
            return None;
        }
        let file = match path.qualifier() {
            [] => Some(self.declarations.file),
            [module] => {
                let Some(used) = self.declarations.here_mut().modules.get_mut(&module.text) else {
                    self.module_not_used(module);
                    return None;
                };
                used.used = true;
                let (used_module, file) = (used.module.clone(), used.file);
                self.declarations.refer(module.span, Symbol::Module(used_module));
                file
            }
            _ => None,
        };
        let whole: Option<Arc<str>> = file.map(|file| self.declarations.files[file].whole(name.as_str()).into());
        let found = whole.filter(|whole| self.declarations.tables.contains_key(whole));
        if found.is_none() {
            self.no_table(path, file);
        }
        found
    }

    fn module_not_used(&mut self, module: &Name) {
        let top = self.context.files.start(self.declarations.file);
        let found = self.declarations.unknown_module(module, self.context.library, self.context.files, top);
        self.context.report_all(found);
    }

    /// Reports that there is no table with this name in a file.
    fn no_table(&mut self, path: &Path, file: Option<usize>) {
        let place = if path.qualifier().is_empty() { "not declared in this file" } else { "not declared there" };
        let mut diagnostic =
            Diagnostic::new(Code::TableDeclaration, format!("there is no table `{path}`")).at(path.span, place);
        let module = file.map(|file| self.declarations.files[file].module.clone());
        let tables = self.declarations.tables.keys().map(|name| name.rsplit_once('.').unwrap_or(("", name)));
        let known = tables.filter(|(of, _)| module.as_ref().is_some_and(|module| module.as_str() == *of));
        let name = path.last();
        if let Some(near) = nearest(name.as_str(), known.map(|(_, name)| name)) {
            diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
        }
        self.context.report(diagnostic);
    }
}

/// Returns the message and the hint for columns that cannot hold the key of the other table.
fn mismatch(
    (target, key): (&Path, &[(Text, Type)]),
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
