//! The difference between the tables that a program declares and those of its database.
//!
//! A start creates new tables, columns and indexes, and gives rows without a value the default of their column. What the
//! program no longer declares stays, except for its indexes, which hold no data, unless another program that is running declares
//! them. Everything else would change or lose data, and is refused (`existing_rows`).
//!
//! The table `weir_columns` has a row for each column: its type in the program, and whether the last program that was
//! started declares it. Rows that are inserted while it is not declared have its default, or `NULL` if it has none.

pub(super) mod converted_rows;
pub(super) mod existing_columns;
pub(super) mod existing_rows;
pub(super) mod existing_tables;
mod index_changes;
mod index_names;
pub(super) mod migration;
mod migration_columns;
pub(super) mod migration_notes;
pub(super) mod missed_starts;
pub(in crate::tables) mod new_table;
pub(super) mod past_migrations;
pub(super) mod pending_migration;
pub(in crate::tables) mod reference_notes;
pub(super) mod start_changes;
pub(super) mod unconverted_rows;

use weir::Failure;

use self::existing_rows::{lacks_no_value, values_differ, variants_are_known};
use self::index_changes::IndexChanges;
use self::new_table::SchemaChange;
use super::catalog::{Catalog, Read, StartCheck};
use super::dialect::Dialect;
use super::schema::{ColumnSchema, Schema};
use super::sql::quoted;

/// A column as the database has it.
#[derive(Debug)]
pub(super) struct KnownColumn {
    pub(super) name: String,
    /// The type in the program that declared it last.
    pub(super) kind: String,
    /// The type in the database, and the collation of texts, if it tells that.
    stored_type: (String, Option<String>),
    /// True if a Weir program has made it.
    noted: bool,
    key: bool,
    /// True if the database accepts `NULL`.
    nullable: bool,
    /// True if the last program that was started declares it.
    pub(super) declared: bool,
    /// The default with which it was created, in SQL.
    default: Option<String>,
}

/// Makes the changes, and returns them. The caller makes them a transaction.
pub(super) fn apply(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<SchemaChange>> {
    let dialect = catalog.dialect();
    catalog.create_own_table(
        "weir_columns",
        "\"table\" TEXT NOT NULL, \"column\" TEXT NOT NULL, \"type\" TEXT NOT NULL, \"declared\" INTEGER NOT NULL,
         PRIMARY KEY (\"table\", \"column\")",
    )?;
    let changes = match changes(schema, catalog)? {
        Ok(changes) => changes,
        Err(failure) => return Ok(Err(failure)),
    };
    for change in &changes {
        if let Err(failure) = catalog.execute(&change.sql) {
            let message = format!("{failure}; the statement was {}", change.sql);
            return Ok(Err(Failure::new(failure.kind, message)));
        }
    }
    let table = dialect.text(&schema.name);
    catalog.execute(&format!("UPDATE \"weir_columns\" SET \"declared\" = 0 WHERE \"table\" = {table}"))?;
    for column in &schema.columns {
        let (name, kind) = (dialect.text(&column.name), dialect.text(&column.shown_type()));
        catalog.execute(&format!(
            "INSERT INTO \"weir_columns\" VALUES ({table}, {name}, {kind}, 1)
             ON CONFLICT (\"table\", \"column\") DO UPDATE SET \"type\" = excluded.\"type\", \"declared\" = 1",
        ))?;
    }
    reference_notes::note(schema, catalog)?;
    Ok(Ok(changes))
}

/// Returns what a start would change, or why it cannot.
pub(super) fn changes(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<Vec<SchemaChange>> {
    let known = known_columns(schema, catalog)?;
    if let Err(failure) = names_differ_in_case(schema, &known, catalog)? {
        return Ok(Err(failure));
    }
    let dialect = catalog.dialect();
    let fits = columns_fit(schema, dialect).and_then(|()| names_fit(schema, dialect));
    if let Err(failure) = fits.and_then(|()| indexes_fit(schema, dialect)) {
        return Ok(Err(failure));
    }
    // The rows of a table that no Weir program has created are none of a reference.
    if known.is_empty()
        && let Err(failure) = is_free(schema, catalog)?
    {
        return Ok(Err(failure));
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    if let Err(failure) = reference_notes::check(schema, &names, catalog)? {
        return Ok(Err(failure));
    }
    if let Err(failure) = index_names::are_free(schema, &catalog.own_indexes(&schema.name)?, catalog)? {
        return Ok(Err(failure));
    }
    if known.is_empty() {
        return Ok(Ok(new_table::created(schema, dialect)));
    }
    if let Err(failure) = key_changed(schema, &known, catalog)? {
        return Ok(Err(failure));
    }
    if let Some(column) = given_up(schema, &known)
        && catalog.others_have_other_columns(schema)?
    {
        return Ok(Err(others_write_no_value(schema, column, "is gone in this one, and required in the other")));
    }
    let mut changes = Vec::new();
    for column in &schema.columns {
        let known = known.iter().find(|known| known.name == column.name);
        match column_changed(schema, column, known, catalog)? {
            Ok(change) => changes.extend(change),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let indexes = IndexChanges::of(schema, &known, catalog)?;
    Ok(indexes.map(|indexes| indexes.before.into_iter().chain(changes).chain(indexes.behind).collect()))
}

/// Fails if the database takes fewer columns.
fn columns_fit(schema: &Schema, dialect: Dialect) -> Result<(), Failure> {
    let (count, most) = (schema.columns.len(), dialect.columns_max());
    if count <= most {
        return Ok(());
    }
    Err(Failure::function(format!(
        "`{}` has {count} columns, and a table of the database at most {most}: keep some of them in another table",
        schema.name
    )))
}

/// Returns a required column of the last program that this one does not declare, so that its rows have no value there.
fn given_up<'k>(schema: &Schema, known: &'k [KnownColumn]) -> Option<&'k str> {
    let is_kept = |known: &KnownColumn| schema.columns.iter().any(|column| column.name == known.name);
    let is_required = |known: &KnownColumn| known.declared && known.nullable && !known.kind.starts_with("Option(");
    known.iter().find(|known| is_required(known) && !is_kept(known)).map(|known| known.name.as_str())
}

/// Returns the failure of a start beside a program of another version, of which one writes rows that the other cannot read.
fn others_write_no_value(schema: &Schema, column: &str, why: &str) -> Failure {
    Failure::function(format!(
        "another program that is running has other columns of `{}`, and the column `{column}` {why}: one of them writes rows without a \
         value there, which the other cannot read; stop it, and start this program again",
        schema.name
    ))
}

/// Returns the columns of the table; none if no Weir program has created it.
pub(super) fn known_columns(schema: &Schema, catalog: &dyn Catalog) -> Read<Vec<KnownColumn>> {
    let columns = catalog.columns(&schema.name)?;
    if columns.is_empty() || !catalog.has_table("weir_columns")? {
        return Ok(Vec::new());
    }
    let table = catalog.dialect().text(&schema.name);
    let notes = catalog
        .query(&format!("SELECT \"column\", \"type\", \"declared\" FROM \"weir_columns\" WHERE \"table\" = {table}"))?;
    if notes.is_empty() {
        return Ok(Vec::new());
    }
    let known = columns.into_iter().map(|column| {
        let note = notes.iter().find(|note| note[0].as_ref() == Some(&column.name));
        KnownColumn {
            noted: note.is_some(),
            kind: note.and_then(|note| note[1].clone()).unwrap_or_else(|| column.sql_type.clone()),
            stored_type: (column.sql_type, column.collation),
            declared: note.is_some_and(|note| note[2].as_deref() == Some("1")),
            name: column.name,
            key: column.key,
            nullable: column.nullable,
            default: column.default.filter(|_| !column.generated),
        }
    });
    Ok(known.collect())
}

/// Fails if another program has created a table of this name, or if a Weir program has in another schema.
fn is_free(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    let name = &schema.name;
    if catalog.has_table(name)? {
        return Ok(Err(Failure::function(format!(
            "the database has a table `{name}` that no Weir program has created; give the table another name"
        ))));
    }
    Ok(catalog.schema_beside(name)?.map_or(Ok(()), |other| {
        Err(Failure::function(format!(
            "the first schema of the search path has no table `{name}`, and the schema `{other}` behind it has one of a Weir program, which \
             may be meant: name the schema of the tables alone, such as with `?options=-csearch_path%3D{other}`"
        )))
    }))
}

/// Fails if the key or an index has more columns than one of the database may have.
fn indexes_fit(schema: &Schema, dialect: Dialect) -> Result<(), Failure> {
    let Some(most) = dialect.most_indexed_columns() else { return Ok(()) };
    let indexes = schema.indexes.iter().map(|index| (index.columns.len(), Some(index)));
    let all = std::iter::once((schema.key.len(), None)).chain(indexes);
    let Some((columns, index)) = all.into_iter().find(|(columns, _)| *columns > most) else { return Ok(()) };
    let what = index.map_or_else(|| "the key".to_owned(), |index| new_table::shown_index(schema, index));
    Err(Failure::function(format!(
        "{what} of `{}` has {columns} columns, and in PostgreSQL a key, `unique` or `index` has at most {most}: declare one of fewer \
         columns, such as `key id auto`",
        schema.name
    )))
}

/// Fails if the database would cut the name of the table or of a column, or has a column of its own with this name.
fn names_fit(schema: &Schema, dialect: Dialect) -> Result<(), Failure> {
    let is_own = |column: &&ColumnSchema| dialect.own_columns().contains(&column.name.as_str());
    if let Some(column) = schema.columns.iter().find(is_own) {
        return Err(Failure::function(format!(
            "every table of the database has a column `{}` of its own; choose another name",
            column.name
        )));
    }
    let Some(longest) = dialect.longest_name() else { return Ok(()) };
    let names = std::iter::once(&schema.name).chain(schema.columns.iter().map(|column| &column.name));
    match names.into_iter().find(|name| name.len() > longest) {
        None => Ok(()),
        Some(name) => Err(Failure::function(format!(
            "the name `{name}` has {} bytes, and names in the database have at most {longest}; choose a shorter one",
            name.len()
        ))),
    }
}

/// Fails if the table or a column has the name of one of the database, but for the case of letters, if the database ignores it.
fn names_differ_in_case(schema: &Schema, known: &[KnownColumn], catalog: &dyn Catalog) -> StartCheck<()> {
    let refused = |what: &str, stored: &str, declared: &str| {
        Ok(Err(Failure::function(format!(
            "the database has the {what} `{stored}`, and its names are equal without regard to case: rename `{declared}` to \
             `{stored}`, or choose a name that differs in more than case"
        ))))
    };
    if let Some(other) = catalog.same_but_for_case(&schema.name)? {
        return refused("table", &other, &schema.name);
    }
    for column in schema.columns.iter().filter(|_| catalog.dialect().ignores_case()) {
        let name = &column.name;
        if let Some(other) = known.iter().find(|known| known.name != *name && known.name.eq_ignore_ascii_case(name)) {
            return refused("column", &other.name, name);
        }
    }
    Ok(Ok(()))
}

/// Returns the columns whose default is another one than when they were created, each with the old one in SQL. A program
/// that does not declare the column inserts the old one.
pub(super) fn old_defaults<'s>(schema: &'s Schema, catalog: &dyn Catalog) -> Read<Vec<(&'s ColumnSchema, String)>> {
    let known = known_columns(schema, catalog)?;
    let mut found = Vec::new();
    for column in &schema.columns {
        let stored = known.iter().find(|known| known.name == column.name).and_then(|known| known.default.as_ref());
        let (Some(stored), Some(declared)) = (stored, catalog.dialect().default(column)) else { continue };
        let differs = format!("SELECT CASE WHEN ({stored}) IS NOT DISTINCT FROM {declared} THEN 0 ELSE 1 END");
        if catalog.number(&differs)? == 1 {
            found.push((column, stored.clone()));
        }
    }
    Ok(found)
}

/// Fails if the key of the table in the database is another one, or another numbering.
fn key_changed(schema: &Schema, known: &[KnownColumn], catalog: &dyn Catalog) -> StartCheck<()> {
    let refused = |what: String| Ok(Err(Failure::function(format!("{what}; give the table a new name"))));
    let part_of_key = |column: &str, (place, other): (&str, &str)| {
        refused(format!("the column `{column}` is part of the key in {place}, but not in {other}"))
    };
    let (database, program) = ("the database", "the program");
    let is_key = |name: &String| schema.key.iter().any(|at| schema.columns[*at].name == *name);
    if let Some(column) = known.iter().find(|known| known.key != is_key(&known.name)) {
        return part_of_key(&column.name, if column.key { (database, program) } else { (program, database) });
    }
    if let Some(new) = schema
        .key
        .iter()
        .map(|at| &schema.columns[*at].name)
        .find(|name| known.iter().all(|known| known.name != **name))
    {
        return part_of_key(new, (program, database));
    }
    if schema.auto && !catalog.numbers_rows(&schema.name)? {
        let why = match catalog.dialect() {
            Dialect::Postgres => format!(
                ": `weir_numbers` has no row of the table, which INSERT INTO \"weir_numbers\" VALUES ({}, 0) adds if somebody has \
                 deleted it; otherwise",
                Dialect::Postgres.text(&schema.name)
            ),
            Dialect::Sqlite => ";".to_owned(),
        };
        let message =
            format!("the program numbers the rows (`auto`), and the database does not{why} give the table a new name");
        return Ok(Err(Failure::function(message)));
    }
    Ok(Ok(()))
}

/// Returns the change of one column.
fn column_changed(
    schema: &Schema,
    column: &ColumnSchema,
    known: Option<&KnownColumn>,
    catalog: &dyn Catalog,
) -> StartCheck<Option<SchemaChange>> {
    let (table, dialect) = (quoted(&schema.name), catalog.dialect());
    let Some(known) = known else {
        // One that the database computes.
        let of_others = catalog.columns_of_existing(&schema.name)?;
        if of_others.iter().any(|known| dialect.same_name(&known.name, &column.name)) {
            return Ok(Err(made_by_others(column)));
        }
        let sql = format!("ALTER TABLE {table} ADD COLUMN {}", new_table::definition(column, dialect));
        let is_given = column.optional || column.default.is_some();
        let checked = if is_given { Ok(()) } else { lacks_no_value(schema, column, "TRUE", catalog)? };
        return Ok(checked.map(|()| Some(SchemaChange { sql })));
    };
    let declared = column.shown_type();
    let same = if known.kind == declared { Ok(()) } else { same_type(column, known) };
    if let Err(failure) = same.and_then(|()| stored_type_changed(schema, column, known, dialect)) {
        return Ok(Err(failure));
    }
    if known.declared && known.kind == declared {
        return Ok(Ok(None));
    }
    if !column.variants.is_empty()
        && let Err(failure) = variants_are_known(schema, column, catalog)?
    {
        return Ok(Err(failure));
    }
    if column.optional && !known.kind.starts_with("Option(") && catalog.others_have_other_columns(schema)? {
        return Ok(Err(others_write_no_value(schema, &column.name, "becomes an `Option` in this one")));
    }
    if column.optional || !known.nullable {
        return Ok(Ok(None));
    }
    if catalog.others_have_other_columns(schema)? {
        return Ok(Err(others_write_no_value(schema, &column.name, "becomes required in this one")));
    }
    let absent = format!("{} IS NULL", quoted(&column.name));
    match dialect.default(column) {
        Some(default) => {
            let sql = format!("UPDATE {table} SET {} = {default} WHERE {absent}", quoted(&column.name));
            let any =
                catalog.number(&format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {absent} LIMIT 1) s"))?;
            Ok(Ok((any > 0).then_some(SchemaChange { sql })))
        }
        None => Ok(lacks_no_value(schema, column, &absent, catalog)?.map(|()| None)),
    }
}

/// Fails if another program than Weir's has given a column another type, by which sums and the order of texts would be others.
fn stored_type_changed(
    schema: &Schema,
    column: &ColumnSchema,
    known: &KnownColumn,
    dialect: Dialect,
) -> Result<(), Failure> {
    let (stored, collation) = &known.stored_type;
    let is_as_declared = stored == dialect.column_type(column) && collation.as_ref().is_none_or(|name| name == "C");
    // A column of SQLite has the type of its values, whoever has declared it.
    if dialect == Dialect::Sqlite || is_as_declared {
        return Ok(());
    }
    let collation = collation.as_ref().map_or_else(String::new, |name| format!(" with the collation `{name}`"));
    Err(changed_by_others(schema, column, &format!("{stored}{collation}"), dialect))
}

/// Returns the failure of a column whose type is another one than that which Weir has given it.
fn changed_by_others(schema: &Schema, column: &ColumnSchema, stored: &str, dialect: Dialect) -> Failure {
    let (name, declared) = (&column.name, column.shown_type());
    let (table, quoted) = (quoted(&schema.name), quoted(name));
    let expected = format!("{}{}", dialect.column_type(column), dialect.collation(column));
    Failure::function(format!(
        "somebody has changed the column `{name}`: it is {stored} in the database, which stores `{declared}` as {expected}; this gives it \
         its type again: ALTER TABLE {table} ALTER COLUMN {quoted} TYPE {expected} USING {quoted}::{}",
        dialect.column_type(column)
    ))
}

/// Returns the failure of a column that no Weir program has made.
fn made_by_others(column: &ColumnSchema) -> Failure {
    Failure::function(format!(
        "another program has added a column `{}` to the table; drop it, or give the field a new name",
        column.name
    ))
}

/// Fails if the values of a column have another type in the database. The variants of an enum may be others.
pub(super) fn same_type(column: &ColumnSchema, known: &KnownColumn) -> Result<(), Failure> {
    if !known.noted {
        return Err(made_by_others(column));
    }
    const PLAIN: [&str; 8] = ["Bool", "Int", "Float", "Text", "Bytes", "Time", "Duration", "Size"];
    let held =
        |kind: &str| kind.strip_prefix("Option(").and_then(|kind| kind.strip_suffix(')')).unwrap_or(kind).to_owned();
    let (stored, declared) = (held(&known.kind), held(&column.shown_type()));
    let both_enums = !column.variants.is_empty() && !PLAIN.contains(&&*stored);
    if stored != declared && !both_enums {
        return Err(values_differ(column, &known.kind, known.key));
    }
    if column.optional && !known.nullable {
        let message = format!(
            "the column `{}` was declared with a default, and the database accepts no row without a value in it; give the \
             optional column a new name",
            column.name
        );
        return Err(Failure::function(message));
    }
    Ok(())
}
