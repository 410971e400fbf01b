//! Checkpoints: nobody waits for them, and the log stays short.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use weir::Value;

use super::agreement::RandomRows;
use super::{TestDatabase, everything, schema};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::rows::TableRows;
use crate::tables::sqlite::checkpoint::{LogPages, LogThread};
use crate::tables::sqlite::database_files::{LOG_KEPT_MAX, LOG_PAGES_MAX};
use crate::tables::sqlite::log_note::{LogNote, Noted};
use crate::tables::sqlite::shared_writer::SharedWriter;
use crate::tables::sqlite::writer::Writer;
use crate::tables::table_log::TableLog;

/// Begins the thread for a database with a log that is long enough for a checkpoint.
fn long_log(path: &Path, log: Option<TableLog>) -> (LogThread, Arc<SharedWriter>, LogPages) {
    let (mut connection, pages) = (Connection::open(path).unwrap(), LogPages::default());
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
    pages.count(&mut connection).unwrap();
    let note = Arc::new(LogNote::begin(path, &connection, Noted::default()).unwrap());
    let writer = Arc::new(SharedWriter::new(Writer::new(connection)));
    let thread = LogThread::begin(path, Arc::clone(&writer), (pages.clone(), note), log).unwrap();
    let insert = format!("INSERT INTO t VALUES (zeroblob({}))", LOG_PAGES_MAX * 4_096);
    writer.lock().connection.execute_batch(&insert).unwrap();
    assert!(pages.now() >= LOG_PAGES_MAX);
    (thread, writer, pages)
}

/// It fails because the database cannot be opened, as it would on a full disk.
#[test]
fn a_checkpoint_that_fails_is_made_again_although_nobody_writes_and_the_log_says_so() {
    let folder = TestDatabase::sqlite("failing-checkpoints");
    let (path, elsewhere) = (folder.file(), folder.file().with_extension("elsewhere"));
    let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
    let said = || log.outputs.captured().unwrap().replace(&path.display().to_string(), "DB");
    let (thread, _writer, pages) = long_log(&path, Some(log.clone()));
    std::fs::rename(&path, &elsewhere).unwrap();
    while said().is_empty() {
        // Until the thread waits for a request.
        thread.bound_log();
    }
    std::fs::rename(&elsewhere, &path).unwrap();
    while said().lines().count() < 2 {
        std::thread::yield_now();
    }
    assert!(pages.now() < 10, "the log begins anew");
    let (failed, succeeded) = (said(), "INFO the log DB-wal was moved into the database, and grows no further\n");
    let begin = "WARN the log DB-wal grows, because it cannot be moved into the database; it is tried again until it succeeds: ";
    assert!(failed.starts_with(begin) && failed.ends_with(succeeded), "{failed}");
}

/// Otherwise the log would take the room on the disk for which the checkpoint waits.
#[test]
fn a_log_that_cannot_be_moved_is_tried_again_before_it_has_grown_much() {
    let folder = TestDatabase::sqlite("growing-log");
    let (path, elsewhere) = (folder.file(), folder.file().with_extension("elsewhere"));
    let (thread, writer, pages) = long_log(&path, None);
    std::fs::rename(&path, &elsewhere).unwrap();
    let grow = || {
        writer.lock().connection.execute_batch("INSERT INTO t VALUES (zeroblob(40960))").unwrap();
        thread.bound_log();
    };
    // Now the thread has tried it, and waits for a request.
    while pages.now() < 2 * LOG_PAGES_MAX {
        grow();
    }
    std::fs::rename(&elsewhere, &path).unwrap();
    let before = pages.now();
    while pages.now() >= before {
        grow();
        assert!(pages.now() < before + LOG_PAGES_MAX / 2, "the log has grown to {} pages", pages.now());
    }
}

#[test]
fn who_asks_for_a_checkpoint_does_not_wait_for_it() {
    let folder = TestDatabase::sqlite("checkpoints");
    let (thread, writer, pages) = long_log(&folder.file(), None);
    let held = writer.lock();
    // It cannot end meanwhile.
    (0..1_000).for_each(|_| thread.bound_log());
    drop(held);
    while pages.now() >= LOG_PAGES_MAX {
        thread.bound_log();
        std::thread::yield_now();
    }
    let held = writer.lock();
    held.connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    assert!(pages.now() < 10, "the log begins anew");
}

/// Inserts a row of 64 KB.
pub(super) fn insert_large(rows: &dyn TableRows, number: i64) {
    let mut fields = crate::tables::row::fields(&RandomRows::new(5).row()).to_vec();
    (fields[1], fields[2]) = (Value::Int(number), Value::Float(0.0));
    (fields[4], fields[7]) = (Value::none(), Value::bytes(vec![7; 64 << 10]));
    rows.insert(0, Value::Record(fields.into())).unwrap();
}

/// Checkpoints begin while others append to the log.
#[test]
fn writers_beside_checkpoints_lose_nothing() {
    const ROWS: i64 = 300;
    let folder = TestDatabase::sqlite("writers-beside-checkpoints");
    let storage = folder.storage();
    let table = storage.open(schema()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (storage, table) = (&storage, &table);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for number in 0..ROWS {
                    insert_large(&*table.rows, writer * ROWS + number);
                    runtime.block_on(storage.settled(true)).unwrap();
                }
            });
        }
    });
    let other = Connection::open(folder.file()).unwrap();
    let text = |sql| other.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let table = schema().name;
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(text(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")), (4 * ROWS).to_string());
}

#[test]
fn a_log_that_a_reader_has_made_long_is_cut_when_it_begins_anew() {
    let folder = TestDatabase::sqlite("long-log");
    let storage = folder.storage();
    let table = storage.open(schema()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut numbers = 0..;
    let mut grow_until = |is_reached: &dyn Fn(u64) -> bool| loop {
        insert_large(&*table.rows, numbers.next().unwrap());
        runtime.block_on(storage.settled(true)).unwrap();
        let length = std::fs::metadata(folder.file().with_extension("db-wal")).unwrap().len();
        assert!(length < 4 * u64::from(LOG_KEPT_MAX), "the log has grown to {length} bytes");
        if is_reached(length) {
            return;
        }
    };
    let kept_max = u64::from(LOG_KEPT_MAX);
    let reader = rusqlite::Connection::open(folder.file()).unwrap();
    let read = reader.unchecked_transaction().unwrap();
    read.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
    grow_until(&|length| length > kept_max);
    drop(read);
    grow_until(&|length| length <= kept_max);
}

#[test]
fn the_log_stays_short_and_is_empty_at_the_end() {
    let folder = TestDatabase::sqlite("log");
    let storage = folder.storage();
    let table = storage.open(schema()).unwrap();
    let log = folder.file().with_extension("db-wal");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut longest = 0;
    for number in 0..300 {
        insert_large(&*table.rows, number);
        runtime.block_on(storage.settled(true)).unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    assert!(longest < 3 * 4_120 * u64::from(LOG_PAGES_MAX), "the log has grown to {longest} bytes");
    weir::Closing::close(&storage).unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    let copy = TestDatabase::sqlite("log-copy");
    std::fs::copy(folder.file(), copy.file()).unwrap();
    assert_eq!(copy.storage().open(schema()).unwrap().rows.count(0, &everything()).unwrap(), 300);
}
