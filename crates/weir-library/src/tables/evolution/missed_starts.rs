//! Changes that starts of other programs have made while this program was not known to run, and which would have failed beside it.

use weir::Failure;

use super::migration;
use super::reference_notes;
use crate::tables::catalog::{Catalog, Read};
use crate::tables::schema::{IndexSchema, Schema};
use crate::tables::sql::list;

/// Returns what such a start has changed, if one has.
pub(in crate::tables) fn changes(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<Failure>> {
    if let Some(failure) = migration::made_by_others(schema, catalog)? {
        return Ok(Some(failure));
    }
    if reference_notes::others_declare(schema, catalog)? {
        return Ok(Some(Failure::function("it has other `references`, which what this program writes may break")));
    }
    let indexes = catalog.indexes(&schema.name)?;
    let is_there = |index: &IndexSchema| indexes.iter().any(|known| known.serves(schema, index));
    let dropped = schema.indexes.iter().find(|index| index.unique && !is_there(index));
    Ok(dropped.map(|index| {
        let columns = list(index.columns.iter().map(|at| schema.columns[*at].name.clone()), ", ");
        Failure::function(format!("it has dropped `unique ({columns})`, which this program declares"))
    }))
}
