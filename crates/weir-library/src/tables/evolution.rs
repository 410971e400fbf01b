//! The difference between the tables that a program declares and those of its database.
//!
//! A start creates new tables, columns and indexes. What the program no longer declares stays, except for its indexes, which
//! hold no data. Everything else would change data, and is refused.

use rusqlite::{Connection, OptionalExtension};
use weir::Failure;

use super::schema::{ColumnSchema, IndexSchema, Schema};
use super::sql::{list, name, quoted};

/// A step from the tables of a database to those of a program.
#[derive(Debug, PartialEq)]
pub(super) struct SchemaChange {
    /// The statement.
    pub(super) sql: String,
}

/// A column as the database has it.
struct KnownColumn {
    name: String,
    kind: String,
    optional: bool,
    key: bool,
}

/// Makes the changes, all or none.
pub(super) fn apply(schema: &Schema, connection: &Connection) -> rusqlite::Result<Result<(), Failure>> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS \"weir_columns\" (\"table\" TEXT NOT NULL, \"column\" TEXT NOT NULL,
         \"type\" TEXT NOT NULL, PRIMARY KEY (\"table\", \"column\")) STRICT, WITHOUT ROWID",
    )?;
    let changes = match changes(schema, &transaction)? {
        Ok(changes) => changes,
        Err(failure) => return Ok(Err(failure)),
    };
    for change in changes {
        if let Err(error) = transaction.execute_batch(&change.sql) {
            let message = format!("the table `{}` cannot be changed by {}: {error}", schema.name, change.sql);
            return Ok(Err(Failure::function(message)));
        }
    }
    for column in &schema.columns {
        transaction.execute(
            "INSERT OR REPLACE INTO \"weir_columns\" VALUES (?1, ?2, ?3)",
            (&schema.name, &column.name, &column.kind),
        )?;
    }
    transaction.commit()?;
    Ok(Ok(()))
}

/// Returns what a start would change, or why it cannot.
pub(super) fn changes(
    schema: &Schema,
    connection: &Connection,
) -> rusqlite::Result<Result<Vec<SchemaChange>, Failure>> {
    let known = known_columns(schema, connection)?;
    let mut changes = Vec::new();
    if known.is_empty() {
        changes.push(created(schema));
    } else if let Err(failure) = columns_changed(schema, &known, &mut changes) {
        return Ok(Err(failure));
    }
    indexes_changed(schema, connection, &mut changes)?;
    Ok(Ok(changes))
}

fn known_columns(schema: &Schema, connection: &Connection) -> rusqlite::Result<Vec<KnownColumn>> {
    let is_ours =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'weir_columns'", [], |row| {
            row.get::<_, i64>(0)
        })?;
    if is_ours == 0 {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)")?;
    let rows = statement.query_map([&schema.name], |row| {
        let (name, sql_type): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((name, sql_type, row.get::<_, i64>(2)? == 0, row.get::<_, i64>(3)? > 0))
    })?;
    let mut known = Vec::new();
    for row in rows {
        let (name, sql_type, optional, key) = row?;
        let kind = connection.query_row(
            "SELECT \"type\" FROM \"weir_columns\" WHERE \"table\" = ?1 AND \"column\" = ?2",
            [&schema.name, &name],
            |row| row.get(0),
        );
        let kind = kind.optional()?.unwrap_or(sql_type);
        known.push(KnownColumn { name, kind, optional: optional && !key, key });
    }
    Ok(known)
}

fn columns_changed(schema: &Schema, known: &[KnownColumn], changes: &mut Vec<SchemaChange>) -> Result<(), Failure> {
    let refused = |column: &str, why: &str| {
        let message = format!("the column `{column}` of the table `{}` {why}", schema.name);
        Err(Failure::function(message))
    };
    for (at, column) in schema.columns.iter().enumerate() {
        let is_key = schema.key.contains(&at);
        match known.iter().find(|known| known.name == column.name) {
            Some(known) if known.kind != column.kind => {
                let why = format!(
                    "is `{}` in the database and `{}` in the program; give it a new name",
                    known.kind, column.kind
                );
                return refused(&column.name, &why);
            }
            Some(known) if known.optional != column.optional && !is_key => {
                let why = if known.optional {
                    "may be absent in the database, but not in the program"
                } else {
                    "may be absent in the program, but not in the database"
                };
                return refused(&column.name, &format!("{why}; give it a new name"));
            }
            Some(known) if known.key != is_key => {
                return refused(
                    &column.name,
                    "is part of the key in one of database and program only; give the table a new name",
                );
            }
            Some(_) => {}
            None if column.optional || column.default.is_some() => {
                let sql = format!("ALTER TABLE {} ADD COLUMN {}", quoted(&schema.name), definition(column));
                changes.push(SchemaChange { sql });
            }
            None => {
                return refused(
                    &column.name,
                    "is new, and the rows of the database have no value for it; give it a default, or make it an `Option`",
                );
            }
        }
    }
    match known.iter().find(|known| known.key && schema.columns.iter().all(|column| column.name != known.name)) {
        Some(gone) => refused(&gone.name, "is part of the key in the database; give the table a new name"),
        None => Ok(()),
    }
}

fn indexes_changed(schema: &Schema, connection: &Connection, changes: &mut Vec<SchemaChange>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 AND name LIKE 'weir\\_%' ESCAPE '\\'",
    )?;
    let known: Vec<String> = statement.query_map([&schema.name], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let declared: Vec<(String, &IndexSchema)> =
        schema.indexes.iter().map(|index| (index_name(schema, index), index)).collect();
    for gone in known.iter().filter(|known| declared.iter().all(|(name, _)| name != *known)) {
        changes.push(SchemaChange { sql: format!("DROP INDEX {}", quoted(gone)) });
    }
    for (called, index) in declared.iter().filter(|(name, _)| !known.contains(name)) {
        let unique = if index.unique { "UNIQUE " } else { "" };
        let columns = list(index.columns.iter().map(|at| name(schema, *at)), ", ");
        let sql = format!("CREATE {unique}INDEX {} ON {} ({columns})", quoted(called), quoted(&schema.name));
        changes.push(SchemaChange { sql });
    }
    Ok(())
}

fn index_name(schema: &Schema, index: &IndexSchema) -> String {
    let kind = if index.unique { "unique" } else { "index" };
    let columns = list(index.columns.iter().map(|at| schema.columns[*at].name.clone()), "_");
    format!("weir_{kind}_{}_{columns}", schema.name)
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

/// Returns the definition of a column. It has a default, so that rows can be inserted when the program no longer declares
/// it.
fn definition(column: &ColumnSchema) -> String {
    let (sql_type, empty) = match &*column.kind {
        "Float" => ("REAL", "0.0"),
        "Text" | "Enum" => ("TEXT", "''"),
        "Bytes" => ("BLOB", "x''"),
        _ => ("INTEGER", "0"),
    };
    if column.optional {
        return format!("{} {sql_type}", quoted(&column.name));
    }
    let default = match &column.default {
        Some(text) if sql_type == "TEXT" => format!("'{}'", text.replace('\'', "''")),
        Some(number) => format!("({number})"),
        None => empty.to_owned(),
    };
    format!("{} {sql_type} NOT NULL DEFAULT {default}", quoted(&column.name))
}
