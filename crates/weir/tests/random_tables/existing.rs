//! Tables of a random program that the program has not made: SQL makes them before it runs.
//!
//! Reads of some statements are those of a view, `seen_items`, which has all rows of `items` and is only read. A program whose tables are
//! its own reads `items` in its place.

use std::process::Command;

use test_support::postgres::PostgresServer;
use test_support::random::Random;

use crate::tables::{Items, Kind};

/// The path of the SQLite database in declarations.
pub(crate) const FILE: &str = "made.db";

const VIEW: &str = "seen_items";

/// The statements of a database, which has types of its own.
#[derive(Clone, Copy)]
enum Sql {
    Sqlite,
    Postgres,
}

/// Makes the tables in a new SQLite database, in a folder.
pub(crate) fn make_in_sqlite(items: &Items, folder: &std::path::Path) {
    // Either way in which SQLite commits.
    let journal = if items.columns.len().is_multiple_of(2) { "PRAGMA journal_mode = WAL;\n" } else { "" };
    let sql = format!("{journal}{}", tables(items, Sql::Sqlite));
    let made = Command::new("sqlite3").arg(folder.join(FILE)).arg(&sql).output().expect("sqlite3 is installed");
    assert!(made.status.success(), "{sql}: {}", String::from_utf8_lossy(&made.stderr));
}

/// Makes the tables in a schema.
pub(crate) fn make_in_postgres(items: &Items, server: &PostgresServer, schema: &str) {
    server.execute(schema, &tables(items, Sql::Postgres));
}

/// Returns the SQL that makes the tables, which have a column that the program does not declare.
fn tables(items: &Items, sql: Sql) -> String {
    let columns: Vec<String> = (0..items.columns.len()).map(|at| column(items, at, sql)).collect();
    let names = |columns: &[usize]| {
        let names: Vec<&str> = columns.iter().map(|at| items.columns[*at].name.as_str()).collect();
        names.join(", ")
    };
    let key = if items.auto { String::new() } else { format!(", PRIMARY KEY ({})", names(&items.key)) };
    let index = |(at, (columns, is_unique)): (usize, &(Vec<usize>, bool))| {
        let unique = if *is_unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX items_{at} ON items ({});\n", names(columns))
    };
    let indexes: String = items.indexes.iter().enumerate().map(index).collect();
    format!(
        "CREATE TABLE owners (name TEXT NOT NULL PRIMARY KEY, age {} NOT NULL);\n\
         CREATE TABLE items ({}, noted INTEGER NOT NULL DEFAULT 7{key});\n{indexes}\
         CREATE VIEW {VIEW} AS SELECT * FROM items;\n",
        column_type(Kind::Int, sql, 0),
        columns.join(", ")
    )
}

fn column(items: &Items, at: usize, sql: Sql) -> String {
    let column = &items.columns[at];
    if items.auto && items.key == [at] {
        return format!("{} INTEGER PRIMARY KEY AUTOINCREMENT", column.name);
    }
    match column.kind.present() {
        Some(present) => format!("{} {}", column.name, column_type(present, sql, at)),
        None => format!("{} {} NOT NULL", column.name, column_type(column.kind, sql, at)),
    }
}

/// Returns one of the types that a column with such values may have, by its place.
fn column_type(kind: Kind, sql: Sql, at: usize) -> &'static str {
    let types = match (kind, sql) {
        (Kind::Text | Kind::Enum, Sql::Sqlite) => ["TEXT", "VARCHAR(40)", "TEXT COLLATE BINARY"],
        (Kind::Text | Kind::Enum, Sql::Postgres) => ["text", "varchar(40)", "text COLLATE \"C\""],
        (Kind::Bytes, Sql::Sqlite) => ["BLOB"; 3],
        (Kind::Bytes, Sql::Postgres) => ["bytea"; 3],
        (Kind::Float, Sql::Sqlite) => ["REAL", "DOUBLE", "FLOAT"],
        (Kind::Float, Sql::Postgres) => ["double precision"; 3],
        (Kind::Bool, Sql::Sqlite) => ["BOOLEAN", "INTEGER", "TINYINT"],
        (Kind::Bool, Sql::Postgres) => ["boolean"; 3],
        (_, Sql::Sqlite) => ["INTEGER", "BIGINT", "NUMERIC"],
        (_, Sql::Postgres) => ["bigint"; 3],
    };
    types[at % types.len()]
}

/// Returns the declarations of the tables and of their types.
pub(crate) fn declarations(items: &Items, database: &str) -> String {
    let (clauses, key) = (items.clauses(), items.tuple(&items.key));
    let writable = format!("existing(database: \"{database}\", writable: true)");
    format!(
        "{}table owners: Owner key name {writable}\ntable items: Item{clauses} {writable}\n\
         table {VIEW}: Item key {key} existing(database: \"{database}\")\n",
        items.types()
    )
}

/// Returns the text of a program that has no view.
pub(crate) fn without_view(text: &str) -> String {
    text.replace(VIEW, "items")
}

/// Leaves out the statements that tables of another program do not execute like others, and reads the view in some.
pub(crate) fn adapt(items: &Items, steps: &mut Vec<String>, random: &mut Random) {
    // These replace one row after the other, so a unique value cannot move from one row to another.
    if items.indexes.iter().any(|(_, is_unique)| *is_unique) {
        steps.retain(|step| !step.contains(".update_all("));
    }
    let writes = [".insert(", ".upsert(", ".update(", ".update_all(", ".delete(", ".delete_all(", "changed("];
    for step in steps.iter_mut().filter(|step| writes.iter().all(|write| !step.contains(write))) {
        if random.below(2) == 0 {
            *step = step.replace("items", VIEW);
        }
    }
}
