//! The changes of a start in the database of a program: all its tables change in one transaction, or none.
//!
//! When a table is opened, and when its rows are converted, the changes are only noted. When all shared values of the program are there,
//! they are made: first the converted rows of all tables are stored, because a reference of one table may be to a column of another that
//! is converted. A table whose rows are converted in batches changes before.

use std::cell::Cell;

use super::converted_rows::ConvertedRows;
use super::migration;
use super::reference_notes;
use crate::tables::catalog::{Catalog, StartCheck};
use crate::tables::evolution;
use crate::tables::schema::Schema;

/// A table that is open, and does not have in the database what the program declares.
#[derive(Debug)]
pub(in crate::tables) struct StartingTable {
    pub(in crate::tables) schema: Schema,
    pub(in crate::tables) converted: Option<ConvertedRows>,
}

/// Makes the changes of all tables, and leaves the place of the table that it is about in `at`. The caller makes it a transaction.
pub(in crate::tables) fn make(tables: &[StartingTable], at: &Cell<usize>, catalog: &dyn Catalog) -> StartCheck<()> {
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
        if let Err(failure) = references_hold(table, catalog)? {
            return Ok(Err(failure));
        }
    }
    for (place, table) in tables.iter().enumerate() {
        at.set(place);
        if let Err(failure) = migration::apply(&table.schema, catalog)? {
            return Ok(Err(failure));
        }
    }
    Ok(Ok(()))
}

/// Fails if rows of a table of the database reference rows that do not exist.
fn references_hold(StartingTable { schema, converted }: &StartingTable, catalog: &dyn Catalog) -> StartCheck<()> {
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
    let is_converted = converted.as_ref().is_some_and(|converted| !converted.new.is_empty());
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    reference_notes::check_own((schema, is_converted), &names, catalog)
}
