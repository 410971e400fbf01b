//! Programs whose plan allows few connections to a PostgreSQL database.

use std::thread;

use test_support::postgres::PostgresServer;

use super::postgres::BUSY;
use super::{COUNTER, request, text};
use crate::support::{Scratch, Served, say};

const EXISTING: &str = r#"use http

record Row { id: Int, n: Int }

config other: Text

table slow: Row key id existing(database: other)
table rows: Row key id existing(database: other, writable: true)

service both on http(port: 8080) {
  get "/slow" { http.text("{slow.count()}") }
  get "/{id}" (id: Int) { http.json(rows[id]) }
  put "/{id}" (id: Int) { http.text("{rows.upsert(Row { id, n: id })?}") }
}
"#;

/// In an existing database no connection waits for the disk.
#[test]
fn one_of_three_connections_to_an_existing_database_reads_while_another_one_waits() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("three");
    let sql = |sql: &str| server.execute("three", sql).trim().to_owned();
    sql("CREATE TABLE slow (id bigint PRIMARY KEY, n bigint NOT NULL); CREATE TABLE rows (id bigint PRIMARY KEY, n bigint NOT NULL);
         CREATE TABLE released (number int); CREATE ROLE clerk LOGIN CONNECTION LIMIT 3; GRANT USAGE ON SCHEMA three TO clerk;
         GRANT ALL ON slow, rows TO clerk");
    let option = format!("other={}", address.replacen("weir@", "clerk@", 1));
    let (program, plan) =
        (Scratch::new("three.weir", EXISTING.as_bytes()), Scratch::new("three.toml", b"table_connections = 3\n"));
    let data = Scratch::folder("three-connections");
    for engine in ["event", "pool", "thread-per-flow", "elastic"] {
        sql("TRUNCATE released");
        let arguments = ["--data", data.path(), "--set", &option, "--plan", plan.path(), "--engine", engine];
        let served = Served::start(program.path(), &arguments);
        let answer = |method: &str, path: &str| {
            let answer = request(&served, method, path).expect("the program answers");
            (answer.status, text(&answer).trim().to_owned())
        };
        assert_eq!(answer("PUT", "/1"), (200, "1".to_owned()), "{engine}");
        thread::scope(|scope| {
            scope.spawn(|| {
                sql("DO $$ BEGIN LOCK TABLE slow IN ACCESS EXCLUSIVE MODE; WHILE NOT EXISTS (SELECT FROM released) LOOP \
                     PERFORM pg_sleep(0.005); END LOOP; END $$")
            });
            while sql(
                "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'slow'::regclass AND mode = 'AccessExclusiveLock'",
            ) != "1"
            {}
            let waiting = scope.spawn(|| answer("GET", "/slow"));
            while sql("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'slow'::regclass") != "1" {}
            let read = answer("GET", "/1");
            let has_waited = waiting.is_finished();
            sql("INSERT INTO released VALUES (1)");
            assert_eq!(read, (200, r#"{"id":1,"n":1}"#.to_owned()), "{engine}");
            assert!(!has_waited, "{engine}");
            assert_eq!(waiting.join().expect("the client ends"), (200, "0".to_owned()), "{engine}");
        });
        let (code, said) = served.stop();
        assert!(code == Some(0) && !said.contains("too many connections"), "{engine}: {said}");
    }
}

#[test]
fn too_few_connections_for_a_start_are_shown_before() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("few").replacen("weir@", "clerk@", 1);
    server.execute("public", "CREATE ROLE clerk LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA few TO clerk");
    let program = Scratch::new("few.weir", COUNTER.as_bytes());
    let shown = || say(&["tables", program.path(), "--tables", &address]);
    let started = say(&["run", program.path(), "--port", "0", "--tables", &address]);
    let why = "too many connections for role \"clerk\"";
    assert!(started.code == 3 && started.messages.contains(why), "{} {}", started.code, started.messages);
    let refused = shown();
    assert_eq!(refused.code, 1, "{}", refused.messages);
    let line = refused.output.lines().find(|line| line.starts_with("a start fails: "));
    assert!(line.is_some_and(|line| line.contains(why)), "{}", refused.output);
    server.execute("public", "ALTER ROLE clerk CONNECTION LIMIT 2");
    let allowed = shown();
    assert_eq!(allowed.code, 0, "{} {}", allowed.output, allowed.messages);
    assert_eq!(Served::start(program.path(), &["--tables", &address]).stop().0, Some(0));
}

#[test]
fn a_program_for_which_the_server_has_few_connections_executes_everything_on_those_and_says_so_once() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("refused").replacen("weir@", "clerk@", 1);
    server.execute("public", "CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA refused TO clerk");
    let program = Scratch::new("refused.weir", BUSY.as_bytes());
    for (engine, connections) in [("event", 2), ("event", 3), ("event", 5), ("pool", 2), ("elastic", 4)] {
        // The server notices some time later that the program before has ended.
        while server.execute("public", "SELECT count(*) FROM pg_stat_activity WHERE usename = 'clerk'").trim() != "0" {}
        server.execute("public", &format!("ALTER ROLE clerk CONNECTION LIMIT {connections}"));
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        thread::scope(|scope| {
            for id in 0..6 {
                let served = &served;
                scope.spawn(move || {
                    for method in ["PUT", "POST", "GET", "POST"] {
                        let answer = request(served, method, &format!("/{id}"));
                        let status = answer.as_ref().map(|answer| answer.status);
                        assert_eq!(status, Some(200), "{engine} {connections} {method} {answer:?}");
                        assert_eq!(served.get("/").status, 200, "{engine} {connections}");
                    }
                });
            }
        });
        let (code, said) = served.stop();
        assert_eq!(code, Some(0), "{engine} {connections}: {said}");
        let told = said.matches("this program goes on with the").count();
        assert!(told == 1 || (told == 0 && connections > 2), "{engine} {connections}: {said}");
    }
}

const SLOW_AND_OWN: &str = r#"use http

record Row { id: Int, n: Int }

config other: Text

table own: Row key id
table slow: Row key id existing(database: other)
shared begun = 0

service both on http(port: 8080) {
  get "/begun" { http.text("{begun}") }
  get "/slow/row" {
    begun.add(1)
    http.json(slow[1])
  }
  get "/slow/count" {
    begun.add(1)
    http.text("{slow.count()}")
  }
  get "/slow/sum" {
    begun.add(1)
    http.text("{(for row in slow { row.n }).sum()}")
  }
  get "/own/row" { http.json(own[1]) }
  get "/own/count" { http.text("{own.count()}") }
  get "/own/sum" { http.text("{(for row in own { row.n }).sum()}") }
  put "/own" { http.text("{own.upsert(Row { id: 1, n: 1 })?}") }
}
"#;

/// Without a connection of its event loop, and before it is prepared, a statement waits on a thread.
#[test]
fn first_statements_do_not_wait_for_slow_reads_of_another_database_which_wait_for_its_connections() {
    let Some(server) = PostgresServer::start() else { return };
    let (other, own) = (server.schema("slow"), server.schema("own"));
    let sql = |sql: &str| server.execute("slow", sql).trim().to_owned();
    sql("CREATE TABLE slow (id bigint PRIMARY KEY, n bigint NOT NULL); CREATE TABLE released (number int)");
    let option = format!("other={other}");
    let (program, plan) =
        (Scratch::new("slow.weir", SLOW_AND_OWN.as_bytes()), Scratch::new("slow.toml", b"table_connections = 3\n"));
    let served = Served::start(program.path(), &["--tables", &own, "--set", &option, "--plan", plan.path()]);
    let answer = |method: &str, path: &str| {
        let answer = request(&served, method, path).expect("the program answers");
        (answer.status, text(&answer).trim().to_owned())
    };
    // More than the program has threads for calls that take long, on machines with few cores.
    let slow = 3 * thread::available_parallelism().map_or(1, std::num::NonZero::get).clamp(4, 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            sql("DO $$ BEGIN LOCK TABLE slow IN ACCESS EXCLUSIVE MODE; WHILE NOT EXISTS (SELECT FROM released) LOOP \
                 PERFORM pg_sleep(0.005); END LOOP; END $$")
        });
        let locks =
            |of: &str| sql(&format!("SELECT count(*) FROM pg_locks WHERE {of} AND relation = 'slow'::regclass"));
        while locks("granted AND mode = 'AccessExclusiveLock'") != "1" {}
        let waiting: Vec<_> = (0..slow)
            .map(|at| scope.spawn(move || answer("GET", ["/slow/row", "/slow/count", "/slow/sum"][at % 3])))
            .collect();
        while answer("GET", "/begun").1 != slow.to_string() {}
        while locks("NOT granted") != "2" {}
        let first = [("GET", "/own/row"), ("GET", "/own/count"), ("PUT", "/own"), ("GET", "/own/sum")];
        let first = first.map(|(method, path)| answer(method, path).1);
        let has_waited = waiting.iter().any(thread::ScopedJoinHandle::is_finished);
        sql("INSERT INTO released VALUES (1)");
        assert_eq!(first, ["null", "0", "1", "1"]);
        assert!(!has_waited);
        assert!(waiting.into_iter().all(|waiting| waiting.join().expect("the client ends").0 == 200));
    });
    assert_eq!(served.stop().0, Some(0));
}
