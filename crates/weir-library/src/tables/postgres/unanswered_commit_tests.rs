//! Transactions whose connection is lost when their commit is sent: the program learns whether it has taken effect.

use std::sync::Arc;
use std::thread;

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;
use weir::{Failure, SeenCommits};

use super::commit_marks::row_of;
use super::connection::SqlStatement;
use super::errors::StatementError;
use super::{PostgresAddress, PostgresDatabase};
use crate::tables::program_end::ProgramEnd;
use crate::tables::transaction_number::number;

/// The number of connections that wait for a turn to write, or for that of another one to end.
const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted
    AND (relation = 'weir_database'::regclass OR (locktype = 'advisory' AND objid = 'weir_database'::regclass))";

/// A way to commit a transaction.
type Commit<'d> = &'d dyn Fn(i64) -> Result<(), Failure>;

/// A database of a program, which it reaches by a proxy. It has the table `totals`, whose `count` is 0.
struct ProxiedDatabase<'s> {
    server: &'s PostgresServer,
    schema: &'s str,
    proxy: PostgresProxy,
    database: Arc<PostgresDatabase>,
}

impl<'s> ProxiedDatabase<'s> {
    fn new(server: &'s PostgresServer, schema: &'s str) -> ProxiedDatabase<'s> {
        server.schema(schema);
        server.execute(schema, "CREATE TABLE totals (count bigint NOT NULL); INSERT INTO totals VALUES (0)");
        let proxy = PostgresProxy::start(server);
        let database = opened(&proxy.address(schema));
        ProxiedDatabase { server, schema, proxy, database }
    }

    fn add_one(&self, transaction: i64) -> Result<(), StatementError> {
        let sql = "UPDATE totals SET count = count + 1";
        self.database.write(transaction, &[SqlStatement { sql, parameters: Vec::new() }]).map(|_| ())
    }

    fn stored(&self) -> i64 {
        self.server.execute(self.schema, "SELECT count FROM totals").trim().parse().unwrap()
    }

    fn commit(&self, transaction: i64) -> Result<(), Failure> {
        self.database.commit(transaction)
    }

    fn commit_later(&self, transaction: i64) -> Result<(), Failure> {
        let event_loop = &self.database.connector.io.handle;
        let _entered = event_loop.enter();
        let committed = event_loop.block_on(self.database.commit_later(transaction).unwrap());
        committed.map_err(|error| self.database.failure(&error))
    }

    /// Commits without waiting, and returns the end that the flow learns, which is that of which others learn.
    fn place_commit(&self, transaction: i64) -> Result<(), Failure> {
        let mut seen = SeenCommits::default();
        let _entered = seen.enter();
        let (ended, told) = std::sync::mpsc::channel();
        let ended = Box::new(move |end: &Result<(), Failure>| ended.send(end.is_ok()).unwrap());
        assert!(self.database.place_commit(transaction, ended));
        let committed = self.database.connector.io.handle.block_on(self.database.placed_commit(transaction));
        assert_eq!(told.recv(), Ok(committed.is_ok()));
        committed
    }

    /// Loses the answer to a commit, or the commit itself.
    fn lose(&self, is_delivered: bool) {
        match is_delivered {
            true => self.proxy.lose_commit_answers(1),
            false => self.proxy.lose_commits(1),
        }
    }

    fn assert_lost(&self) {
        assert_eq!(self.proxy.commits_left(), 0, "no commit was lost: the test shows nothing");
    }

    fn wait_for(&self, query: &str, answer: &str) {
        while self.server.execute(self.schema, query).trim() != answer {
            thread::yield_now();
        }
    }
}

fn opened(address: &str) -> Arc<PostgresDatabase> {
    PostgresDatabase::open(PostgresAddress::parse(address, None).unwrap(), None, ProgramEnd::default()).unwrap()
}

#[test]
fn a_commit_without_an_answer_succeeds_if_it_has_taken_effect_and_is_refused_otherwise() {
    let Some(server) = PostgresServer::shared() else { return };
    let lost = ProxiedDatabase::new(server, "unanswered");
    let ways: [Commit<'_>; 3] =
        [&|number| lost.commit(number), &|number| lost.commit_later(number), &|number| lost.place_commit(number)];
    let (mut nth, mut expected) = (0, 0);
    // Alone, beside another program, and alone again, when that one has joined last.
    let mut other = None;
    for other_joins in [None, Some(true), Some(false)] {
        match other_joins {
            Some(true) => other = Some(opened(&server.address("unanswered"))),
            Some(false) => {
                _ = opened(&server.address("unanswered"));
                other = None;
            }
            None => {}
        }
        for (way, is_delivered) in ways.iter().flat_map(|way| [(way, true), (way, false)]) {
            nth += 1;
            let transaction = number(nth, true);
            lost.add_one(transaction).unwrap();
            lost.lose(is_delivered);
            let committed = way(transaction);
            lost.assert_lost();
            match committed {
                Ok(()) => assert!(is_delivered),
                Err(failure) => {
                    assert!(!is_delivered, "{failure}");
                    assert!(failure.is_refusal(), "{failure}");
                    assert!(failure.message.contains("nothing of it was written"), "{failure}");
                }
            }
            expected += i64::from(is_delivered);
            assert_eq!(lost.stored(), expected);
        }
    }
    drop(other);
}

#[test]
fn nobody_knows_the_end_of_a_statement_of_its_own_and_what_has_only_read_is_taken_back() {
    let Some(server) = PostgresServer::shared() else { return };
    let lost = ProxiedDatabase::new(server, "unanswered_alone");
    for (is_repeated, transaction) in [true, false].map(|is_repeated| (is_repeated, number(1, is_repeated))) {
        let read = SqlStatement { sql: "SELECT count FROM totals", parameters: Vec::new() };
        lost.database.read(transaction, &[read]).unwrap();
        lost.lose(true);
        let failure = lost.commit(transaction).unwrap_err();
        lost.assert_lost();
        assert!(failure.message.contains("nothing of it was written"), "{failure}");
        assert_eq!(failure.is_refusal(), is_repeated);
    }
    // One that is not repeated says so.
    lost.add_one(number(2, false)).unwrap();
    lost.lose(false);
    let failure = lost.commit(number(2, false)).unwrap_err();
    assert!(failure.message.contains("nothing of it was written; try it again") && !failure.is_refusal(), "{failure}");
    lost.add_one(0).unwrap();
    for is_delivered in [true, false] {
        lost.lose(is_delivered);
        let failure = lost.database.failure(&lost.add_one(0).unwrap_err());
        lost.assert_lost();
        assert!(failure.message.contains("nobody knows whether it has taken effect"), "{failure}");
        assert!(!failure.is_refusal());
        lost.database.reconnect().unwrap();
    }
    assert_eq!(lost.stored(), 2);
}

#[test]
fn several_statements_that_are_one_transaction_take_effect_once() {
    let Some(server) = PostgresServer::shared() else { return };
    let lost = ProxiedDatabase::new(server, "unanswered_together");
    for (is_delivered, expected) in [(true, 1), (false, 2)] {
        lost.lose(is_delivered);
        lost.database.write_together(0, |transaction| lost.add_one(transaction)).unwrap();
        lost.assert_lost();
        assert_eq!(lost.stored(), expected);
    }
}

#[test]
fn the_rows_of_programs_that_have_joined_long_ago_are_deleted() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("unanswered_rows");
    drop(opened(&address));
    server.execute(
        "unanswered_rows",
        "DELETE FROM weir_numbers WHERE \"table\" LIKE ' commits %';
         INSERT INTO weir_numbers VALUES (' commits old', (4::bigint << 40) + 9), (' commits young', 5::bigint << 40);
         UPDATE weir_numbers SET \"last\" = 1028::bigint << 40 WHERE \"table\" = ''",
    );
    let database = opened(&address);
    let own = row_of(database.unsynced.program);
    let rows = "SELECT \"table\", \"last\" >> 40 FROM weir_numbers WHERE \"table\" LIKE ' commits %' ORDER BY \"last\"";
    assert_eq!(server.execute("unanswered_rows", rows), format!(" commits young|5\n{own}|1029\n"));
}

/// The server goes on with it after the connection has ended.
#[test]
fn a_commit_that_the_server_still_executes_is_waited_for() {
    let Some(server) = PostgresServer::shared() else { return };
    let lost = ProxiedDatabase::new(server, "unanswered_slow");
    server.execute(
        "unanswered_slow",
        "CREATE TABLE released (id int);
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             -- A server with a transaction that does not end would not end either.
             FOR attempt IN 1..6000 LOOP
                 EXIT WHEN EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 8
                     AND objid = 'released'::regclass);
                 PERFORM pg_sleep(0.01);
             END LOOP;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON totals DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let transaction = number(1, true);
    lost.add_one(transaction).unwrap();
    lost.lose(true);
    thread::scope(|scope| {
        let committing = scope.spawn(|| lost.commit(transaction));
        lost.wait_for(WAITING, "1");
        assert_eq!(lost.stored(), 0, "it has taken effect before: the test shows nothing");
        let releasing = lost.database.connect().unwrap();
        let release = "SELECT pg_advisory_lock(8, 'released'::regclass::oid::int)";
        lost.database.answered(async { Ok(releasing.command(release).await?) }).unwrap();
        committing.join().unwrap().unwrap();
    });
    lost.assert_lost();
    assert_eq!(lost.stored(), 1);
}

/// A crash takes back the commits that nobody has synced.
#[test]
fn a_commit_that_a_crash_has_taken_back_is_refused_and_one_that_was_durable_succeeds() {
    for is_durable in [false, true] {
        let Some(server) = PostgresServer::start_with(&["wal_writer_delay=10s", "wal_writer_flush_after=1GB"]) else {
            return;
        };
        let lost = ProxiedDatabase::new(&server, "unanswered_crash");
        let transaction = number(1, true);
        lost.add_one(transaction).unwrap();
        let other = lost.database.connect().unwrap();
        let committed = thread::scope(|scope| {
            // It has its turn next, so that the program cannot join before the crash.
            let take_turn = other.command("BEGIN; LOCK TABLE weir_database IN EXCLUSIVE MODE");
            let turn = scope.spawn(|| lost.database.answered(async { Ok(take_turn.await?) }));
            lost.wait_for(WAITING, "1");
            lost.lose(true);
            let committing = scope.spawn(|| lost.commit(transaction));
            turn.join().unwrap().unwrap();
            if is_durable {
                server.execute("unanswered_crash", "SELECT pg_logical_emit_message(true, 'test', '')");
            }
            server.crash();
            server.run();
            committing.join().unwrap()
        });
        lost.assert_lost();
        assert_eq!(lost.stored(), i64::from(is_durable), "the crash is none: the test shows nothing");
        assert_eq!(committed.map_err(|failure| failure.is_refusal()), if is_durable { Ok(()) } else { Err(true) });
    }
}
