//! Declarations of the programs that are running: shared advisory locks of the connections that write, for each table, its columns,
//! its references and its indexes. A connection that ends releases them, whatever the reason.

use crate::tables::dialect::Dialect;
use crate::tables::schema::{Schema, TableReference};

/// The kind of a declaration, which is the first of the two numbers of its lock. The second is a hash of the name.
#[derive(Clone, Copy)]
enum Declared {
    Table = 1_466_263_924,
    Columns = 1_466_263_925,
    Index = 1_466_263_926,
    References = 1_466_263_927,
}

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
