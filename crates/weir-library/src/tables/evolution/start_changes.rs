//! The changes of a start in the database of a program: all its tables change in one transaction, or none.
//!
//! When a table is opened, and when its rows are converted, the changes are only noted. When all shared values of the program are there,
//! they are made: first the converted rows of all tables are stored, because a reference of one table may be to a column of another that
//! is converted. A table whose rows are converted in batches changes before, behind a check of all tables.

use std::cell::Cell;

use super::converted_rows::ConvertedRows;
use super::migration::{self, PlannedChanges};
use super::new_table::SchemaChange;
use super::pending_migration::PendingMigration;
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::schema::Schema;

/// A table that is open, and does not have in the database what the program declares.
#[derive(Debug)]
pub(in crate::tables) struct StartingTable {
    pub(in crate::tables) schema: Schema,
    pub(in crate::tables) converted: Option<ConvertedRows>,
}

/// Checks all tables of a program that are stored in its database, if rows of one are to be converted in batches, because nothing of that is
/// taken back if the start fails. Returns whether rows are. Leaves the place of the table that it is about in `at`.
pub(in crate::tables) fn check(tables: &[Schema], at: &Cell<usize>, catalog: &dyn Catalog) -> StartCheck<bool> {
    if !any_in_batches(tables, catalog)? {
        return Ok(Ok(false));
    }
    for (place, schema) in tables.iter().enumerate().filter(|(_, schema)| schema.is_stored()) {
        at.set(place);
        let checked = match migration::planned((schema, tables), catalog)? {
            Ok(PlannedChanges::Converting(..)) => migration::may_go_on(schema, catalog)?,
            planned => planned.map(drop),
        };
        if let Err(failure) = checked {
            return Ok(Err(failure));
        }
    }
    Ok(Ok(true))
}

/// Returns whether rows of a table are to be converted in batches.
fn any_in_batches(tables: &[Schema], catalog: &dyn Catalog) -> Read<bool> {
    for schema in tables.iter().filter(|schema| schema.is_stored() && schema.converts_in_batches()) {
        if let Ok(Some(_)) = PendingMigration::of(schema, catalog)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes the changes of all tables, returns those of tables that were there before, and leaves the place of the table that it is about in
/// `at`. The caller makes it a transaction.
pub(in crate::tables) fn make(
    tables: &[StartingTable],
    at: &Cell<usize>,
    catalog: &dyn Catalog,
) -> StartCheck<Vec<SchemaChange>> {
    for (place, StartingTable { schema, converted }) in tables.iter().enumerate() {
        at.set(place);
        let Some(converted) = converted else { continue };
        if let Err(failure) = migration::store(schema, &converted.old, &converted.new, catalog)? {
            return Ok(Err(failure));
        }
    }
    // Before the changes of the tables that are referenced, so that the failure is one of the table that declares the reference.
    for (place, table) in tables.iter().enumerate() {
        at.set(place);
        let is_converted = table.converted.as_ref().is_some_and(|converted| !converted.new.is_empty());
        if let Err(failure) = migration::references_hold(&table.schema, is_converted, catalog)? {
            return Ok(Err(failure));
        }
    }
    let mut changes = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        at.set(place);
        match migration::apply(&table.schema, catalog)? {
            Ok(of_table) => changes.extend(of_table),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(Ok(changes))
}
