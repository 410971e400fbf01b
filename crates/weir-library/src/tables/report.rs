//! A description of a table for people: its columns, and what a start would change in the database.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::Connection;
use weir::Failure;

use super::catalog::Read;
use super::connection::read_only;
use super::database::is_ours;
use super::database_error::explain;
use super::evolution::{self, SchemaChange};
use super::reference_notes::shown_columns;
use super::schema::{ColumnSchema, Schema};
use super::sqlite_catalog::SqliteCatalog;

/// Describes a table. `file` is the database of the program.
///
/// # Errors
/// Fails if the database cannot be read.
pub fn report(schema: &Schema, file: &Path) -> Result<String, Failure> {
    let mut text = match &schema.soft {
        Some(_) => format!("{}, in memory\n", schema.name),
        None => format!("{}, stored in {}\n", schema.name, file.display()),
    };
    for (at, column) in schema.columns.iter().enumerate() {
        let key = if schema.key.contains(&at) { " key" } else { "" };
        let auto = if schema.auto && schema.key.contains(&at) { " auto" } else { "" };
        _ = writeln!(text, "  {}: {}{key}{auto}", column.name, column.shown_type());
    }
    for index in &schema.indexes {
        let word = if index.unique { "unique" } else { "index" };
        let columns: Vec<&str> = index.columns.iter().map(|at| schema.columns[*at].name.as_str()).collect();
        _ = writeln!(text, "  {word} ({})", columns.join(", "));
    }
    for reference in &schema.references {
        let cascade = if reference.cascade { " cascade" } else { "" };
        _ = writeln!(text, "  references {}: {}{cascade}", shown_columns(reference), reference.target);
    }
    if schema.soft.is_some() {
        return Ok(text);
    }
    let (changes, old_defaults) = would_change(schema, file)?;
    for (column, default) in old_defaults {
        let name = &column.name;
        _ = writeln!(
            text,
            "  a program that does not declare `{name}` inserts {default}, the default with which it was created"
        );
    }
    match changes {
        Ok(changes) if changes.is_empty() => text.push_str("  the database has it like this\n"),
        Ok(changes) => changes.iter().for_each(|change| _ = writeln!(text, "  a start runs: {}", change.sql)),
        Err(failure) => _ = writeln!(text, "  a start fails: {failure}"),
    }
    Ok(text)
}

/// Returns what a start would change, or why it fails, and the columns whose default has changed.
fn would_change<'s>(
    schema: &'s Schema,
    file: &Path,
) -> Read<(Result<Vec<SchemaChange>, Failure>, Vec<(&'s ColumnSchema, String)>)> {
    let opened = if file.exists() { read_only(file) } else { Connection::open_in_memory() };
    let connection = opened.map_err(|error| explain(file, &error))?;
    // All checks see the same rows, while a program writes them.
    let snapshot = connection.unchecked_transaction().map_err(|error| explain(file, &error))?;
    is_ours(&snapshot).map_err(|error| explain(file, &error))?;
    let catalog = SqliteCatalog { connection: &snapshot, path: file };
    Ok((evolution::changes(schema, &catalog)?, evolution::old_defaults(schema, &catalog)?))
}
