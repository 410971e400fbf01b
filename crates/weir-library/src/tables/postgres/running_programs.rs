//! Declarations of the programs that are running: shared advisory locks of the connections that write, for each table, its columns,
//! its references and its indexes. A connection that ends releases them, whatever the reason, but the database notices the end of a
//! program some time after it. A start that a program hinders looks again meanwhile.

use std::time::Duration;

use super::connection::{PostgresConnection, SqlStatement};
use crate::tables::dialect::Dialect;
use crate::tables::schema::{Schema, TableReference};

/// The kind of a declaration, which is the first of the two numbers of its lock. The second is a hash of the name.
#[derive(Clone, Copy)]
enum Declared {
    Table = 1_466_263_924,
    Columns = 1_466_263_925,
    Index = 1_466_263_926,
    References = 1_466_263_927,
    /// The lock of the program that converts the rows of a table in batches.
    Conversion = 1_466_263_928,
}

/// Time after which a start looks again whether programs that hinder it have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Maximum number of times that it looks: for 2 s.
const LOOKS_MAX: u32 = if cfg!(test) { 10_000 } else { 40 };

/// Returns the statement that notes what a program declares of a table, as long as its connection lasts.
pub(super) fn noted(schema: &Schema) -> String {
    let indexes = schema.indexes.iter().map(|index| (Declared::Index, Dialect::Postgres.index_name(schema, index)));
    let table = [
        (Declared::Table, schema.name.clone()),
        (Declared::Columns, columns(schema)),
        (Declared::References, references(schema)),
    ];
    let locks = table.into_iter().chain(indexes);
    let lock =
        |(declared, name): (Declared, String)| format!("pg_advisory_lock_shared({}, {})", declared as i32, hash(&name));
    format!("SELECT {}", locks.map(lock).collect::<Vec<_>>().join(", "))
}

/// Returns the query whether this program may convert the rows of a table in batches from now on, which only one does at a time.
pub(super) fn conversion_begun(schema: &Schema) -> String {
    format!("SELECT pg_try_advisory_lock({}, {})", Declared::Conversion as i32, hash(&schema.name))
}

/// Returns the statement with which it does not any more.
pub(super) fn conversion_ended(schema: &Schema) -> String {
    format!("SELECT pg_advisory_unlock({}, {})", Declared::Conversion as i32, hash(&schema.name))
}

/// Returns the query for the process of the program that converts the rows of a table in batches, and its address.
pub(super) fn converting(schema: &Schema) -> String {
    let processes = others(Declared::Conversion, &schema.name);
    format!("SELECT pid::text, host(client_addr) FROM pg_stat_activity WHERE pid::text IN ({processes})")
}

/// Returns the query for the other programs that declare a table with other columns.
pub(super) fn with_other_columns(schema: &Schema) -> String {
    let (table, same) = (others(Declared::Table, &schema.name), others(Declared::Columns, &columns(schema)));
    format!("{table} EXCEPT {same}")
}

/// Returns the query for the other programs that declare a table with other references to its rows, or of them.
pub(super) fn with_other_references(schema: &Schema) -> String {
    let (table, same) = (others(Declared::Table, &schema.name), others(Declared::References, &references(schema)));
    format!("{table} EXCEPT {same}")
}

/// Returns the query for the other programs that hinder a start with this table.
pub(super) fn hindering(schema: &Schema) -> String {
    let (columns, references) = (with_other_columns(schema), with_other_references(schema));
    match &schema.migration {
        Some(_) => format!("({columns}) UNION ({references})"),
        None => references,
    }
}

/// Waits until a query finds no programs any more, by a connection that nobody else uses and whose event loop runs this. Returns whether
/// that is so; those that have hindered a start may have ended before the first look.
pub(super) async fn end_soon(connection: &PostgresConnection, query: &str) -> Result<bool, tokio_postgres::Error> {
    let query = [SqlStatement { sql: query, parameters: Vec::new() }];
    let prepared = connection.prepare(&query).await?;
    for _ in 0..LOOKS_MAX {
        let found = connection.execute(&query, &prepared).await.map_err(|(_, error)| error)?;
        if found.iter().all(|found| found.rows().is_ok_and(|rows| rows.is_empty())) {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(false)
}

/// Returns the query for the other programs that declare an index.
pub(super) fn with_index(name: &str) -> String {
    others(Declared::Index, name)
}

/// Returns the columns of a table with their types, in one order.
fn columns(schema: &Schema) -> String {
    let mut columns: Vec<String> =
        schema.columns.iter().map(|column| format!("{}: {}", column.name, column.shown_type())).collect();
    columns.sort();
    format!("{} {}", schema.name, columns.join(", "))
}

/// Returns the references of the rows of a table, and those to them, in one order.
fn references(schema: &Schema) -> String {
    let all = schema.references.iter().chain(&schema.referenced_by).filter(|reference| reference.stored);
    let shown = |it: &TableReference| format!("{} ({}): {}", it.source, it.names.join(", "), it.target);
    let mut references: Vec<String> = all.map(shown).collect();
    references.sort();
    references.dedup();
    format!("{} {}", schema.name, references.join("; "))
}

/// Returns the hash of a name in the present schema, in SQL.
fn hash(name: &str) -> String {
    format!("hashtext(current_schema() || ' ' || {})", Dialect::Postgres.text(name))
}

/// Returns the query for the processes of other connections that have noted this.
fn others(declared: Declared, name: &str) -> String {
    format!(
        "SELECT pid::text FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid() \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid = {} AND objid = ({}::bigint & 4294967295)::oid AND objsubid = 2",
        declared as i32,
        hash(name)
    )
}
