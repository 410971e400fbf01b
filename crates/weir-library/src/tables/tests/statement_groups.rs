//! Groups of statements in SQLite: who reads sees them, and a group that is lost fails the flows that have written in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use weir::{SeenCommits, Value};

use super::evolution::user;
use super::test_database::TestDatabase;
use super::{everything, users};
use crate::tables::group_commit::{GroupCommit, LogSync, SyncFailure};
use crate::tables::program_end::ProgramEnd;
use crate::tables::schema::{Schema, SoftTable};
use crate::tables::sqlite::database::Database;
use crate::tables::sqlite::group_log::Redo;
use crate::tables::sqlite::writer::Writer;

/// A log whose syncs do nothing, so that groups stay open.
pub(super) struct NoLog;

impl LogSync for NoLog {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        Ok(())
    }
}

/// A log that counts its syncs.
struct CountedSyncs(Arc<AtomicU64>);

impl LogSync for CountedSyncs {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Executes a statement of a group for the flow on this thread.
fn write(writer: &mut Writer, sql: &str) -> rusqlite::Result<()> {
    writer.enter(0)?;
    let result = writer.connection.execute_batch(sql);
    let sql = sql.to_owned();
    match &result {
        Ok(()) => writer.executed(0, 1, || Redo::Other(Box::new(move |connection| connection.execute_batch(&sql)))),
        Err(error) => writer.refused(0, error),
    }
    result
}

/// Also those of several flows that wait on one event loop.
#[test]
fn five_commits_of_a_flow_cost_one_sync() {
    let syncs = Arc::<AtomicU64>::default();
    let commits = GroupCommit::begin(CountedSyncs(Arc::clone(&syncs))).unwrap();
    let written = || {
        let mut flow = SeenCommits::default();
        let entered = flow.enter();
        (0..5).for_each(|_| commits.executed());
        drop(entered);
        flow
    };
    wait(commits.settled_to(written())).unwrap();
    assert_eq!((commits.durable(), syncs.load(Ordering::Relaxed)), (5, 1));
    let (one, other) = (commits.settled_to(written()), commits.settled_to(written()));
    let (one, other) = wait(async { tokio::join!(one, other) });
    one.and(other).unwrap();
    assert_eq!((commits.durable(), syncs.load(Ordering::Relaxed)), (15, 2));
    wait(commits.settled_to(SeenCommits::default())).unwrap();
    assert_eq!(syncs.load(Ordering::Relaxed), 2, "nothing was written");
    commits.end();
}

#[test]
fn a_flow_that_has_written_soft_rows_waits_for_no_sync() {
    let database = TestDatabase::sqlite("no-sync");
    let storage = database.storage();
    let soft = Some(SoftTable { ttl: None, at_most: None, capacity: None });
    let kept = storage.open(Schema { name: "kept".to_owned(), soft, ..users() }).unwrap();
    let stored = storage.open(users()).unwrap();
    let mut flow = SeenCommits::default();
    let _entered = flow.enter();
    for id in 0..5 {
        kept.rows.upsert(0, user("ada", [Value::Int(id)])).unwrap();
    }
    assert_eq!(SeenCommits::current().last, 0);
    stored.rows.upsert(0, user("ada", [Value::Int(1)])).unwrap();
    assert_ne!(SeenCommits::current().last, 0);
}

#[test]
fn a_lost_group_fails_the_flows_that_have_written_in_it() {
    let commits = GroupCommit::begin(NoLog).unwrap();
    let mut writer = Writer::new(Connection::open_in_memory().unwrap());
    writer.connection.execute_batch("CREATE TABLE rows (data)").unwrap();
    writer.commits = Some(commits.clone());
    let (mut before, mut inside, mut behind) = <(SeenCommits, SeenCommits, SeenCommits)>::default();
    {
        let _before = before.enter();
        write(&mut writer, "INSERT INTO rows VALUES ('kept')").unwrap();
        writer.end_group().unwrap();
    }
    {
        let _inside = inside.enter();
        write(&mut writer, "INSERT INTO rows VALUES ('lost')").unwrap();
        let pages: i64 = writer.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        writer.connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).unwrap();
        // The disk is full: the database takes back the whole group.
        write(&mut writer, "INSERT INTO rows VALUES (zeroblob(100000))").unwrap_err();
        assert!(writer.connection.is_autocommit());
        writer.connection.execute_batch("PRAGMA max_page_count = 1000").unwrap();
    }
    {
        let _behind = behind.enter();
        write(&mut writer, "INSERT INTO rows VALUES ('kept')").unwrap();
        writer.end_group().unwrap();
    }
    assert_eq!((before.last, inside.last, behind.last), (1, 2, 3));
    wait(commits.settled_to(before)).unwrap();
    let failure = wait(commits.settled_to(SeenCommits { last: u64::MAX, ..inside })).unwrap_err();
    assert!(failure.message.contains("full"), "{failure}");
    wait(commits.settled_to(behind)).unwrap();
    let kept: i64 = writer.connection.query_row("SELECT count(*) FROM rows", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 2);
    commits.end();
}

#[test]
fn a_statement_that_fails_takes_back_only_itself() {
    let commits = GroupCommit::begin(NoLog).unwrap();
    let mut writer = Writer::new(Connection::open_in_memory().unwrap());
    writer.connection.execute_batch("CREATE TABLE rows (data UNIQUE)").unwrap();
    writer.commits = Some(commits.clone());
    let mut flow = SeenCommits::default();
    let _entered = flow.enter();
    write(&mut writer, "INSERT INTO rows VALUES (1)").unwrap();
    write(&mut writer, "INSERT INTO rows VALUES (2), (1)").unwrap_err();
    write(&mut writer, "INSERT INTO rows VALUES (3)").unwrap();
    // A transaction begins behind the group, and takes back nothing of it.
    writer.enter(7).unwrap();
    let four = |connection: &Connection| connection.execute_batch("INSERT INTO rows VALUES (4)");
    four(&writer.connection).unwrap();
    writer.executed(7, 1, || Redo::Other(Box::new(four)));
    writer.roll_back().unwrap();
    wait(commits.settled_to(SeenCommits::current())).unwrap();
    let rows: String =
        writer.connection.query_row("SELECT group_concat(data) FROM rows", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, "1,3");
    commits.end();
}

#[test]
fn reads_see_every_statement_that_was_executed_before() {
    let database = TestDatabase::sqlite("statement_groups");
    let storage = database.storage();
    let users = storage.open(users()).unwrap();
    let row = |name: &str, place| Value::Record([Value::text(name), Value::Int(place)].into());
    for place in 0..200 {
        let name = format!("user {}", place % 7);
        users.rows.upsert(0, row(&name, place)).unwrap();
        assert_eq!(users.rows.get(0, &Value::text(&name)).unwrap(), Some(row(&name, place)));
        assert_eq!(users.rows.get_all(0, &[Value::text(&name)]).unwrap(), [Some(row(&name, place))]);
        users.rows.insert(0, row(&format!("other {place}"), place)).unwrap();
        assert!(users.rows.select(0, &everything()).unwrap().contains(&row(&format!("other {place}"), place)));
        let known = (place + 1).min(7);
        assert_eq!(users.rows.count(0, &everything()).unwrap(), known + 1);
        // A transaction that has written nothing yet reads by another connection than one that has.
        assert_eq!(users.rows.get(1_000 + place, &Value::text(&name)).unwrap(), Some(row(&name, place)));
        assert!(users.rows.delete(0, &Value::text(&format!("other {place}"))).unwrap());
        assert_eq!(users.rows.count(0, &everything()).unwrap(), known);
    }
    weir::Closing::close(&storage).unwrap();
}

#[test]
fn a_short_read_uses_the_connection_that_writes_unless_a_transaction_is_open() {
    let place = TestDatabase::sqlite("read-by-writer");
    let database = Database::open(&place.file(), None, ProgramEnd::default()).unwrap();
    database.write((0, 1), "rows", |connection| connection.execute_batch("CREATE TABLE rows (data)")).unwrap();
    database.end_group();
    let count = "SELECT count(*) FROM rows";
    let read_as = |is_short: bool| {
        let is_reader_and_count = |connection: &Connection| {
            Ok((connection.is_readonly("main")?, connection.query_row(count, [], |row| row.get::<_, i64>(0))?))
        };
        database.read((0, is_short), is_reader_and_count).unwrap()
    };
    let read = || read_as(true);
    // The thread of the log may use it for a moment.
    while read() != (false, 0) {
        std::thread::yield_now();
    }
    assert_eq!(read_as(false), (true, 0), "it would hold up those that write");
    database.write((7, 1), "rows", |connection| connection.execute_batch("INSERT INTO rows VALUES (1)")).unwrap();
    assert_eq!(read(), (true, 0), "nobody else sees what is not committed");
    database.commit(7).unwrap();
    while read() != (false, 1) {
        std::thread::yield_now();
    }
    database.close().unwrap();
}
