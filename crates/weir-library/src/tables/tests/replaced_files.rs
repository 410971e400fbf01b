//! Files of SQLite that are removed or replaced while a program has them open.
#![cfg(unix)]

use std::sync::Arc;

use rusqlite::Connection;
use weir::{Failure, SeenCommits, Value};

use super::evolution::user;
use super::{TestDatabase, users};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::program_end::ProgramEnd;
use crate::tables::rows::TableRows;
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;
use crate::tables::storage::TableStorage;
use crate::tables::table_log::TableLog;

fn key(number: i64) -> Value {
    Value::text(&format!("user {number}"))
}

fn named(number: i64) -> Value {
    user(&format!("user {number}"), [Value::Int(number)])
}

fn settle(storage: &TableStorage) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true))
}

/// Otherwise an answer would have rows of both.
#[test]
fn no_read_leads_to_a_file_that_has_replaced_the_database() {
    for (name, replaced) in [("read-database", "test.db"), ("read-log", "test.db-wal")] {
        let folder = TestDatabase::sqlite(name);
        let database = Arc::new(Database::open(&folder.file(), None, ProgramEnd::default()).unwrap());
        let table = StoredTable::open(users(), Arc::clone(&database)).unwrap();
        table.insert(0, named(1)).unwrap();
        database.end_group();
        let count = |is_short| {
            let read =
                |connection: &Connection| connection.query_row("SELECT count(*) FROM users", [], |row| row.get(0));
            database.read((0, is_short), read).map_err(|error| database.failure(&error).message.to_string())
        };
        let file = folder.file().with_file_name(replaced);
        let copy = file.with_extension("copy");
        std::fs::copy(&file, &copy).unwrap();
        std::fs::rename(&copy, &file).unwrap();
        assert_eq!(count(true), Ok(1), "the connection that writes has the old one");
        let failure = count(false).unwrap_err();
        assert!(failure.contains(&format!("{replaced} was removed or replaced")), "{failure}");
        assert!(failure.ends_with("; restart the program"), "{failure}");
        let names_log = failure.contains("test.db-wal and ") && failure.contains("test.db-note");
        assert_eq!(names_log, replaced == "test.db", "{failure}");
        assert!(database.close().is_err());
    }
}

/// Rows in a file without a name end with the program, so nobody is told that they are durable.
#[test]
fn a_database_that_is_removed_or_replaced_is_noticed() {
    let remove: fn(&std::path::Path) = |file| std::fs::remove_file(file).unwrap();
    let replace: fn(&std::path::Path) = |file| {
        std::fs::copy(file, file.with_extension("copy")).unwrap();
        std::fs::rename(file.with_extension("copy"), file).unwrap();
    };
    for (name, file, change) in
        [("removed", "test.db", remove), ("replaced", "test.db", replace), ("log", "test.db-wal", remove)]
    {
        let database = TestDatabase::sqlite(&format!("{name}-file"));
        let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
        let storage = database.storage().with_log(log.clone());
        let table = storage.open(users()).unwrap();
        table.rows.insert(0, named(1)).unwrap();
        settle(&storage).unwrap();
        change(&database.file().with_file_name(file));
        _ = table.rows.insert(0, named(2));
        let failure = settle(&storage).unwrap_err();
        assert!(failure.message.contains(&format!("{file} was removed or replaced")), "{failure}");
        assert!(table.rows.insert(0, named(3)).is_err(), "{name}");
        let said = log.outputs.captured().unwrap();
        assert!(
            said.starts_with("ERROR cannot make the tables durable") && said.contains("restart the program"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        // What may have been seen fails, and what was durable before does not.
        assert!(settle(&storage).is_err());
        SeenCommits::forget();
        assert_eq!(table.rows.get(0, &key(1)).unwrap(), Some(named(1)));
        assert!(storage.settled_at_once(false).unwrap().is_ok());
    }
}
