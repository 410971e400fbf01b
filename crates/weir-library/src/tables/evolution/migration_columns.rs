//! The columns of the database, compared with those from which a migration converts rows, and those to which it does.

use super::migration_notes::shown_columns;
use super::past_migrations::MigrationHistory;
use crate::tables::evolution::KnownColumn;
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};

/// Returns whether the database has the columns of the old type, also those that the last program has not declared.
pub(super) fn has_old((schema, migration): (&Schema, &TableMigration), known: &[KnownColumn]) -> bool {
    migration.columns.iter().all(|column| known.iter().any(|known| is_readable((schema, column), known)))
}

/// Returns whether a column of the database has the values of one of the old type. A required one may lack values, in rows that were inserted
/// while no program declared it, so that an `Option` of the old type has its values, too, if no column of the program has its name.
pub(super) fn is_readable((schema, column): (&Schema, &ColumnSchema), known: &KnownColumn) -> bool {
    let is_gone = || schema.columns.iter().all(|new| new.name != column.name);
    let holds = || column.optional && column.shown_type() == format!("Option({})", known.kind);
    known.name == column.name && (known.kind == column.shown_type() || is_gone() && holds())
}

/// Returns whether the database has rows to convert: the last program has declared the columns of the old type, and others than this one;
/// or no program has declared the new ones.
pub(super) fn may_convert(
    (schema, migration): (&Schema, &TableMigration),
    known: &[KnownColumn],
    history: &MigrationHistory,
) -> bool {
    differs(schema, migration, known) && is_old((schema, migration), known)
        || has_old((schema, migration), known) && lacks_new((schema, migration), known, history)
}

/// Returns whether the database lacks the columns that the old type does not have, or has values of another type in them; or has in one
/// of them the values from before an earlier migration.
pub(super) fn lacks_new(
    (schema, migration): (&Schema, &TableMigration),
    known: &[KnownColumn],
    history: &MigrationHistory,
) -> bool {
    let old = shown_columns(&migration.columns);
    let shown = schema.columns.iter().zip(shown_columns(&schema.columns));
    let new: Vec<(&ColumnSchema, String)> = shown.filter(|(_, shown)| !old.contains(shown)).collect();
    if known.is_empty() || new.is_empty() {
        return false;
    }
    let replaced = history.replaced_columns();
    let is_declared = |column: &ColumnSchema| known.iter().any(|known| known.name == column.name && known.declared);
    let is_from_before = |(column, shown): &(&ColumnSchema, String)| !is_declared(column) && replaced.contains(shown);
    new.iter().all(|(column, _)| is_changed(column, known)) || new.iter().any(is_from_before)
}

/// Returns whether the database has the columns of the old type as the last program has declared them.
pub(super) fn is_old((schema, migration): (&Schema, &TableMigration), known: &[KnownColumn]) -> bool {
    let has = |column: &ColumnSchema| known.iter().any(|known| known.declared && is_readable((schema, column), known));
    migration.columns.iter().all(has)
}

/// Returns whether the database lacks a column, or has values of another type in it, or the last program has not declared it; or that
/// program has declared an old column that this one does not have.
fn differs(schema: &Schema, migration: &TableMigration, known: &[KnownColumn]) -> bool {
    let is_declared = |column: &ColumnSchema| known.iter().any(|known| known.name == column.name && known.declared);
    let (old, new) = (shown_columns(&migration.columns), shown_columns(&schema.columns));
    let changes = || schema.columns.iter().any(|column| is_changed(column, known) || !is_declared(column));
    !known.is_empty() && (changes() || old.iter().any(|old| !new.contains(old)))
}

pub(super) fn is_changed(column: &ColumnSchema, known: &[KnownColumn]) -> bool {
    !known.iter().any(|known| known.name == column.name && known.kind == column.shown_type())
}
