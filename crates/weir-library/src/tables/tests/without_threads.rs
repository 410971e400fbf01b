//! Statements of PostgreSQL that need no thread: reads that share a connection, and changes that share a transaction.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::thread::JoinHandle;

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;
use weir::{Failure, FailureKind, SeenCommits, Value};

use super::agreement::{RandomRows, key_of};
use super::evolution::user;
use super::test_database::{HINDERING_UPDATE, HINDERING_USERS, WRITING_USERS, wait_for};
use super::{TestDatabase, column, declared, schema, users};
use crate::log::LogSettings;
use crate::output::Outputs;
use crate::tables::open_table::OpenTable;
use crate::tables::postgres::PostgresAddress;
use crate::tables::rows::{LaterChange, RowChange, TableRead};
use crate::tables::schema::Schema;
use crate::tables::storage::TableStorage;
use crate::tables::table_databases::TableLocation;
use crate::tables::table_log::TableLog;

/// Keeps programs from writing until it is released.
const HOLD: &str = "DO $$ BEGIN
    LOCK TABLE weir_database IN EXCLUSIVE MODE;
    WHILE NOT EXISTS (SELECT 1 FROM released) LOOP PERFORM pg_sleep(0.005); END LOOP;
END $$";
/// The number of transactions that wait for their turn.
pub(super) const WAITING: &str =
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'weir_database'::regclass";
/// The number of transactions that have their turn.
const WRITING: &str = "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'weir_database'::regclass";

/// Lets no program write until it is released.
pub(super) fn hold(server: &'static PostgresServer, schema: &'static str) -> JoinHandle<()> {
    server.execute(schema, "CREATE TABLE IF NOT EXISTS released (id int); TRUNCATE released");
    let held = std::thread::spawn(move || _ = server.execute(schema, HOLD));
    wait_for(server, schema, WRITING, "1");
    held
}

pub(super) fn release(server: &PostgresServer, schema: &str) {
    server.execute(schema, "INSERT INTO released VALUES (1)");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(super) fn queue(table: &OpenTable, change: &RowChange) -> LaterChange {
    table.rows.change_later(change, Box::new(|_| {})).expect("it needs no thread")
}

pub(super) fn answers(changes: Vec<LaterChange>) -> Vec<Result<Value, Failure>> {
    changes.into_iter().map(|change| run(change).0).collect()
}

fn insert(name: &str, place: i64) -> RowChange {
    RowChange::Insert(user(name, [Value::Int(place)]))
}

/// Reads without a thread; a read that needs one, such as the first, is tried again.
async fn read(table: &OpenTable, of: TableRead) -> Result<Value, Failure> {
    loop {
        match table.rows.read_later(&of, None) {
            Some(read) => return read.answer.await,
            None => tokio::task::yield_now().await,
        }
    }
}

fn row(name: &str) -> TableRead {
    TableRead::Row(Value::text(name))
}

fn place(table: &OpenTable, name: &str) -> Option<Value> {
    table.rows.get(0, &Value::text(name)).unwrap().map(|row| crate::tables::row::fields(&row)[1].clone())
}

#[test]
fn changes_of_several_flows_are_one_transaction_and_a_refused_one_leaves_the_others() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("groups");
    let storage = TestDatabase::Postgres("groups".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    let ids = |names: &str| {
        let names = format!("SELECT count(DISTINCT xmin::text) FROM users WHERE name IN ({names})");
        server.execute("groups", &names).trim().to_owned()
    };
    for (round, refused) in [false, true].into_iter().enumerate() {
        let names: Vec<String> = (0..6).map(|number| format!("{round} {number}")).collect();
        let answered = {
            let held = hold(server, "groups");
            let mut changes = vec![queue(&table, &insert(&names[0], 0))];
            wait_for(server, "groups", WAITING, "1");
            // These wait for the first one, and are a group.
            changes.extend(names[1..5].iter().map(|name| queue(&table, &insert(name, 1))));
            let again = if refused { &names[2] } else { &names[5] };
            changes.push(queue(&table, &insert(again, 2)));
            changes.push(queue(&table, &RowChange::Delete(Value::text(&names[4]))));
            changes.push(queue(&table, &RowChange::Delete(Value::text("nobody"))));
            release(server, "groups");
            held.join().unwrap();
            answers(changes)
        };
        for (name, answer) in names[..5].iter().zip(&answered) {
            assert_eq!(*answer, Ok(Value::text(name)));
        }
        match &answered[5] {
            Err(failure) => assert!(refused && failure.kind == FailureKind::Constraint, "{failure}"),
            Ok(key) => assert_eq!((refused, key), (false, &Value::text(&names[5]))),
        }
        assert_eq!(answered[6..], [Ok(Value::Bool(true)), Ok(Value::Bool(false))]);
        let transactions = ids(&format!("'{}', '{}', '{}'", names[1], names[2], names[3]));
        assert_eq!(transactions, if refused { "3" } else { "1" });
        assert_eq!((place(&table, &names[2]), place(&table, &names[4])), (Some(Value::Int(1)), None));
    }
    run(storage.settled(true)).unwrap();
}

#[test]
fn a_transaction_begins_behind_the_changes_that_wait() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("behind");
    let storage = TestDatabase::Postgres("behind".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    std::thread::scope(|scope| {
        let held = hold(server, "behind");
        let change = queue(&table, &insert("ada", 1));
        let more = queue(&table, &insert("eve", 1));
        let transaction = scope.spawn(|| {
            let read = table.rows.get(7, &Value::text("eve"));
            table.rows.upsert(7, user("ada", [Value::Int(2)])).and_then(|_| table.rows.commit(7, true)).and(read)
        });
        release(server, "behind");
        assert_eq!(transaction.join().unwrap().unwrap(), Some(user("eve", [Value::Int(1)])));
        assert!(answers(vec![change, more]).iter().all(Result::is_ok));
        held.join().unwrap();
    });
    assert_eq!(place(&table, "ada"), Some(Value::Int(2)));
}

#[test]
fn insertions_into_a_table_that_numbers_its_rows_are_one_transaction() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("numbered_groups");
    let storage = TestDatabase::Postgres("numbered_groups".to_owned()).storage();
    let columns = vec![column("id", "Int", false), column("place", "Int", false)];
    let table = storage.open(Schema { auto: true, ..declared("notes", columns) }).unwrap();
    let insert = |place| queue(&table, &RowChange::Insert(Value::Record([Value::Int(0), Value::Int(place)].into())));
    let held = hold(server, "numbered_groups");
    let mut changes = vec![insert(1)];
    wait_for(server, "numbered_groups", WAITING, "1");
    changes.extend((2..=9).map(insert));
    release(server, "numbered_groups");
    held.join().unwrap();
    let numbers: Vec<Value> = answers(changes).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(numbers, (1..=9).map(Value::Int).collect::<Vec<_>>());
    let rows = "SELECT count(DISTINCT xmin::text), min(id - place), max(id - place) FROM notes WHERE id > 1";
    assert_eq!(server.execute("numbered_groups", rows).trim(), "1|0|0");
}

/// Refuses the insertion of several rows as PostgreSQL refuses a statement with a wrong type.
const ONE_BY_ONE: &str = "CREATE FUNCTION one_by_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM added) > 1 THEN RAISE 'no type' USING ERRCODE = '42P18'; END IF; RETURN NULL;
END $$;
CREATE TRIGGER one_by_one AFTER INSERT ON notes REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION one_by_one()";

#[test]
fn a_group_that_is_no_valid_statement_is_said_once_in_the_log() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("invalid_groups");
    let log = TableLog { outputs: Outputs::capturing(), settings: LogSettings::default() };
    let storage = TestDatabase::Postgres("invalid_groups".to_owned()).storage().with_log(log.clone());
    let columns = vec![column("id", "Int", false), column("place", "Int", false)];
    let table = storage.open(Schema { auto: true, ..declared("notes", columns) }).unwrap();
    server.execute("invalid_groups", ONE_BY_ONE);
    let insert = |place| queue(&table, &RowChange::Insert(Value::Record([Value::Int(0), Value::Int(place)].into())));
    // The changes of the second round are executed one by one at once.
    for round in 0..2 {
        let held = hold(server, "invalid_groups");
        let mut changes = vec![insert(1)];
        wait_for(server, "invalid_groups", WAITING, "1");
        changes.extend((2..=9).map(insert));
        release(server, "invalid_groups");
        held.join().unwrap();
        let numbers: Vec<Value> = answers(changes).into_iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(numbers, (1..=9).map(|number| Value::Int(9 * round + number)).collect::<Vec<_>>());
    }
    let said = log.outputs.captured().unwrap();
    let begin = "WARN changes of `notes` cannot be executed together, and are executed one by one, which is slower: ";
    assert!(said.starts_with(begin) && said.ends_with(": no type\n") && said.lines().count() == 1, "{said}");
}

/// The thread of connections executes what an event loop leaves.
#[test]
fn changes_are_executed_although_their_event_loop_has_ended() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("ended");
    let storage = TestDatabase::Postgres("ended".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    for round in 0..3 {
        let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let changes: Vec<LaterChange> = {
            let _inside = event_loop.enter();
            (0..4).map(|number| queue(&table, &insert(&format!("{round} {number}"), number))).collect()
        };
        drop(event_loop);
        assert!(answers(changes).iter().all(Result::is_ok), "round {round}");
    }
}

#[test]
fn a_lost_connection_fails_the_change_that_it_carries_and_no_other() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("lost");
    let proxy = PostgresProxy::start(server);
    let address = PostgresAddress::parse(&proxy.address("lost"), None).unwrap();
    let table = TableStorage::at(TableLocation::Postgres(address)).open(users()).unwrap();
    assert!(answers(vec![queue(&table, &insert("before", 0))])[0].is_ok());
    proxy.lose_commits(1);
    let lost = answers(vec![queue(&table, &insert("first", 0))]);
    let lost = lost[0].as_ref().unwrap_err();
    assert!(lost.message.contains("nobody knows whether it has taken effect"), "{lost}");
    let others = answers((0..4).map(|number| queue(&table, &insert(&number.to_string(), 1))).collect());
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    assert_eq!((place(&table, "first"), place(&table, "3")), (None, Some(Value::Int(1))));
}

/// A message that executes 256 changes together is bounded, too.
#[test]
fn a_large_row_is_not_executed_together_with_others() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("large_row");
    let storage = TestDatabase::Postgres("large_row".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    let is_queued = |length| table.rows.change_later(&insert(&"x".repeat(length), 1), Box::new(|_| {})).is_some();
    assert_eq!((is_queued(1 << 20), is_queued((1 << 20) + 1)), (true, false));
}

/// The database has answered that it ends the connection before it has read the commit.
#[test]
fn a_change_whose_connection_the_database_ends_is_executed_again() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("cut");
    let storage = TestDatabase::Postgres("cut".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    let all = {
        let held = hold(server, "cut");
        let first = queue(&table, &insert("first", 0));
        wait_for(server, "cut", WAITING, "1");
        let others = (0..4).map(|number| queue(&table, &insert(&number.to_string(), 1)));
        let all: Vec<LaterChange> = std::iter::once(first).chain(others).collect();
        let cut =
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'weir_database'::regclass";
        server.execute("cut", cut);
        release(server, "cut");
        held.join().unwrap();
        answers(all)
    };
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!((place(&table, "first"), place(&table, "3")), (Some(Value::Int(0)), Some(Value::Int(1))));
}

#[test]
fn a_group_that_another_program_hinders_is_executed_again() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("hindered");
    let storage = TestDatabase::Postgres("hindered".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, user("ada", [Value::Int(1)])).unwrap();
    let change = |name: &str| RowChange::Upsert(user(name, [Value::Int(3)]));
    let answered = std::thread::scope(|scope| {
        let held = hold(server, "hindered");
        let mut changes = vec![queue(&table, &change("first"))];
        wait_for(server, "hindered", WAITING, "1");
        changes.extend(["eve", "ada", "dan"].map(|name| queue(&table, &change(name))));
        scope.spawn(|| server.execute("hindered", HINDERING_UPDATE));
        wait_for(server, "hindered", HINDERING_USERS, "1");
        release(server, "hindered");
        held.join().unwrap();
        answers(changes)
    });
    assert!(answered.iter().all(Result::is_ok), "{answered:?}");
    assert_eq!((place(&table, "ada"), place(&table, "dan")), (Some(Value::Int(3)), Some(Value::Int(3))));
}

#[test]
fn a_statement_that_takes_too_long_fails_alone() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("long_change") + "%20-cstatement_timeout%3D500";
    let storage = TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).unwrap()));
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, user("bob", [Value::Int(1)])).unwrap();
    server.execute("long_change", "CREATE TABLE answered (id int)");
    let other = "DO $$ BEGIN UPDATE users SET place = 2 WHERE name = 'bob';
        WHILE NOT EXISTS (SELECT 1 FROM answered) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";
    let answered = std::thread::scope(|scope| {
        let other = scope.spawn(|| server.execute("long_change", other));
        wait_for(server, "long_change", WRITING_USERS, "1");
        let changes = ["ann", "bob", "eve"].map(|name| queue(&table, &RowChange::Upsert(user(name, [Value::Int(3)]))));
        let answered = answers(changes.into());
        server.execute("long_change", "INSERT INTO answered VALUES (1)");
        other.join().unwrap();
        answered
    });
    assert_eq!((&answered[0], &answered[2]), (&Ok(Value::text("ann")), &Ok(Value::text("eve"))));
    let late = answered[1].as_ref().unwrap_err();
    assert!(late.message.contains("takes longer than its time limit"), "{late}");
    assert_eq!((place(&table, "bob"), place(&table, "eve")), (Some(Value::Int(2)), Some(Value::Int(3))));
}

#[test]
fn reads_without_a_thread_find_what_reads_on_threads_find() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("pipelines");
    let storage = TestDatabase::Postgres("pipelines".to_owned()).storage();
    let table = storage.open(schema()).unwrap();
    let mut random = RandomRows::new(11);
    let mut keys = Vec::new();
    for _ in 0..60 {
        let row = random.row();
        keys.push(key_of(&row));
        _ = table.rows.upsert(0, row);
    }
    run(async {
        for _ in 0..60 {
            let key = keys[random.below(keys.len() as u64) as usize].clone();
            let found = table.rows.get(0, &key).map(|row| row.map_or_else(Value::none, Value::some));
            assert_eq!(read(&table, TableRead::Row(key)).await, found);
            let some: Vec<Value> = (0..3).map(|_| keys[random.below(keys.len() as u64) as usize].clone()).collect();
            let found = table.rows.get_all(0, &some).unwrap();
            let found = found.into_iter().map(|row| row.map_or_else(Value::none, Value::some)).collect();
            assert_eq!(read(&table, TableRead::Rows(some)).await, Ok(Value::list(found)));
            let search = std::sync::Arc::new(random.search());
            let found = table.rows.select(0, &search);
            assert_eq!(read(&table, TableRead::Search(search.clone())).await, found.map(Value::list));
            let found = table.rows.count(0, &search);
            assert_eq!(read(&table, TableRead::Count(search)).await, found.map(Value::Int));
        }
    });
}

#[test]
fn a_read_is_executed_again_when_its_connection_is_lost() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("lost_reads");
    let storage = TestDatabase::Postgres("lost_reads".to_owned()).storage();
    let table = storage.open(users()).unwrap();
    table.rows.insert(0, user("ada", [Value::Int(1)])).unwrap();
    server.execute("lost_reads", "CREATE TABLE released (id int)");
    let reading = "pid IN (SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'users'::regclass)";
    let found = std::thread::scope(|scope| {
        run(async {
            assert!(read(&table, row("ada")).await.is_ok());
            let held = scope.spawn(|| {
                let hold = "DO $$ BEGIN LOCK TABLE users IN ACCESS EXCLUSIVE MODE;
                    WHILE NOT EXISTS (SELECT 1 FROM released) LOOP PERFORM pg_sleep(0.005); END LOOP; END $$";
                server.execute("lost_reads", hold);
            });
            let exclusive = "SELECT count(*) FROM pg_locks WHERE relation = 'users'::regclass AND granted
                AND mode = 'AccessExclusiveLock'";
            wait_for(server, "lost_reads", exclusive, "1");
            let reads = (0..5).map(|_| tokio::spawn(table.rows.read_later(&row("ada"), None).unwrap().answer));
            let reads: Vec<_> = reads.collect();
            tokio::task::spawn_blocking(move || {
                let waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'users'::regclass";
                wait_for(server, "lost_reads", waiting, "t");
                let cut = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {reading}");
                server.execute("lost_reads", &cut);
                release(server, "lost_reads");
            })
            .await
            .unwrap();
            held.join().unwrap();
            let mut found = Vec::new();
            for read in reads {
                found.push(read.await.unwrap());
            }
            found.push(read(&table, row("ada")).await);
            found
        })
    });
    assert_eq!(found, vec![Ok(Value::some(user("ada", [Value::Int(1)]))); 6]);
}

/// Returns what a future returns, and the commits that its flow has seen.
async fn seen_by<T>(future: impl Future<Output = T>) -> (T, SeenCommits) {
    let (mut future, mut seen) = (pin!(future), SeenCommits::default());
    poll_fn(move |context| {
        let entered = seen.enter();
        let polled = future.as_mut().poll(context);
        drop(entered);
        polled.map(|value| (value, seen))
    })
    .await
}

#[test]
fn a_read_knows_the_commit_of_a_change_that_was_in_flight() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("in_flight");
    let storage = TestDatabase::Postgres("in_flight".to_owned()).storage();
    let numbered =
        || Schema { auto: true, ..declared("numbered", vec![column("id", "Int", false), column("n", "Int", false)]) };
    let (table, other) = (storage.open(users()).unwrap(), storage.open(numbered()).unwrap());
    let of_number = |number| TableRead::Row(Value::Int(number));
    let row_of = |n| Value::Record([Value::Int(0), Value::Int(n)].into());
    other.rows.insert(0, row_of(0)).unwrap();
    run(async {
        assert_eq!(read(&other, of_number(9)).await, Ok(Value::none()));
        assert_eq!(read(&table, row("ada")).await, Ok(Value::none()));
        let held = hold(server, "in_flight");
        {
            let named = queue(&table, &insert("ada", 1));
            let given = queue(&other, &RowChange::Insert(row_of(1)));
            // The reads find nothing. Nobody knows yet what two of them may have seen.
            let mut reads = Vec::new();
            for (of, what) in [(&table, row("ada")), (&other, of_number(2)), (&table, row("eve"))] {
                reads.push(Box::pin(seen_by(of.rows.read_later(&what, None).unwrap().answer)));
            }
            {
                let (eve, seen) = reads.pop().expect("three reads").await;
                assert_eq!((eve, seen.last), (Ok(Value::none()), 0));
                // The others do not wait for the answers of the changes: their flows wait for a later sync.
                for read in reads {
                    assert!(read.await.1.last > 0);
                }
                release(server, "in_flight");
                let ((_, named), (key, given)) = (named.await, given.await);
                assert_eq!((key, named.is_some(), given.is_some()), (Ok(Value::Int(2)), true, true));
            }
        }
        held.join().unwrap();
    });
}

/// They would wait behind it on the connection of their event loop, although their table has no lock.
#[test]
fn reads_of_other_tables_do_not_wait_behind_one_that_a_lock_holds_up() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = "held_up_reads";
    server.schema(name);
    let storage = TestDatabase::Postgres(name.to_owned()).storage();
    let locked = storage.open(users()).unwrap();
    let other = storage.open(declared("others", vec![column("name", "Text", false)])).unwrap();
    server.execute(name, "CREATE TABLE released (id int)");
    run(async {
        read(&locked, row("ada")).await.unwrap();
        read(&other, row("ada")).await.unwrap();
        let lock = "DO $$ BEGIN
            LOCK TABLE users IN ACCESS EXCLUSIVE MODE;
            WHILE NOT EXISTS (SELECT 1 FROM released) LOOP PERFORM pg_sleep(0.005); END LOOP;
        END $$";
        let holding = std::thread::spawn(move || _ = server.execute(name, lock));
        let held = "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'users'::regclass AND mode = 'AccessExclusiveLock'";
        wait_for(server, name, held, "1");
        let mut waiting = locked.rows.read_later(&row("ada"), None).expect("it needs no thread").answer;
        poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        // Soon, a thread has to read the other table.
        while other.rows.read_later(&row("ada"), None).is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(other.rows.get(0, &Value::text("ada")).unwrap(), None);
        release(server, name);
        waiting.await.unwrap();
        holding.join().unwrap();
        read(&other, row("ada")).await.unwrap();
    });
}
