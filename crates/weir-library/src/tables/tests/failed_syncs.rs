//! Syncs of the log of SQLite that fail, as on a broken disk: the program ends, and its next start has what was acknowledged.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use weir::{Closing, SeenCommits};

use super::replaced_files::{key, named, settle};
use super::{TestDatabase, users};
use crate::tables::sqlite::database_files::beside;
use crate::tables::sqlite::durable_files::DurableFiles;
use crate::tables::sqlite::log_note::{LogNote, Noted};

#[test]
fn a_sync_that_fails_ends_the_program_and_the_next_start_has_what_was_acknowledged() {
    let database = TestDatabase::sqlite("failed-sync");
    let storage = database.storage();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ends);
    storage.on_end(move |failure| noted.lock().push(failure.message.to_string()));
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, named(1)).unwrap();
    settle(&storage).unwrap();
    assert_eq!(ends.lock().len(), 0);
    // A later sync would succeed, as one of Linux does, although what was to be synced may be lost.
    DurableFiles::fail_syncs(&database.file(), 1);
    table.rows.insert(0, named(2)).unwrap();
    let failure = settle(&storage).unwrap_err();
    let reason = "cannot make the tables durable: Input/output error";
    assert!(failure.message.starts_with(reason) && failure.message.contains("the program ends"), "{failure}");
    assert_eq!(*ends.lock(), [failure.message.to_string()]);
    // Until it has ended, it writes nothing, and tells nobody that what it has written is durable.
    assert!(table.rows.insert(0, named(3)).is_err());
    assert!(settle(&storage).is_err());
    SeenCommits::forget();
    assert!(storage.close().is_err());
    drop((table, storage));
    assert!(beside(&database.file(), "-wal").exists(), "the log was moved into the database");
    let storage = database.storage();
    let table = storage.open(users()).unwrap();
    assert_eq!(table.rows.get(0, &key(1)).unwrap(), Some(named(1)));
    table.rows.insert(0, named(4)).unwrap();
    settle(&storage).unwrap();
}

/// The operating system tells of a write that has failed only once.
#[test]
fn no_sync_succeeds_behind_one_of_a_checkpoint_that_has_failed() {
    let folder = TestDatabase::sqlite("failed-checkpoint-sync");
    let connection = Connection::open(folder.file()).unwrap();
    connection.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE numbers (number INTEGER)").unwrap();
    let note = LogNote::begin(&folder.file(), &connection, Noted::default()).unwrap();
    note.sync_log().unwrap();
    DurableFiles::fail_syncs(&folder.file(), 1);
    for _ in 0..2 {
        let failure = note.sync_log().unwrap_err();
        assert!(failure.message.contains("Input/output error"), "{failure}");
    }
}
