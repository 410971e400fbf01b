//! Starts whose database is a link, or in a folder in which it cannot be made: `weir tables` says so before. And starts beside
//! another program that has a lock of the database.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use weir::{Closing, Value};

use super::evolution::user;
use super::{TestDatabase, column, declared, users};
use crate::tables::report;
use crate::tables::sqlite::connection::BUSY_TIMEOUT;
use crate::tables::sqlite::database_files::beside;
use crate::tables::sqlite::log_note::{LogNote, Noted};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::{ExistingDatabases, TableLocation};

/// Moves these files of a database to another folder, and links to the database there.
fn moved(database: &TestDatabase, ends: &[&str]) -> TestDatabase {
    let far = TestDatabase::sqlite(&format!("linked-far-{}", ends.len()));
    for end in ends {
        // A program of before may still close its files.
        std::fs::copy(beside(&database.file(), end), beside(&far.file(), end)).unwrap();
        std::fs::remove_file(beside(&database.file(), end)).unwrap();
    }
    symlink(far.file(), database.file()).unwrap();
    far
}

/// Returns a database in which the row of `ada` is.
fn with_row(name: &str) -> TestDatabase {
    let database = TestDatabase::sqlite(name);
    let storage = database.storage();
    storage.open(users()).unwrap().rows.insert(0, user("ada", [Value::Int(1)])).unwrap();
    storage.close().unwrap();
    database
}

/// Returns a copy of it, which no thread of a program that has ended may still close.
fn copy_with_row(name: &str) -> TestDatabase {
    let copy = TestDatabase::sqlite(&format!("{name}-copy"));
    std::fs::copy(with_row(name).file(), copy.file()).unwrap();
    copy
}

#[test]
fn the_log_of_a_linked_database_is_beside_the_file() {
    let database = with_row("linked");
    let far = moved(&database, &["", "-note"]);
    for _ in 0..2 {
        let report = database.report(&users()).unwrap();
        assert!(report.contains("the database has it like this"), "{report}");
        let storage = database.storage();
        let table = storage.open(users()).unwrap();
        assert!(table.rows.get(0, &Value::text("ada")).unwrap().is_some());
        let has_log = |of: &TestDatabase| std::fs::metadata(beside(&of.file(), "-wal")).is_ok_and(|log| log.len() > 0);
        assert!(has_log(&far) && !has_log(&database));
        assert!(!beside(&database.file(), "-note").exists());
        storage.close().unwrap();
    }
}

#[test]
fn a_log_that_was_left_beside_a_link_is_named() {
    let database = with_row("linked-left");
    let _far = moved(&database, &[""]);
    let report = database.report(&users()).unwrap();
    let refused = database.storage().open(users()).unwrap_err().message.to_string();
    assert!(refused.contains("is a link to") && refused.contains("-note is beside the link"), "{refused}");
    assert!(report.contains(&format!("a start fails: {refused}")), "{report}");
}

#[test]
fn a_folder_that_is_missing_fails_the_start() {
    let database = TestDatabase::sqlite("no-folder");
    let place = TableLocation::File(database.file().with_file_name("missing").join("test.db"));
    let refused = TableStorage::at(place.clone()).open(users()).unwrap_err().message.to_string();
    assert!(refused.contains("there is no folder"), "{refused}");
    let report = report((&users(), &[users()]), &[], (&place, &ExistingDatabases::default())).unwrap();
    assert!(report.fails && report.text.contains(&format!("a start fails: {refused}")), "{}", report.text);
}

#[test]
fn what_is_in_the_way_of_the_database_is_told_before_in_the_words_of_the_start() {
    let database = TestDatabase::sqlite("in-the-way");
    let in_folder = |name: &str| database.file().with_file_name(name);
    std::fs::create_dir(in_folder("folder.db")).unwrap();
    std::fs::write(in_folder("text.db"), "no database ".repeat(1_000)).unwrap();
    Connection::open(in_folder("other.db")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let cases = [
        (in_folder("folder.db"), "is a folder: move it away"),
        (in_folder("text.db"), "it is no SQLite database"),
        (in_folder("other.db"), "it is the database of another program"),
        (in_folder("text.db").join("test.db"), "cannot open the database"),
    ];
    for (file, why) in cases {
        let place = TableLocation::File(file);
        let refused = TableStorage::at(place.clone()).open(users()).unwrap_err().message.to_string();
        assert!(refused.contains(why), "{refused}");
        let report = report((&users(), &[users()]), &[], (&place, &ExistingDatabases::default())).unwrap();
        assert!(report.fails && report.text.contains(&format!("a start fails: {refused}")), "{}", report.text);
    }
}

/// Fails if a part of a start that another program hinders does not wait so long for it.
fn check_waits(least: Duration, start: impl FnOnce() -> Option<String>) {
    let begun = Instant::now();
    let refused = start().unwrap_or_default();
    assert!(refused.contains("database is locked; another program reads or writes it"), "{refused}");
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
}

/// Also at statements for which SQLite itself does not wait, because its transaction has read before.
#[test]
fn each_part_of_a_start_waits_for_another_program() {
    let database = TestDatabase::sqlite("start-waits");
    let other = Connection::open(database.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    check_waits(BUSY_TIMEOUT, || database.storage().open(users()).err().map(|failure| failure.message.to_string()));
    other.execute_batch("COMMIT").unwrap();

    let (storage, limit) = (database.storage(), Duration::from_millis(50));
    storage.open(users()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = Connection::open(database.file()).unwrap();
    writer.busy_timeout(limit).unwrap();
    let noted = Noted::before_start(&database.file()).unwrap();
    let noting = || LogNote::begin(&database.file(), &writer, noted).err().map(|failure| failure.message.to_string());
    check_waits(limit, noting);
    let things = declared("things", vec![column("id", "Int", false)]);
    check_waits(BUSY_TIMEOUT, || storage.open(things).err().map(|failure| failure.message.to_string()));
}

#[test]
fn a_program_ends_beside_another_one_that_writes() {
    let database = with_row("end-beside");
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    let other = Connection::open(database.file()).unwrap();
    table.rows.insert(0, user("eve", [Value::Int(3)])).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    storage.close().unwrap();
    drop((table, storage, other));
    let table = database.storage().open(users()).unwrap();
    assert!(table.rows.get(0, &Value::text("eve")).unwrap().is_some());
}

/// The rows would go to a file that a start does not find.
#[test]
fn a_link_that_is_switched_under_a_program_is_noticed() {
    let database = with_row("switched");
    let _far = moved(&database, &["", "-note"]);
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    std::fs::remove_file(database.file()).unwrap();
    symlink(database.file().with_extension("other"), database.file()).unwrap();
    _ = table.rows.insert(0, user("eve", [Value::Int(3)]));
    let settled = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(storage.settled(true));
    let failure = settled.unwrap_err();
    assert!(failure.message.contains("any more: put the link back"), "{failure}");
}

#[test]
fn a_file_beside_the_database_that_may_not_be_opened_is_named() {
    let database = copy_with_row("denied-log");
    let log = beside(&database.file(), "-wal");
    std::fs::write(&log, "a log").unwrap();
    std::fs::set_permissions(&log, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::File::open(&log).is_ok() {
        eprintln!("skipped: this user may open every file");
        return;
    }
    let log = log.display().to_string();
    let refused = database.storage().open(users()).map(|_| ()).unwrap_err();
    let advice = format!("; give the program the right to read and write {log}");
    assert!(refused.message.ends_with(&advice), "{refused}");
    let report = database.report(&users()).unwrap();
    assert!(report.contains("a start fails: ") && report.contains(&log), "{report}");
}

/// Such as one that was cut under a program.
#[test]
fn a_start_that_a_damaged_database_refuses_is_reported() {
    let database = copy_with_row("damaged-report");
    let file = database.file();
    let length = std::fs::metadata(&file).unwrap().len();
    std::fs::File::options().write(true).open(&file).unwrap().set_len(length / 2).unwrap();
    let place = TableLocation::File(file);
    let report = report::report((&users(), &[users()]), &[], (&place, &ExistingDatabases::default())).unwrap();
    assert!(
        report.fails && report.text.contains("a start fails: ") && report.text.contains("malformed"),
        "{}",
        report.text
    );
}
