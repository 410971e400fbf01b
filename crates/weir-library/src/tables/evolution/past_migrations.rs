//! The history of a table: the migrations that were made of it, in their order. From it follow the programs that do not start, because they
//! are older than the rows, and the migrations that are not made, because they were.
//!
//! A program is *superseded* by the migrations from one of the history on, taken together, if it has an old column and lacks a new one. If
//! its own migration was made, only later ones count. Otherwise a column that it converts counts as one that it has. An old column is one
//! that the migrations have replaced. If they have replaced none, and so have only added columns, each column of before may have another
//! meaning: all count as old ones, except those of the key, and the program lacks all new ones. If they have added none, an old column
//! suffices that the program does not make anew. Migrations that together lead back to the columns of before supersede nothing.
//!
//! A migration was made if one of the history replaces a column that it replaces, too, or none like it, and the same for the columns that it
//! adds: a later version of the program may read or add further ones.

use weir::Failure;

use super::migration_notes::{MigrationProgress, NotedMigration, forgetting, notes, shown, shown_columns};
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};
use crate::tables::sql::list;

/// The migrations of a table.
#[derive(Debug, Default)]
pub(in crate::tables) struct MigrationHistory {
    /// The migrations that were made, in their order.
    made: Vec<NotedMigration>,
    /// The one that has begun and is not done.
    pub(in crate::tables) begun: Option<NotedMigration>,
}

/// The reason why columns are older than the rows.
#[derive(Debug)]
pub(super) struct Superseded {
    /// The migrations that have followed, as one.
    pub(super) by: NotedMigration,
    /// A column that they have replaced; `None` if there is only the key.
    pub(super) old: Option<String>,
    /// The first column that they have added and that is missing, with its type if another one has its name; `None` if they have added none.
    pub(super) lacked: Option<String>,
}

/// Fails if the migration of another program forbids that this one starts.
pub(super) fn fits_others(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    Ok(MigrationHistory::of(schema, catalog)?.fits(schema))
}

impl MigrationHistory {
    /// Returns the history of a table; an empty one if the database does not have it.
    pub(in crate::tables) fn of(schema: &Schema, catalog: &dyn Catalog) -> Read<MigrationHistory> {
        if catalog.columns(&schema.name)?.is_empty() {
            return Ok(MigrationHistory::default());
        }
        let is_begun = |noted: &NotedMigration| matches!(noted.progress, MigrationProgress::Behind(_));
        let (begun, made) = notes(schema, catalog)?.into_iter().partition::<Vec<_>, _>(is_begun);
        Ok(MigrationHistory { made, begun: begun.into_iter().next() })
    }

    /// Returns whether a migration of the program was made.
    pub(super) fn has_made(&self, schema: &Schema, migration: &TableMigration) -> bool {
        self.place_of(schema, migration).is_some()
    }

    /// Fails if the rows are newer than the program.
    pub(super) fn fits(&self, schema: &Schema) -> Result<(), Failure> {
        if let Some(begun) = &self.begun {
            return if begun.is_of(schema) { Ok(()) } else { Err(not_done(begun)) };
        }
        let migration = schema.migration.as_ref();
        let made = migration.and_then(|migration| self.place_of(schema, migration));
        // What was converted before is not converted again.
        let converts = migration.filter(|_| made.is_none()).map_or(Vec::new(), |own| shown_columns(&own.columns));
        let found = self.superseding(schema, (&shown_columns(&schema.columns), &converts), made);
        let Some(found) = found else { return Ok(()) };
        // Its rows are there again: it may be a newer version that converts them once more.
        let is_repeated = migration.is_some_and(|own| self.superseding_old_rows(schema, own).is_none());
        let repeated = made.filter(|_| is_repeated).map(|at| &self.made[at]);
        Err(superseded(schema, &found, repeated))
    }

    /// Returns why rows with the columns from which a migration converts are older than those of the table.
    pub(super) fn superseding_old_rows(&self, schema: &Schema, migration: &TableMigration) -> Option<Superseded> {
        self.superseding(schema, (&shown_columns(&migration.columns), &[]), None)
    }

    /// Returns the old columns of the table that migrations have replaced, and whose values nobody has written since.
    pub(super) fn replaced_columns(&self) -> Vec<String> {
        let converted = (0..self.made.len()).filter(|at| self.made[*at].progress == MigrationProgress::Done);
        let replaced = |past: NotedMigration| {
            let old = past.old.iter().filter(|column| past.is_replaced(column)).cloned();
            old.collect::<Vec<_>>()
        };
        converted.filter_map(|at| self.from(at)).flat_map(replaced).collect()
    }

    /// Returns the place of the last migration that is this one.
    fn place_of(&self, schema: &Schema, migration: &TableMigration) -> Option<usize> {
        let (old, new) = (shown_columns(&migration.columns), shown_columns(&schema.columns));
        self.made.iter().rposition(|made| made.is_same(&old, &new))
    }

    /// Returns why a program with these columns, which converts others, is older than the rows. It is behind the migration at a place.
    fn superseding(
        &self,
        schema: &Schema,
        (columns, converts): (&[String], &[String]),
        behind: Option<usize>,
    ) -> Option<Superseded> {
        let key: Vec<&str> = schema.key.iter().map(|at| schema.columns[*at].name.as_str()).collect();
        // The order of the notes of an earlier version of Weir is not known.
        let is_later =
            |at: usize| behind.is_none_or(|made| at > made || at != made && self.made[at].step == self.made[made].step);
        let from = (0..self.made.len()).filter(|at| is_later(*at)).filter_map(|at| self.from(at));
        from.filter_map(|by| by.superseding(columns, converts, &key)).next()
    }

    /// Returns a migration and those behind it as one; `None` if they lead back.
    fn from(&self, at: usize) -> Option<NotedMigration> {
        let first = self.made[at].clone();
        let mut behind = self.made[at..].iter().filter(|made| made.step > first.step);
        behind.try_fold(first.clone(), NotedMigration::then)
    }
}

impl NotedMigration {
    /// Returns whether this is the migration of a program, between the same columns.
    pub(super) fn is_of(&self, schema: &Schema) -> bool {
        let is_old = |migration: &TableMigration| shown_columns(&migration.columns) == self.old;
        schema.migration.as_ref().is_some_and(is_old) && shown_columns(&schema.columns) == self.new
    }

    /// Returns whether a migration between these columns is this one, or that of a later version of its program.
    fn is_same(&self, old: &[String], new: &[String]) -> bool {
        shares(&without(old, new), &without(&self.old, &self.new))
            && shares(&without(new, old), &without(&self.new, &self.old))
    }

    /// Returns why a program with these columns, which converts others, is older than the rows behind this migration.
    fn superseding(&self, columns: &[String], converts: &[String], key: &[&str]) -> Option<Superseded> {
        let (replaces, added) = (self.replaces_columns(), without(&self.new, &self.old));
        let is_made_anew = |column: &String| added.is_empty() && !converts.is_empty() && !converts.contains(column);
        let is_old = |column: &&String| match replaces {
            true => self.is_replaced(column) && !is_made_anew(column),
            false => !key.contains(&name(column)) && has_name(&self.old, name(column)),
        };
        let old = columns.iter().find(is_old).cloned();
        if old.is_none() && (replaces || !self.old.iter().all(|old| key.contains(&name(old)))) {
            return None;
        }
        let known = || columns.iter().chain(converts).filter(|column| !self.is_replaced(column));
        let is_lacked = |new: &&&String| !known().any(|column| name(column) == name(new));
        let lacked: Vec<&&String> = added.iter().filter(is_lacked).collect();
        let is_superseded = match replaces {
            true => added.is_empty() || !lacked.is_empty(),
            // A version behind the migration may have given up some of the columns that it has added.
            false => !added.is_empty() && lacked.len() == added.len(),
        };
        let shown = |column: &String| if has_name(columns, name(column)) { column } else { name(column) }.to_owned();
        let lacked = lacked.first().map(|column| shown(column));
        is_superseded.then(|| Superseded { by: self.clone(), old, lacked })
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

    /// Returns this migration and a later one as one; `None` if no new column is left.
    fn then(self, later: &NotedMigration) -> Option<NotedMigration> {
        let (gone, added) = (without(&later.old, &later.new), without(&later.new, &later.old));
        if !self.new.iter().any(|column| gone.contains(&column))
            && !self.old.iter().any(|column| added.contains(&column))
        {
            return Some(self);
        }
        let kept = self.new.iter().filter(|column| !gone.contains(column));
        let more = added.iter().copied().filter(|column| !self.new.contains(column));
        let new: Vec<String> = kept.chain(more).cloned().collect();
        new.iter().any(|column| !self.old.contains(column)).then_some(NotedMigration { new, ..self })
    }
}

/// Returns the columns that are not among the others.
fn without<'c>(columns: &'c [String], others: &[String]) -> Vec<&'c String> {
    columns.iter().filter(|column| !others.contains(column)).collect()
}

/// Returns whether columns share one with the others, or there are none of both.
fn shares(columns: &[&String], others: &[&String]) -> bool {
    columns.is_empty() && others.is_empty() || columns.iter().any(|column| others.contains(column))
}

fn has_name(columns: &[String], wanted: &str) -> bool {
    columns.iter().any(|column| name(column) == wanted)
}

/// Returns the name of a column.
fn name(column: &str) -> &str {
    column.split(": ").next().unwrap_or_default()
}

/// Returns the failure of a start in the middle of the migration of another program.
fn not_done(begun: &NotedMigration) -> Failure {
    Failure::function(format!(
        "a migration to other columns ({}) has begun and is not done; start the program that has begun it, with its `migrate`, or \
         restore a backup from before",
        list(begun.new.iter().cloned(), ", ")
    ))
}

/// Returns the failure of a program that is older than the rows. Its migration may be a repetition of one that was made.
fn superseded(schema: &Schema, Superseded { by, old, lacked }: &Superseded, made: Option<&NotedMigration>) -> Failure {
    let what = match by.progress {
        MigrationProgress::NothingToConvert => "declares other columns",
        _ => "has converted the rows to other columns",
    };
    let columns = match (old, lacked) {
        (_, Some(lacked)) => format!("old ones and no `{lacked}`"),
        (Some(old), None) => format!("`{}`, which is an old one", name(old)),
        (None, None) => "old ones".to_owned(),
    };
    let newer = match (made, lacked) {
        (Some(made), _) => format!(
            "The `migrate` of this one was made before that, and the same one is made once. If this is the newer version, give its new columns \
             other names, or, to convert the rows once more, execute with `sqlite3` or `psql`: {}",
            forgetting(schema, made)
        ),
        // Behind a migration that has only added columns, to forget it would convert rows once more.
        (None, Some(lacked)) => {
            let forgotten = match by.replaces_columns() {
                true => format!(
                    "; if the new columns are to be given up, delete the rows of `{}` in the table `weir_migrations`",
                    schema.name
                ),
                false => String::new(),
            };
            format!(
                "If this is the newer version, and no longer needs `{lacked}`, write a migration from a record that has `{lacked}`{forgotten}"
            )
        }
        (None, None) => "If this is the newer version, give the column another name".to_owned(),
    };
    Failure::function(format!(
        "a newer version of the program {what} ({}), and this one has {columns}; start that version, or restore a backup from before. {newer}",
        list(by.new.iter().cloned(), ", ")
    ))
}

/// Returns why a program that declares a migration converts nothing, for a start that fails because of its columns: those of the last
/// program, and the column of the old record that the database or that program lacks, or has with another type.
pub(super) fn why_nothing_is_converted(
    (schema, migration): (&Schema, &TableMigration),
    (last, lacked): (&[String], Option<(&ColumnSchema, &str)>),
    history: &MigrationHistory,
) -> Option<String> {
    let advice = format!(
        "to convert the rows, give `migrate` a record of the columns that the last program declared ({})",
        list(last.iter().cloned(), ", ")
    );
    let old = shown(&migration.columns);
    if let Some(Superseded { by, old: replaced, lacked }) = history.superseding_old_rows(schema, migration) {
        let from = list(by.old.iter().cloned(), ", ");
        let why = match (lacked, replaced) {
            (Some(lacked), _) => format!("lacks `{lacked}`, which they have since"),
            (None, replaced) => format!("has `{}`, which they no longer have", name(&replaced.unwrap_or_default())),
        };
        return Some(format!(
            "`migrate` converts nothing, because the rows were converted from ({from}) before, and its old record ({old}) {why}; {advice}"
        ));
    }
    lacked.map(|(column, by)| {
        format!(
            "`migrate` converts nothing, because its old record has `{}: {}`, and {by} does not; start a version that has it \
             before, or, {advice}; remove the clause if no rows are to be converted",
            column.name,
            column.shown_type()
        )
    })
}
