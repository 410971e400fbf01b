//! Notes of migrations: the table `weir_migrations` has those of each table in their order, each with the columns before and behind it, the
//! key of the last row that was converted, and how far it is: 0 if rows are left, 1 if all were converted, and 2 if there were none to
//! convert. The first start of a program that declares a migration decides whether there is anything to convert.
//!
//! Earlier versions of Weir noted no order, and in each note the columns that the rows had behind all later migrations. Such a note has the
//! step 0.

use crate::tables::catalog::{Catalog, Read};
use crate::tables::schema::{ColumnSchema, Schema};
use crate::tables::sql::quoted;

const NOTES: &str = "weir_migrations";

/// Progress of a migration.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tables) enum MigrationProgress {
    /// The rows up to this key, in SQL, are converted.
    Behind(Option<String>),
    /// All rows are converted.
    Done,
    /// The program was started with a table that is empty, or has its columns.
    NothingToConvert,
}

/// A migration that was made, or has begun. Its columns are texts such as `place: Text`.
#[derive(Clone, Debug)]
pub(in crate::tables) struct NotedMigration {
    /// Its number among those of the table; 0 if it was before all that have one, in an unknown order.
    pub(super) step: i64,
    /// The columns that the conversion of a row has read.
    pub(super) old: Vec<String>,
    /// The columns that the rows have behind it.
    pub(super) new: Vec<String>,
    pub(in crate::tables) progress: MigrationProgress,
}

/// Notes how far the migration between these columns is. It is the last one of the table.
pub(super) fn note(
    schema: &Schema,
    (old, new): (&[String], &[String]),
    progress: &MigrationProgress,
    catalog: &dyn Catalog,
) -> Read<()> {
    create_notes(catalog)?;
    let table = catalog.dialect().text(&schema.name);
    catalog.execute(&format!("DELETE FROM \"{NOTES}\" WHERE \"table\" = {table} AND \"done\" = 0"))?;
    let step = catalog.number(&format!("SELECT max(\"step\") FROM \"{NOTES}\" WHERE \"table\" = {table}"))? + 1;
    let noted = NotedMigration { step, old: old.to_vec(), new: new.to_vec(), progress: progress.clone() };
    insert((&table, &noted), catalog)
}

/// Returns the migrations of a table in their order.
pub(super) fn notes(schema: &Schema, catalog: &dyn Catalog) -> Read<Vec<NotedMigration>> {
    let table = catalog.dialect().text(&schema.name);
    let notes = noted(&format!(" WHERE \"table\" = {table}"), catalog)?;
    Ok(notes.into_iter().map(|(_, note)| note).collect())
}

/// Forgets the migrations of a table.
pub(super) fn forget(schema: &Schema, catalog: &dyn Catalog) -> Read<()> {
    if !catalog.has_table(NOTES)? {
        return Ok(());
    }
    let table = catalog.dialect().text(&schema.name);
    catalog.execute(&format!("DELETE FROM \"{NOTES}\" WHERE \"table\" = {table}"))
}

/// Returns the statement with which a person makes Weir forget a migration.
pub(super) fn forgetting(schema: &Schema, noted: &NotedMigration) -> String {
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (old, new) = (text(&noted.old.join(", ")), text(&noted.new.join(", ")));
    format!("DELETE FROM {NOTES} WHERE \"table\" = {} AND \"old\" = {old} AND \"new\" = {new}", text(&schema.name))
}

/// Creates the table, unless it is there, and gives the notes of an earlier version of Weir a step.
fn create_notes(catalog: &dyn Catalog) -> Read<()> {
    let is_without_order = catalog.has_table(NOTES)? && !has_order(catalog)?;
    let before = if is_without_order { noted("", catalog)? } else { Vec::new() };
    if is_without_order {
        catalog.execute(&format!("DROP TABLE {}", quoted(NOTES)))?;
    }
    catalog.create_own_table(
        NOTES,
        "\"table\" TEXT NOT NULL, \"step\" INTEGER NOT NULL, \"old\" TEXT NOT NULL, \"new\" TEXT NOT NULL, \"last\" TEXT,
         \"done\" INTEGER NOT NULL, PRIMARY KEY (\"table\", \"step\", \"old\")",
    )?;
    before.iter().try_for_each(|(table, note)| insert((&catalog.dialect().text(table), note), catalog))
}

/// Returns whether the notes have an order.
fn has_order(catalog: &dyn Catalog) -> Read<bool> {
    Ok(catalog.columns(NOTES)?.iter().any(|column| column.name == "step"))
}

/// Inserts a note of a table, whose name is in SQL.
fn insert((table, noted): (&str, &NotedMigration), catalog: &dyn Catalog) -> Read<()> {
    let (last, done) = match &noted.progress {
        MigrationProgress::Behind(last) => (last.as_ref(), 0),
        MigrationProgress::Done => (None, 1),
        MigrationProgress::NothingToConvert => (None, 2),
    };
    // What cannot be stored in a text is escaped in it already.
    let last = last.map_or_else(|| "NULL".to_owned(), |last| format!("'{}'", last.replace('\'', "''")));
    let [old, new] = [&noted.old, &noted.new].map(|columns| catalog.dialect().text(&columns.join(", ")));
    let step = noted.step;
    catalog.execute(&format!("INSERT INTO \"{NOTES}\" VALUES ({table}, {step}, {old}, {new}, {last}, {done})"))
}

/// Returns the notes that fulfil a condition in their order, each with its table.
fn noted(condition: &str, catalog: &dyn Catalog) -> Read<Vec<(String, NotedMigration)>> {
    if !catalog.has_table(NOTES)? {
        return Ok(Vec::new());
    }
    let step = if has_order(catalog)? { "\"step\"" } else { "0" };
    let sql = format!(
        "SELECT \"table\", {step}, \"old\", \"new\", \"last\", \"done\" FROM \"{NOTES}\"{condition} ORDER BY 2, 3"
    );
    let columns = |shown: String| shown.split(", ").map(str::to_owned).collect();
    let notes = catalog.query(&sql)?.into_iter().filter_map(|note| {
        let [table, step, old, new, last, done] = <[Option<String>; 6]>::try_from(note).ok()?;
        let progress = match done.as_deref() {
            Some("0") => MigrationProgress::Behind(last),
            Some("1") => MigrationProgress::Done,
            _ => MigrationProgress::NothingToConvert,
        };
        Some((table?, NotedMigration { step: step?.parse().ok()?, old: columns(old?), new: columns(new?), progress }))
    });
    Ok(notes.collect())
}

/// Returns the columns in one line.
pub(super) fn shown(columns: &[ColumnSchema]) -> String {
    shown_columns(columns).join(", ")
}

/// Returns each column as a text with its name and its type.
pub(super) fn shown_columns(columns: &[ColumnSchema]) -> Vec<String> {
    columns.iter().map(|column| format!("{}: {}", column.name, column.shown_type())).collect()
}
