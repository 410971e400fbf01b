//! Logs of SQLite that are lost or cut after a kill: a start notices it, and `weir tables` says so. A program that is running notices
//! it before it acknowledges anything.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use weir::Failure;

use super::checkpoints::insert_large;
use super::{TestDatabase, schema};
use crate::tables::program_end::ProgramEnd;
use crate::tables::sqlite::checkpoint::{move_all, moved_before};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::database_files::beside;
use crate::tables::sqlite::log_note::{LogNote, Noted};
use crate::tables::sqlite::stored::StoredTable;

/// Copies these files of a database into an empty folder.
pub(super) fn copy_of(folder: &TestDatabase, ends: &[&str]) -> TestDatabase {
    // A program of before may still close its files.
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let copy = TestDatabase::sqlite(&format!("log-lost-copy-{}", COPIES.fetch_add(1, Ordering::Relaxed)));
    for end in ends {
        std::fs::copy(beside(&folder.file(), end), beside(&copy.file(), end)).unwrap();
    }
    copy
}

/// Returns why a start fails, also once more, after `weir tables` has promised it; an empty text if it does not.
pub(super) fn started(database: &TestDatabase) -> String {
    let promised = database.report(&schema()).unwrap();
    let start = || {
        let storage = database.storage();
        let opened = storage.open(schema());
        _ = weir::Closing::close(&storage);
        opened.err().map_or_else(String::new, |failure| failure.message.to_string())
    };
    let failure = start();
    assert_eq!(start(), failure, "the second start");
    assert!(promised.contains("a start fails: ") != failure.is_empty(), "{failure} {promised}");
    assert!(promised.contains(&failure), "{failure} {promised}");
    failure
}

/// Returns why a start fails with these files of a database.
fn started_with(folder: &TestDatabase, ends: &[&str]) -> String {
    started(&copy_of(folder, ends))
}

/// Returns why a start fails if the log has lost its end.
fn started_with_cut_log(folder: &TestDatabase, left: impl Fn(u64) -> u64) -> String {
    let copy = copy_of(folder, &["", "-wal", "-note"]);
    let log = std::fs::File::options().write(true).open(beside(&copy.file(), "-wal")).unwrap();
    log.set_len(left(log.metadata().unwrap().len())).unwrap();
    started(&copy)
}

/// Checks the starts after a kill at this moment.
fn check_kill(folder: &TestDatabase, when: &str, needs_log: bool) {
    assert_eq!(started_with(folder, &["", "-wal", "-note"]), "", "{when}");
    let lost = started_with(folder, &["", "-note"]);
    assert_eq!(lost.contains("is lost"), needs_log, "{when}: {lost}");
    let moved = copy_of(folder, &["", "-wal", "-note"]);
    moved.execute("SELECT count(*) FROM sqlite_schema");
    assert!(!beside(&moved.file(), "-wal").exists(), "{when}: the other program moves the log");
    assert_eq!(started(&moved), "", "{when}: another program has moved the log");
    if needs_log {
        for (name, divisor) in [("a third", 3), ("nothing", u64::MAX)] {
            let cut = started_with_cut_log(folder, |length| length / divisor);
            assert!(cut.contains(if name == "nothing" { "is lost" } else { "was cut" }), "{when}, {name}: {cut}");
        }
    }
}

/// Checks the starts after somebody has removed or emptied the database.
fn check_gone(folder: &TestDatabase) {
    for left in [&["-note"][..], &["-wal"], &["-wal", "-note"]] {
        let copies = [copy_of(folder, left), copy_of(folder, left)];
        std::fs::write(copies[1].file(), "").unwrap();
        for copy in copies {
            let gone = started(&copy);
            assert!(gone.contains("is missing or empty") && gone.contains("restore a backup"), "{left:?}: {gone}");
            for end in left {
                std::fs::remove_file(beside(&copy.file(), end)).unwrap();
            }
            assert_eq!(started(&copy), "", "a new database is wanted");
        }
    }
}

#[test]
fn a_start_notices_that_the_log_of_a_program_that_was_killed_is_lost_or_cut() {
    let folder = TestDatabase::sqlite("log-lost");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..2 {
        let database = Arc::new(Database::open(&folder.file(), None, ProgramEnd::default()).unwrap());
        let table = StoredTable::open(schema(), Arc::clone(&database)).unwrap();
        // Before the first checkpoint, and behind several.
        for count in [1, 60] {
            for number in 0..count {
                insert_large(&table, round * 1_000 + count * 100 + number);
                runtime.block_on(database.commits().unwrap().settled()).unwrap();
            }
            let _held = database.without_checkpoints();
            insert_large(&table, round * 1_000 + count * 100 + count);
            runtime.block_on(database.commits().unwrap().settled()).unwrap();
            check_kill(&folder, &format!("round {round}, {count} rows"), true);
            if count == 1 {
                let cut = started_with_cut_log(&folder, |length| length - 1);
                assert!(cut.contains("was cut"), "{cut}");
            }
            assert_eq!(started_with(&folder, &[""]), "", "a backup has no note");
            check_gone(&folder);
        }
        database.close().unwrap();
        drop((table, database));
        assert_eq!(started_with(&folder, &["", "-note"]), "", "the program has ended as usual");
    }
    // Another program has moved the log.
    let database = Arc::new(Database::open(&folder.file(), None, ProgramEnd::default()).unwrap());
    let table = StoredTable::open(schema(), Arc::clone(&database)).unwrap();
    insert_large(&table, 5_000);
    database.end_group();
    let other = Connection::open(folder.file()).unwrap();
    other.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).unwrap();
    assert_eq!(started_with(&folder, &["", "-note"]), "");
}

#[test]
fn a_kill_within_a_checkpoint_is_no_lost_log() {
    let folder = TestDatabase::sqlite("kill-in-checkpoint");
    let path = folder.file();
    folder.storage().open(schema()).unwrap();
    let [writer, mover, reader] = [(); 3].map(|()| Connection::open(&path).unwrap());
    let note = LogNote::begin(&path, &writer, Noted::before_start(&path).unwrap()).unwrap();
    writer.execute_batch("CREATE TABLE numbers (number)").unwrap();
    let insert = || writer.execute_batch("INSERT INTO numbers VALUES (1)").unwrap();
    check_kill(&folder, "before the first row", true);
    for _ in 0..2 {
        insert();
        note.hold_back(&writer, &reader).unwrap();
        check_kill(&folder, "a number is committed", true);
        note.sync_log().unwrap();
        check_kill(&folder, "a number is noted", true);
        insert();
        moved_before(&note, &mover, &reader).unwrap();
        check_kill(&folder, "a part is moved", true);
        insert();
        assert!(move_all(&note, &writer, (&mover, &reader), "RESTART").unwrap().is_whole);
        check_kill(&folder, "all is moved", false);
        note.raise(&writer).unwrap();
        check_kill(&folder, "the log has begun anew", false);
        note.sync_log().unwrap();
        insert();
        check_kill(&folder, "the log is used again", true);
    }
}

/// Writers append meanwhile, also those of other programs: what they have appended is not cut off.
#[test]
fn the_length_of_the_log_is_set_only_while_nobody_else_writes() {
    let folder = TestDatabase::sqlite("log-length");
    let path = folder.file();
    let storage = folder.storage();
    storage.open(schema()).unwrap();
    weir::Closing::close(&storage).unwrap();
    let [writer, other] = [(); 2].map(|()| Connection::open(&path).unwrap());
    let note = LogNote::begin(&path, &writer, Noted::before_start(&path).unwrap()).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    let log = File::options().write(true).open(beside(&path, "-wal")).unwrap();
    let length = || log.metadata().unwrap().len();
    let whole = length();
    for longer in [whole - 4_120, whole + 4_120] {
        log.set_len(longer).unwrap();
        note.sync_log().unwrap();
        assert_eq!(length(), longer);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(note.raise(&writer).unwrap_err().is_busy());
        assert_eq!(length(), longer);
        other.execute_batch("COMMIT").unwrap();
        note.raise(&writer).unwrap();
        assert_eq!(length(), whole.max(longer));
    }
}

/// Cuts the log of a program that is running.
fn cut_log(folder: &TestDatabase, left: u64) {
    File::options().write(true).open(beside(&folder.file(), "-wal")).unwrap().set_len(left).unwrap();
}

fn log_length(folder: &TestDatabase) -> u64 {
    std::fs::metadata(beside(&folder.file(), "-wal")).unwrap().len()
}

fn opened(folder: &TestDatabase) -> (Arc<Database>, StoredTable) {
    let database = Arc::new(Database::open(&folder.file(), None, ProgramEnd::default()).unwrap());
    let table = StoredTable::open(schema(), Arc::clone(&database)).unwrap();
    (database, table)
}

/// Makes rows durable.
fn insert_durably((database, table): (&Database, &StoredTable), numbers: Range<i64>) {
    for number in numbers {
        insert_large(table, number);
        settle(database).unwrap();
    }
}

pub(super) fn settle(database: &Database) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(database.commits().unwrap().settled())
}

/// The log may be as long as before, or longer, when something was written behind the cut.
#[test]
#[cfg(target_os = "linux")]
fn a_program_notices_that_its_log_was_cut_before_it_acknowledges_anything() {
    for (name, count, divisor) in [("all", 2, u64::MAX), ("a-third", 15, 3), ("all-of-a-long-one", 35, u64::MAX)] {
        let folder = TestDatabase::sqlite(&format!("cut-{name}"));
        let (database, table) = opened(&folder);
        let held = database.without_checkpoints();
        insert_durably((&database, &table), 0..count);
        let length = log_length(&folder);
        cut_log(&folder, length / divisor);
        insert_large(&table, count);
        let failure = settle(&database).expect_err(name);
        assert!(failure.message.contains("test.db-wal was cut; restart the program"), "{name}: {failure}");
        assert_eq!(log_length(&folder) > length, count == 35, "{name}");
        drop(held);
        assert_eq!(database.close().unwrap_err().message, failure.message);
        drop((table, database));
        let start = started_with(&folder, &["", "-wal", "-note"]);
        assert!(start.contains("is lost") || start.contains("was cut"), "{name}: {start}");
        let copy = copy_of(&folder, &[""]);
        let other = Connection::open(copy.file()).unwrap();
        let is_whole = other.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(is_whole.as_deref(), Ok("ok"), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_only_reads_its_cut_log_says_so_and_does_not_move_it() {
    let folder = TestDatabase::sqlite("cut-and-read");
    let (database, table) = opened(&folder);
    insert_durably((&database, &table), 0..3);
    cut_log(&folder, 0);
    let query = format!("SELECT count(*) FROM {}", schema().name);
    let read = database.read((0, false), |connection| connection.query_row(&query, [], |row| row.get::<_, i64>(0)));
    let failure = database.failure(&read.unwrap_err());
    assert!(failure.message.contains("its log was cut while the program had it open"), "{failure}");
    let failure = database.close().unwrap_err();
    assert!(failure.message.contains("test.db-wal was cut"), "{failure}");
    drop((table, database));
    assert!(started_with(&folder, &["", "-wal", "-note"]).contains("is lost"));
}

#[test]
fn another_program_may_cut_what_it_has_moved_of_the_log() {
    let folder = TestDatabase::sqlite("moved-by-another");
    let (database, table) = opened(&folder);
    insert_durably((&database, &table), 0..3);
    let other = Connection::open(folder.file()).unwrap();
    for number in 3..6 {
        insert_large(&table, number);
        database.end_group();
        other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert_eq!(log_length(&folder), 0);
        settle(&database).unwrap();
        insert_large(&table, 10 + number);
        settle(&database).unwrap();
    }
    database.close().unwrap();
    assert_eq!(started_with(&folder, &["", "-note"]), "");
}

#[test]
fn a_note_that_is_damaged_or_cannot_be_written_is_explained() {
    let folder = TestDatabase::sqlite("damaged-note");
    assert_eq!(started(&folder), "");
    let note = beside(&folder.file(), "-note");
    for empty in ["", "\0\0\0\0"] {
        std::fs::write(&note, empty).unwrap();
        assert_eq!(started(&folder), "", "a power cut leaves a note so that was not written yet");
    }
    for damaged in ["7", "milk\n", "7 \n", "\0 7 1\n"] {
        std::fs::write(&note, damaged).unwrap();
        let failure = started(&folder);
        assert!(failure.contains("test.db-note is damaged") && failure.contains("or remove"), "{failure}");
    }
    std::fs::remove_file(&note).unwrap();
    std::fs::create_dir(&note).unwrap();
    let failure = started(&folder);
    assert!(failure.contains("cannot read") && failure.contains("test.db-note"), "{failure}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named_when_the_note_is_made() {
    let folder = TestDatabase::sqlite("note-on-full-disk");
    std::os::unix::fs::symlink("/dev/full", beside(&folder.file(), "-note")).unwrap();
    let failure = Database::open(&folder.file(), None, ProgramEnd::default())
        .err()
        .map(|failure| failure.message.to_string())
        .unwrap_or_default();
    assert!(failure.contains("cannot write") && failure.contains("free some space"), "{failure}");
}
