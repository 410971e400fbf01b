//! Migrations that are done: the programs that they keep out, because these expect the rows as they were before, and the next
//! migration, which may lead back.
//!
//! A program is *superseded* by a migration if it has an old column and lacks a new one, unless it converts that column itself. An old
//! column is one that the migration has replaced. If it has replaced none, and so has only added columns, each column of before may have
//! another meaning: all count as old ones, except those of the key, and the program lacks all new ones.

use weir::Failure;

use super::migration_notes::{PastMigration, done, forget, note_new, shown, shown_columns};
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};
use crate::tables::sql::list;

/// Fails if another version of the program has converted the rows, and this one expects them as they were before.
pub(super) fn is_not_superseded(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    let converts = schema.migration.as_ref().map_or(&[][..], |migration| &migration.columns);
    let found = superseding(schema, &schema.columns, converts, catalog)?;
    Ok(found.map_or(Ok(()), |(past, lacked)| Err(superseded(schema, &past, &lacked))))
}

/// Returns the migration after which a table has no rows of a migration's old type any more, and a new column that the old type lacks.
pub(super) fn superseding_old_rows(
    schema: &Schema,
    migration: &TableMigration,
    catalog: &dyn Catalog,
) -> Read<Option<(PastMigration, String)>> {
    superseding(schema, &migration.columns, &[], catalog)
}

/// Notes in the migrations before a new one that it has changed columns of theirs, and forgets those of which it leads back, so that they
/// may be made again.
pub(super) fn follow(schema: &Schema, migration: &TableMigration, catalog: &dyn Catalog) -> Read<()> {
    let (old, new) = (shown_columns(&migration.columns), shown_columns(&schema.columns));
    for past in done(schema, catalog)?.into_iter().filter(|past| past.old != old && past.is_changed_by(&old, &new)) {
        match past.then(&old, &new) {
            Some(both) => note_new(schema, &past.old, &both, catalog)?,
            None => forget(schema, Some(&past.old), catalog)?,
        }
    }
    Ok(())
}

/// Returns the old columns of the table that migrations have replaced, and whose values nobody has written since.
pub(super) fn replaced_columns(schema: &Schema, catalog: &dyn Catalog) -> Read<Vec<String>> {
    let replaced = |past: PastMigration| {
        let old = past.old.iter().filter(|column| past.is_replaced(column)).cloned();
        old.collect::<Vec<_>>()
    };
    Ok(done(schema, catalog)?.into_iter().filter(|past| past.converted).flat_map(replaced).collect())
}

/// Returns a migration that supersedes a program with these columns, and the first new column that it lacks.
fn superseding(
    schema: &Schema,
    columns: &[ColumnSchema],
    converts: &[ColumnSchema],
    catalog: &dyn Catalog,
) -> Read<Option<(PastMigration, String)>> {
    if catalog.columns(&schema.name)?.is_empty() {
        return Ok(None);
    }
    let key: Vec<&str> = schema.key.iter().map(|at| schema.columns[*at].name.as_str()).collect();
    let (columns, converts) = (shown_columns(columns), shown_columns(converts));
    let superseding = |past: PastMigration| {
        let lacked = past.lacked(&columns, &converts, &key)?.to_owned();
        Some((past, lacked))
    };
    Ok(done(schema, catalog)?.into_iter().find_map(superseding))
}

impl PastMigration {
    /// Returns the first new column that a program lacks which has an old one; `None` if it is not superseded.
    fn lacked(&self, columns: &[String], converts: &[String], key: &[&str]) -> Option<&str> {
        let has_old = if self.replaces_columns() {
            columns.iter().any(|column| self.is_replaced(column))
        } else {
            let is_old = |column: &String| !key.contains(&name(column)) && has_name(&self.old, name(column));
            columns.iter().any(is_old) || self.old.iter().all(|old| key.contains(&name(old)))
        };
        let known = || columns.iter().chain(converts).filter(|column| !self.is_replaced(column));
        let is_lacked = |new: &&&String| !known().any(|column| name(column) == name(new));
        let added: Vec<&String> = self.new.iter().filter(|new| !self.old.contains(new)).collect();
        let lacked: Vec<&&String> = added.iter().filter(is_lacked).collect();
        // A version behind the migration may have given up some of the columns that it has added.
        let is_behind = !self.replaces_columns() && lacked.len() < added.len();
        lacked.first().filter(|_| has_old && !is_behind).map(|new| name(new))
    }

    /// Returns whether old columns have another name or another type behind the migration.
    fn replaces_columns(&self) -> bool {
        !self.old.iter().all(|old| self.new.contains(old))
    }

    /// Returns whether a column is an old one that has another name or another type behind the migration.
    fn is_replaced(&self, column: &String) -> bool {
        let is_gone = has_name(&self.old, name(column)) && !has_name(&self.new, name(column));
        is_gone || self.old.contains(column) && !self.new.contains(column)
    }

    /// Returns whether another migration replaces columns behind this one, or brings back one from before.
    fn is_changed_by(&self, old: &[String], new: &[String]) -> bool {
        let is_gone = |column: &String| old.contains(column) && !new.contains(column);
        let is_added = |column: &String| new.contains(column) && !old.contains(column);
        self.new.iter().any(is_gone) || self.old.iter().any(is_added)
    }

    /// Returns the columns behind this migration and another one; `None` if no new one is left.
    fn then(&self, old: &[String], new: &[String]) -> Option<Vec<String>> {
        let kept = self.new.iter().filter(|column| !old.contains(column) || new.contains(column));
        let added = new.iter().filter(|column| !old.contains(column) && !self.new.contains(column));
        let both: Vec<String> = kept.chain(added).cloned().collect();
        both.iter().any(|column| !self.old.contains(column)).then_some(both)
    }
}

fn has_name(columns: &[String], wanted: &str) -> bool {
    columns.iter().any(|column| name(column) == wanted)
}

/// Returns the name of a column.
fn name(column: &str) -> &str {
    column.split(": ").next().unwrap_or_default()
}

fn superseded(schema: &Schema, past: &PastMigration, lacked: &str) -> Failure {
    // Behind a migration that has only added columns, this would convert rows once more.
    let forgotten = if past.replaces_columns() {
        format!(
            "; if the new columns are to be given up, delete the rows of `{}` in the table `weir_migrations`",
            schema.name
        )
    } else {
        String::new()
    };
    let other = match past.converted {
        true => "has converted the rows to other columns",
        false => "declares other columns",
    };
    Failure::function(format!(
        "a newer version of the program {other} ({}), and this one has old ones and no `{lacked}`; start \
         that version, or restore a backup from before. If this is the newer version, and no longer needs `{lacked}`, write a migration \
         from a record that has `{lacked}`{forgotten}",
        list(past.new.iter().cloned(), ", ")
    ))
}

/// Returns why a program that declares a migration converts nothing, for a start that fails because of its columns: those of the last
/// program, and the column of the old record that the database or that program lacks, or has with another type.
pub(super) fn why_nothing_is_converted(
    (schema, migration): (&Schema, &TableMigration),
    (last, lacked): (&[String], Option<(&ColumnSchema, &str)>),
    catalog: &dyn Catalog,
) -> Read<Option<String>> {
    let advice = format!(
        "to convert the rows, give `migrate` a record of the columns that the last program declared ({})",
        list(last.iter().cloned(), ", ")
    );
    let old = shown(&migration.columns);
    if let Some((past, lacked)) = superseding_old_rows(schema, migration, catalog)? {
        let from = list(past.old.iter().cloned(), ", ");
        return Ok(Some(format!(
            "`migrate` converts nothing, because the rows were converted from ({from}) before, and its old record ({old}) lacks `{lacked}`, \
             which they have since; {advice}"
        )));
    }
    Ok(lacked.map(|(column, by)| {
        format!(
            "`migrate` converts nothing, because its old record has `{}: {}`, and {by} does not; start a version that has it \
             before, or, {advice}",
            column.name,
            column.shown_type()
        )
    }))
}
