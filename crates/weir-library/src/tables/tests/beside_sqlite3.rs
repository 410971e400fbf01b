//! Transactions in SQLite beside another program that writes the same tables: what they read is of one moment, and nobody else writes
//! between that and what they write.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use weir::Value;

use super::test_database::TestDatabase;
use super::{column, declared, everything, reference};
use crate::tables::grouping::{TableGrouping, average_in};
use crate::tables::open_table::OpenTable;
use crate::tables::schema::{ColumnSchema, ExistingTable, Schema};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::ExistingDatabases;
use crate::tables::table_log::TableLog;
use crate::tables::transaction_number::only_reading;

/// Time for which the other program waits for what is not to last.
const LONG: Duration = Duration::from_secs(600);

/// The table of a program, and the connection of another one to its database.
struct Beside {
    folder: TestDatabase,
    storage: TableStorage,
    table: Arc<OpenTable>,
    other: Connection,
}

impl Beside {
    /// Opens a table with the rows 1 and 2 in the database of the program, or in an existing one with this journal.
    fn new(name: &str, journal: Option<&str>) -> Beside {
        let folder = TestDatabase::sqlite(&format!("{name}-{}", journal.unwrap_or("own")));
        let (storage, table, other) = match journal {
            None => {
                let storage = folder.storage();
                let table = storage.open(counts()).unwrap();
                (storage, table, Connection::open(folder.file()).unwrap())
            }
            Some(journal) => {
                let other = Connection::open(existing_file(&folder)).unwrap();
                let create = "CREATE TABLE counts (id INTEGER PRIMARY KEY NOT NULL, count INTEGER NOT NULL)";
                other.execute_batch(&format!("PRAGMA journal_mode={journal}; {create}")).unwrap();
                let (storage, table) = existing(&folder, None);
                (storage, table, other)
            }
        };
        other.busy_timeout(LONG).unwrap();
        other.execute_batch("INSERT INTO counts VALUES (1, 1), (2, 1)").unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        Beside { folder, storage, table, other }
    }

    fn each(name: &str) -> [Beside; 3] {
        [None, Some("wal"), Some("delete")].map(|journal| Beside::new(name, journal))
    }

    fn begin(&self) -> i64 {
        self.storage.begin(false)
    }

    fn read(&self, transaction: i64, id: i64) -> i64 {
        count_of(&self.table.rows.get(transaction, &Value::Int(id)).unwrap().unwrap())
    }

    /// Adds to all rows as another program does.
    fn add(&self, number: i64) -> rusqlite::Result<usize> {
        self.other.execute("UPDATE counts SET count = count + ?1", [number])
    }

    /// Adds as [`Beside::add`] as soon as the program lets it.
    fn add_later(&self, number: i64) {
        self.other.busy_timeout(LONG).unwrap();
        assert_eq!(self.add(number), Ok(2));
    }
}

fn counts() -> Schema {
    declared("counts", vec![column("id", "Int", false), column("count", "Int", false)])
}

pub(super) fn existing_file(folder: &TestDatabase) -> std::path::PathBuf {
    folder.file().with_file_name("existing.db")
}

/// Opens the table of a database that another program has made, and writes to the log.
pub(super) fn existing(folder: &TestDatabase, log: Option<TableLog>) -> (TableStorage, Arc<OpenTable>) {
    let databases =
        ExistingDatabases { folder: folder.file().parent().unwrap().to_owned(), ..ExistingDatabases::default() };
    let columns = counts().columns.into_iter().map(|column| ColumnSchema { existing: true, ..column }).collect();
    let of =
        ExistingTable { database: "existing.db".to_owned(), writable: true, constraint: "tables.counts".to_owned() };
    let storage = folder.storage().with_existing(databases);
    let storage = log.into_iter().fold(storage, TableStorage::with_log);
    let table = storage.open(Schema { existing: Some(of), ..declared("counts", columns) }).unwrap();
    (storage, table)
}

pub(super) fn row(id: i64, count: i64) -> Value {
    Value::Record([Value::Int(id), Value::Int(count)].into())
}

fn count_of(row: &Value) -> i64 {
    match &crate::tables::row::fields(row)[1] {
        Value::Int(count) => *count,
        other => panic!("{other}"),
    }
}

#[test]
fn nobody_writes_between_the_read_of_a_transaction_and_its_write() {
    for beside in Beside::each("read-and-write") {
        let transaction = beside.begin();
        let count = beside.read(transaction, 1);
        beside.add(100).unwrap_err();
        beside.table.rows.replace(transaction, &Value::Int(1), row(1, count + 1)).unwrap();
        beside.table.rows.commit(transaction, true).unwrap();
        beside.add_later(100);
        assert_eq!(beside.read(0, 1), 102);
    }
}

#[test]
fn nobody_writes_between_the_search_of_a_transaction_and_its_write() {
    for beside in Beside::each("search-and-write") {
        let transaction = beside.begin();
        let old = beside.table.rows.select(transaction, &everything()).unwrap();
        beside.add(100).unwrap_err();
        let new = old.iter().enumerate().map(|(at, old)| row(at as i64 + 1, count_of(old) + 1)).collect();
        assert_eq!(beside.table.rows.replace_rows(transaction, &old, new), Ok(2));
        beside.table.rows.commit(transaction, true).unwrap();
        beside.add_later(100);
        assert_eq!([beside.read(0, 1), beside.read(0, 2)], [102, 102]);
    }
}

#[test]
fn a_transaction_that_only_reads_sees_one_moment_and_waits_for_nobody() {
    for beside in Beside::each("only-reads") {
        beside.other.execute_batch("BEGIN IMMEDIATE").unwrap();
        beside.add(100).unwrap();
        let transaction = only_reading(beside.begin());
        assert_eq!(beside.read(transaction, 1), 1);
        // Readers hold up the commit only without a log.
        let is_committed = beside.other.execute_batch("COMMIT").is_ok();
        assert_eq!(beside.read(transaction, 2), 1);
        assert_eq!(beside.table.rows.select(transaction, &everything()).unwrap(), [row(1, 1), row(2, 1)]);
        beside.table.rows.commit(transaction, true).unwrap();
        if !is_committed {
            beside.other.execute_batch("COMMIT").unwrap();
        }
        assert_eq!(beside.read(0, 2), 101);
        let next = only_reading(beside.begin());
        assert_eq!(beside.read(next, 1), 101);
        beside.table.rows.roll_back(next);
        beside.add_later(100);
    }
}

#[test]
fn a_transaction_that_reads_and_may_write_waits_for_another_program() {
    for beside in Beside::each("waits") {
        beside.other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let [reads, writes] = [only_reading(beside.begin()), beside.begin()];
        assert!(!beside.table.rows.waits_to_begin(reads));
        assert!(beside.table.rows.waits_to_begin(writes));
        let failure = beside.table.rows.get(writes, &Value::Int(1)).unwrap_err();
        assert!(failure.message.contains("database is locked; another program reads or writes it"), "{failure}");
        beside.other.execute_batch("COMMIT").unwrap();
        let transaction = beside.begin();
        assert_eq!(beside.read(transaction, 1), 1);
        assert!(!beside.table.rows.waits_to_begin(transaction));
        beside.table.rows.commit(transaction, true).unwrap();
    }
}

#[test]
fn nobody_writes_between_the_search_of_a_deletion_with_references_and_the_deletion() {
    let folder = TestDatabase::sqlite("deletes-beside");
    let storage = folder.storage();
    let reference = reference("parts", &[(1, "count", false)], ("counts", "id"), true);
    let counts = storage.open(Schema { referenced_by: vec![reference.clone()], ..counts() }).unwrap();
    let parts = declared("parts", vec![column("id", "Int", false), column("count", "Int", false)]);
    let parts = storage.open(Schema { references: vec![reference], ..parts }).unwrap();
    let other = Connection::open(folder.file()).unwrap();
    other.busy_timeout(LONG).unwrap();
    // It adds a part to each row that it sees.
    let add = "INSERT INTO parts SELECT ?1 * 1000 + id, id FROM counts";
    thread::scope(|scope| {
        let adding = scope.spawn(move || (0..300).for_each(|round| _ = other.execute(add, [round]).unwrap()));
        for id in 1..300 {
            // Each of them may wait in vain.
            while counts.rows.upsert(0, row(id, 0)).is_err() {}
            while counts.delete(&storage, 0, &Value::Int(id)).is_err() {}
        }
        adding.join().unwrap();
    });
    assert_eq!(parts.rows.count(0, &everything()), Ok(0));
}

/// Adds 1 to a row in many transactions, and returns the number of those that have committed.
fn add_ones(storage: &TableStorage, table: &OpenTable) -> i64 {
    let added = (0..200).filter(|_| {
        let transaction = storage.begin(false);
        let old = table.rows.get(transaction, &Value::Int(1));
        let replaced =
            old.and_then(|old| table.rows.replace(transaction, &Value::Int(1), row(1, count_of(&old.unwrap()) + 1)));
        match replaced {
            Ok(_) => table.rows.commit(transaction, true).is_ok(),
            Err(_) => {
                table.rows.roll_back(transaction);
                false
            }
        }
    });
    added.count() as i64
}

#[test]
fn nothing_is_lost_beside_another_program_that_adds() {
    for beside in Beside::each("adds") {
        let (storage, table) = (&beside.storage, &beside.table);
        beside.other.busy_timeout(LONG).unwrap();
        let (ones, thousands) = thread::scope(|scope| {
            let adding = scope.spawn(|| add_ones(storage, table));
            let add = "UPDATE counts SET count = count + 1000";
            let thousands = (0..200).filter(|_| beside.other.execute(add, []).is_ok()).count() as i64;
            (adding.join().unwrap(), thousands)
        });
        assert_eq!(beside.read(0, 1), 1 + ones + 1000 * thousands);
        assert_eq!(thousands, 200);
        assert!(ones > 0);
    }
}

#[test]
fn two_programs_that_share_an_existing_database_lose_nothing() {
    for journal in ["wal", "delete"] {
        let beside = Beside::new("shares", Some(journal));
        let (storage, table) = existing(&beside.folder, None);
        let added: i64 = thread::scope(|scope| {
            let adding = scope.spawn(|| add_ones(&storage, &table));
            add_ones(&beside.storage, &beside.table) + adding.join().unwrap()
        });
        assert_eq!(beside.read(0, 1), 1 + added);
        assert!(added >= 200);
    }
}

/// A trigger makes it so long, which takes no memory.
#[test]
fn a_row_that_is_too_long_for_sqlite_names_the_table_and_the_limit() {
    let beside = Beside::new("too-long", Some("wal"));
    let trigger = "CREATE TRIGGER long BEFORE INSERT ON counts BEGIN SELECT zeroblob(1000000001); END";
    beside.other.execute_batch(trigger).unwrap();
    let failure = beside.table.rows.insert(0, row(3, 1)).unwrap_err();
    assert!(failure.message.contains("a row of `counts` has more than 1,000,000,000 bytes"), "{failure}");
}

/// SQLite checks no types in such a table, and would add what it makes of the value.
#[test]
fn sums_of_values_that_are_no_whole_numbers_fail() {
    for (at, value) in ["'abc'", "'12 eggs'", "20.5", "1e300", "x'00'"].iter().enumerate() {
        let beside = Beside::new(&format!("sums-{at}"), Some("wal"));
        let rows = &beside.table.rows;
        let average = || rows.group(0, &everything(), &TableGrouping::average(1)).map(|groups| average_in(&groups));
        assert_eq!((rows.sum(0, &everything(), 1).unwrap(), average().unwrap()), (2, Some(1.0)));
        beside.other.execute(&format!("INSERT INTO counts VALUES (3, {value})"), []).unwrap();
        let by_count = TableGrouping { columns: vec![1], ..TableGrouping::average(0) };
        let failures = [
            rows.sum(0, &everything(), 1).unwrap_err(),
            average().unwrap_err(),
            rows.group(0, &everything(), &by_count).unwrap_err(),
        ];
        for failure in failures {
            let expected = "a row in the table `counts` of the database has a value of the column `count` that is no `Int`; correct \
                            it with `sqlite3`";
            assert_eq!(failure.message.to_string(), expected, "{value}");
        }
        beside.other.execute("DELETE FROM counts", []).unwrap();
        assert_eq!((rows.sum(0, &everything(), 1).unwrap(), average().unwrap()), (0, None));
    }
}
