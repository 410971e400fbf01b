//! Migrations: the rows of a table whose type the program has changed, which a function of the program converts.
//!
//! 1. A start reads rows of the old type (`old_rows`): all of them, or the next batch. There are none unless the database has the
//!    columns of the old type, and they are not those of the program.
//! 2. The program converts the rows.
//! 3. [`store`] writes them in one transaction, if they are still what was read. The first one adds the new columns
//!    ([`PendingMigration`]), the last one makes the other changes of a start.
//!
//! A table notes how far a migration is ([`migration_notes`](super::migration_notes)). A start that was killed goes on. One that is done
//! keeps programs out which expect the old rows ([`past_migrations`]).

use weir::{Failure, Value};

use super::converted_rows;
use super::index_names;
use super::migration_columns::{has_old, is_changed, is_old, is_readable, lacks_new};
use super::migration_notes::{MigrationProgress, forget, note, shown_columns};
use super::new_table::SchemaChange;
use super::past_migrations::{self, MigrationHistory, fits_others};
use super::pending_migration::PendingMigration;
use super::reference_notes;
use super::unconverted_rows::{self, RowsToConvert};
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::evolution::{self, KnownColumn};
use crate::tables::schema::{ColumnSchema, Schema};
use crate::tables::sql::quoted;

/// Returns the next rows of the old type; none if nothing is to be converted.
pub(in crate::tables) fn old_rows(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<Value>> {
    match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => match pending.may_go_on(catalog)? {
            Ok(()) => pending.rows(catalog),
            Err(failure) => Ok(Err(failure)),
        },
        Ok(None) => Ok(Ok(Vec::new())),
        Err(failure) => Ok(Err(failure)),
    }
}

/// Fails if the rows of a table cannot be converted now, such as because a program of another version is running.
pub(in crate::tables) fn may_go_on(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => pending.may_go_on(catalog),
        other => Ok(other.map(drop)),
    }
}

/// Writes converted rows, and returns whether more are left; behind the last batch, the changes of a start are made. The caller makes it a
/// transaction.
pub(in crate::tables) fn store(
    schema: &Schema,
    old: &[Value],
    new: &[Value],
    catalog: &dyn Catalog,
) -> StartCheck<bool> {
    match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) if pending.migration.batched => store_batch(&pending, (old, new), catalog),
        Ok(Some(pending)) => pending.store(old, new, catalog),
        Ok(None) => Ok(Ok(false)),
        Err(failure) => Ok(Err(failure)),
    }
}

/// Writes a batch of converted rows; behind the last one, makes the changes of a start.
fn store_batch(
    pending: &PendingMigration<'_>,
    (old, new): (&[Value], &[Value]),
    catalog: &dyn Catalog,
) -> StartCheck<bool> {
    let schema = pending.schema;
    if let Err(failure) = converted_rows::check_unique(schema, new) {
        return Ok(Err(pending.with_way_on(failure, catalog)?));
    }
    match pending.store(old, new, catalog)? {
        Ok(false) => {}
        stored => return Ok(stored),
    }
    let is_whole = !pending.has_begun;
    let explained = |failure| if is_whole { failure } else { converted_rows::of_batches(failure) };
    // The start notes that the references hold.
    let changed = match references_hold(schema, true, catalog)? {
        Ok(()) => apply(schema, catalog)?,
        Err(failure) => Err(failure),
    };
    Ok(changed.map(|_| false).map_err(explained))
}

/// Fails if rows of a table of the database, which a migration may have converted, reference rows that do not exist.
pub(super) fn references_hold(schema: &Schema, is_converted: bool, catalog: &dyn Catalog) -> StartCheck<()> {
    if schema.references.is_empty() {
        return Ok(Ok(()));
    }
    let known = evolution::known_columns(schema, catalog)?;
    // A column of another type is a failure of its own.
    let fits = schema.columns.iter().all(|column| {
        let known = known.iter().find(|known| known.name == column.name);
        known.is_none_or(|known| evolution::same_type(column, known).is_ok())
    });
    if known.is_empty() || !fits {
        return Ok(Ok(()));
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    reference_notes::check_own((schema, is_converted), &names, catalog)
}

/// Returns the failure of the `fn` of a migration for a row of the old record, and how to go on if others are converted.
pub(in crate::tables) fn not_converted(
    schema: &Schema,
    row: &Value,
    failure: Failure,
    catalog: &dyn Catalog,
) -> Read<Failure> {
    let failure = unconverted_rows::not_converted(schema, row, failure);
    match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => pending.with_way_on(failure, catalog),
        _ => Ok(failure),
    }
}

/// Makes the changes of a start, when no rows are left to convert, and returns those of a table that was there before. The caller makes
/// them a transaction.
pub(in crate::tables) fn apply(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<SchemaChange>> {
    if let Err(failure) = fits_others(schema, catalog)? {
        return Ok(Err(failure));
    }
    let is_new = catalog.columns(&schema.name)?.is_empty();
    let why = why_nothing_is_converted(schema, catalog)?;
    let not_convertible = not_convertible(schema, why.as_deref(), catalog)?;
    let mut changes = match evolution::apply(schema, catalog)? {
        Ok(changes) => changes,
        Err(failure) => return Ok(Err(explained(failure, why))),
    };
    if let Some(failure) = not_convertible {
        return Ok(Err(failure));
    }
    if is_new {
        forget(schema, catalog)?;
        changes.clear();
    }
    if let Some(migration) = &schema.migration
        && !MigrationHistory::of(schema, catalog)?.has_made(schema, migration)
    {
        let columns = (&*shown_columns(&migration.columns), &*shown_columns(&schema.columns));
        note(schema, columns, &MigrationProgress::NothingToConvert, catalog)?;
    }
    catalog.note_declared(schema)?;
    Ok(Ok(changes))
}

/// Returns the changes of a start that converts no rows, or why it cannot.
fn changes(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<SchemaChange>> {
    if let Err(failure) = fits_others(schema, catalog)? {
        return Ok(Err(failure));
    }
    let why = why_nothing_is_converted(schema, catalog)?;
    match evolution::changes(schema, catalog)? {
        Ok(changes) => Ok(not_convertible(schema, why.as_deref(), catalog)?.map_or(Ok(changes), Err)),
        Err(failure) => Ok(Err(explained(failure, why))),
    }
}

/// Returns the failure of a start that would leave rows without the values of its migration: this has never been made, the database lacks
/// new columns, and the rows cannot be converted. If the database has some of the new columns, and all of the last program, a program
/// whose clause was removed has created it.
fn not_convertible(schema: &Schema, why: Option<&str>, catalog: &dyn Catalog) -> Read<Option<Failure>> {
    let (Some(migration), Some(why)) = (&schema.migration, why) else { return Ok(None) };
    let known = evolution::known_columns(schema, catalog)?;
    let gives_up = || {
        let is_kept = |known: &KnownColumn| schema.columns.iter().any(|column| column.name == known.name);
        known.iter().any(|known| known.declared && !is_kept(known))
    };
    let history = MigrationHistory::of(schema, catalog)?;
    let misses_old =
        has_old((schema, migration), &known) || lacks_new((schema, migration), &known, &history) || gives_up();
    if !misses_old || history.has_made(schema, migration) || history.superseding_old_rows(schema, migration).is_some() {
        return Ok(None);
    }
    let any = catalog.number(&format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) s", quoted(&schema.name)))?;
    Ok((any > 0).then(|| Failure::function(why)))
}

/// Returns a table without the references by columns of other tables that a start converts: their values are not there before.
fn without_converted_references(schema: &Schema, tables: &[Schema], catalog: &dyn Catalog) -> Read<Schema> {
    let mut checked = schema.clone();
    for other in tables.iter().filter(|other| other.migration.is_some() && other.name != schema.name) {
        if let Ok(Some(pending)) = PendingMigration::of(other, catalog)? {
            let is_added =
                |name: &String| other.columns.iter().any(|column| column.name == *name && pending.is_added(column));
            checked
                .referenced_by
                .retain(|reference| reference.source != other.name || !reference.names.iter().any(is_added));
        }
    }
    Ok(checked)
}

/// Returns why a program that is running must not go on, because another one has converted the rows, or has begun to.
pub(super) fn made_by_others(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<Failure>> {
    if let Err(failure) = fits_others(schema, catalog)? {
        return Ok(Some(failure));
    }
    Ok(match PendingMigration::of(schema, catalog)? {
        Ok(None) => None,
        Ok(Some(_)) => Some(Failure::function("its rows are those from which the `migrate` of this program begins")),
        Err(failure) => Some(failure),
    })
}

/// Returns the failure of a start, and why its migration does not prevent it.
fn explained(failure: Failure, why: Option<String>) -> Failure {
    match why {
        Some(why) => Failure::new(failure.kind, format!("{}; {why}", failure.message)),
        None => failure,
    }
}

/// Returns why a program that declares a migration converts nothing, though the database has other columns, or those of the old record, too,
/// so that nobody knows which ones have the values.
fn why_nothing_is_converted(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<String>> {
    let Some(migration) = &schema.migration else { return Ok(None) };
    let known = evolution::known_columns(schema, catalog)?;
    let lacks_columns = schema.columns.iter().any(|column| is_changed(column, &known));
    if known.is_empty() || !lacks_columns && !has_old((schema, migration), &known) {
        return Ok(None);
    }
    let declared = || known.iter().filter(|known| known.declared);
    let last: Vec<String> = declared().map(|known| format!("{}: {}", known.name, known.kind)).collect();
    let is_undeclared = |column: &&ColumnSchema| !declared().any(|known| is_readable((schema, *column), known));
    let is_missing = |column: &&ColumnSchema| !known.iter().any(|known| is_readable((schema, *column), known));
    let lacked = match migration.columns.iter().find(is_missing) {
        Some(column) => Some((column, "the database")),
        None => migration.columns.iter().find(is_undeclared).map(|column| (column, "the last program")),
    };
    let history = MigrationHistory::of(schema, catalog)?;
    Ok(past_migrations::why_nothing_is_converted((schema, migration), (&last, lacked), &history))
}

/// The changes of a start to a table.
pub(in crate::tables) enum PlannedChanges {
    /// These precede the conversion of rows.
    Converting(Vec<SchemaChange>, RowsToConvert),
    /// No row is converted.
    Plain(Vec<SchemaChange>),
}

/// Returns the changes of a start to a table, one of all those of the program, or why it fails, as far as that is known before rows are
/// converted. Programs that are running are not looked at if it converts rows.
pub(in crate::tables) fn planned(
    (schema, tables): (&Schema, &[Schema]),
    catalog: &dyn Catalog,
) -> StartCheck<PlannedChanges> {
    let pending = match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => pending,
        Ok(None) => {
            // Before its rows are converted, a table may lack what they get.
            let checked = without_converted_references(schema, tables, catalog)?;
            return Ok(changes(&checked, catalog)?.map(PlannedChanges::Plain));
        }
        Err(failure) => return Ok(Err(failure)),
    };
    if let Err(failure) = pending.fits_database(catalog)? {
        return Ok(Err(failure));
    }
    if let Err(failure) = index_names::are_free(schema, &catalog.own_indexes(&schema.name)?, catalog)? {
        return Ok(Err(failure));
    }
    // Rows that others have written may lack values.
    if !is_old((schema, pending.migration), &pending.known)
        && let Err(failure) = pending.has_values(catalog)?
    {
        return Ok(Err(failure));
    }
    let changes = if pending.has_begun { Vec::new() } else { pending.changes(catalog)? };
    Ok(Ok(PlannedChanges::Converting(changes, pending.counted(catalog)?)))
}
