//! The references that the rows of a database are known to fulfil, and the check of rows before a start declares a new one.
//!
//! The table `weir_references` notes the references of the last program that was started: while they are declared, no row
//! breaks them. A start checks the rows of both tables for a reference that is not noted.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};
use weir::Failure;

use super::existing_rows::{counted, value_after_start};
use super::schema::{Schema, TableReference};
use super::sql::{list, quoted};

/// Fails if rows reference rows that do not exist, by a reference that is not noted. `known` are the columns of the table
/// in the database; none if it is new.
pub(super) fn check(schema: &Schema, known: &[&str], connection: &Connection) -> rusqlite::Result<Result<(), Failure>> {
    let noted = noted(connection)?;
    for reference in schema.references.iter().chain(&schema.referenced_by).filter(|reference| reference.stored) {
        if noted.contains(&note_of(reference)) {
            continue;
        }
        let Some(sql) = dangling(reference, schema, known, connection)? else { continue };
        let found = connection.query_row(&sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
        if let Some((example, rows)) = found.optional()? {
            let TableReference { source, target, .. } = reference;
            return Ok(Err(Failure::function(format!(
                "`references {}: {target}` of `{source}` does not hold: {} no row of `{target}`, such as {example}; insert these rows of `{target}`, or change those of `{source}`, before the program declares it",
                shown_columns(reference),
                counted(rows, "row", ("names", "name")),
            ))));
        }
    }
    Ok(Ok(()))
}

/// Notes the references of the table, which were checked, and forgets those that the program does not declare.
pub(super) fn note(schema: &Schema, connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS \"weir_references\" (\"source\" TEXT NOT NULL, \"columns\" TEXT NOT NULL,
         \"target\" TEXT NOT NULL, PRIMARY KEY (\"source\", \"columns\", \"target\")) STRICT, WITHOUT ROWID",
    )?;
    connection.execute("DELETE FROM \"weir_references\" WHERE \"source\" = ?1 OR \"target\" = ?1", [&schema.name])?;
    for reference in schema.references.iter().chain(&schema.referenced_by).filter(|reference| reference.stored) {
        if has_columns(&reference.source, &reference.names, connection)?
            && has_columns(&reference.target, &reference.key, connection)?
        {
            let (source, columns, target) = note_of(reference);
            connection
                .execute("INSERT OR REPLACE INTO \"weir_references\" VALUES (?1, ?2, ?3)", (source, columns, target))?;
        }
    }
    Ok(())
}

/// Returns the columns as a declaration names them.
pub(super) fn shown_columns(reference: &TableReference) -> String {
    match &reference.names[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// Returns the noted references: the names of their tables and columns.
fn noted(connection: &Connection) -> rusqlite::Result<BTreeSet<(String, String, String)>> {
    if !connection.table_exists(None, "weir_references")? {
        return Ok(BTreeSet::new());
    }
    let mut statement = connection.prepare("SELECT \"source\", \"columns\", \"target\" FROM \"weir_references\"")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

fn note_of(reference: &TableReference) -> (String, String, String) {
    (reference.source.clone(), reference.names.join(", "), reference.target.clone())
}

/// Returns the query for a row of the source without a row of the target, and for the number of these rows. `None` if the
/// other table is not open yet, which will check it.
fn dangling(
    reference: &TableReference,
    schema: &Schema,
    known: &[&str],
    connection: &Connection,
) -> rusqlite::Result<Option<String>> {
    let TableReference { source, columns, names, target, key, .. } = reference;
    let is_source = *source == schema.name;
    if is_source && known.is_empty() || !is_source && !has_columns(source, names, connection)? {
        return Ok(None);
    }
    let is_new = *target == schema.name && known.is_empty();
    if !is_new && !has_columns(target, key, connection)? {
        return Ok(None);
    }
    let value = |(at, name): (&usize, &String)| {
        if is_source { value_after_start(schema, known, *at) } else { quoted(name) }
    };
    let values = columns.iter().zip(names).enumerate().map(|(place, column)| format!("{} AS v{place}", value(column)));
    let values = list(values, ", ");
    let present = list((0..columns.len()).map(|place| format!("v{place} IS NOT NULL")), " AND ");
    let shown = list((0..columns.len()).map(|place| format!("quote(v{place})")), " || ', ' || ");
    let equal = list(key.iter().enumerate().map(|(place, key)| format!("t.{} = s.v{place}", quoted(key))), " AND ");
    let missing = if is_new {
        String::new()
    } else {
        format!(" AND NOT EXISTS (SELECT 1 FROM {} t WHERE {equal})", quoted(target))
    };
    Ok(Some(format!(
        "SELECT {shown}, count(*) OVER () FROM (SELECT {values} FROM {}) s WHERE {present}{missing} LIMIT 1",
        quoted(source)
    )))
}

/// Returns whether the database has the table, with these columns.
fn has_columns(table: &str, columns: &[String], connection: &Connection) -> rusqlite::Result<bool> {
    for column in columns {
        if !connection.column_exists(None, table, column)? {
            return Ok(false);
        }
    }
    Ok(true)
}
