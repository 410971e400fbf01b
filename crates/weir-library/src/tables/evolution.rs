//! The difference between the tables that a program declares and those of its database.
//!
//! A start creates new tables, columns and indexes, and gives rows without a value the default of their column. What the
//! program no longer declares stays, except for its indexes, which hold no data. Everything else would change or lose data,
//! and is refused (`existing_rows`).
//!
//! The table `weir_columns` has a row for each column: its type in the program, and whether the last program that was
//! started declares it. Rows that are inserted while it is not declared have its default, or `NULL` if it has none.

use rusqlite::{Connection, OptionalExtension};
use weir::Failure;

use super::existing_rows::{NewIndex, lacks_no_value, values_differ, variants_are_known};
use super::reference_notes;
use super::schema::{ColumnSchema, IndexSchema, Schema};
use super::sql::{list, literal, name, quoted};

/// A step from the tables of a database to those of a program.
#[derive(Debug, PartialEq)]
pub(super) struct SchemaChange {
    /// The statement.
    pub(super) sql: String,
}

/// A column as the database has it.
#[derive(Debug)]
pub(super) struct KnownColumn {
    pub(super) name: String,
    /// The type in the program that declared it last.
    pub(super) kind: String,
    key: bool,
    /// True if the database accepts `NULL`.
    nullable: bool,
    /// True if the last program that was started declares it.
    declared: bool,
    /// The default with which it was created, in SQL.
    default: Option<String>,
}

/// The changes of a table, or why it cannot be changed.
pub(super) type Changes = Result<Vec<SchemaChange>, Failure>;

/// Makes the changes, all or none.
pub(super) fn apply(schema: &Schema, connection: &Connection) -> rusqlite::Result<Result<(), Failure>> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS \"weir_columns\" (\"table\" TEXT NOT NULL, \"column\" TEXT NOT NULL,
         \"type\" TEXT NOT NULL, \"declared\" INTEGER NOT NULL, PRIMARY KEY (\"table\", \"column\")) STRICT, WITHOUT ROWID",
    )?;
    let changes = match changes(schema, &transaction)? {
        Ok(changes) => changes,
        Err(failure) => return Ok(Err(failure)),
    };
    for change in changes {
        if let Err(error) = transaction.execute_batch(&change.sql) {
            return Ok(Err(Failure::function(format!("the database refuses {}: {error}", change.sql))));
        }
    }
    transaction.execute("UPDATE \"weir_columns\" SET \"declared\" = 0 WHERE \"table\" = ?1", [&schema.name])?;
    for column in &schema.columns {
        transaction.execute(
            "INSERT OR REPLACE INTO \"weir_columns\" VALUES (?1, ?2, ?3, 1)",
            (&schema.name, &column.name, &column.shown_type()),
        )?;
    }
    reference_notes::note(schema, &transaction)?;
    transaction.commit()?;
    Ok(Ok(()))
}

/// Returns what a start would change, or why it cannot.
pub(super) fn changes(schema: &Schema, connection: &Connection) -> rusqlite::Result<Changes> {
    let known = known_columns(schema, connection)?;
    if let Err(failure) = names_differ_in_case(schema, &known, connection)? {
        return Ok(Err(failure));
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    if let Err(failure) = reference_notes::check(schema, &names, connection)? {
        return Ok(Err(failure));
    }
    if known.is_empty() {
        let indexes = schema.indexes.iter().map(|index| index_created(schema, index));
        return Ok(Ok(std::iter::once(created(schema)).chain(indexes).collect()));
    }
    if let Err(failure) = key_changed(schema, &known, connection)? {
        return Ok(Err(failure));
    }
    let mut changes = Vec::new();
    for column in &schema.columns {
        let known = known.iter().find(|known| known.name == column.name);
        match column_changed(schema, column, known, connection)? {
            Ok(change) => changes.extend(change),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let indexes = indexes_changed(schema, &known, connection)?;
    Ok(indexes.map(|indexes| changes.into_iter().chain(indexes).collect()))
}

fn known_columns(schema: &Schema, connection: &Connection) -> rusqlite::Result<Vec<KnownColumn>> {
    if !connection.table_exists(None, "weir_columns")? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(
        "SELECT p.name, coalesce(w.\"type\", p.type), p.pk > 0, p.\"notnull\" = 0, coalesce(w.\"declared\", 0), p.dflt_value
         FROM pragma_table_info(?1) p
         LEFT JOIN \"weir_columns\" w ON w.\"table\" = ?1 AND w.\"column\" = p.name ORDER BY p.cid",
    )?;
    let column = |row: &rusqlite::Row<'_>| {
        let (name, kind, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(KnownColumn { name, kind, key, nullable: row.get(3)?, declared: row.get(4)?, default: row.get(5)? })
    };
    statement.query_map([&schema.name], column)?.collect()
}

/// Fails if the table or a column has the name of one of the database, but for the case of letters, which SQLite ignores.
fn names_differ_in_case(
    schema: &Schema,
    known: &[KnownColumn],
    connection: &Connection,
) -> rusqlite::Result<Result<(), Failure>> {
    let refused = |what: &str, stored: &str, declared: &str| {
        Ok(Err(Failure::function(format!(
            "the database has the {what} `{stored}`, and its names are equal without regard to case: rename `{declared}` to \
             `{stored}`, or choose a name that differs in more than case"
        ))))
    };
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND name <> ?1";
    let other: Option<String> = connection.query_row(sql, [&schema.name], |row| row.get(0)).optional()?;
    if let Some(other) = other {
        return refused("table", &other, &schema.name);
    }
    for column in &schema.columns {
        let name = &column.name;
        if let Some(other) = known.iter().find(|known| known.name != *name && known.name.eq_ignore_ascii_case(name)) {
            return refused("column", &other.name, name);
        }
    }
    Ok(Ok(()))
}

/// Returns the columns whose default is another one than when they were created, each with the old one in SQL. A program
/// that does not declare the column inserts the old one.
pub(super) fn old_defaults<'s>(
    schema: &'s Schema,
    connection: &Connection,
) -> rusqlite::Result<Vec<(&'s ColumnSchema, String)>> {
    let known = known_columns(schema, connection)?;
    let mut found = Vec::new();
    for column in &schema.columns {
        let stored = known.iter().find(|known| known.name == column.name).and_then(|known| known.default.as_ref());
        let (Some(stored), Some(declared)) = (stored, literal(column)) else { continue };
        let is_same: bool = connection.query_row(&format!("SELECT ({stored}) IS {declared}"), [], |row| row.get(0))?;
        if !is_same {
            found.push((column, stored.clone()));
        }
    }
    Ok(found)
}

/// Fails if the key of the table in the database is another one, or another numbering.
fn key_changed(
    schema: &Schema,
    known: &[KnownColumn],
    connection: &Connection,
) -> rusqlite::Result<Result<(), Failure>> {
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
    let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    let sql: Option<String> = connection.query_row(sql, [&schema.name], |row| row.get(0)).optional()?;
    if schema.auto && !sql.unwrap_or_default().contains("AUTOINCREMENT") {
        return refused("the program numbers the rows (`auto`), and the database does not".to_owned());
    }
    Ok(Ok(()))
}

/// Returns the change of one column.
fn column_changed(
    schema: &Schema,
    column: &ColumnSchema,
    known: Option<&KnownColumn>,
    connection: &Connection,
) -> rusqlite::Result<Result<Option<SchemaChange>, Failure>> {
    let table = quoted(&schema.name);
    let Some(known) = known else {
        let sql = format!("ALTER TABLE {table} ADD COLUMN {}", definition(column));
        let is_given = column.optional || column.default.is_some();
        let checked = if is_given { Ok(()) } else { lacks_no_value(schema, column, "1", connection)? };
        return Ok(checked.map(|()| Some(SchemaChange { sql })));
    };
    let declared = column.shown_type();
    if known.declared && known.kind == declared {
        return Ok(Ok(None));
    }
    if let Err(failure) = same_type(column, known) {
        return Ok(Err(failure));
    }
    if !column.variants.is_empty()
        && let Err(failure) = variants_are_known(schema, column, connection)?
    {
        return Ok(Err(failure));
    }
    if column.optional || !known.nullable {
        return Ok(Ok(None));
    }
    let absent = format!("{} IS NULL", quoted(&column.name));
    match literal(column) {
        Some(default) => {
            let sql = format!("UPDATE {table} SET {} = {default} WHERE {absent}", quoted(&column.name));
            let any = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {absent})");
            let any: bool = connection.query_row(&any, [], |row| row.get(0))?;
            Ok(Ok(any.then_some(SchemaChange { sql })))
        }
        None => Ok(lacks_no_value(schema, column, &absent, connection)?.map(|()| None)),
    }
}

/// Fails if the values of a column have another type in the database. The variants of an enum may be others.
fn same_type(column: &ColumnSchema, known: &KnownColumn) -> Result<(), Failure> {
    const PLAIN: [&str; 8] = ["Bool", "Int", "Float", "Text", "Bytes", "Time", "Duration", "Size"];
    let held =
        |kind: &str| kind.strip_prefix("Option(").and_then(|kind| kind.strip_suffix(')')).unwrap_or(kind).to_owned();
    let (stored, declared) = (held(&known.kind), held(&column.shown_type()));
    let both_enums = !column.variants.is_empty() && !PLAIN.contains(&&*stored);
    if stored != declared && !both_enums {
        return Err(values_differ(column, &known.kind));
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

fn indexes_changed(schema: &Schema, columns: &[KnownColumn], connection: &Connection) -> rusqlite::Result<Changes> {
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 AND name LIKE 'weir %'")?;
    let known: Vec<String> = statement.query_map([&schema.name], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let declared: Vec<(String, &IndexSchema)> =
        schema.indexes.iter().map(|index| (index_name(schema, index), index)).collect();
    let columns: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let gone = known.iter().filter(|known| declared.iter().all(|(name, _)| name != *known));
    let mut changes: Vec<SchemaChange> =
        gone.map(|gone| SchemaChange { sql: format!("DROP INDEX {}", quoted(gone)) }).collect();
    for (_, index) in declared.iter().filter(|(name, _)| !known.contains(name)) {
        if index.unique
            && let Err(failure) = (NewIndex { schema, index, known: &columns }).check(connection)?
        {
            return Ok(Err(failure));
        }
        changes.push(index_created(schema, index));
    }
    Ok(Ok(changes))
}

fn index_created(schema: &Schema, index: &IndexSchema) -> SchemaChange {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let columns = list(index.columns.iter().map(|at| name(schema, *at)), ", ");
    let called = quoted(&index_name(schema, index));
    SchemaChange { sql: format!("CREATE {unique}INDEX {called} ON {} ({columns})", quoted(&schema.name)) }
}

/// Returns the name of an index: `weir unique users (owner, title)`. Neither names nor spaces can make two of them equal.
fn index_name(schema: &Schema, index: &IndexSchema) -> String {
    let kind = if index.unique { "unique" } else { "index" };
    let columns = list(index.columns.iter().map(|at| schema.columns[*at].name.clone()), ", ");
    format!("weir {kind} {} ({columns})", schema.name)
}

fn created(schema: &Schema) -> SchemaChange {
    let number = matches!(&schema.key[..], [only] if schema.columns[*only].kind == "Int");
    let definitions = schema.columns.iter().enumerate().map(|(at, column)| match number && schema.key == [at] {
        true => {
            format!("{} INTEGER PRIMARY KEY{}", quoted(&column.name), if schema.auto { " AUTOINCREMENT" } else { "" })
        }
        false => definition(column),
    });
    let key = format!("PRIMARY KEY ({})", list(schema.key.iter().map(|at| name(schema, *at)), ", "));
    let parts = list(definitions.chain((!number).then_some(key)), ", ");
    let rowid = if number { "" } else { ", WITHOUT ROWID" };
    SchemaChange { sql: format!("CREATE TABLE {} ({parts}) STRICT{rowid}", quoted(&schema.name)) }
}

/// Returns the definition of a column. Only one with a default refuses `NULL`: rows that are inserted when the program no
/// longer declares it have the default, or no value, but none that nobody has declared.
fn definition(column: &ColumnSchema) -> String {
    let sql_type = match &*column.kind {
        "Float" => "REAL",
        "Text" | "Enum" => "TEXT",
        "Bytes" => "BLOB",
        _ => "INTEGER",
    };
    let default = literal(column).filter(|_| !column.optional);
    let rule = default.map_or(String::new(), |default| format!(" NOT NULL DEFAULT {default}"));
    format!("{} {sql_type}{rule}", quoted(&column.name))
}
