//! Files of SQLite that are removed or replaced while a program has them open.
#![cfg(unix)]

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use weir::{Failure, SeenCommits, Value};

use super::beside_sqlite3::{existing, existing_file, row};
use super::evolution::user;
use super::replaced_databases::RESTORE;
use super::{TestDatabase, users};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::open_table::OpenTable;
use crate::tables::program_end::ProgramEnd;
use crate::tables::rows::TableRows;
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;
use crate::tables::storage::TableStorage;
use crate::tables::table_log::TableLog;

pub(super) fn key(number: i64) -> Value {
    Value::text(&format!("user {number}"))
}

pub(super) fn named(number: i64) -> Value {
    user(&format!("user {number}"), [Value::Int(number)])
}

pub(super) fn settle(storage: &TableStorage) -> Result<(), Failure> {
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

/// Makes an existing database with two rows of `counts`, which the program opens, and a copy of it that is whole. Returns the log of
/// the program as well.
fn existing_with_copy(folder: &TestDatabase, journal: &str) -> (TableStorage, Arc<OpenTable>, TableLog) {
    let file = existing_file(folder);
    let create = "CREATE TABLE counts (id INTEGER PRIMARY KEY NOT NULL, count INTEGER NOT NULL)";
    let other = Connection::open(&file).unwrap();
    let rows = "INSERT INTO counts VALUES (1, 1), (2, 1)";
    let copy = file.with_extension("copy");
    other
        .execute_batch(&format!("PRAGMA journal_mode={journal}; {create}; {rows}; VACUUM INTO '{}'", copy.display()))
        .unwrap();
    Connection::open(&copy).unwrap().execute_batch(&format!("PRAGMA journal_mode={journal}")).unwrap();
    let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
    let (storage, table) = existing(folder, Some(log.clone()));
    (storage, table, log)
}

/// SQLite goes on with a log that has no database, or no name, and says nothing.
#[test]
fn an_existing_database_that_is_removed_or_replaced_is_noticed_before_a_write_is_acknowledged() {
    use std::fs::{remove_file, rename};

    let replace: fn(&Path) = |file| rename(file.with_extension("copy"), file).unwrap();
    let remove: fn(&Path) = |file| remove_file(file).unwrap();
    let away: fn(&Path) = |file| rename(file, file.with_extension("old")).unwrap();
    let remove_log: fn(&Path) = |file| remove_file(format!("{}-wal", file.display())).unwrap();
    let changes =
        [("replace", replace, "wal"), ("remove", remove, "wal"), ("away", away, "wal"), ("log", remove_log, "wal")];
    for (name, change, journal) in changes.into_iter().chain([("replace", replace, "delete")]) {
        let folder = TestDatabase::sqlite(&format!("existing-{name}-{journal}"));
        let (storage, table, log) = existing_with_copy(&folder, journal);
        table.rows.insert(0, row(3, 1)).unwrap();
        let open = storage.begin(false);
        table.rows.insert(open, row(4, 1)).unwrap();
        let file = existing_file(&folder);
        change(&file);
        let missed = format!("existing.db{} was removed or replaced", if name == "log" { "-wal" } else { "" });
        let is_refused = |written: Result<(), Failure>| {
            let failure = written.unwrap_err();
            let by_sqlite = "its file was removed or replaced";
            assert!(failure.message.contains(&missed) || failure.message.contains(by_sqlite), "{name}: {failure}");
        };
        is_refused(table.rows.commit(open, true));
        is_refused(table.rows.insert(0, row(5, 1)).map(|_| ()));
        is_refused(table.rows.get(0, &Value::Int(1)).map(|_| ()));
        let next = storage.begin(false);
        is_refused(table.rows.insert(next, row(6, 1)).map(|_| ()));
        let said = log.outputs.captured().unwrap();
        assert!(said.starts_with("ERROR the database ") && said.contains(&missed), "{said}");
        assert!(said.contains("; restart the program: until then, nothing more is written to it"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        drop((table, storage));
        if name == "replace" {
            // As the message says.
            assert_eq!(
                said.contains("remove ") && said.contains("-wal, which belongs to the old one"),
                journal == "wal"
            );
            _ = remove_file(format!("{}-wal", file.display()));
            let ids = "SELECT group_concat(id) || (SELECT integrity_check FROM pragma_integrity_check) FROM counts";
            let found = Connection::open(&file).unwrap().query_row(ids, [], |row| row.get::<_, String>(0));
            assert_eq!(found.unwrap(), "1,2ok");
        }
    }
}

/// Another program moves the log into the database, cuts it, and writes a new one.
#[test]
fn what_other_programs_do_with_the_log_of_an_existing_database_is_no_loss() {
    let folder = TestDatabase::sqlite("existing-moved");
    let (storage, table, log) = existing_with_copy(&folder, "wal");
    let other = Connection::open(existing_file(&folder)).unwrap();
    for id in 3..40 {
        table.rows.insert(0, row(id, 1)).unwrap();
        if id % 3 == 0 {
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
        other.execute("INSERT INTO counts VALUES (?1, 1)", [100 + id]).unwrap();
        if id % 7 == 0 {
            other.execute_batch("VACUUM").unwrap();
        }
    }
    drop((table, storage));
    assert_eq!(other.query_row("SELECT count(*) FROM counts", [], |row| row.get(0)), Ok(76));
    assert_eq!(log.outputs.captured().unwrap_or_default(), "");
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
