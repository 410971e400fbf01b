//! The changes of a start in the database of a program: all its tables change in one transaction, or none.
//!
//! When a table is opened, and when its rows are converted, the changes are only noted. When all shared values of the program are there,
//! they are made: first the converted rows of all tables are stored, because a reference of one table may be to a column of another that
//! is converted. A table whose rows are converted in batches changes before.

use std::cell::Cell;

use weir::Value;

use super::catalog::{Catalog, StartCheck};
use super::migration;
use super::schema::Schema;

/// A table that is open, and does not have in the database what the program declares.
#[derive(Debug)]
pub(super) struct StartingTable {
    pub(super) schema: Schema,
    pub(super) converted: Option<ConvertedRows>,
}

/// All rows of a table, before and behind their conversion; none if there was nothing to convert.
#[derive(Debug)]
pub(super) struct ConvertedRows {
    pub(super) old: Vec<Value>,
    pub(super) new: Vec<Value>,
}

/// Makes the changes of all tables, and leaves the place of the table that it is about in `at`. The caller makes it a transaction.
pub(super) fn make(tables: &[StartingTable], at: &Cell<usize>, catalog: &dyn Catalog) -> StartCheck<()> {
    for (place, StartingTable { schema, converted }) in tables.iter().enumerate() {
        at.set(place);
        let Some(ConvertedRows { old, new }) = converted else { continue };
        if let Err(failure) = migration::store(schema, old, new, catalog)? {
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
