//! The names of the indexes that a start creates: a name that something else has in the database cannot be given once more.

use weir::Failure;

use super::new_table::shown_index;
use crate::tables::catalog::{Catalog, CatalogIndex, NameHolder, Read, StartCheck};
use crate::tables::dialect::Dialect;
use crate::tables::schema::{IndexSchema, Schema};
use crate::tables::sql::quoted;

/// Fails if an index that the program declares cannot get its name, because something else has it: also an index of a table that was
/// renamed. `own` are the indexes of the table.
pub(super) fn are_free(schema: &Schema, own: &[CatalogIndex], catalog: &dyn Catalog) -> StartCheck<()> {
    for index in &schema.indexes {
        if let Some(failure) = taken(schema, index, own, catalog)? {
            return Ok(Err(failure));
        }
    }
    Ok(Ok(()))
}

fn taken(schema: &Schema, index: &IndexSchema, own: &[CatalogIndex], catalog: &dyn Catalog) -> Read<Option<Failure>> {
    let name = catalog.dialect().index_name(schema, index);
    if own.iter().any(|own| own.name == name) {
        return Ok(None);
    }
    Ok(catalog.holder_of_name(&name)?.map(|NameHolder { kind, table }| {
        let of_table = table.map_or_else(String::new, |table| format!(" of the table `{table}`"));
        let (keyword, quoted) = (kind.to_uppercase(), quoted(&name));
        let way = match (catalog.dialect(), &*kind) {
            (Dialect::Sqlite, "index" | "view") => format!("drop it: `DROP {keyword} {quoted}`"),
            _ => format!("rename it: `ALTER {keyword} {quoted} RENAME TO …`, or drop it"),
        };
        Failure::function(format!(
            "the database has the {kind} `{name}`{of_table}, and {} of `{}` needs this name; {way}, and start again",
            shown_index(schema, index),
            schema.name
        ))
    }))
}
