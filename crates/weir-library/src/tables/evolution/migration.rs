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
use super::migration_notes::{MigrationProgress, create_notes, forget, note, notes, shown};
use super::new_table::SchemaChange;
use super::past_migrations;
use super::pending_migration::{PendingMigration, fits_others, has_old, is_changed, is_old, lacks_new};
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

/// Writes converted rows, and returns whether more are left; behind the last batch, the changes of a start are made. The caller makes it a
/// transaction.
pub(in crate::tables) fn store(
    schema: &Schema,
    old: &[Value],
    new: &[Value],
    catalog: &dyn Catalog,
) -> StartCheck<bool> {
    match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => match pending.store(old, new, catalog)? {
            Ok(false) if pending.migration.batched => {
                Ok(apply(schema, catalog)?.map(|()| false).map_err(converted_rows::of_batches))
            }
            stored => Ok(stored),
        },
        Ok(None) => Ok(Ok(false)),
        Err(failure) => Ok(Err(failure)),
    }
}

/// Makes the changes of a start, when no rows are left to convert. The caller makes them a transaction.
pub(in crate::tables) fn apply(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    if let Err(failure) = fits_others(schema, catalog)? {
        return Ok(Err(failure));
    }
    let is_new = catalog.columns(&schema.name)?.is_empty();
    let why = why_nothing_is_converted(schema, catalog)?;
    let not_convertible = not_convertible(schema, why.as_deref(), catalog)?;
    if let Err(failure) = evolution::apply(schema, catalog)? {
        return Ok(Err(explained(failure, why)));
    }
    if let Some(failure) = not_convertible {
        return Ok(Err(failure));
    }
    if is_new {
        forget(schema, None, catalog)?;
    }
    if let Some(migration) = &schema.migration
        && notes(schema, migration, catalog)?.is_none()
    {
        create_notes(catalog)?;
        note(schema, migration, MigrationProgress::NothingToConvert, catalog)?;
    }
    catalog.note_declared(schema)?;
    Ok(Ok(()))
}

/// Returns the changes of a start that converts no rows, or why it cannot.
pub(in crate::tables) fn changes(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<SchemaChange>> {
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
    let misses_old = has_old(migration, &known) || lacks_new(schema, migration, &known, catalog)? || gives_up();
    if !misses_old
        || notes(schema, migration, catalog)?.is_some()
        || past_migrations::superseding_old_rows(schema, migration, catalog)?.is_some()
    {
        return Ok(None);
    }
    let any = catalog.number(&format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) s", quoted(&schema.name)))?;
    Ok((any > 0).then(|| Failure::function(why)))
}

/// Returns a table without the references by columns of other tables that a start converts: their values are not there before.
pub(in crate::tables) fn without_converted_references(
    schema: &Schema,
    tables: &[Schema],
    catalog: &dyn Catalog,
) -> Read<Schema> {
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

/// Returns why a program that declares a migration converts nothing, though the database has other columns.
fn why_nothing_is_converted(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<String>> {
    let Some(migration) = &schema.migration else { return Ok(None) };
    let known = evolution::known_columns(schema, catalog)?;
    if known.is_empty() || !schema.columns.iter().any(|column| is_changed(column, &known)) {
        return Ok(None);
    }
    let declared = known.iter().filter(|known| known.declared);
    let last: Vec<String> = declared.map(|known| format!("{}: {}", known.name, known.kind)).collect();
    let is_undeclared = |column: &&ColumnSchema| !last.contains(&shown(std::slice::from_ref(*column)));
    let lacked = match migration.columns.iter().find(|column| is_changed(column, &known)) {
        Some(column) => Some((column, "the database")),
        None => migration.columns.iter().find(is_undeclared).map(|column| (column, "the last program")),
    };
    past_migrations::why_nothing_is_converted((schema, migration), (&last, lacked), catalog)
}

/// Returns the changes of a start that converts rows, and the number of rows that are left; `None` if it converts none. Programs that are
/// running are not looked at.
pub(in crate::tables) fn promised(
    schema: &Schema,
    catalog: &dyn Catalog,
) -> StartCheck<Option<(Vec<SchemaChange>, i64)>> {
    let pending = match PendingMigration::of(schema, catalog)? {
        Ok(Some(pending)) => pending,
        Ok(None) => return Ok(Ok(None)),
        Err(failure) => return Ok(Err(failure)),
    };
    if let Err(failure) = pending.fits_database(catalog)? {
        return Ok(Err(failure));
    }
    // Rows that others have written may lack values.
    if !is_old(pending.migration, &pending.known)
        && let Err(failure) = pending.rows(catalog)?
    {
        return Ok(Err(failure));
    }
    let left = catalog.number(&format!("SELECT count(*) FROM {}{}", quoted(&schema.name), pending.condition()))?;
    let changes = if pending.has_begun { Vec::new() } else { pending.changes(catalog)? };
    Ok(Ok(Some((changes, left))))
}
