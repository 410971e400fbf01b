//! Commits that the database has taken back, and transactions whose connection is closed, or replaced by another one.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use test_support::postgres::PostgresServer;
use tokio::sync::watch;
use weir::{Failure, SeenCommits, Value};

use super::commit_ends::CommitProgress;
use super::connection::SqlStatement;
use super::errors::StatementError;
use super::expected_rows::{ExpectedRead, StatementAnswer};
use super::writer::REDO_BYTES_MAX;
use super::{PostgresAddress, PostgresDatabase};
use crate::tables::program_end::ProgramEnd;

/// Time in which the writer is connected anew, unless it waits for something.
const EARLY: Duration = Duration::from_millis(500);

/// Returns a server, and the database of a program with the table `totals`, whose `count` is 0.
fn started() -> Option<(PostgresServer, Arc<PostgresDatabase>)> {
    // What nobody has synced is lost in a crash.
    let server = PostgresServer::start_with(&["wal_writer_delay=10s", "wal_writer_flush_after=1GB"])?;
    let address = PostgresAddress::parse(&server.schema("recovered"), None).unwrap();
    server.execute("recovered", "CREATE TABLE totals (count bigint NOT NULL); INSERT INTO totals VALUES (0)");
    Some((server, PostgresDatabase::open(address, None, ProgramEnd::default()).unwrap()))
}

fn set(database: &PostgresDatabase, transaction: i64, count: &str) -> Result<u64, String> {
    let sql = format!("UPDATE totals SET count = {count}");
    let written = database.write(transaction, &[SqlStatement { sql: &sql, parameters: Vec::new() }]);
    written.map(|executed| executed[0].count).map_err(|error| database.failure(&error).message.to_string())
}

fn stored(server: &PostgresServer) -> String {
    server.execute("recovered", "SELECT count FROM totals").trim().to_owned()
}

/// It would be lost, or take back what was written since: it is noted too late for the first connection, and executed by the second.
#[test]
fn a_commit_that_was_answered_before_a_crash_is_executed_once_more_before_anything_else() {
    let Some((server, database)) = started() else { return };
    // A commit that was placed, and whose flow has not learned its end.
    let (end, ends) = watch::channel(CommitProgress::Sent);
    database.placed_commits.add(1, ends);
    // Some that are noted. They become one, so that the numbers of later ones are below that of the next one.
    (0..3).for_each(|_| assert_eq!(set(&database, 0, "count + 4"), Ok(1)));
    assert_eq!(set(&database, 2, "count + 1"), Ok(1));
    thread::scope(|scope| {
        let committing = scope.spawn(|| database.commit_once(2));
        while database.writer.lock().transaction != 0 {
            thread::yield_now();
        }
        server.crash();
        server.run();
        assert_eq!(stored(&server), "0", "nothing was lost: the test shows nothing");
        let writing = scope.spawn(|| database.reconnect().map(|()| set(&database, 0, "count * 2")));
        thread::sleep(EARLY);
        end.send_replace(CommitProgress::Ended(Ok(())));
        committing.join().unwrap().unwrap();
        assert_eq!(writing.join().unwrap().unwrap(), Ok(1));
    });
    database.reconnect().unwrap();
    assert_eq!(stored(&server), "26");
}

/// Lost writes would be executed over those of others, with values from before.
#[test]
fn commits_that_a_crash_has_taken_back_are_not_executed_over_what_others_have_written_since() {
    let others = [
        ("UPDATE totals SET count = count + 100", "100"),
        ("DELETE FROM totals", ""),
        ("TRUNCATE totals", ""),
        ("INSERT INTO other VALUES (1)", "4"),
    ];
    for (other, expected) in others {
        let Some((server, database)) = started() else { return };
        server.execute("recovered", "CREATE TABLE other (id bigint)");
        assert_eq!(set(&database, 0, "count + 4"), Ok(1));
        // The program does not connect again before.
        let writer = database.lock_writer();
        server.crash();
        server.run();
        assert_eq!(stored(&server), "0", "nothing was lost: the test shows nothing");
        server.execute("recovered", other);
        drop(writer);
        let connected = database.reconnect().map_err(|error| database.failure(&error).message.to_string());
        assert_eq!(connected.is_ok(), expected == "4");
        if let Err(message) = connected {
            assert!(message.contains("another program, such as `psql`, has written `totals` since"), "{message}");
            assert!(set(&database, 0, "count + 4").is_err());
        }
        assert_eq!(stored(&server), expected);
    }
}

/// Otherwise all of its statements would be kept until the next sync.
#[test]
fn a_transaction_that_is_too_large_to_be_kept_is_durable_when_its_commit_is_answered() {
    let Some((server, database)) = started() else { return };
    let half = format!("count + length('{}')", "x".repeat(REDO_BYTES_MAX / 2));
    assert_eq!(set(&database, 0, "count + 1"), Ok(1));
    (0..2).for_each(|_| assert_eq!(set(&database, 1, &half), Ok(1)));
    assert!(database.writer.lock().redo.is_empty());
    database.commit_once(1).unwrap();
    server.crash();
    server.run();
    let written = REDO_BYTES_MAX / 2 * 2 + 1;
    assert_eq!(stored(&server), written.to_string());
    // The commits around it do not miss its number.
    database.reconnect().unwrap();
    assert_eq!(set(&database, 0, "count + 1"), Ok(1));
    (0..2).for_each(|_| assert_eq!(set(&database, 2, &half), Ok(1)));
    database.commit_once(2).unwrap();
    assert_eq!(set(&database, 0, "count + 1"), Ok(1));
    server.crash();
    server.run();
    database.reconnect().unwrap();
    assert_eq!(stored(&server), (2 * written + 1).to_string());
}

/// There it would be none: each of its statements would take effect at once.
#[test]
fn a_transaction_does_not_go_on_on_another_connection() {
    let Some((server, database)) = started() else { return };
    assert_eq!(set(&database, 2, "1"), Ok(1));
    let another = database.connect().unwrap();
    database.writer.lock().connect(another);
    let lost = set(&database, 2, "3").unwrap_err();
    assert!(
        lost.contains("its connection to the database was lost: nothing of it was written; try it again"),
        "{lost}"
    );
    assert!(database.commit_once(2).is_err());
    assert_eq!(stored(&server), "0");
    assert_eq!(set(&database, 3, "4"), Ok(1));
    database.commit_once(3).unwrap();
    assert_eq!(stored(&server), "4");
}

/// Asks for a row of a transaction by this query.
fn ask(database: &PostgresDatabase, key: i64, query: &'static str) {
    let writer = database.writer.lock();
    let connection = writer.connection.clone().unwrap();
    let query = SqlStatement { sql: query, parameters: Vec::new() };
    let prepared = database.answered(async { Ok(connection.prepared(query.sql).await?) }).unwrap();
    let answer = async move {
        let executed = connection.execute(&[query], &[prepared]).await;
        Ok(executed.map_err(|(_, error)| error)?.into_iter().next().unwrap_or_default())
    };
    writer.expected.lock().ask((0, Value::Int(key)), Box::pin(answer));
}

/// The first answer is larger than what the connection keeps, so that its end would not be noticed until somebody takes it.
#[test]
fn whoever_waits_for_an_answer_behind_others_learns_at_once_that_the_server_has_closed_the_connection() {
    let Some((server, database)) = started() else { return };
    assert_eq!(set(&database, 1, "1"), Ok(1));
    let second = ExpectedRead::Rows(vec![(0, Value::Int(3))]);
    let queries = ["SELECT repeat('x', 1000) FROM generate_series(1, 1000)", "SELECT pg_sleep(600)"];
    // The second statement is prepared before the first answer is under way.
    let connection = database.writer.lock().connection.clone().unwrap();
    for sql in queries {
        database.answered(async { Ok(connection.prepared(sql).await?) }).unwrap();
    }
    ask(&database, 2, queries[0]);
    ask(&database, 3, queries[1]);
    let event_loop = database.connector.io.handle.clone();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| event_loop.block_on(database.expected_answered(1, &second)));
        server.cut();
        assert!(matches!(waiting.join().unwrap(), Ok(None)));
    });
    // The driver ends soon after it has told the answers. Otherwise the time limit of the statement has ended the wait.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !connection.is_closed() {
        assert!(Instant::now() < deadline, "the time limit of the statement has ended the wait");
        thread::yield_now();
    }
    let lost = database.commit_once(1).unwrap_err();
    assert!(database.failure(&lost).message.contains("its connection to the database was lost"));
    assert_eq!(stored(&server), "0");
}

/// Its answer comes when the writer executes what others send.
#[test]
fn a_statement_that_was_given_up_does_not_end_the_next_one() {
    let Some((_server, database)) = started() else { return };
    let mut writer = database.writer.lock();
    let given_up = writer.begin_flight();
    writer.give_up_flight();
    let next = writer.begin_flight();
    assert!(!writer.land(given_up) && writer.is_in_flight());
    assert!(writer.land(next) && !writer.is_in_flight());
}

/// The answer to its commit is the same as if it had been made.
#[test]
fn a_commit_behind_a_row_that_was_asked_for_and_refused_fails() {
    let Some((server, database)) = started() else { return };
    let event_loop = database.connector.io.handle.clone();
    // The answer may be there when the row is asked for: the thread of connections can be that fast.
    let ask = |transaction: i64, is_answered: bool| {
        assert_eq!(set(&database, transaction, "1"), Ok(1));
        let writer = database.writer.lock();
        let connection = writer.connection.clone().unwrap();
        let refused = SqlStatement { sql: "SELECT 1 / (count - count) FROM totals", parameters: Vec::new() };
        let prepared = database.answered(async { Ok(connection.prepared(refused.sql).await?) }).unwrap();
        let answer = async move {
            let executed = connection.execute(&[refused], &[prepared]).await;
            Ok(executed.map_err(|(_, error)| error)?.into_iter().next().unwrap_or_default())
        };
        let answer: StatementAnswer = match is_answered {
            false => Box::pin(answer),
            true => Box::pin(std::future::ready(event_loop.block_on(answer))),
        };
        writer.expected.lock().ask((0, Value::Int(1)), answer);
    };
    let commits: [&dyn Fn(i64) -> Result<(), StatementError>; 2] =
        [&|transaction| database.commit_once(transaction), &|transaction| {
            let _entered = event_loop.enter();
            event_loop.block_on(database.commit_later(transaction).unwrap())
        }];
    let ways = commits.into_iter().flat_map(|commit| [(commit, false), (commit, true)]);
    for ((commit, is_answered), transaction) in ways.zip(1..) {
        ask(transaction, is_answered);
        let refused = commit(transaction).map_err(|error| database.failure(&error).message.to_string());
        assert!(refused.unwrap_err().contains("division by zero"));
        assert_eq!(stored(&server), "0");
    }
    ask(5, false);
    let mut seen = SeenCommits::default();
    let _entered = seen.enter();
    let ended = Box::new(|ended: &Result<(), Failure>| assert!(ended.is_err()));
    assert!(database.place_commit(5, ended));
    let ended = event_loop.block_on(database.placed_commit(5));
    assert!(ended.unwrap_err().message.contains("division by zero"));
    assert_eq!(stored(&server), "0");
}
