//! The references that the rows of a database are known to fulfil, and the check of rows before a start declares a new one.
//!
//! The table `weir_references` notes the references of the last program that was started: while they are declared, no row
//! breaks them. A start checks the rows of both tables for a reference that is not noted.

use std::collections::BTreeSet;

use weir::{Failure, FailureKind};

use super::existing_rows::{counted, value_after_start};
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::schema::{ColumnSchema, Schema, TableReference};
use crate::tables::sql::{list, quoted};

/// The names of the tables and columns of a reference.
type ReferenceNote = (String, String, String);

/// Fails if rows reference rows that do not exist, by a reference that is not noted, or if a program that is running does not know
/// the references of this one. `known` are the columns of the table in the database; none if it is new.
pub(super) fn check(schema: &Schema, known: &[&str], catalog: &dyn Catalog) -> StartCheck<()> {
    if catalog.others_have_other_references(schema)? {
        return Ok(Err(Failure::function(format!(
            "another program that is running declares other `references` of `{}`, and what it writes would break them; stop it, and \
             start this program again",
            schema.name
        ))));
    }
    let noted = noted(catalog)?;
    for reference in schema.references.iter().chain(&schema.referenced_by).filter(|reference| reference.stored) {
        if noted.contains(&note_of(reference)) {
            continue;
        }
        let Some(sql) = dangling(reference, schema, known, catalog)? else { continue };
        if let Some((example, rows)) = catalog.text_and_number(&sql)? {
            return Ok(Err(broken(reference, (&example, rows), false)));
        }
    }
    Ok(Ok(()))
}

/// Fails like [`check`] if rows of this table reference rows that do not exist, whose columns in the database are `known`. If a migration
/// has just made the rows, nothing is known about them.
pub(super) fn check_own(
    (schema, is_converted): (&Schema, bool),
    known: &[&str],
    catalog: &dyn Catalog,
) -> StartCheck<()> {
    let noted = noted(catalog)?;
    for reference in schema.references.iter().filter(|reference| reference.stored) {
        if !is_converted && noted.contains(&note_of(reference)) {
            continue;
        }
        let Some(sql) = dangling(reference, schema, known, catalog)? else { continue };
        if let Some((example, rows)) = catalog.text_and_number(&sql)? {
            return Ok(Err(broken(reference, (&example, rows), is_converted)));
        }
    }
    Ok(Ok(()))
}

/// Returns the failure of a reference by which this number of rows names no row.
fn broken(reference: &TableReference, (example, rows): (&str, i64), is_converted: bool) -> Failure {
    let (TableReference { source, target, .. }, columns) = (reference, shown_columns(reference));
    let named = counted(rows, "row", ("names", "name"));
    let advice = match is_converted {
        true => {
            format!("the `fn` of `migrate` makes these values: correct it, or insert these rows of `{target}` before")
        }
        false => {
            format!("insert these rows of `{target}`, or change those of `{source}`, before the program declares it")
        }
    };
    let message = format!(
        "`references {columns}: {target}` of `{source}` does not hold: {named} no row of `{target}`, such as {example}; {advice}"
    );
    Failure::new(FailureKind::Constraint, message)
}

/// Notes the references of the table, which were checked, and forgets those that the program does not declare.
pub(super) fn note(schema: &Schema, catalog: &dyn Catalog) -> Read<()> {
    let dialect = catalog.dialect();
    catalog.create_own_table(
        "weir_references",
        "\"source\" TEXT NOT NULL, \"columns\" TEXT NOT NULL, \"target\" TEXT NOT NULL,
         PRIMARY KEY (\"source\", \"columns\", \"target\")",
    )?;
    let table = dialect.text(&schema.name);
    catalog.execute(&format!("DELETE FROM \"weir_references\" WHERE \"source\" = {table} OR \"target\" = {table}"))?;
    for reference in schema.references.iter().chain(&schema.referenced_by) {
        if is_stored(reference, catalog)? {
            let (source, columns, target) = note_of(reference);
            let values = list([source, columns, target].iter().map(|text| dialect.text(text)), ", ");
            catalog.execute(&format!("INSERT INTO \"weir_references\" VALUES ({values}) ON CONFLICT DO NOTHING"))?;
        }
    }
    Ok(())
}

/// Returns whether another program that is running, or was the last one to start, declares other references of the table.
pub(super) fn others_declare(schema: &Schema, catalog: &dyn Catalog) -> Read<bool> {
    if catalog.others_have_other_references(schema)? {
        return Ok(true);
    }
    let is_of_table = |(source, _, target): &ReferenceNote| [source, target].contains(&&schema.name);
    let noted: BTreeSet<ReferenceNote> = noted(catalog)?.into_iter().filter(is_of_table).collect();
    let mut own = BTreeSet::new();
    for reference in schema.references.iter().chain(&schema.referenced_by) {
        if is_stored(reference, catalog)? {
            own.insert(note_of(reference));
        }
    }
    Ok(noted != own)
}

/// Returns whether both tables of a reference are there, and stored.
fn is_stored(reference: &TableReference, catalog: &dyn Catalog) -> Read<bool> {
    Ok(reference.stored
        && catalog.has_columns(&reference.source, &reference.names)?
        && catalog.has_columns(&reference.target, &reference.key)?)
}

/// Returns the columns as a declaration names them.
pub(in crate::tables) fn shown_columns(reference: &TableReference) -> String {
    match &reference.names[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    }
}

/// Returns the noted references.
fn noted(catalog: &dyn Catalog) -> Read<BTreeSet<ReferenceNote>> {
    if !catalog.has_table("weir_references")? {
        return Ok(BTreeSet::new());
    }
    let rows = catalog.query("SELECT \"source\", \"columns\", \"target\" FROM \"weir_references\"")?;
    let note = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().flatten();
        Some((row.next()?, row.next()?, row.next()?))
    };
    Ok(rows.into_iter().filter_map(note).collect())
}

fn note_of(reference: &TableReference) -> ReferenceNote {
    (reference.source.clone(), reference.names.join(", "), reference.target.clone())
}

/// Returns the query for a row of the source without a row of the target, and for the number of these rows. A target that the database
/// does not have is empty. `None` if the source is new, or a table has not the columns yet.
fn dangling(
    reference: &TableReference,
    schema: &Schema,
    known: &[&str],
    catalog: &dyn Catalog,
) -> Read<Option<String>> {
    let TableReference { source, columns, names, target, key, .. } = reference;
    let dialect = catalog.dialect();
    let is_source = *source == schema.name;
    if is_source && known.is_empty() || !is_source && !catalog.has_columns(source, names)? {
        return Ok(None);
    }
    let is_new = *target == schema.name && known.is_empty() || is_source && !catalog.has_table(target)?;
    if !is_new && !catalog.has_columns(target, key)? {
        return Ok(None);
    }
    let value = |(at, name): (&usize, &String)| {
        if is_source { value_after_start(schema, known, *at, dialect) } else { quoted(name) }
    };
    let values = columns.iter().zip(names).enumerate().map(|(place, column)| format!("{} AS v{place}", value(column)));
    let values = list(values, ", ");
    let present = list((0..columns.len()).map(|place| format!("v{place} IS NOT NULL")), " AND ");
    // The columns of the key of the target have the types of the columns of the source.
    let of_source = |place: usize| is_source.then(|| &schema.columns[columns[place]]);
    let of_target = |place: usize| schema.key.get(place).map(|at| &schema.columns[*at]);
    let column = |place: usize| -> Option<&ColumnSchema> { of_source(place).or_else(|| of_target(place)) };
    let shown = (0..columns.len()).filter_map(|place| Some(dialect.shown(&format!("v{place}"), column(place)?)));
    let shown = list(shown, " || ', ' || ");
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
