//! Notes of migrations: the table `weir_migrations` has the columns before and behind each, the key of the last row that was converted,
//! and how far it is: 0 if rows are left, 1 if all were converted, and 2 if there were none to convert. The first start of a program that
//! declares a migration decides whether there is anything to convert.

use crate::tables::catalog::{Catalog, Read};
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};

/// Progress of a migration.
pub(super) enum MigrationProgress<'p> {
    /// The rows up to this key, in SQL, are converted.
    Behind(Option<&'p str>),
    /// All rows are converted, and these columns are new ones.
    Done(&'p [String]),
    /// The program was started with a table that is empty, or has its columns.
    NothingToConvert,
}

/// A migration that is done. Its columns are texts such as `place: Text`.
#[derive(Debug)]
pub(super) struct PastMigration {
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
    /// False if there were no rows to convert.
    pub(super) converted: bool,
}

/// Creates the table, unless it is there.
pub(super) fn create_notes(catalog: &dyn Catalog) -> Read<()> {
    catalog.create_own_table(
        "weir_migrations",
        "\"table\" TEXT NOT NULL, \"old\" TEXT NOT NULL, \"new\" TEXT NOT NULL, \"last\" TEXT, \"done\" INTEGER NOT NULL,
         PRIMARY KEY (\"table\", \"old\")",
    )
}

/// Notes how far the migration is.
pub(super) fn note(
    schema: &Schema,
    migration: &TableMigration,
    progress: MigrationProgress<'_>,
    catalog: &dyn Catalog,
) -> Read<()> {
    let dialect = catalog.dialect();
    let (last, new, done) = match progress {
        MigrationProgress::Behind(last) => (last, shown(&schema.columns), 0),
        MigrationProgress::Done(new) => (None, new.join(", "), 1),
        MigrationProgress::NothingToConvert => (None, shown(&schema.columns), 2),
    };
    let texts = [&schema.name, &shown(&migration.columns), &new].map(|text| dialect.text(text));
    // What cannot be stored in a text is escaped in it already.
    let last = last.map_or_else(|| "NULL".to_owned(), |last| format!("'{}'", last.replace('\'', "''")));
    catalog.execute(&format!(
        "INSERT INTO \"weir_migrations\" VALUES ({}, {last}, {})
         ON CONFLICT (\"table\", \"old\") DO UPDATE SET \"new\" = excluded.\"new\", \"last\" = excluded.\"last\",
         \"done\" = excluded.\"done\"",
        texts.join(", "),
        done,
    ))
}

/// Returns the columns, the last key and the state that are noted for a migration.
pub(in crate::tables) fn notes(
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

/// Returns the columns behind a migration of the table that has begun and is not done, unless the program declares that migration.
pub(super) fn begun_by_another(schema: &Schema, catalog: &dyn Catalog) -> Read<Option<String>> {
    if !catalog.has_table("weir_migrations")? || catalog.columns(&schema.name)?.is_empty() {
        return Ok(None);
    }
    let dialect = catalog.dialect();
    let table = dialect.text(&schema.name);
    let is_another = schema.migration.as_ref().map_or_else(String::new, |own| {
        let (old, new) = (dialect.text(&shown(&own.columns)), dialect.text(&shown(&schema.columns)));
        format!(" AND NOT (\"old\" = {old} AND \"new\" = {new})")
    });
    let sql = format!(
        "SELECT \"new\" FROM \"weir_migrations\" WHERE \"table\" = {table} AND \"done\" = 0{is_another} LIMIT 1"
    );
    Ok(catalog.query(&sql)?.into_iter().flatten().flatten().next())
}

/// Returns the migrations of the table that are done.
pub(super) fn done(schema: &Schema, catalog: &dyn Catalog) -> Read<Vec<PastMigration>> {
    if !catalog.has_table("weir_migrations")? {
        return Ok(Vec::new());
    }
    let table = catalog.dialect().text(&schema.name);
    let sql = format!(
        "SELECT \"old\", \"new\", \"done\" FROM \"weir_migrations\" WHERE \"table\" = {table} AND \"done\" <> 0"
    );
    let columns = |shown: String| shown.split(", ").map(str::to_owned).collect();
    let notes = catalog.query(&sql)?.into_iter().filter_map(|note| {
        let [old, new, done] = <[Option<String>; 3]>::try_from(note).ok()?;
        Some(PastMigration { old: columns(old?), new: columns(new?), converted: done.as_deref() == Some("1") })
    });
    Ok(notes.collect())
}

/// Notes the columns behind the migration from these ones.
pub(super) fn note_new(schema: &Schema, old: &[String], new: &[String], catalog: &dyn Catalog) -> Read<()> {
    let new = catalog.dialect().text(&new.join(", "));
    let migration = of_migration(schema, Some(old), catalog);
    catalog.execute(&format!("UPDATE \"weir_migrations\" SET \"new\" = {new} WHERE {migration}"))
}

/// Forgets the migration from these columns, or all migrations of the table.
pub(super) fn forget(schema: &Schema, old: Option<&[String]>, catalog: &dyn Catalog) -> Read<()> {
    if !catalog.has_table("weir_migrations")? {
        return Ok(());
    }
    let migration = of_migration(schema, old, catalog);
    catalog.execute(&format!("DELETE FROM \"weir_migrations\" WHERE {migration}"))
}

/// Returns the condition of the note of the migration from these columns, or of all of the table.
fn of_migration(schema: &Schema, old: Option<&[String]>, catalog: &dyn Catalog) -> String {
    let dialect = catalog.dialect();
    let old = old.map_or_else(String::new, |old| format!(" AND \"old\" = {}", dialect.text(&old.join(", "))));
    format!("\"table\" = {}{old}", dialect.text(&schema.name))
}

/// Returns the columns in one line.
pub(super) fn shown(columns: &[ColumnSchema]) -> String {
    shown_columns(columns).join(", ")
}

/// Returns each column as a text with its name and its type.
pub(super) fn shown_columns(columns: &[ColumnSchema]) -> Vec<String> {
    columns.iter().map(|column| format!("{}: {}", column.name, column.shown_type())).collect()
}
