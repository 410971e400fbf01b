//! A description of a table for people: its columns, and what a start would change in the database.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use rusqlite::Connection;
use weir::Failure;

use super::catalog::{Catalog, Read};
use super::dialect::Dialect;
use super::evolution;
use super::postgres::{
    CONNECTIONS_OF_EXISTING, CONNECTIONS_OF_START, PostgresAddress, PostgresConnections, PostgresDatabase,
};
use super::query_plans::{PlacedStatement, described, described_after_start};
use super::schema::{ColumnSchema, Schema};
use super::sqlite::database_error::explain;
use super::table_databases::{ExistingDatabases, TableLocation};
use super::undeclared;
use crate::tables::evolution::existing_tables;
use crate::tables::evolution::migration::{self, PlannedChanges};
use crate::tables::evolution::new_table::SchemaChange;
use crate::tables::evolution::reference_notes::shown_columns;
use crate::tables::evolution::unconverted_rows::RowsToConvert;
use crate::tables::sqlite::catalog::SqliteCatalog;
use crate::tables::sqlite::connection::read_only;
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::database_format::{CONVERT_OWN, has_utf8, is_ours};
use crate::tables::sqlite::log_note::LogNote;
use crate::tables::sqlite::start_access::{check_beside_writable, check_openable, check_unlocked, without_links};

/// The description of a table.
#[derive(Debug)]
pub struct TableReport {
    /// Lines of text.
    pub text: String,
    /// True if a start would fail.
    pub fails: bool,
}

/// Describes a table, and the statements that search it. `schemas` are all tables of the program, `place` is that of its
/// stored tables.
///
/// # Errors
/// Fails if the database cannot be read.
pub fn report(
    (schema, schemas): (&Schema, &[Schema]),
    statements: &[PlacedStatement],
    (place, existing): (&TableLocation, &ExistingDatabases),
) -> Result<TableReport, Failure> {
    if let Some(table) = &schema.existing {
        let access = if table.writable { "read and written" } else { "only read" };
        let mut text =
            format!("{}, {access} in the existing database {}\n", schema.name, existing_tables::shown(table));
        describe_columns(schema, &mut text);
        let place = existing.place(&table.database);
        let state = place.and_then(|place| existing_state((schema, schemas), statements, &place));
        let fails = state.is_err();
        return Ok(TableReport { text: text + &state.unwrap_or_else(|failure| failing(&failure)), fails });
    }
    let mut text = match (&schema.soft, place) {
        (Some(_), _) | (None, TableLocation::Memory | TableLocation::Scratch(_)) => {
            format!("{}, in memory\n", schema.name)
        }
        (None, TableLocation::File(file)) => format!("{}, stored in {}\n", schema.name, file.display()),
        (None, TableLocation::Postgres(address)) => format!("{}, stored in {address}\n", schema.name),
    };
    describe_columns(schema, &mut text);
    if schema.soft.is_some() {
        return Ok(TableReport { text, fails: false });
    }
    let WouldChange { changes, old_defaults, undeclared, statements } = match place {
        TableLocation::Memory | TableLocation::Scratch(_) => return Ok(TableReport { text, fails: false }),
        TableLocation::File(file) => would_change_file((schema, schemas), statements, file),
        TableLocation::Postgres(address) => would_change_schema((schema, schemas), statements, address)?,
    };
    for (column, default) in old_defaults {
        let name = &column.name;
        _ = writeln!(
            text,
            "  a program that does not declare `{name}` inserts {default}, the default with which it was created"
        );
    }
    let fails = changes.is_err();
    let runs = |change: &SchemaChange| format!("  a start runs: {}\n", change.sql);
    match changes {
        Ok(PlannedChanges::Plain(changes)) if changes.is_empty() => text.push_str("  the database has it like this\n"),
        Ok(PlannedChanges::Plain(changes)) => text.extend(changes.iter().map(runs)),
        Ok(PlannedChanges::Converting(changes, rows)) => {
            text.extend(changes.iter().map(runs));
            describe_conversion(schema, &rows, &mut text);
        }
        Err(failure) => text += &failing(&failure),
    }
    text.extend(undeclared);
    text += &statements;
    Ok(TableReport { text, fails })
}

/// Returns what a start would change in PostgreSQL.
fn would_change_schema<'s>(
    tables: (&'s Schema, &[Schema]),
    statements: &[PlacedStatement],
    address: &PostgresAddress,
) -> Result<WouldChange<'s>, Failure> {
    if let Some(failure) = PostgresDatabase::lacking_right(address, tables.0, &[])? {
        return Ok(WouldChange::refused(failure));
    }
    let examine = || {
        PostgresDatabase::examine(address, |catalog| {
            let change = WouldChange::of(tables, statements, catalog)?;
            if !matches!(change.changes, Ok(PlannedChanges::Converting(..))) {
                return Ok(change);
            }
            // A program of the old version has to end before.
            let may_go_on = migration::may_go_on(tables.0, catalog)?;
            Ok(may_go_on.map_or_else(WouldChange::refused, |()| change))
        })
    };
    // The server may not have noticed yet that a program has ended. A start waits for that, too.
    let have_ended = || {
        PostgresDatabase::open_existing(address.clone(), None)
            .is_ok_and(|database| database.hindering_have_ended(tables.0))
    };
    let change = match examine()? {
        change if change.changes.is_err() && have_ended() => examine()?,
        change => change,
    };
    let lacking = match &change.changes {
        Ok(PlannedChanges::Plain(changes) | PlannedChanges::Converting(changes, _)) => {
            PostgresDatabase::lacking_right(address, tables.0, changes)?
        }
        Err(_) => None,
    };
    Ok(lacking.map_or(change, WouldChange::refused))
}

/// Returns the line of a start that fails.
fn failing(failure: &Failure) -> String {
    format!("  a start fails: {failure}\n")
}

/// Checks whether a start could make a table as the program declares it. Nothing is changed. Rows that a start converts are not
/// looked at, and neither are other programs that are running. `schemas` are all tables of the program, `place` is that of its
/// stored tables.
///
/// # Errors
/// Fails with why a start would fail.
pub fn check_start((schema, schemas): (&Schema, &[Schema]), place: &TableLocation) -> Result<(), Failure> {
    if schema.soft.is_some() || schema.existing.is_some() {
        return Ok(());
    }
    let tables = (schema, schemas);
    let change = match place {
        TableLocation::Memory | TableLocation::Scratch(_) => return Ok(()),
        TableLocation::File(file) => would_change_file(tables, &[], file),
        TableLocation::Postgres(address) => {
            PostgresDatabase::examine(address, |catalog| WouldChange::of(tables, &[], catalog))?
        }
    };
    change.changes.map(drop)
}

/// Checks whether a start would fail because of other programs: in SQLite, because one holds a lock of the database that the start needs,
/// and in PostgreSQL, because they have too many connections. Changes nothing. Does not look at an SQLite database that a Weir program has
/// open.
///
/// # Errors
/// Fails with why a start would fail.
pub fn check_others(
    schemas: &[Schema],
    (place, existing): (&TableLocation, &ExistingDatabases),
) -> Result<(), Failure> {
    if let TableLocation::File(file) = place
        && schemas.iter().any(Schema::is_stored)
    {
        without_links(file).and_then(|path| check_unlocked(&path))?;
    }
    let mut connected: BTreeMap<Option<&str>, PostgresConnections> = BTreeMap::new();
    for schema in schemas.iter().filter(|schema| schema.soft.is_none()) {
        let database = schema.existing.as_ref().map(|existing| &*existing.database);
        let place = database.map_or_else(|| Ok(place.clone()), |database| existing.place(database))?;
        if let (TableLocation::Postgres(address), Entry::Vacant(of_database)) = (place, connected.entry(database)) {
            let count = if schema.is_stored() { CONNECTIONS_OF_START } else { CONNECTIONS_OF_EXISTING };
            of_database.insert(PostgresConnections::open(address, count)?);
        }
    }
    Ok(())
}

/// Describes the tables of the database that the program does not declare: a line for each; none if the database cannot be read.
#[must_use]
pub fn undeclared_tables(schemas: &[Schema], place: &TableLocation) -> String {
    let found = match place {
        TableLocation::Memory | TableLocation::Scratch(_) => return String::new(),
        TableLocation::File(file) => look_at_file(file, |catalog| undeclared::tables(schemas, catalog)),
        TableLocation::Postgres(address) => {
            PostgresDatabase::examine(address, |catalog| undeclared::tables(schemas, catalog))
        }
    };
    found.unwrap_or_default()
}

/// Describes the columns, indexes and references of a table.
fn describe_columns(schema: &Schema, text: &mut String) {
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
}

/// Describes the conversion of the rows of a table.
fn describe_conversion(schema: &Schema, rows: &RowsToConvert, text: &mut String) {
    let how = if schema.converts_in_batches() { "in several transactions" } else { "in one transaction" };
    let noun = if rows.left == 1 { "row" } else { "rows" };
    _ = writeln!(text, "  a start converts {} {noun} by the function of `migrate`, {how}", rows.left);
    text.extend(rows.how_to_go_on().map(|how| format!("  {how}\n")));
}

/// Describes the statements that search a table of another program. Fails if it is not as it is declared.
fn existing_state(
    tables: (&Schema, &[Schema]),
    statements: &[PlacedStatement],
    place: &TableLocation,
) -> Result<String, Failure> {
    let state = |catalog: &dyn Catalog| {
        existing_tables::check(tables.0, catalog)??;
        // A statement may join other tables of the same database.
        let indexed = |schema: &Schema| match schema.shares_database(tables.0) {
            true => existing_tables::as_indexed(schema, catalog),
            false => Ok(schema.clone()),
        };
        let schemas = tables.1.iter().map(indexed).collect::<Read<Vec<Schema>>>()?;
        let tables = (&existing_tables::as_indexed(tables.0, catalog)?, &*schemas);
        let statements = described(tables, statements, (catalog.dialect(), Some(catalog)))?;
        Ok(format!("  the database has it like this\n{statements}"))
    };
    match place {
        TableLocation::Postgres(address) => PostgresDatabase::open_existing(address.clone(), None)?.look(state),
        TableLocation::File(file) => Database::open_existing(file, None)?.look(state),
        TableLocation::Memory | TableLocation::Scratch(_) => Ok(String::new()),
    }
}

/// The changes that a start would make.
struct WouldChange<'s> {
    /// The changes, or why the start fails.
    changes: Result<PlannedChanges, Failure>,
    /// The columns whose default has changed, with the old one.
    old_defaults: Vec<(&'s ColumnSchema, String)>,
    /// The line for the columns of the database that the program does not declare.
    undeclared: Option<String>,
    /// The statements that search the table, with their plans.
    statements: String,
}

impl<'s> WouldChange<'s> {
    /// Returns those of a start that fails before it looks at the table.
    fn refused(failure: Failure) -> WouldChange<'s> {
        WouldChange { changes: Err(failure), old_defaults: Vec::new(), undeclared: None, statements: String::new() }
    }

    fn of(
        (schema, schemas): (&'s Schema, &[Schema]),
        statements: &[PlacedStatement],
        catalog: &dyn Catalog,
    ) -> Read<WouldChange<'s>> {
        let (dialect, old_defaults) = (catalog.dialect(), evolution::old_defaults(schema, catalog)?);
        let changes = migration::planned((schema, schemas), catalog)?;
        // Before a conversion, they are those that it reads.
        let undeclared = match changes {
            Ok(PlannedChanges::Converting(..)) => None,
            _ => undeclared::columns(schema, catalog)?,
        };
        let stays = changes_nothing(&changes) && others_stay((schema, schemas), statements, catalog)?;
        let statements = match dialect {
            _ if stays => described((schema, schemas), statements, (dialect, Some(catalog)))?,
            Dialect::Sqlite => described_after_start((schema, schemas), statements)?,
            // Its plans depend on the rows, and this program changes nothing.
            Dialect::Postgres => described((schema, schemas), statements, (dialect, None))?,
        };
        Ok(WouldChange { changes, old_defaults, undeclared, statements })
    }
}

fn changes_nothing(changes: &Result<PlannedChanges, Failure>) -> bool {
    matches!(changes, Ok(PlannedChanges::Plain(changes)) if changes.is_empty())
}

/// Returns whether a start changes none of the other tables that the statements on a table name: the database has no plan of a
/// statement with a table or a column that is still to come.
fn others_stay(
    (schema, schemas): (&Schema, &[Schema]),
    statements: &[PlacedStatement],
    catalog: &dyn Catalog,
) -> Read<bool> {
    let named: BTreeSet<&str> = statements.iter().flat_map(|placed| placed.statement.other_tables(schema)).collect();
    let others = schemas.iter().filter(|other| named.contains(&*other.name) && other.shares_database(schema));
    for other in others.filter(|other| other.name != schema.name) {
        if !changes_nothing(&migration::planned((other, schemas), catalog)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns what a start would change in a file. It fails if the file cannot be read.
fn would_change_file<'s>(
    tables: (&'s Schema, &[Schema]),
    statements: &[PlacedStatement],
    file: &Path,
) -> WouldChange<'s> {
    let change = look_at_file(file, |catalog| WouldChange::of(tables, statements, catalog));
    change.unwrap_or_else(WouldChange::refused)
}

/// Reads the tables of a file as they are, without changing it. Fails if a start could not use it.
pub(super) fn look_at_file<T>(file: &Path, look: impl FnOnce(&dyn Catalog) -> Read<T>) -> Read<T> {
    // In the order of a start.
    let path = without_links(file)?;
    check_openable(&path)?;
    LogNote::check(&path)?;
    check_beside_writable(&path)?;
    let opened = if file.exists() { read_only(file) } else { Connection::open_in_memory() };
    let connection = opened.map_err(|error| explain(file, &error))?;
    // All checks see the same rows, while a program writes them.
    let snapshot = connection.unchecked_transaction().map_err(|error| explain(file, &error))?;
    let is_usable = is_ours(&snapshot).and_then(|()| has_utf8(&snapshot, CONVERT_OWN));
    is_usable.map_err(|error| explain(file, &error))?;
    look(&SqliteCatalog { connection: &snapshot, path: file })
}
