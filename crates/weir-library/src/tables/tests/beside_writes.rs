//! Reads that take no lock of their table: they see what was executed before, and their flows wait until that is durable.

use std::sync::Arc;

use rusqlite::Connection;
use test_support::postgres::PostgresServer;
use weir::{SeenCommits, Value};

use super::evolution::user;
use super::group_members::Numbers;
use super::test_database::TestDatabase;
use super::{everything, users};
use crate::tables::in_flight_writes::WrittenRow;
use crate::tables::postgres::PostgresTable;
use crate::tables::program_end::ProgramEnd;
use crate::tables::published_rows::PublishedRows;
use crate::tables::rows::{TableRead, TableRows};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::stored::StoredTable;

fn key(name: &str) -> Value {
    Value::text(name)
}

fn row(name: &str, place: i64) -> Value {
    user(name, [Value::Int(place)])
}

fn published(rows: impl TableRows + 'static) -> PublishedRows {
    PublishedRows::new((users(), Box::new(rows)), None, Arc::default(), Arc::default())
}

/// A table whose reads are published, and the same table without: what that writes is not noted.
struct Twice {
    _place: TestDatabase,
    database: Arc<Database>,
    published: PublishedRows,
    plain: StoredTable,
}

impl Twice {
    fn new(name: &str) -> Twice {
        let place = TestDatabase::sqlite(name);
        let database = Arc::new(Database::open(&place.file(), None, ProgramEnd::default()).unwrap());
        let plain = StoredTable::open(users(), Arc::clone(&database)).unwrap();
        let published = published(StoredTable::new(users(), Arc::clone(&database)));
        Twice { _place: place, database, published, plain }
    }

    /// Writes a row that is not noted yet, and returns the number of its commit.
    fn write(&self, name: &str) -> u64 {
        let mut writer = SeenCommits::default();
        let _entered = writer.enter();
        self.plain.insert(0, row(name, 1)).unwrap();
        SeenCommits::current().last
    }
}

/// Returns the last commit that a flow has seen behind these reads.
pub(super) fn seen(reads: impl FnOnce()) -> u64 {
    let mut flow = SeenCommits::default();
    let entered = flow.enter();
    reads();
    drop(entered);
    flow.last
}

/// A thread may look for a row between the moment at which another one has written it and the one at which that is noted.
#[test]
fn a_read_waits_for_a_commit_that_is_executed_and_not_noted_yet() {
    let table = Twice::new("not_noted");
    let commit = table.write("Ada");
    assert!(commit > 0);
    let by_key = || assert!(table.published.get(0, &key("Ada")).unwrap().is_some());
    assert_eq!(seen(by_key), commit);
    let by_search = || assert_eq!(table.published.count(0, &everything()).unwrap(), 1);
    assert_eq!(seen(by_search), commit);
    let later = || {
        let read = TableRead::Row(key("Ada"));
        let snapshot = table.published.snapshot(&read).expect("no transaction is open");
        assert_eq!(snapshot.read(&read).unwrap(), Value::some(row("Ada", 1)));
    };
    assert_eq!(seen(later), commit);
    // The note says that nothing is written on which the read depends.
    table.database.commits().unwrap().noted();
    assert_eq!(seen(by_key), 0);
    table.database.close().unwrap();
}

/// A later read sees what an earlier one has seen of another thread, whichever connection it uses.
#[test]
fn a_later_read_sees_what_an_earlier_one_has_seen_that_is_not_noted_yet() {
    let table = Twice::new("seen_twice");
    table.write("Ada");
    // A transaction is open, so that reads use another connection than the one that writes.
    table.plain.insert(7, row("Bob", 1)).unwrap();
    for _ in 0..2 {
        assert!(table.published.get(0, &key("Ada")).unwrap().is_some());
        assert!(table.published.get(0, &key("Bob")).unwrap().is_none());
    }
    table.plain.commit(7, true).unwrap();
    assert!(table.published.get(0, &key("Bob")).unwrap().is_some());
    table.database.close().unwrap();
}

#[test]
fn a_read_sees_the_earlier_rows_of_a_group_and_nothing_of_an_open_transaction() {
    for drives_loop in [false, true] {
        let reads = move || {
            if drives_loop {
                weir::begin_event_thread();
            }
            let database = TestDatabase::sqlite(if drives_loop { "open_on_loop" } else { "open_on_thread" });
            let storage = database.storage();
            let users = storage.open(users()).unwrap();
            for round in 0..50 {
                let (earlier, open) = (format!("earlier {round}"), format!("open {round}"));
                users.rows.insert(0, row(&earlier, round)).unwrap();
                let transaction = storage.next_transaction();
                users.rows.insert(transaction, row(&open, round)).unwrap();
                assert_eq!(users.rows.get(0, &key(&earlier)).unwrap(), Some(row(&earlier, round)));
                assert_eq!(users.rows.get(0, &key(&open)).unwrap(), None);
                assert_eq!(users.rows.count(0, &everything()).unwrap(), 2 * round + 1);
                assert_eq!(users.rows.get(transaction, &key(&open)).unwrap(), Some(row(&open, round)));
                users.rows.commit(transaction, true).unwrap();
                assert_eq!(users.rows.get(0, &key(&open)).unwrap(), Some(row(&open, round)));
            }
            weir::Closing::close(&storage).unwrap();
        };
        std::thread::spawn(reads).join().unwrap();
    }
}

#[test]
fn a_long_statement_ends_the_group_before_it_so_that_readers_need_not_wait() {
    let numbers = Numbers::new("long_statements");
    numbers.insert(0, 1).unwrap();
    assert!(numbers.seen().is_empty());
    {
        let mut writer = numbers.writer.lock();
        writer.enter(0).unwrap();
        writer.bound_group(1).unwrap();
        assert!(numbers.seen().is_empty(), "it is short");
        writer.bound_group(usize::MAX).unwrap();
        assert_eq!(numbers.seen(), [1]);
    }
    let place = TestDatabase::sqlite("long_reads_of_members");
    let database = Database::open(&place.file(), None, ProgramEnd::default()).unwrap();
    let execute = |transaction, sql: &'static str| {
        database.write((transaction, 1), "rows", move |connection| connection.execute_batch(sql)).unwrap();
    };
    execute(0, "CREATE TABLE rows (data)");
    database.end_group();
    execute(0, "INSERT INTO rows VALUES (1)");
    let count = |connection: &Connection| connection.query_row("SELECT count(*) FROM rows", [], |row| row.get(0));
    let read = |connection: &Connection| {
        let by_others: i64 = count(&Connection::open(place.file()).unwrap())?;
        Ok((count(connection)?, by_others))
    };
    assert_eq!(database.read((7, false), read).unwrap(), (1, 1), "what was before is visible during the statement");
    database.commit(7).unwrap();
    database.close().unwrap();
}

/// In PostgreSQL, a read waits a moment for the answer of a write that it may have seen, and then has its flow wait for a later sync.
#[test]
fn a_write_without_an_answer_holds_up_no_read() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("no_answer");
    let database = TestDatabase::Postgres("no_answer".to_owned());
    let storage = database.storage();
    storage.open(users()).unwrap();
    let table = published(PostgresTable::new(users(), storage.postgres()));
    table.insert(0, row("Ada", 1)).unwrap();
    let commits = Arc::clone(table.commits().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(commits.settled()).unwrap();
    let write = table.recent.in_flight.begin(WrittenRow::Any);
    let executed = commits.executed_count();
    let by_thread = || assert_eq!(table.get(0, &key("Ada")).unwrap(), Some(row("Ada", 1)));
    assert_eq!(seen(by_thread), executed + 1);
    let read = TableRead::Row(key("Ada"));
    let later = || {
        let found = runtime.block_on(async {
            loop {
                match table.read_later(&read, None) {
                    Some(read) => return read.answer.await,
                    None => tokio::task::yield_now().await,
                }
            }
        });
        assert_eq!(found.unwrap(), Value::some(row("Ada", 1)));
    };
    assert_eq!(seen(later), executed + 2);
    let flow = SeenCommits { last: executed + 2, ..SeenCommits::default() };
    runtime.block_on(commits.settled_to(flow)).unwrap();
    drop(write);
    assert_eq!(seen(by_thread), 0);
    weir::Closing::close(&storage).unwrap();
}
