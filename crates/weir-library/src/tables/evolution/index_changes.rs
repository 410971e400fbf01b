//! The indexes that a start drops and creates.
//!
//! Whoever makes an index in advance, by the statement that `weir tables` shows, gives it the name by which programs know it. It is taken
//! if it is what the program declares, and otherwise made anew, as one that a failed `CREATE INDEX CONCURRENTLY` has left in PostgreSQL:
//! such a `unique` keeps no rule. Only names of Weir are dropped, and an index holds no data.

use super::KnownColumn;
use super::existing_rows::UniqueIndex;
use super::new_table::{self, SchemaChange};
use crate::tables::catalog::{Catalog, StartCheck};
use crate::tables::schema::{ColumnSchema, Schema};

/// The changes of the indexes of a table.
#[derive(Debug, Default)]
pub(super) struct IndexChanges {
    /// The statements before the changes of columns: wrong indexes, which could refuse these, and new ones on columns that stay as they
    /// are. While such an index is created, others read the table; behind a change of a column they would wait.
    pub(super) before: Vec<SchemaChange>,
    pub(super) behind: Vec<SchemaChange>,
}

impl IndexChanges {
    /// Returns the changes of a table with these columns, or why a start cannot make them.
    pub(super) fn of(schema: &Schema, columns: &[KnownColumn], catalog: &dyn Catalog) -> StartCheck<IndexChanges> {
        let dialect = catalog.dialect();
        let own = catalog.own_indexes(&schema.name)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let declared: Vec<String> = schema.indexes.iter().map(|index| dialect.index_name(schema, index)).collect();
        let mut changes = IndexChanges::default();
        for gone in own.iter().filter(|known| !declared.contains(&known.name)) {
            if !catalog.others_have_index(&gone.name)? {
                changes.behind.push(new_table::index_dropped(schema, gone));
            }
        }
        for (index, name) in schema.indexes.iter().zip(&declared) {
            let known = own.iter().find(|known| known.name == *name);
            let wrong = known.filter(|known| !known.serves(schema, index));
            let is_new = known.is_none() || wrong.is_some();
            let filled = index.columns.iter().copied().find(|at| is_filled(&schema.columns[*at], columns));
            if index.unique
                && (is_new || filled.is_some())
                && let Err(failure) = (UniqueIndex { schema, index, known: &names, filled, is_new }).check(catalog)?
            {
                return Ok(Err(failure));
            }
            changes.before.extend(wrong.map(|wrong| new_table::index_dropped(schema, wrong)));
            let is_there = index.columns.iter().all(|at| names.contains(&&*schema.columns[*at].name));
            let created = is_new.then(|| new_table::index_created(schema, index, dialect));
            if is_there && filled.is_none() { &mut changes.before } else { &mut changes.behind }.extend(created);
        }
        Ok(Ok(changes))
    }
}

/// Returns whether a start gives rows without a value in the column its default.
fn is_filled(column: &ColumnSchema, known: &[KnownColumn]) -> bool {
    let known = known.iter().find(|known| known.name == column.name);
    let may_lack = known.is_some_and(|known| known.nullable && !(known.declared && known.kind == column.shown_type()));
    may_lack && !column.optional && column.default.is_some()
}
