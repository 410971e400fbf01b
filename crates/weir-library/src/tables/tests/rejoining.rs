//! Programs whose connections were lost, beside programs of another version that start meanwhile.

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use test_support::postgres::PostgresServer;
use weir::{Failure, Value};

use super::{column, declared, reference};
use crate::tables::postgres::PostgresAddress;
use crate::tables::schema::{IndexSchema, Schema, TableMigration};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;

/// The connections by which programs declare their tables.
const DECLARING: &str = "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1466263924";

/// Returns a server, and the address of an empty schema.
fn started() -> Option<(PostgresServer, PostgresAddress)> {
    let server = PostgresServer::start()?;
    let address = PostgresAddress::parse(&server.schema("rejoined"), None).unwrap();
    Some((server, address))
}

fn storage(address: &PostgresAddress) -> TableStorage {
    TableStorage::at(TableLocation::Postgres(address.clone()))
}

fn users() -> Schema {
    declared("users", vec![column("name", "Text", false), column("place", "Text", false)])
}

fn declaring(server: &PostgresServer) -> String {
    server.execute("rejoined", DECLARING)
}

/// Nobody would see that it runs until its next statement.
#[test]
fn a_program_joins_again_without_a_statement_when_its_connections_are_lost() {
    let Some((server, address)) = started() else { return };
    let storage = storage(&address);
    storage.open(users()).unwrap();
    for crashes in [false, true] {
        let before = declaring(&server);
        if crashes {
            server.crash();
            server.run();
        } else {
            server.cut();
        }
        while [&before, ""].contains(&&*declaring(&server)) {
            thread::yield_now();
        }
    }
    let table = storage.table("users").unwrap();
    assert!(table.rows.insert(0, Value::Record([Value::text("ada"), Value::text("Ulm")].into())).is_ok());
}

/// Cuts a program from the database, does something before it can join again, and returns the failure with which it ends, if it does.
fn cut(server: &PostgresServer, program: &TableStorage, meanwhile: impl FnOnce()) -> Option<Failure> {
    let database = program.postgres();
    let writer = database.hold_writer();
    let before = declaring(server);
    server.cut();
    while declaring(server) == before {
        thread::yield_now();
    }
    meanwhile();
    drop(writer);
    while declaring(server).is_empty() && database.commits().unwrap().check().is_ok() {
        thread::yield_now();
    }
    // It may have found that out while it declared its tables.
    drop(database.hold_writer());
    let ended = database.commits().unwrap().check().err();
    if ended.is_some() {
        let table = program.table("users").unwrap();
        let row = Value::Record([Value::text("eve"), Value::text("OLD")].into());
        assert!(table.rows.insert(0, row).is_err() && table.rows.get(0, &Value::text("ada")).is_err());
    }
    ended
}

/// Its statements would write what nobody reads any more.
#[test]
fn a_program_that_was_cut_ends_if_another_version_has_converted_its_rows_meanwhile() {
    let Some((server, address)) = started() else { return };
    let (old, new) = (storage(&address), storage(&address));
    let table = old.open(users()).unwrap();
    table.rows.insert(0, Value::Record([Value::text("ada"), Value::text("Ulm")].into())).unwrap();
    let migration = TableMigration { columns: users().columns, batched: false };
    let columns = vec![column("name", "Text", false), column("city", "Text", false)];
    let renamed = Schema { migration: Some(migration), ..declared("users", columns) };
    let convert = || {
        let rows = new.old_rows(&renamed)?;
        new.store_converted(&renamed, &rows, rows.clone())?;
        new.open(renamed.clone())
    };
    assert!(cut(&server, &old, || ()).is_none());
    let told = Arc::new(Mutex::new(None));
    let tell = Arc::clone(&told);
    old.on_end(move |failure| *tell.lock() = Some(failure.message.to_string()));
    let ended = cut(&server, &old, || _ = convert().unwrap()).unwrap().message.to_string();
    assert!(ended.contains("has changed `users`: a newer version of the program has converted the rows"), "{ended}");
    assert_eq!(told.lock().as_ref(), Some(&ended));
    assert_eq!(server.execute("rejoined", "SELECT name, city FROM users").trim(), "ada|Ulm");
}

/// Its deletions would leave rows behind that reference nothing.
#[test]
fn a_program_that_was_cut_ends_if_another_version_has_other_rules_for_its_rows() {
    let unique = Schema { indexes: vec![IndexSchema { columns: vec![1], unique: true }], ..users() };
    let reference = reference("posts", &[(1, "author", false)], ("users", "name"), false);
    let posts = declared("posts", vec![column("id", "Int", false), column("author", "Text", false)]);
    let posts = Schema { references: vec![reference.clone()], ..posts };
    let referenced = Schema { referenced_by: vec![reference], ..unique.clone() };
    let versions = [(vec![referenced, posts], "other `references`"), (vec![users()], "dropped `unique (place)`")];
    for (tables, expected) in versions {
        let Some((server, address)) = started() else { return };
        let (old, new) = (storage(&address), storage(&address));
        old.open(unique.clone()).unwrap();
        let start = || tables.into_iter().for_each(|table| _ = new.open(table).unwrap());
        let ended = cut(&server, &old, start).unwrap().message.to_string();
        assert!(ended.contains(expected), "{ended}");
    }
}
