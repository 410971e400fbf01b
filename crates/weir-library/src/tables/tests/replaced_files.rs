//! Files of SQLite that are removed or replaced while a program has them open.
#![cfg(unix)]

use std::sync::Arc;

use rusqlite::Connection;
use weir::{Failure, SeenCommits, Value};

use super::evolution::user;
use super::replaced_databases::RESTORE;
use super::{TestDatabase, users};
use crate::log::LogSettings;
use crate::output::Outputs;
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
        let database = Arc::new(Database::open(&folder.file(), None).unwrap());
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

/// A change of the file of a database that another program has open.
type Interference = fn(&std::path::Path);

fn cut(database: &std::path::Path) {
    std::fs::File::options().write(true).open(database).unwrap().set_len(4096).unwrap();
}

/// Makes a backup, and writes its bytes into the file of the database.
fn overwrite(database: &std::path::Path) {
    let copy = database.with_extension("backup");
    crate::tables::backup(database, &copy).unwrap();
    std::fs::write(database, std::fs::read(copy).unwrap()).unwrap();
}

/// Overwrites the first page, so that the file keeps its length.
fn damage(database: &std::path::Path) {
    let mut bytes = std::fs::read(database).unwrap();
    bytes[..4096].fill(7);
    let mut file = std::fs::File::options().write(true).open(database).unwrap();
    std::io::Write::write_all(&mut file, &bytes[..4096]).unwrap();
    set_time(database);
}

/// Gives the file a time of modification that it had not before, however coarse the clock of the system is.
fn set_time(database: &std::path::Path) {
    let file = std::fs::File::options().write(true).open(database).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
}

/// Returns a folder with rows that are in the file, and its program, which was started again.
fn started_again(name: &str) -> (TestDatabase, TableStorage) {
    let folder = TestDatabase::sqlite(name);
    let storage = folder.storage();
    let table = storage.open(users()).unwrap();
    (0..100).for_each(|number| _ = table.rows.insert(0, named(number)).unwrap());
    settle(&storage).unwrap();
    weir::Closing::close(&storage).unwrap();
    drop((table, storage));
    let storage = folder.storage();
    (folder, storage)
}

#[test]
fn a_database_that_is_overwritten_or_cut_in_place_is_noticed_and_its_log_stays() {
    let changes: [(&str, Interference); 3] = [("cut", cut), ("overwritten", overwrite), ("damaged", damage)];
    for (name, change) in changes {
        for writes in [true, false] {
            let (folder, storage) = started_again(&format!("{name}-in-place-{writes}"));
            let table = storage.open(users()).unwrap();
            table.rows.insert(0, named(100)).unwrap();
            settle(&storage).unwrap();
            change(&folder.file());
            if writes {
                _ = table.rows.insert(0, named(101));
                let failure = settle(&storage).unwrap_err();
                assert!(
                    failure.message.contains("test.db was overwritten or cut: if it is a backup"),
                    "{name}: {failure}"
                );
                assert!(table.rows.insert(0, named(102)).is_err(), "{name}");
            }
            let (file, log) = (folder.file(), folder.file().with_extension("db-wal"));
            let before = [&file, &log].map(|file| std::fs::read(file).unwrap());
            assert!(weir::Closing::close(&storage).is_err(), "{name}");
            drop((table, storage));
            assert!([&file, &log].map(|file| std::fs::read(file).unwrap()) == before, "{name}");
            SeenCommits::forget();
            assert!(folder.storage().open(users()).is_err(), "{name}");
            assert!([&file, &log].map(|file| std::fs::read(file).unwrap()) == before, "{name}");
        }
    }
}

#[test]
fn what_other_programs_do_by_sqlite_is_no_damage_of_the_database_nor_is_a_new_time_of_the_file() {
    let execute = |database: &std::path::Path, sql: &str| {
        let connection = Connection::open(database).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection.execute_batch(sql).unwrap();
    };
    let (folder, storage) = started_again("others-in-place");
    let table = storage.open(users()).unwrap();
    for round in 0..3 {
        for (at, sql) in [
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "CREATE TABLE other (a); INSERT INTO other SELECT randomblob(100000) FROM sqlite_schema; PRAGMA wal_checkpoint",
            "DROP TABLE other; VACUUM; PRAGMA wal_checkpoint(RESTART)",
            "BEGIN; SELECT count(*) FROM users; COMMIT",
        ]
        .into_iter()
        .enumerate()
        {
            execute(&folder.file(), sql);
            set_time(&folder.file());
            table.rows.upsert(0, named(1_000 + 10 * round + at as i64)).unwrap();
            settle(&storage).unwrap();
        }
        execute(&folder.file(), &format!("{RESTORE}; PRAGMA wal_checkpoint"));
        table.rows.upsert(0, named(2_000 + round)).unwrap();
        settle(&storage).unwrap();
    }
    let rows: i64 =
        Connection::open(folder.file()).unwrap().query_row("SELECT count(*) FROM users", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 115);
    weir::Closing::close(&storage).unwrap();
}

/// Otherwise its log would be moved into the file that was put there.
#[test]
fn an_existing_database_that_is_removed_or_replaced_is_noticed_before_a_write() {
    let restore: Interference = |file| std::fs::rename(file.with_extension("before"), file).unwrap();
    let remove: Interference = |file| std::fs::remove_file(file).unwrap();
    let remove_log: Interference = |file| std::fs::remove_file(file.with_extension("db-wal")).unwrap();
    for journal in ["wal", "delete"] {
        for (name, change) in [("restored", restore), ("removed", remove), ("log", remove_log)] {
            if journal == "delete" && name == "log" {
                continue;
            }
            let folder = TestDatabase::sqlite(&format!("existing-{name}-{journal}"));
            folder.execute("CREATE TABLE users (name TEXT NOT NULL PRIMARY KEY, place INTEGER NOT NULL)");
            std::fs::copy(folder.file(), folder.file().with_extension("before")).unwrap();
            Connection::open(folder.file())
                .unwrap()
                .pragma_update_and_check(None, "journal_mode", journal, |_| Ok(()))
                .unwrap();
            let database = Arc::new(Database::open_existing(&folder.file()).unwrap());
            let existing = crate::tables::schema::ExistingTable {
                database: folder.file().display().to_string(),
                writable: true,
                constraint: "tables.users".to_owned(),
            };
            let schema = crate::tables::schema::Schema { existing: Some(existing), ..users() };
            let table = StoredTable::open_existing(schema, Arc::clone(&database)).unwrap();
            table.insert(0, named(1)).unwrap();
            change(&folder.file());
            let failure = table.insert(0, named(2)).unwrap_err();
            assert!(failure.message.starts_with("nothing more is written: the file "), "{failure}");
            assert!(failure.message.contains("was removed or replaced"), "{failure}");
            drop((table, database));
            if name == "restored" {
                let log = folder.file().with_extension("db-wal");
                assert_eq!(log.exists(), journal == "wal");
                _ = std::fs::remove_file(log);
                let connection = Connection::open(folder.file()).unwrap();
                let rows = connection.query_row("SELECT count(*) FROM users", [], |row| row.get::<_, i64>(0));
                assert_eq!(rows, Ok(0));
            }
        }
    }
}

#[test]
fn a_database_whose_texts_have_another_order_than_in_programs_is_refused() {
    for encoding in ["UTF-16le", "UTF-16be"] {
        let folder = TestDatabase::sqlite(&format!("encoding-{encoding}"));
        folder.execute(&format!("PRAGMA encoding = '{encoding}'; CREATE TABLE users (name TEXT, place INTEGER)"));
        let refused = Database::open_existing(&folder.file()).map(|_| ()).unwrap_err();
        assert!(refused.message.contains(&format!("it has the encoding {encoding}, in which")), "{refused}");
    }
}
