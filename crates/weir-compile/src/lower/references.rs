//! References between tables: their descriptions, and the tables that a deletion writes and that a step holds for them.
//!
//! A write that checks a reference reads another table, and a deletion may write several. The constraint of the
//! program's own database excludes all other writes of its tables and of those in memory with references, so that nothing changes
//! between check and write.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::Value;
use weir_syntax::{Code, Diagnostic, Span};

use super::table_description::{numbers, record};
use super::{Lowering, Transaction};
use crate::declarations::{Declarations, DeclaredReference, DeclaredTable, name_in_database};

impl Declarations {
    /// Returns the tables, other than this one, from which a deletion of its rows deletes rows.
    pub(crate) fn cascades_to(&self, table: &str) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Arc<str>> = vec![table.into()];
        while let Some(target) = open.pop() {
            for (source, reference) in self.references_to(&target) {
                if reference.cascade && **source != *table && found.insert(source.clone()) {
                    open.push(source.clone());
                }
            }
        }
        found
    }

    /// Returns whether the table references another one, or is referenced.
    pub(crate) fn has_references(&self, table: &str) -> bool {
        self.tables.get(table).is_some_and(|table| !table.references.is_empty())
            || self.references_to(table).next().is_some()
    }

    /// Returns the references to the rows of a table, each with its table.
    fn references_to(&self, target: &str) -> impl Iterator<Item = (&Arc<str>, &DeclaredReference)> {
        let all = self.tables.iter().flat_map(|(name, table)| table.references.iter().map(move |to| (name, to)));
        all.filter(move |(_, reference)| *reference.target == *target)
    }
}

impl Lowering<'_, '_> {
    /// Reports tables from which a deletion deletes rows although the transaction around it does not name them.
    pub(super) fn names_all_cascades(&mut self, table: &str, transaction: &Transaction, span: Span) {
        let named = |other: &Arc<str>| transaction.tables.iter().any(|table| table.as_str() == &**other);
        let Some(other) = self.program.declarations.cascades_to(table).into_iter().find(|other| !named(other)) else {
            return;
        };
        let message =
            format!("a deletion from `{table}` deletes rows of `{other}`, which the transaction does not name");
        let diagnostic = Diagnostic::new(Code::TransactionBody, message)
            .at(span, "deletes the rows that reference the deleted ones (`cascade`)")
            .hint(self.naming(&other, transaction, span));
        self.context.report_once(diagnostic);
    }
}

/// Returns the references of a table and those to it, as two lists of values of the type `tables.Reference`.
pub(super) fn references(name: &str, declarations: &Declarations) -> (Value, Value) {
    let tables = &declarations.tables;
    let own = tables[name].references.iter().map(|reference| description(name, reference, tables));
    let others = declarations.references_to(name).map(|(source, reference)| description(source, reference, tables));
    (Value::list(own.collect()), Value::list(others.collect()))
}

fn description(source: &str, reference: &DeclaredReference, tables: &IndexMap<Arc<str>, DeclaredTable>) -> Value {
    let (own, target) = (&tables[source], &tables[&reference.target]);
    let names = |table: &DeclaredTable, columns: &[usize]| {
        Value::list(columns.iter().map(|at| Value::Text(table.columns[*at].name.clone())).collect())
    };
    let optional = reference.columns.iter().map(|at| Value::Bool(own.columns[*at].optional));
    record([
        Value::text(name_in_database(source)),
        numbers(&reference.columns),
        names(own, &reference.columns),
        Value::list(optional.collect()),
        Value::text(name_in_database(&reference.target)),
        names(target, &target.key),
        Value::Bool(reference.cascade),
        Value::Bool(own.soft.is_none()),
    ])
}
