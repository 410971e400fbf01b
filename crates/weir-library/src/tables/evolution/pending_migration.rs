//! A migration of a table that is to be made, or goes on: its rows of the old type, its new columns, and the rows that it stores.
//!
//! A column whose type changes is renamed before the new one is added, and so is one that the last program no longer declares: `age`
//! becomes `age as Text`. Nothing is dropped.

use weir::{Failure, FailureKind, Value};

use super::migration_columns::{is_changed, may_convert};
use super::migration_notes::{MigrationProgress, note, shown_columns};
use super::new_table::{self, SchemaChange};
use super::past_migrations::{MigrationHistory, fits_others};
use super::unconverted_rows::{self, RowsToConvert};
use crate::tables::catalog::{Catalog, Read, StartCheck};
use crate::tables::constraint;
use crate::tables::dialect::Dialect;
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
    /// Returns the migration of a table, unless there is none, or it was made, or the database has no rows of the old type.
    pub(super) fn of(schema: &'s Schema, catalog: &dyn Catalog) -> StartCheck<Option<PendingMigration<'s>>> {
        let Some(migration) = &schema.migration else { return Ok(Ok(None)) };
        let known = evolution::known_columns(schema, catalog)?;
        if known.is_empty() {
            return Ok(Ok(None));
        }
        let history = MigrationHistory::of(schema, catalog)?;
        let (has_begun, last) = match history.begun.as_ref().map(|begun| begun.progress.clone()) {
            Some(MigrationProgress::Behind(last)) => (true, last),
            _ => (false, None),
        };
        if has_begun && let Err(failure) = history.fits(schema) {
            return Ok(Err(failure));
        }
        let is_pending = has_begun
            || !history.has_made(schema, migration)
                && may_convert((schema, migration), &known, &history)
                && history.superseding_old_rows(schema, migration).is_none();
        Ok(Ok(is_pending.then_some(PendingMigration { schema, migration, known, has_begun, last })))
    }

    /// Reads the next rows.
    pub(super) fn rows(&self, catalog: &dyn Catalog) -> StartCheck<Vec<Value>> {
        let limit = match self.migration.batched {
            true => format!(" LIMIT {}", self.batch_length(catalog)?),
            false => String::new(),
        };
        self.read((&self.condition(), &limit), catalog)
    }

    /// Fails if a row that is left has no value in a column that the conversion reads: one that was inserted while no program declared it.
    pub(super) fn has_values(&self, catalog: &dyn Catalog) -> StartCheck<()> {
        let required = self.migration.columns.iter().filter(|column| !column.optional);
        let absent = list(required.map(|column| format!("{} IS NULL", quoted(&self.stored_name(column)))), " OR ");
        let condition = match &*self.condition() {
            "" => format!(" WHERE {absent}"),
            left => format!("{left} AND ({absent})"),
        };
        Ok(self.read((&condition, " LIMIT 1"), catalog)?.map(drop))
    }

    /// Reads the rows of the old type that fulfil a condition, up to a limit.
    fn read(&self, (condition, limit): (&str, &str), catalog: &dyn Catalog) -> StartCheck<Vec<Value>> {
        let columns = list(self.migration.columns.iter().map(|column| quoted(&self.stored_name(column))), ", ");
        let key = list(self.schema.key.iter().map(|at| name(self.schema, *at)), ", ");
        let table = quoted(&self.schema.name);
        let sql = format!("SELECT {columns} FROM {table}{condition} ORDER BY {key}{limit}");
        let mut rows = Vec::new();
        for row in catalog.rows(&sql, &self.migration.columns)? {
            match row.iter().position(Option::is_none) {
                Some(at) => {
                    let failure = unconverted_rows::lacks_value((self.schema, self.migration), &row, at);
                    return Ok(Err(self.with_way_on(failure, catalog)?));
                }
                None => rows.push(Value::Record(row.into_iter().flatten().collect())),
            }
        }
        Ok(Ok(rows))
    }

    /// Returns the failure of a conversion, and how to go on if rows are converted.
    pub(super) fn with_way_on(&self, mut failure: Failure, catalog: &dyn Catalog) -> Read<Failure> {
        if let Some(how) = self.counted(catalog)?.how_to_go_on() {
            failure.message = format!("{}; {how}", failure.message).into();
        }
        Ok(failure)
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
            Ok(_) => return Ok(Err(unconverted_rows::written_meanwhile(self.schema))),
            Err(failure) => return Ok(Err(failure)),
        }
        let converted: Result<Vec<Value>, Failure> =
            old.iter().zip(new).map(|(old, new)| self.replacement(old, new)).collect();
        let converted = match converted {
            Ok(converted) => converted,
            Err(failure) => return Ok(Err(self.with_way_on(failure, catalog)?)),
        };
        if !self.has_begun {
            self.begin(catalog)?;
        }
        self.write(&converted, catalog)?;
        let read = shown_columns(&self.migration.columns);
        if self.migration.batched && old.len() == length {
            let last = old.last().map(|row| self.literal(row, catalog.dialect()));
            let new = shown_columns(&self.schema.columns);
            note(self.schema, (&read, &new), &MigrationProgress::Behind(last), catalog)?;
            return Ok(Ok(true));
        }
        note(self.schema, (&read, &self.new_columns()), &MigrationProgress::Done, catalog)?;
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
        Err(unconverted_rows::not_converted(self.schema, old, failure))
    }

    /// Adds the new columns.
    fn begin(&self, catalog: &dyn Catalog) -> Read<()> {
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
            let indexes = catalog.own_indexes(&self.schema.name)?;
            changes.extend(indexes.iter().map(|index| new_table::index_dropped(self.schema, index)));
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

    /// Returns the number of rows that are left, and of those that are converted.
    pub(super) fn counted(&self, catalog: &dyn Catalog) -> Read<RowsToConvert> {
        let count =
            |condition: &str| catalog.number(&format!("SELECT count(*) FROM {}{condition}", quoted(&self.schema.name)));
        let left = count(&self.condition())?;
        let converted = if self.has_begun { Some(count("")? - left) } else { None };
        Ok(RowsToConvert { left, converted })
    }

    /// Returns the condition of rows that are not converted yet.
    fn condition(&self) -> String {
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
        let parts =
            self.key_columns().map(|at| literal(Bound::new(&fields(row)[at], &self.migration.columns[at]), dialect));
        list(parts, ", ")
    }
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
