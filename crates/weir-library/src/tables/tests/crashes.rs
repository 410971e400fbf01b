//! Crashes of PostgreSQL before a sync: what was written last is lost there, and written once more.

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::{Cut, PostgresProxy};
use weir::{SeenCommits, Value};

use super::evolution::user;
use super::{everything, users};
use crate::tables::open_table::OpenTable;
use crate::tables::postgres::PostgresAddress;
use crate::tables::rows::RowChange;
use crate::tables::schema::{ExistingTable, Schema};
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;

/// The number of rows that are written before a crash.
const ROWS: i64 = 200;

fn named(number: i64) -> Value {
    user(&format!("user {number}"), [Value::Int(number)])
}

fn key(number: i64) -> Value {
    Value::text(&format!("user {number}"))
}

/// Starts a server, and returns the address of a schema.
fn started() -> Option<(PostgresServer, String)> {
    let server = PostgresServer::start()?;
    let address = server.schema("crashed");
    Some((server, address))
}

/// Stops the process that writes the log from time to time. From now on, it is written only when a commit waits for it.
fn stop_log_writer(server: &PostgresServer) {
    let find = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'";
    // A server that has just begun may not have it yet.
    let process = std::iter::repeat_with(|| server.execute("public", find).trim().to_owned());
    let process = process.into_iter().find(|process| !process.is_empty()).unwrap();
    let stopped = std::process::Command::new("kill").args(["-STOP", &process]).status();
    assert!(stopped.unwrap().success());
}

fn storage(address: &str) -> TableStorage {
    TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(address, None).unwrap()))
}

fn settle(storage: &TableStorage) -> Result<(), weir::Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(storage.settled(true))
}

fn stored(server: &PostgresServer) -> i64 {
    server.execute("crashed", "SELECT count(*) FROM users").trim().parse().unwrap()
}

/// Inserts rows of which a crash takes back all but the first, or many.
fn insert_without_sync(server: &PostgresServer, (storage, table): (&TableStorage, &OpenTable)) {
    table.rows.upsert(0, named(0)).unwrap();
    settle(storage).unwrap();
    stop_log_writer(server);
    (1..ROWS).for_each(|number| _ = table.rows.insert(0, named(number)).unwrap());
}

/// Crashes the server, and does something with the number of rows that are stored then, before a program can join again.
fn crash<T>(server: &PostgresServer, program: &TableStorage, meanwhile: impl FnOnce(i64) -> T) -> T {
    let database = program.postgres();
    let _writer = database.hold_writer();
    server.crash();
    server.run();
    meanwhile(stored(server))
}

/// Does so behind insertions that are not durable.
fn crash_with_loss<T>(server: &PostgresServer, program: &TableStorage, meanwhile: impl FnOnce() -> T) -> T {
    crash(server, program, |stored| {
        assert!(stored < ROWS, "nothing was lost: the test shows nothing");
        meanwhile()
    })
}

#[test]
fn what_a_crash_takes_back_is_written_once_more_before_anything_else() {
    let Some((server, address)) = started() else { return };
    let storage = storage(&address);
    let table = storage.open(users()).unwrap();
    for first_statement_reads in [true, false] {
        table.rows.upsert(0, named(0)).unwrap();
        settle(&storage).unwrap();
        stop_log_writer(&server);
        for number in 1..ROWS {
            assert_eq!(table.rows.insert(0, named(number)).unwrap(), key(number));
        }
        // A transaction with a statement that is refused, one that is taken back, and one of several rows.
        table.rows.upsert(7, named(ROWS)).unwrap();
        table.rows.insert(7, named(1)).unwrap_err();
        assert!(table.rows.delete(7, &key(2)).unwrap());
        table.rows.commit(7, true).unwrap();
        table.rows.upsert(8, named(ROWS + 1)).unwrap();
        table.rows.roll_back(8);
        let replaced = user("user 3", [Value::Int(-3)]);
        assert_eq!(table.rows.replace_rows(0, &[named(3)], vec![replaced.clone()]).unwrap(), 1);
        crash_with_loss(&server, &storage, || ());
        if first_statement_reads {
            assert_eq!(table.rows.get(0, &key(3)).unwrap(), Some(replaced.clone()));
        } else {
            assert!(table.rows.delete(0, &key(4)).unwrap());
            table.rows.insert(0, named(4)).unwrap();
        }
        settle(&storage).unwrap();
        assert_eq!(table.rows.count(0, &everything()).unwrap(), ROWS);
        assert_eq!(stored(&server), ROWS);
        assert_eq!(table.rows.get(0, &key(2)).unwrap(), None);
        assert_eq!(table.rows.get(0, &key(ROWS)).unwrap(), Some(named(ROWS)));
        assert_eq!(table.rows.get(0, &key(3)).unwrap(), Some(replaced));
        for number in 0..=ROWS {
            table.rows.delete(0, &key(number)).unwrap();
        }
    }
    weir::Closing::close(&storage).unwrap();
}

/// The program joins the others once more, and knows that nobody else has joined since.
#[test]
fn what_a_crash_takes_back_is_written_once_more_although_the_next_connection_is_lost_too() {
    let Some((server, _)) = started() else { return };
    let proxy = PostgresProxy::start(&server);
    let storage = storage(&proxy.address("crashed"));
    let table = storage.open(users()).unwrap();
    insert_without_sync(&server, (&storage, &table));
    crash_with_loss(&server, &storage, || proxy.cut(&[Cut::BehindFirstStatement]));
    table.rows.insert(0, named(ROWS)).unwrap();
    assert_eq!(proxy.left(), 0, "no connection was cut: the test shows nothing");
    settle(&storage).unwrap();
    assert_eq!(stored(&server), ROWS + 1);
    weir::Closing::close(&storage).unwrap();
}

/// The other program has counted as many commits, so that their number alone does not tell what is lost.
#[test]
fn what_a_crash_takes_back_before_another_program_writes_as_much_is_a_failure() {
    let Some((server, address)) = started() else { return };
    let first = storage(&address);
    let table = first.open(users()).unwrap();
    insert_without_sync(&server, (&first, &table));
    let second = storage(&address);
    crash_with_loss(&server, &first, || {
        let other = second.open(users()).unwrap();
        (1..2 * ROWS).for_each(|number| _ = other.rows.insert(0, named(number + 1_000)).unwrap());
        settle(&second).unwrap();
    });
    let failure = settle(&first).unwrap_err();
    assert!(failure.message.contains("because another program was started since"), "{failure}");
}

#[test]
fn what_another_program_may_have_seen_lost_is_not_written_once_more() {
    let Some((server, address)) = started() else { return };
    let first = storage(&address);
    let table = first.open(users()).unwrap();
    insert_without_sync(&server, (&first, &table));
    let second = storage(&address);
    let other = crash_with_loss(&server, &first, || second.open(users()).unwrap());
    other.rows.insert(0, named(ROWS)).unwrap();
    for failure in [settle(&first).unwrap_err(), table.rows.insert(0, named(1_000)).unwrap_err()] {
        assert!(failure.message.contains("has lost what was written last"), "{failure}");
    }
    settle(&second).unwrap();
    assert_eq!(other.rows.get(0, &key(ROWS)).unwrap(), Some(named(ROWS)));
}

/// Other databases have no tables in which Weir counts programs and commits.
#[test]
fn an_existing_database_is_used_again_after_a_crash() {
    let Some((server, address)) = started() else { return };
    server.execute("crashed", "CREATE TABLE users (name text PRIMARY KEY, place bigint NOT NULL)");
    let storage = storage(&address);
    let existing = Some(ExistingTable { database: address, writable: true, constraint: "tables.users".to_owned() });
    let table = storage.open(Schema { existing, ..users() }).unwrap();
    table.rows.insert(0, named(1)).unwrap();
    for number in 2..5 {
        server.crash();
        server.run();
        table.rows.insert(0, named(number)).unwrap();
        assert_eq!(table.rows.get(0, &key(number - 1)).unwrap(), Some(named(number - 1)));
    }
    settle(&storage).unwrap();
    assert_eq!(stored(&server), 4);
}

/// Beside another program, a commit is durable when its statement is through.
#[test]
fn a_program_that_is_not_alone_waits_for_each_commit() {
    let Some((server, address)) = started() else { return };
    let (first, second) = (storage(&address), storage(&address));
    let tables = [first.open(users()).unwrap(), second.open(users()).unwrap()];
    stop_log_writer(&server);
    for number in 0..ROWS {
        tables[number as usize % 2].rows.insert(0, named(number)).unwrap();
    }
    server.crash();
    server.run();
    assert_eq!(stored(&server), ROWS);
    drop((first, tables));
    settle(&second).unwrap();
}

/// Queues an insertion as a flow does, which has made commits without waiting for the disk or not. Returns once it is answered.
async fn insert_without_thread(table: &OpenTable, number: i64, has_written: bool) {
    let mut flow = SeenCommits { first_own: u64::from(has_written), ..SeenCommits::default() };
    let queued = {
        let _entered = flow.enter();
        table.rows.change_later(&RowChange::Insert(named(number)), Box::new(|_| {})).expect("it needs no thread")
    };
    assert_eq!(queued.await.0.unwrap(), key(number));
}

/// Does so for two rows at once.
async fn insert_two_without_thread(table: &OpenTable, number: i64, has_written: bool) {
    let second = insert_without_thread(table, number + 1, has_written);
    tokio::join!(insert_without_thread(table, number, has_written), second);
}

/// A group on an event loop is durable when it is answered, unless its flows make several changes: their answers wait for the disk
/// once.
#[test]
fn a_group_on_an_event_loop_is_durable_when_it_is_answered_and_several_changes_of_a_flow_together() {
    for makes_several in [false, true] {
        let Some((server, address)) = started() else { return };
        let storage = storage(&address);
        let table = storage.open(users()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // The event loop connects meanwhile.
        let connections = "SELECT count(*) FROM pg_stat_activity WHERE query = 'COMMIT'";
        for number in 0.. {
            runtime.block_on(insert_two_without_thread(&table, -2 * number - 2, false));
            if number > 20 && server.execute("crashed", connections).trim() == "2" {
                break;
            }
        }
        settle(&storage).unwrap();
        let before = stored(&server);
        stop_log_writer(&server);
        for number in (0..ROWS).step_by(2) {
            runtime.block_on(insert_two_without_thread(&table, number, makes_several));
        }
        let after = crash(&server, &storage, |stored| stored - before);
        assert_eq!(after < ROWS, makes_several, "{after} of {ROWS}");
        settle(&storage).unwrap();
        assert_eq!(stored(&server) - before, ROWS);
    }
}
