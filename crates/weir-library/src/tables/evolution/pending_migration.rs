//! A migration of a table that is to be made, or goes on: its rows of the old type, its new columns, and the rows that it stores.
//!
//! A column whose type changes is renamed before the new one is added, and so is one that the last program no longer declares: `age`
//! becomes `age as Text`. Nothing is dropped.

use weir::{Failure, FailureKind, Value};

use super::migration_notes::{MigrationProgress, begun_by_another, create_notes, note, notes, shown, shown_columns};
use super::new_table::{self, SchemaChange};
use super::past_migrations;
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::constraint;
use crate::tables::dialect::{Dialect, OWN_INDEXES};
use crate::tables::evolution::{self, KnownColumn};
use crate::tables::insertion::columns_beside_key;
use crate::tables::row::fields;
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};
use crate::tables::sql::{list, name, quoted};
use crate::tables::sql_value::{Bound, SqlValue};
use crate::tables::statements::{TableStatements, parameters};

/// Number of rows of a batch.
const BATCH: usize = if cfg!(test) { 3 } else { 1_000 };
/// Number of bytes of the texts and byte strings of a batch, unless it is one row. They are in memory three times: as they were, as they are
/// converted, and as they are read again.
const BATCH_BYTES: usize = if cfg!(test) { 1_000 } else { 16 << 20 };
/// Maximum length of the names of a replaced column and of its type together, in bytes.
const NAME_MAX: usize = 59;

/// A migration that is to be made, or goes on.
pub(super) struct PendingMigration<'s> {
    pub(super) schema: &'s Schema,
    pub(super) migration: &'s TableMigration,
    pub(super) known: Vec<KnownColumn>,
    /// True if the new columns are there.
    pub(super) has_begun: bool,
    /// The key of the last converted row, in SQL.
    pub(super) last: Option<String>,
}

impl<'s> PendingMigration<'s> {
    /// Returns the migration of a table, unless there is none, or it is done, or the database has no rows of the old type.
    pub(super) fn of(schema: &'s Schema, catalog: &dyn Catalog) -> StartCheck<Option<PendingMigration<'s>>> {
        let Some(migration) = &schema.migration else { return Ok(Ok(None)) };
        let known = evolution::known_columns(schema, catalog)?;
        let notes = notes(schema, migration, catalog)?;
        let pending = |known, has_begun, last| PendingMigration { schema, migration, known, has_begun, last };
        let Some([new, last, done]) = notes else {
            let is_old = differs(schema, migration, &known) && is_old(migration, &known);
            let may_convert = is_old || has_old(migration, &known) && lacks_new(schema, migration, &known, catalog)?;
            let converts = may_convert && past_migrations::superseding_old_rows(schema, migration, catalog)?.is_none();
            return Ok(Ok(converts.then(|| pending(known, false, None))));
        };
        if done.as_deref() != Some("0") || known.is_empty() {
            return Ok(Ok(None));
        }
        if new.as_deref() == Some(&*shown(&schema.columns)) {
            return Ok(Ok(Some(pending(known, true, last))));
        }
        Ok(Err(not_done(&new.unwrap_or_default())))
    }

    /// Reads the next rows.
    pub(super) fn rows(&self, catalog: &dyn Catalog) -> StartCheck<Vec<Value>> {
        let columns = list(self.migration.columns.iter().map(|column| quoted(&self.stored_name(column))), ", ");
        let limit = match self.migration.batched {
            true => format!(" LIMIT {}", self.batch_length(catalog)?),
            false => String::new(),
        };
        let sql = format!("SELECT {columns} FROM {}{limit}", self.rest());
        let rows = catalog.rows(&sql, &self.migration.columns)?;
        let whole = |row: Vec<Option<Value>>| {
            let Some(at) = row.iter().position(Option::is_none) else {
                return Ok(Value::Record(row.into_iter().flatten().collect()));
            };
            let known: Vec<Option<&Value>> = row.iter().map(Option::as_ref).collect();
            let (of, column) = (shown_key(self.schema, self.migration, &known), &self.migration.columns[at]);
            let (kind, column) = (column.shown_type(), &column.name);
            Err(Failure::function(format!("{of} has no `{kind}` in the column `{column}`, and cannot be converted")))
        };
        Ok(rows.into_iter().map(whole).collect())
    }

    /// Returns the rows that are not converted yet, in the order of their keys, as a part of a query.
    fn rest(&self) -> String {
        let key = list(self.schema.key.iter().map(|at| name(self.schema, *at)), ", ");
        format!("{}{} ORDER BY {key}", quoted(&self.schema.name), self.condition())
    }

    /// Returns the maximum number of rows of the next batch: fewer if the texts of so many do not fit into one. The database finds the
    /// lengths of values without reading them.
    fn batch_length(&self, catalog: &dyn Catalog) -> Read<usize> {
        let sized = self.migration.columns.iter().filter(|column| matches!(&*column.kind, "Text" | "Bytes"));
        let lengths = sized.map(|column| format!("coalesce(octet_length({}), 0)", quoted(&self.stored_name(column))));
        let bytes = lengths.reduce(|all, length| format!("{all} + {length}"));
        let Some(bytes) = bytes else { return Ok(BATCH) };
        let key = list(self.schema.key.iter().map(|at| name(self.schema, *at)), ", ");
        let sql = format!(
            "SELECT coalesce(sum(CASE WHEN total > {BATCH_BYTES} THEN 1 ELSE 0 END), 0), count(*)
             FROM (SELECT sum(bytes) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING) AS total
                   FROM (SELECT {key}, {bytes} AS bytes FROM {} LIMIT {BATCH}) AS sizes) AS totals",
            self.rest()
        );
        let rows = catalog.query(&sql)?;
        let number = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<usize>().ok();
        Ok(match (number(0), number(1)) {
            (Some(beyond), Some(all)) if beyond > 0 => all.saturating_sub(beyond).max(1),
            _ => BATCH,
        })
    }

    /// Fails if the migration cannot begin.
    pub(super) fn may_go_on(&self, catalog: &dyn Catalog) -> StartCheck<()> {
        if let Err(failure) = self.fits_database(catalog)? {
            return Ok(Err(failure));
        }
        if self.has_begun || !catalog.others_have_other_columns(self.schema)? {
            return Ok(Ok(()));
        }
        Ok(Err(Failure::function(format!(
            "another program that is running has other columns of `{}`, and what it writes would not be converted; stop it, and \
             start this program again",
            self.schema.name
        ))))
    }

    /// Fails if the migration of another program forbids that this one begins, or the new name of a column is that of one which an
    /// earlier migration has left.
    pub(super) fn fits_database(&self, catalog: &dyn Catalog) -> StartCheck<()> {
        if self.has_begun {
            return Ok(Ok(()));
        }
        if let Err(failure) = fits_others(self.schema, catalog)? {
            return Ok(Err(failure));
        }
        let replaced = self.schema.columns.iter().filter(|column| self.is_added(column));
        let replaced = replaced.filter_map(|column| Some(replaced_name(&column.name, &self.known(&column.name)?.kind)));
        let left = replaced.into_iter().find(|name| self.known(name).is_some());
        Ok(left.map_or(Ok(()), |left| {
            Err(Failure::function(format!(
                "an earlier migration has left the column `{left}`, which is the name that this one needs for the old values; drop or \
                 rename it with `sqlite3` or `psql`, and start again"
            )))
        }))
    }

    pub(super) fn store(&self, old: &[Value], new: &[Value], catalog: &dyn Catalog) -> StartCheck<bool> {
        if let Err(failure) = self.may_go_on(catalog)? {
            return Ok(Err(failure));
        }
        let length = self.batch_length(catalog)?;
        match self.rows(catalog)? {
            Ok(rows) if rows == old => {}
            Ok(_) => return Ok(Err(written_meanwhile(self.schema))),
            Err(failure) => return Ok(Err(failure)),
        }
        let converted: Result<Vec<Value>, Failure> =
            old.iter().zip(new).map(|(old, new)| self.replacement(old, new)).collect();
        let converted = match converted {
            Ok(converted) => converted,
            Err(failure) => return Ok(Err(failure)),
        };
        if !self.has_begun {
            self.begin(catalog)?;
        }
        self.write(&converted, catalog)?;
        if self.migration.batched && old.len() == length {
            let last = old.last().map(|row| self.literal(row, catalog.dialect()));
            note(self.schema, self.migration, MigrationProgress::Behind(last.as_deref()), catalog)?;
            return Ok(Ok(true));
        }
        past_migrations::follow(self.schema, self.migration, catalog)?;
        note(self.schema, self.migration, MigrationProgress::Done(&self.new_columns()), catalog)?;
        Ok(Ok(false))
    }

    /// Returns the new row of an old one as it is stored.
    fn replacement(&self, old: &Value, new: &Value) -> Result<Value, Failure> {
        let converted = self.schema.stored(new.clone());
        let failure = match converted {
            Ok(converted) if self.schema.key_of(fields(&converted)) == self.key(old) => return Ok(converted),
            Ok(_) => {
                Failure::new(FailureKind::Constraint, "the `fn` of `migrate` changes the key, which a migration keeps")
            }
            Err(failure) => failure,
        };
        Err(not_converted(self.schema, old, failure))
    }

    /// Adds the new columns.
    fn begin(&self, catalog: &dyn Catalog) -> Read<()> {
        create_notes(catalog)?;
        for change in self.changes(catalog)? {
            catalog.execute(&change.sql)?;
        }
        let dialect = catalog.dialect();
        let table = dialect.text(&self.schema.name);
        for column in self.schema.columns.iter().filter(|column| self.is_added(column)) {
            let noted = |name: &str, kind: &str| {
                // Not declared, so that the start looks for rows without a value.
                let (name, kind) = (dialect.text(name), dialect.text(kind));
                catalog.execute(&format!(
                    "INSERT INTO \"weir_columns\" VALUES ({table}, {name}, {kind}, 0)
                     ON CONFLICT (\"table\", \"column\") DO UPDATE SET \"type\" = excluded.\"type\", \"declared\" = 0"
                ))
            };
            if let Some(known) = self.known(&column.name) {
                noted(&replaced_name(&column.name, &known.kind), &known.kind)?;
            }
            noted(&column.name, &column.shown_type())?;
        }
        Ok(())
    }

    /// Returns the changes that precede the conversion.
    pub(super) fn changes(&self, catalog: &dyn Catalog) -> Read<Vec<SchemaChange>> {
        let (table, dialect) = (quoted(&self.schema.name), catalog.dialect());
        let changed = || self.schema.columns.iter().filter(|column| self.is_added(column));
        let mut changes = Vec::new();
        if changed().any(|column| self.known(&column.name).is_some()) {
            // An index would follow the renamed column, and keep the name of one on the new column.
            let indexes = catalog.indexes(&self.schema.name)?.into_iter().filter(|name| name.starts_with(OWN_INDEXES));
            changes.extend(indexes.map(|name| SchemaChange { sql: format!("DROP INDEX {}", quoted(&name)) }));
        }
        for column in changed() {
            if let Some(known) = self.known(&column.name) {
                let (from, to) = (quoted(&column.name), quoted(&replaced_name(&column.name, &known.kind)));
                changes.push(SchemaChange { sql: format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}") });
            }
            let definition = new_table::definition(column, dialect);
            changes.push(SchemaChange { sql: format!("ALTER TABLE {table} ADD COLUMN {definition}") });
        }
        Ok(changes)
    }

    fn write(&self, rows: &[Value], catalog: &dyn Catalog) -> Read<()> {
        let Some(sql) = TableStatements::new(self.schema, catalog.dialect()).replace else { return Ok(()) };
        for row in rows {
            let columns = self.schema.key.iter().copied().chain(columns_beside_key(self.schema));
            catalog.run(&sql, &parameters(self.schema, columns, fields(row))).map_err(|mut failure| {
                let key = constraint::named(self.schema, &self.schema.key, fields(row));
                failure.message = format!("the converted row with {key} cannot be stored: {failure}").into();
                failure
            })?;
        }
        Ok(())
    }

    /// Returns the columns that the rows have behind the migration, without those which it has not read: such a column was there before.
    fn new_columns(&self) -> Vec<String> {
        let is_unread = |column: &ColumnSchema| {
            self.known(&column.name).is_some_and(|known| known.declared && known.kind == column.shown_type())
                && self.migration.columns.iter().all(|old| old.name != column.name)
        };
        let read: Vec<ColumnSchema> = self.schema.columns.iter().filter(|column| !is_unread(column)).cloned().collect();
        shown_columns(&read)
    }

    fn known(&self, name: &str) -> Option<&KnownColumn> {
        self.known.iter().find(|known| known.name == name)
    }

    /// Returns whether the migration adds a column: the database lacks it, or has values of another type in it, or it is one that neither the
    /// last program declares nor the `fn` reads, whose values stay.
    pub(super) fn is_added(&self, column: &ColumnSchema) -> bool {
        let is_kept = || {
            let is_read = |old: &ColumnSchema| old.name == column.name && old.shown_type() == column.shown_type();
            self.migration.columns.iter().any(is_read) || self.known(&column.name).is_some_and(|known| known.declared)
        };
        is_changed(column, &self.known) || !is_kept()
    }

    /// Returns the name of an old column in the database.
    fn stored_name(&self, column: &ColumnSchema) -> String {
        let new = self.schema.columns.iter().find(|new| new.name == column.name);
        match new {
            Some(new) if self.has_begun && new.shown_type() != column.shown_type() => {
                replaced_name(&column.name, &column.shown_type())
            }
            _ => column.name.clone(),
        }
    }

    /// Returns the condition of rows that are not converted yet.
    pub(super) fn condition(&self) -> String {
        let key = list(self.schema.key.iter().map(|at| name(self.schema, *at)), ", ");
        self.last.as_ref().map_or_else(String::new, |last| format!(" WHERE ({key}) > ({last})"))
    }

    /// Returns the places of the key in rows of the old type.
    fn key_columns(&self) -> impl Iterator<Item = usize> {
        let of = |at: &usize| self.migration.columns.iter().position(|old| old.name == self.schema.columns[*at].name);
        self.schema.key.iter().filter_map(of)
    }

    fn key(&self, row: &Value) -> Value {
        let mut parts = self.key_columns().map(|at| fields(row)[at].clone());
        if self.schema.key.len() == 1 { parts.next().unwrap_or(Value::Unit) } else { Value::Record(parts.collect()) }
    }

    /// Returns the key of a row in SQL.
    fn literal(&self, row: &Value, dialect: Dialect) -> String {
        let parts = self.key_columns().map(|at| literal(Bound(&fields(row)[at], &self.migration.columns[at]), dialect));
        list(parts, ", ")
    }
}

/// Returns the failure of the `fn` of a migration for a row of the old record, with the key of the row.
pub(in crate::tables) fn not_converted(schema: &Schema, row: &Value, mut failure: Failure) -> Failure {
    let Some(migration) = &schema.migration else { return failure };
    let known: Vec<Option<&Value>> = fields(row).iter().map(Some).collect();
    let message = format!("{} cannot be converted: {}", shown_key(schema, migration, &known), failure.message);
    failure.message = message.into();
    failure
}

/// Returns the words for a row of the old record, with those of the columns of its key that can be read.
fn shown_key(schema: &Schema, migration: &TableMigration, row: &[Option<&Value>]) -> String {
    let known = schema.key.iter().filter_map(|at| {
        let name = &schema.columns[*at].name;
        let place = migration.columns.iter().position(|column| column.name == *name)?;
        Some(format!("the {name} {}", constraint::shown(&migration.columns[place], row[place]?)))
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() { "a row".to_owned() } else { format!("the row with {}", known.join(" and ")) }
}

/// Returns whether the database has the columns of the old type, also those that the last program has not declared.
pub(super) fn has_old(migration: &TableMigration, known: &[KnownColumn]) -> bool {
    !migration.columns.iter().any(|column| is_changed(column, known))
}

/// Returns whether the database lacks the columns that the old type does not have, or has values of another type in them; or has in one
/// of them the values from before an earlier migration.
pub(super) fn lacks_new(
    schema: &Schema,
    migration: &TableMigration,
    known: &[KnownColumn],
    catalog: &dyn Catalog,
) -> Read<bool> {
    let old = shown_columns(&migration.columns);
    let shown = schema.columns.iter().zip(shown_columns(&schema.columns));
    let new: Vec<(&ColumnSchema, String)> = shown.filter(|(_, shown)| !old.contains(shown)).collect();
    if known.is_empty() || new.is_empty() {
        return Ok(false);
    }
    let replaced = past_migrations::replaced_columns(schema, catalog)?;
    let is_declared = |column: &ColumnSchema| known.iter().any(|known| known.name == column.name && known.declared);
    let is_from_before = |(column, shown): &(&ColumnSchema, String)| !is_declared(column) && replaced.contains(shown);
    Ok(new.iter().all(|(column, _)| is_changed(column, known)) || new.iter().any(is_from_before))
}

/// Returns whether the database has the columns of the old type as the last program has declared them.
pub(super) fn is_old(migration: &TableMigration, known: &[KnownColumn]) -> bool {
    let has = |column: &ColumnSchema| {
        known.iter().any(|known| known.name == column.name && known.declared && known.kind == column.shown_type())
    };
    migration.columns.iter().all(has)
}

/// Returns whether the database lacks a column, or has values of another type in it, or the last program has not declared it; or that
/// program has declared an old column that this one does not have.
fn differs(schema: &Schema, migration: &TableMigration, known: &[KnownColumn]) -> bool {
    let is_declared = |column: &ColumnSchema| known.iter().any(|known| known.name == column.name && known.declared);
    let (old, new) = (shown_columns(&migration.columns), shown_columns(&schema.columns));
    let changes = || schema.columns.iter().any(|column| is_changed(column, known) || !is_declared(column));
    !known.is_empty() && (changes() || old.iter().any(|old| !new.contains(old)))
}

pub(super) fn is_changed(column: &ColumnSchema, known: &[KnownColumn]) -> bool {
    !known.iter().any(|known| known.name == column.name && known.kind == column.shown_type())
}

/// Returns the name of a column that makes room for one of another type. No column of a program has such a name.
fn replaced_name(column: &str, kind: &str) -> String {
    let kind = if kind.contains('|') { "Enum" } else { kind };
    // PostgreSQL would cut a longer name.
    let mut end = column.len().min(NAME_MAX - kind.len());
    while !column.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} as {kind}", &column[..end])
}

fn written_meanwhile(schema: &Schema) -> Failure {
    let message = format!("another program has written `{}` while its rows were converted; start again", schema.name);
    Failure::new(FailureKind::Conflict, message)
}

/// Returns a value of a key in SQL.
fn literal(value: Bound<'_>, dialect: Dialect) -> String {
    let hexadecimal = |bytes: &[u8]| list(bytes.iter().map(|byte| format!("{byte:02x}")), "");
    match (value.stored(), dialect) {
        (SqlValue::Null, _) => "NULL".to_owned(),
        (SqlValue::Bool(value), Dialect::Sqlite) => i32::from(value).to_string(),
        (SqlValue::Bool(value), Dialect::Postgres) => value.to_string(),
        // The least `Int` is no literal.
        (SqlValue::Integer(number), Dialect::Postgres) => format!("'{number}'::bigint"),
        (SqlValue::Integer(number), Dialect::Sqlite) => format!("CAST('{number}' AS INTEGER)"),
        (SqlValue::Real(number), _) => format!("{number:?}"),
        (SqlValue::Text(text), _) => dialect.text(text),
        (SqlValue::Bytes(bytes), Dialect::Sqlite) => format!("X'{}'", hexadecimal(bytes)),
        (SqlValue::Bytes(bytes), Dialect::Postgres) => format!("'\\x{}'::bytea", hexadecimal(bytes)),
    }
}

/// Fails if the migration of another program forbids that this one starts.
pub(super) fn fits_others(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    match no_other_has_begun(schema, catalog)? {
        Ok(()) => past_migrations::is_not_superseded(schema, catalog),
        Err(failure) => Ok(Err(failure)),
    }
}

/// Fails if a migration of another program is not done. What this one writes into converted rows would be lost if it is the one of the
/// old rows; and if it has the new columns, the rest would be converted over what it writes.
fn no_other_has_begun(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    Ok(begun_by_another(schema, catalog)?.map_or(Ok(()), |new| Err(not_done(&new))))
}

/// Returns the failure of a start in the middle of the migration of another program.
fn not_done(new: &str) -> Failure {
    Failure::function(format!(
        "a migration to other columns ({new}) has begun and is not done; start the program that has begun it, \
         with its `migrate`"
    ))
}
