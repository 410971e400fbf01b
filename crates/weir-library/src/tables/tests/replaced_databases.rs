//! Logs of SQLite beside the file of another database, such as a backup that has replaced their own.

use std::fs::copy;
use std::sync::Arc;

use rusqlite::Connection;
use test_support::random::Random;

use super::checkpoints::insert_large;
use super::lost_logs::{copy_of, settle, started};
use super::{TestDatabase, schema};
use crate::tables::backup;
use crate::tables::program_end::ProgramEnd;
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::database_files::beside;
use crate::tables::sqlite::stored::StoredTable;

const ALL: [&str; 3] = ["", "-wal", "-note"];
/// Number of moments of a sequence.
const MOMENTS: usize = 24;

/// Does what `.restore` of `sqlite3` does with the number and the stamp of a database, in which a backup has others.
pub(super) const RESTORE: &str =
    "BEGIN; CREATE TABLE restored (a); DROP TABLE restored; UPDATE weir_log SET number = 1;
    UPDATE weir_stamp SET stamp = hex(randomblob(16)); COMMIT";

/// Number of random sequences; `WEIR_MOMENTS` sets another one.
fn sequences() -> u64 {
    std::env::var("WEIR_MOMENTS").ok().and_then(|sequences| sequences.parse().ok()).unwrap_or(2)
}

/// A program that writes a database, and the number of its rows.
struct Writing {
    folder: TestDatabase,
    open: Option<(Arc<Database>, StoredTable)>,
    rows: i64,
}

impl Writing {
    fn begin(folder: TestDatabase, rows: i64) -> Writing {
        let mut writing = Writing { folder, open: None, rows };
        writing.start();
        writing
    }

    fn start(&mut self) {
        let database = Arc::new(Database::open(&self.folder.file(), None, ProgramEnd::default()).unwrap());
        let table = StoredTable::open(schema(), Arc::clone(&database)).unwrap();
        self.open = Some((database, table));
    }

    fn insert(&mut self, count: i64) {
        let (database, table) = self.open.as_ref().unwrap();
        for _ in 0..count {
            insert_large(table, self.rows);
            self.rows += 1;
            settle(database).unwrap();
        }
    }

    /// Has another program move a part of the log.
    fn move_a_part(&mut self) {
        let [reader, mover] = [(); 2].map(|()| Connection::open(self.folder.file()).unwrap());
        reader.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema").unwrap();
        self.insert(1);
        mover.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    }

    /// Ends the program as usual, and starts it again.
    fn start_again(&mut self) {
        let (database, table) = self.open.take().unwrap();
        database.close().unwrap();
        drop((table, database));
        self.start();
    }

    /// Returns the files as a kill leaves them.
    fn killed(&self) -> TestDatabase {
        let _held = self.open.as_ref().unwrap().0.without_checkpoints();
        copy_of(&self.folder, &ALL)
    }
}

/// Returns the number of rows in a database that is whole.
#[track_caller]
fn rows_of(database: &TestDatabase) -> i64 {
    let connection = Connection::open(database.file()).unwrap();
    let whole: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    connection.query_row("SELECT count(*) FROM things", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_log_beside_a_file_that_has_replaced_its_database_is_refused_before_anything_is_written() {
    let mut writing = Writing::begin(TestDatabase::sqlite("replaced"), 0);
    let copies = TestDatabase::sqlite("replaced-copies");
    let copied = |name: &str| copies.file().with_file_name(name);
    writing.insert(2);
    let killed = writing.killed();
    writing.start_again();
    copy(writing.folder.file(), copied("file of before")).unwrap();
    writing.start_again();
    writing.insert(1);
    backup(&writing.folder.file(), &copied("backup")).unwrap();
    writing.insert(1);
    let other = Writing::begin(TestDatabase::sqlite("replaced-other"), 0);
    other.open.as_ref().unwrap().0.close().unwrap();
    copy(other.folder.file(), copied("other program of Weir")).unwrap();
    Connection::open(copied("other program")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    std::fs::write(copied("text"), "no database ".repeat(1_000)).unwrap();
    for (name, rows) in [
        ("file of before", Some(2)),
        ("backup", Some(3)),
        ("other program of Weir", Some(0)),
        ("other program", None),
        ("text", None),
    ] {
        let replaced = writing.killed();
        copy(copied(name), replaced.file()).unwrap();
        let before = ALL.map(|end| std::fs::read(beside(&replaced.file(), end)).unwrap());
        let refused = started(&replaced);
        assert!(refused.contains("test.db-wal belongs to another file than"), "{name}: {refused}");
        assert!(refused.contains("test.db-note; to keep the rows"), "{name}: {refused}");
        let not_copied = backup(&replaced.file(), &copied(&format!("{name} again"))).unwrap_err();
        assert_eq!(not_copied.message.as_str(), refused);
        assert!(ALL.map(|end| std::fs::read(beside(&replaced.file(), end)).unwrap()) == before, "{name}");
        ["-wal", "-note"].iter().for_each(|end| std::fs::remove_file(beside(&replaced.file(), end)).unwrap());
        if let Some(rows) = rows {
            assert_eq!(started(&replaced), "", "{name}");
            assert_eq!(rows_of(&replaced), rows, "{name}");
        }
    }
    assert_eq!(started(&killed), "", "the files belong together");
    assert_eq!(rows_of(&killed), 2);
}

/// Such as a backup that an older version has made.
#[test]
fn a_log_beside_a_file_without_a_stamp_is_refused_if_its_database_had_one() {
    let mut writing = Writing::begin(TestDatabase::sqlite("stampless"), 2);
    writing.start_again();
    writing.insert(2);
    let replaced = writing.killed();
    let copied = replaced.file().with_file_name("copy");
    backup(&writing.folder.file(), &copied).unwrap();
    Connection::open(&copied).unwrap().execute_batch("DROP TABLE weir_stamp; VACUUM").unwrap();
    copy(&copied, replaced.file()).unwrap();
    let before = ALL.map(|end| std::fs::read(beside(&replaced.file(), end)).unwrap());
    assert!(started(&replaced).contains("test.db-wal belongs to another file than"));
    assert!(ALL.map(|end| std::fs::read(beside(&replaced.file(), end)).unwrap()) == before);
}

/// Nothing of it is moved into the database, so that the right log can be put back.
#[test]
fn an_older_log_beside_its_database_is_refused_before_anything_is_written() {
    let mut writing = Writing::begin(TestDatabase::sqlite("older-log"), 0);
    writing.insert(3);
    let older = writing.killed();
    writing.insert(3);
    writing.start_again();
    writing.insert(3);
    let right = writing.killed();
    let mixed = copy_of(&right, &ALL);
    copy(beside(&older.file(), "-wal"), beside(&mixed.file(), "-wal")).unwrap();
    let before = ALL.map(|end| std::fs::read(beside(&mixed.file(), end)).unwrap());
    let refused = started(&mixed);
    assert!(refused.contains("put the log back"), "{refused}");
    assert!(ALL.map(|end| std::fs::read(beside(&mixed.file(), end)).unwrap()) == before);
    copy(beside(&right.file(), "-wal"), beside(&mixed.file(), "-wal")).unwrap();
    assert_eq!(started(&mixed), "");
    assert_eq!(rows_of(&mixed), writing.rows);
}

/// The database is sound: its log has what the program has written since.
#[test]
fn a_backup_that_another_program_restores_under_the_program_is_noted_with_the_next_write() {
    for (name, checkpoint) in [("logged", ""), ("moved", "; PRAGMA wal_checkpoint")] {
        let mut writing = Writing::begin(TestDatabase::sqlite(&format!("restored-{name}")), 0);
        writing.insert(2);
        writing.start_again();
        writing.insert(2);
        writing.folder.execute(&format!("{RESTORE}{checkpoint}"));
        for _ in 0..2 {
            writing.insert(1);
            let killed = writing.killed();
            assert_eq!(started(&killed), "", "{name}");
            assert_eq!(rows_of(&killed), writing.rows, "{name}");
        }
        writing.start_again();
        assert_eq!(rows_of(&writing.killed()), writing.rows, "{name}");
    }
}

/// The files of one moment start. With the file of one moment, and log and note of a later one: the start fails, or all rows are there.
#[test]
fn files_that_belong_together_are_never_refused_and_others_damage_nothing() {
    let refused: usize = (0..sequences()).map(refused_in_sequence).sum();
    assert!(refused > 0);
}

/// Returns how many starts are refused in a random sequence of moments because the log belongs to another file.
fn refused_in_sequence(seed: u64) -> usize {
    // Another program that moves the log, such as `sqlite3`, may have it begin anew without a new stamp.
    let (mut random, has_other) = (Random::new(seed), seed % 2 == 1);
    let mut writing = Writing::begin(TestDatabase::sqlite(&format!("moments-{seed}")), 0);
    let (mut moments, mut refused) = (Vec::new(), 0);
    for moment in 0..MOMENTS {
        match random.below(8) {
            0 => writing.start_again(),
            1 => {
                let rows = writing.rows;
                writing = Writing::begin(writing.killed(), rows);
            }
            2 if has_other => writing.move_a_part(),
            few => writing.insert(few as i64 * 3),
        }
        let (files, rows) = (writing.killed(), writing.rows);
        let copied = copy_of(&files, &ALL);
        assert_eq!(started(&copied), "", "moment {moment}");
        assert_eq!(rows_of(&copied), rows, "moment {moment}");
        moments.push(files);
        if has_other {
            continue;
        }
        let before = random.below(moments.len() as u64) as usize;
        let mix = copy_of(&moments[moment], &ALL);
        copy(moments[before].file(), mix.file()).unwrap();
        let failure = started(&mix);
        if failure.is_empty() {
            assert_eq!(rows_of(&mix), rows, "file of moment {before}, log of moment {moment}");
        } else {
            assert!(before != moment, "{failure}");
            refused += usize::from(failure.contains("belongs to another file"));
        }
    }
    refused
}
