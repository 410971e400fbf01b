//! Notes of migrations: the table `weir_migrations` has the columns before and behind each, the key of the last row that was converted,
//! and whether it is done. The first start of a program that declares a migration decides whether there is anything to convert.

use super::catalog::{Catalog, Read};
use super::schema::{ColumnSchema, Schema, TableMigration};
use super::sql::list;

/// Creates the table, unless it is there.
pub(super) fn create_notes(catalog: &dyn Catalog) -> Read<()> {
    let options = catalog.dialect().table_options(false);
    catalog.execute(&format!(
        "CREATE TABLE IF NOT EXISTS \"weir_migrations\" (\"table\" TEXT NOT NULL, \"old\" TEXT NOT NULL, \"new\" TEXT NOT NULL,
         \"last\" TEXT, \"done\" INTEGER NOT NULL, PRIMARY KEY (\"table\", \"old\")){options}",
    ))
}

/// Notes how far the migration is.
pub(super) fn note(
    schema: &Schema,
    migration: &TableMigration,
    (last, done): (Option<&str>, bool),
    catalog: &dyn Catalog,
) -> Read<()> {
    let dialect = catalog.dialect();
    let texts = [&schema.name, &shown(&migration.columns), &shown(&schema.columns)].map(|text| dialect.text(text));
    // What cannot be stored in a text is escaped in it already.
    let last = last.map_or_else(|| "NULL".to_owned(), |last| format!("'{}'", last.replace('\'', "''")));
    catalog.execute(&format!(
        "INSERT INTO \"weir_migrations\" VALUES ({}, {last}, {})
         ON CONFLICT (\"table\", \"old\") DO UPDATE SET \"new\" = excluded.\"new\", \"last\" = excluded.\"last\",
         \"done\" = excluded.\"done\"",
        texts.join(", "),
        i32::from(done),
    ))
}

/// Returns the columns, the last key and the state that are noted for a migration.
pub(super) fn notes(
    schema: &Schema,
    migration: &TableMigration,
    catalog: &dyn Catalog,
) -> Read<Option<[Option<String>; 3]>> {
    if !catalog.has_table("weir_migrations")? {
        return Ok(None);
    }
    let dialect = catalog.dialect();
    let (table, old) = (dialect.text(&schema.name), dialect.text(&shown(&migration.columns)));
    let sql = format!(
        "SELECT \"new\", \"last\", \"done\" FROM \"weir_migrations\" WHERE \"table\" = {table} AND \"old\" = {old}"
    );
    Ok(catalog.query(&sql)?.into_iter().next().and_then(|row| row.try_into().ok()))
}

/// Returns the columns before and behind each migration of the table that is done.
pub(super) fn done(schema: &Schema, catalog: &dyn Catalog) -> Read<Vec<(String, String)>> {
    if !catalog.has_table("weir_migrations")? {
        return Ok(Vec::new());
    }
    let table = catalog.dialect().text(&schema.name);
    let sql = format!("SELECT \"old\", \"new\" FROM \"weir_migrations\" WHERE \"table\" = {table} AND \"done\" = 1");
    let notes = catalog.query(&sql)?.into_iter().filter_map(|note| {
        let [old, new] = <[Option<String>; 2]>::try_from(note).ok()?;
        old.zip(new)
    });
    Ok(notes.collect())
}

/// Returns the columns in one line.
pub(super) fn shown(columns: &[ColumnSchema]) -> String {
    list(columns.iter().map(shown_column), ", ")
}

pub(super) fn shown_column(column: &ColumnSchema) -> String {
    format!("{}: {}", column.name, column.shown_type())
}
