//! Reads that share a transaction: they see what others commit, and hinder nobody for long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::TestDatabase;
use crate::tables::program_end::ProgramEnd;
use crate::tables::sqlite::database::Database;

/// Opens a database with an empty table `t`.
fn opened(folder: &TestDatabase) -> Database {
    let database = Database::open(&folder.file(), None, ProgramEnd::default()).unwrap();
    database.write((0, 1), "t", |connection| connection.execute_batch("CREATE TABLE t (a)")).unwrap();
    database.end_group();
    database
}

/// Returns the number of rows, and whether the read was one of a transaction.
fn read(database: &Database) -> (i64, bool) {
    let count = |connection: &Connection| {
        let count = connection.prepare_cached("SELECT count(*) FROM t")?.query_row([], |row| row.get(0))?;
        Ok((count, !connection.is_autocommit()))
    };
    database.read((0, true), count).unwrap()
}

/// Reads until a transaction is held.
fn hold(database: &Database) {
    while !read(database).1 {}
}

#[test]
fn held_reads_see_what_another_program_commits() {
    let folder = TestDatabase::sqlite("held-reads");
    let database = opened(&folder);
    let other = Connection::open(folder.file()).unwrap();
    for rows in 1..300 {
        if rows % 30 == 1 {
            hold(&database);
        }
        other.execute("INSERT INTO t VALUES (1)", []).unwrap();
        assert_eq!(read(&database).0, rows);
        if rows % 50 == 0 {
            // The log begins anew.
            other.busy_timeout(Duration::from_secs(60)).unwrap();
            let checkpoint = other.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0));
            assert_eq!(checkpoint.unwrap(), 0);
        }
    }
}

#[test]
fn a_held_read_ends_before_others_use_the_connection() {
    let folder = TestDatabase::sqlite("held-read-ends");
    let database = opened(&folder);
    for rows in 1..4 {
        hold(&database);
        database.write((0, 1), "t", |connection| connection.execute_batch("INSERT INTO t VALUES (1)")).unwrap();
        // In the transaction of the group, unless that has ended by itself.
        assert_eq!(read(&database).0, rows);
        database.end_group();
        assert_eq!(read(&database).0, rows);
    }
    hold(&database);
    database.look(|_| Ok(())).unwrap();
    hold(&database);
    database.changing(|_| Ok(Ok(()))).unwrap();
    hold(&database);
    database.close().unwrap();
    assert_eq!(std::fs::metadata(folder.file().with_extension("db-wal")).unwrap().len(), 0);
}

#[test]
fn programs_that_wait_for_readers_find_a_moment() {
    let folder = TestDatabase::sqlite("held-reads-moments");
    let database = opened(&folder);
    let (other, done) = (Connection::open(folder.file()).unwrap(), AtomicBool::new(false));
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    let checkpoint = || other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).unwrap();
    hold(&database);
    assert_eq!(checkpoint(), 0, "nobody reads any more");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                read(&database);
            }
        });
        for _ in 0..5 {
            other.execute("INSERT INTO t VALUES (1)", []).unwrap();
            let is_hindered = checkpoint() != 0;
            if is_hindered {
                done.store(true, Ordering::Relaxed);
            }
            assert!(!is_hindered);
        }
        done.store(true, Ordering::Relaxed);
    });
}
