//! Stored tables in PostgreSQL: programs that share them, kills, and a server that crashes or does not answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_support::postgres::PostgresServer;
use weir_library::tables::{PostgresAddress, TableLocation, TableStorage, TableWrite, WriteSet};

use super::kills::{PROGRAM, survives_kills};
use super::{COUNTER, post, request, text};
use crate::support::{Scratch, Served, say};

#[test]
fn what_was_acknowledged_survives_a_kill_in_postgres_too() {
    let Some(server) = PostgresServer::shared() else { return };
    eprintln!("{}", survives_kills(PROGRAM, &["--tables", &server.schema("kills")]));
}

/// Statements that read before they write, outside of `atomic`.
const UPDATES: &str = r#"use http

record Total { name: Text, count: Int }

record Name { name: Text }

table names: Name key name
table totals: Total key name references name: names default(count: 0)

service ledger on http(port: 8080) {
  put "/{name}" (name: Text) {
    names.upsert(Name { name })?
    totals.insert(Total { name })?
    http.text("added")
  }
  post "/{by}/{number}" (by: Int, number: Int) {
    totals.update("one", |total| Total { ..total, count: total.count + 1 })?
    totals.update_all(|total| total.name == "all", |total| Total { ..total, count: total.count + 1 })?
    http.text("written {by} {number}")
  }
  get "/total" {
    let one = totals["one"] else { return http.not_found() }
    let all = totals["all"] else { return http.not_found() }
    http.text("{one.count} {all.count}")
  }
}
"#;

#[test]
fn programs_that_share_tables_take_turns() {
    take_turns(COUNTER, "shared", &[]);
}

#[test]
fn no_update_of_programs_that_share_tables_is_lost() {
    take_turns(UPDATES, "updates", &["/one", "/all"]);
}

/// Two programs share the tables, and the clients of both write the same rows.
fn take_turns(text: &str, schema: &str, put: &[&str]) {
    const CLIENTS: u64 = 8;
    let Some(server) = PostgresServer::shared() else { return };
    let (program, address) = (Scratch::new("ledger.weir", text.as_bytes()), server.schema(schema));
    let served = [(); 2].map(|()| Served::start(program.path(), &["--tables", &address]));
    for path in put {
        assert_eq!(request(&served[0], "PUT", path).map(|answer| answer.status), Some(200));
    }
    let write = &|by: u64| {
        for number in 0..10 {
            // A debug build may be overloaded: what is refused is sent again.
            let status = || post(&served[by as usize % 2], &format!("/{by}/{number}")).map(|answer| answer.status);
            let written = std::iter::repeat_with(status).find(|status| *status != Some(503));
            assert_eq!(written, Some(Some(200)), "{number} of {by}");
        }
    };
    thread::scope(|scope| (0..CLIENTS).for_each(|by| _ = scope.spawn(move || write(by))));
    for served in served {
        assert_eq!(super::text(&served.get("/total")), "80 80");
        served.stop();
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_crashes_and_starts_again() {
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), server.schema("crashes"));
    let served = Served::start(program.path(), &["--tables", &address]);
    let done = AtomicBool::new(false);
    let acknowledged: Vec<Vec<u64>> = thread::scope(|scope| {
        let client = |by: u64| {
            let (served, done) = (&served, &done);
            move || {
                let sent = (0..).take_while(|_| !done.load(Ordering::Relaxed));
                let written =
                    |number: &u64| post(served, &format!("/{by}/{number}")).is_some_and(|answer| answer.status == 200);
                sent.filter(written).collect()
            }
        };
        let clients: Vec<_> = (0..3).map(|by| scope.spawn(client(by))).collect();
        for _ in 0..3 {
            let written = || text(&served.get("/total")).split(' ').next().and_then(|count| count.parse::<u64>().ok());
            let before = written().expect("the server runs");
            while written().expect("the server runs") < before + 10 {
                thread::yield_now();
            }
            server.crash();
            server.run();
        }
        done.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client fails")).collect()
    });
    let total = served.get("/total");
    let (total, rows) = text(&total).split_once(' ').expect("two numbers");
    assert_eq!(total, rows, "a transaction is torn");
    for (by, numbers) in acknowledged.iter().enumerate() {
        let stored = served.get(&format!("/all/{by}"));
        let stored: Vec<u64> =
            text(&stored).trim_matches(['[', ']', '\n']).split(',').filter_map(|number| number.parse().ok()).collect();
        let lost: Vec<&u64> = numbers.iter().filter(|number| stored.binary_search(number).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        assert!(!numbers.is_empty(), "nothing of {by} was acknowledged");
    }
    served.stop();
}

#[test]
fn a_server_that_does_not_answer_holds_up_a_statement_to_its_time_limit() {
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), server.schema("frozen"));
    let mut served = Served::start(program.path(), &["--tables", &format!("{address}&statement_timeout=1s")]);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    server.freeze();
    assert_eq!(post(&served, "/1/2").map(|answer| answer.status), Some(500));
    let said = served.wait_for("has not answered within 1 s");
    assert!(said.contains("it may carry out the statement later"), "{said}");
    server.thaw();
    assert_eq!(post(&served, "/1/3").map(|answer| answer.status), Some(200));
    served.stop();
}

/// The statement waits on a thread of its own, and not on that of its flow.
#[test]
fn a_server_that_does_not_answer_holds_up_no_other_flow() {
    let Some(server) = PostgresServer::start() else { return };
    for engine in ["event", "pool"] {
        let (program, address) =
            (Scratch::new("ledger.weir", COUNTER.as_bytes()), server.schema(&format!("alive_{engine}")));
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine, "--threads", "1"]);
        assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
        server.freeze();
        thread::scope(|scope| {
            let (write, read) = (scope.spawn(|| post(&served, "/1/2")), scope.spawn(|| served.get("/all/1")));
            assert_eq!(text(&served.get("/alive")), "alive");
            assert!(!write.is_finished() && !read.is_finished(), "the server is frozen");
            server.thaw();
            assert_eq!(write.join().expect("the client ends").map(|answer| answer.status), Some(200));
            assert_eq!(read.join().expect("the client ends").status, 200);
        });
        served.stop();
    }
}

const NOTES: &str = r#"use http

record Note { id: Int, text: Text }

table notes: Note key id auto

shared begun = 0

service board on http(port: 8080) {
  post "/" {
    begun.add(1)
    http.text("{notes.insert(Note { text: "a" })?}")
  }
  get "/begun" { http.text("{begun}") }
}
"#;

/// While the database holds up the first insertion, the other flows queue theirs, and do not wait for its answer.
#[test]
fn insertions_of_flows_that_come_together_are_few_transactions() {
    const FLOWS: usize = 16;
    // Of its own, because it is frozen.
    let Some(server) = PostgresServer::start() else { return };
    for engine in ["event", "pool"] {
        let schema = format!("grouped_{engine}");
        let (program, address) = (Scratch::new("notes.weir", NOTES.as_bytes()), server.schema(&schema));
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine, "--threads", "2"]);
        assert_eq!(post(&served, "/").map(|answer| answer.status), Some(200));
        server.freeze();
        thread::scope(|scope| {
            let written: Vec<_> = (0..FLOWS).map(|_| scope.spawn(|| post(&served, "/"))).collect();
            while text(&served.get("/begun")).trim() != (FLOWS + 1).to_string() {
                thread::yield_now();
            }
            server.thaw();
            for write in written {
                assert_eq!(write.join().expect("the client ends").map(|answer| answer.status), Some(200));
            }
        });
        served.stop();
        let found = server.execute(&schema, "SELECT count(*), count(DISTINCT xmin::text) FROM notes");
        let (rows, transactions) = found.trim().split_once('|').expect("two numbers");
        assert_eq!(rows, (FLOWS + 1).to_string());
        let transactions: usize = transactions.parse().expect("a number");
        assert!(transactions <= FLOWS / 2, "{transactions} transactions of {FLOWS} flows, under `{engine}`");
    }
}

#[test]
fn a_start_that_postgres_prevents_says_why() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("ledger.weir", COUNTER.as_bytes());
    let refused = |address: &str| {
        let said = say(&["run", program.path(), "--port", "0", "--tables", address]);
        assert_ne!(said.code, 0);
        said.messages
    };
    let address = server.schema("foreign");
    server.execute("foreign", "CREATE TABLE totals (name text)");
    let said = refused(&address);
    assert!(said.contains("the database has a table `totals` that no Weir program has created"), "{said}");
    server.execute("foreign", "UPDATE weir_database SET layout = 99");
    assert!(refused(&address).contains("a newer version of Weir has written the tables of the schema `foreign`"));
    assert!(refused(&server.address("missing")).contains("the search path names no schema that exists"));
    let nobody = address.replace("postgres://weir@", "postgres://stranger:secret@");
    let said = refused(&nobody);
    assert!(said.contains("correct the user in its address") && !said.contains("secret"), "{said}");
    let said = refused(&address.replace("/postgres?", "/shop?"));
    assert!(said.contains("create it with `createdb`"), "{said}");
    let said = refused("postgres://weir@127.0.0.1:1/shop");
    assert!(said.contains("start PostgreSQL, or correct its address"), "{said}");
    let said = refused("mysql://weir@db/shop");
    assert!(said.contains("the address of the database is invalid"), "{said}");
}

#[test]
fn the_plan_names_the_database_and_weir_tables_shows_it() {
    let Some(server) = PostgresServer::shared() else { return };
    let folder = Scratch::folder("planned");
    let (main, plan) = (format!("{}/main.weir", folder.path()), format!("{}/main.plan.toml", folder.path()));
    std::fs::write(&main, COUNTER).expect("the folder is ours");
    std::fs::write(plan, format!("tables = \"{}\"\n", server.schema("planned"))).expect("the folder is ours");
    let shown = say(&["tables", &main]);
    assert!(shown.output.contains("a start runs: CREATE TABLE \"entries\" (\"id\" bigint"), "{}", shown.output);
    let served = Served::start(&main, &[]);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    served.stop();
    let shown = say(&["tables", &main]);
    assert_eq!(shown.output.matches("the database has it like this").count(), 2, "{}", shown.output);
    assert_eq!(server.execute("planned", "SELECT * FROM entries").trim(), "1|1|1");
    let shown = say(&["tables", &main, "--data", folder.path()]);
    assert!(shown.output.contains("INTEGER PRIMARY KEY AUTOINCREMENT"), "`--data` counts: {}", shown.output);
}

/// It would show another database than that of a start.
#[test]
fn weir_tables_refuses_a_plan_with_an_error() {
    let folder = Scratch::folder("wrong-plan");
    let (main, plan) = (format!("{}/main.weir", folder.path()), format!("{}/main.plan.toml", folder.path()));
    std::fs::write(&main, COUNTER).expect("the folder is ours");
    for wrong in ["tables = 5\n", "tabels = \"postgres://db/shop\"\n", "tables = \"postgres://db/shop\n"] {
        std::fs::write(&plan, wrong).expect("the folder is ours");
        let refused = say(&["tables", &main]);
        assert_eq!((refused.code, &*refused.output), (1, ""), "{wrong}: {}", refused.messages);
        assert!(refused.messages.contains("main.plan.toml"), "{}", refused.messages);
    }
}

/// A program writes, and another process, which is this test, learns of each of its commits.
#[test]
fn programs_that_share_tables_tell_each_other_what_they_write() {
    // Of its own, because it crashes.
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), server.schema("told"));
    let served = Served::start(program.path(), &["--tables", &address]);
    let storage =
        TableStorage::at(TableLocation::Postgres(PostgresAddress::parse(&address, None).expect("an address")));
    let mut sets = storage.write_sets().expect("the server runs");
    let mut told = || match sets.blocking_recv().expect("the storage is open") {
        WriteSet::Rows(writes) => writes,
        WriteSet::Unknown => Vec::new(),
    };
    let row = |table: &str, key: &str, columns: &[&str]| {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        vec![TableWrite { table: table.to_owned(), key: Some(key.to_owned()), columns }]
    };
    let (entry, total) = (["id", "by", "number"], ["name", "count"]);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    assert_eq!([told(), told()], [row("entries", "1", &entry), row("totals", "\"all\"", &total)]);
    // A transaction that is taken back tells nothing.
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(500));
    assert_eq!(post(&served, "/1/2").map(|answer| answer.status), Some(200));
    assert_eq!([told(), told()], [row("entries", "2", &entry), row("totals", "\"all\"", &total)]);
    // What is written while the connection is lost is unknown; then the program listens again.
    server.crash();
    server.run();
    assert_eq!([told(), told()], [vec![], vec![]]);
    let number = (3..).find(|number| post(&served, &format!("/1/{number}")).is_some_and(|answer| answer.status == 200));
    assert_eq!(told()[0].table, "entries", "{number:?}");
    served.stop();
}

/// Reads and writes of all kinds: by keys, queries, changes of one row, and transactions.
pub(super) const BUSY: &str = r#"use http

record Count { id: Int, number: Int }

table counts: Count key id

service counters on http(port: 8080) {
  put "/{id}" (id: Int) { http.text("{counts.upsert(Count { id, number: 0 })?}") }
  post "/{id}" (id: Int) {
    let now = atomic counts {
      let count = counts[id] else { fail("{id} is missing") }
      counts.upsert(Count { ..count, number: count.number + 1 })?
      count.number + 1
    }
    http.text("{now}")
  }
  get "/{id}" (id: Int) { http.json(counts[id]) }
  get "/" { http.text("{counts.count(|c| c.number >= 0)} {(for c in counts if c.number >= 0 { c.number }).length()}") }
}
"#;

#[test]
fn a_program_makes_no_more_connections_than_its_plan_allows() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("few_connections");
    server
        .execute("public", "CREATE ROLE clerk LOGIN CONNECTION LIMIT 3; GRANT ALL ON SCHEMA few_connections TO clerk");
    let address = address.replacen("weir@", "clerk@", 1);
    let program = Scratch::new("counters.weir", BUSY.as_bytes());
    let plan = Scratch::new("counters.toml", b"table_connections = 3\n");
    for engine in ["event", "pool", "thread-per-flow", "manual", "staged", "dedicated", "elastic"] {
        let arguments = ["--tables", &address, "--plan", plan.path(), "--engine", engine];
        let served = Served::start(program.path(), &arguments);
        thread::scope(|scope| {
            for id in 0..6 {
                let served = &served;
                scope.spawn(move || {
                    for method in ["PUT", "POST", "GET", "POST"] {
                        let answer = request(served, method, &format!("/{id}"));
                        assert_eq!(
                            answer.as_ref().map(|answer| answer.status),
                            Some(200),
                            "{engine} {method} {answer:?}"
                        );
                        let all = served.get("/");
                        assert_eq!(all.status, 200, "{engine} {all:?}");
                    }
                });
            }
        });
        let (code, said) = served.stop();
        assert!(code == Some(0) && !said.contains("too many connections"), "{engine}: {said}");
    }
}
