//! Reads of a table that flows write: in PostgreSQL, those that do not need one another are sent together, and none sees less than
//! one before it in the text.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;

use super::unchanged::sends_together;
use super::{post, text};
use crate::support::{ENGINES, Scratch, Served};

const RATES: &str = r#"use http

record Rate { id: Int, fee: Int }

table rates: Rate key id

fn fee(id: Int) -> Int {
  let rate = rates[id] else { return 0 }
  rate.fee
}

service shop on http(port: 8080) {
  post "/{id}/{fee}" (id: Int, fee: Int) { http.text("{rates.upsert(Rate { id, fee })?}") }
  get "/rows" { http.text("{fee(1)} {fee(2)} {fee(3)}") }
  get "/queries" {
    let dear = for rate in rates if rate.fee > 7 { rate.id }
    http.text("{rates[1]} {dear} {rates.count()}")
  }
  get "/next" { http.text("{fee(1)} {fee(fee(2))}") }
  get "/sum" { http.text("{fee(1)} {(for rate in rates { rate.fee }).sum()} {fee(2)}") }
  get "/behind" {
    let first = fee(1)
    let written = rates.upsert(Rate { id: 3, fee: first })?
    http.text("{first} {written} {fee(3)} {fee(1)}")
  }
}
"#;

/// The routes, and the number of statements that are sent before the first answer.
const ROUTES: [(&str, usize, &str); 4] = [
    ("/rows", 3, "7 8 0"),
    ("/queries", 3, "Some(Rate { id: 1, fee: 7 }) [2] 2"),
    ("/next", 2, "7 0"),
    // A thread with a connection of its own computes the sum.
    ("/sum", 1, "7 15 8"),
];

#[test]
fn reads_of_one_table_do_not_wait_for_one_another() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("one_table");
    let proxy = PostgresProxy::start(server);
    let program = Scratch::new("one_table.weir", RATES.as_bytes());
    // Under `dedicated`, each call has a thread of its own, to which the flow goes after the call before.
    for engine in ENGINES.into_iter().filter(|engine| *engine != "dedicated") {
        let address = proxy.address("one_table");
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine, "--threads", "1"]);
        server.execute("one_table", "DELETE FROM rates");
        for (path, id) in [("/1/7", "1"), ("/2/8", "2")] {
            assert_eq!(text(&post(&served, path).expect("it is answered")), id);
        }
        for (path, together, answer) in ROUTES {
            sends_together(&proxy, &served, (path, together, answer));
        }
        assert_eq!(text(&served.get("/behind")), "7 3 7 7");
        served.stop();
    }
}

const RISING: &str = r#"use http

record Count { id: Int, n: Int }

table rising: Count key id

fn row(id: Int) -> Int {
  let count = rising[id] else { return 0 }
  count.n
}

service counts on http(port: 8080) {
  post "/{n}" (n: Int) { http.text("{rising.upsert(Count { id: 1, n })?}") }
  get "/{id}" (id: Int) {
    let first = row(id)
    let rows = for count in rising if count.n >= 0 { count.n }
    let second = row(id)
    let sum = (for count in rising { count.n }).sum()
    let third = row(id)
    http.text("{first} {rows} {second} {sum} {third} {row(id)}")
  }
}
"#;

/// Number of writes while others read.
const WRITES: u32 = 150;

#[test]
fn no_read_sees_less_than_an_earlier_one() {
    let data = Scratch::folder("rising");
    for engine in ENGINES {
        rise(&["--data", data.path(), "--engine", engine], || {});
    }
}

/// Connections on which reads are sent are lost now and then.
#[test]
fn no_read_sees_less_than_an_earlier_one_in_postgres() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("rising");
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'weir' AND query LIKE 'SELECT%\"rising\"%'";
    for engine in ENGINES {
        rise(&["--tables", &address, "--engine", engine], || _ = server.execute("rising", cut));
    }
}

/// Writes larger and larger numbers while clients read, and executes `cut` now and then.
fn rise(arguments: &[&str], cut: impl Fn()) {
    let program = Scratch::new("rising.weir", RISING.as_bytes());
    let (served, is_over) = (Served::start(program.path(), arguments), AtomicBool::new(false));
    thread::scope(|scope| {
        let read = || {
            let mut read = 0;
            while !is_over.load(Ordering::Relaxed) {
                let answer = served.get("/1");
                if answer.status != 200 {
                    continue;
                }
                let answer = text(&answer);
                let numbers = answer.split(|of: char| !of.is_ascii_digit()).filter_map(|of| of.parse::<u32>().ok());
                assert!(numbers.is_sorted(), "{arguments:?}: {answer}");
                read += 1;
            }
            read
        };
        let readers = [scope.spawn(read), scope.spawn(read), scope.spawn(read)];
        let before: u32 = text(&served.get("/1")).split(' ').next().unwrap_or_default().parse().unwrap_or_default();
        for number in 1..=WRITES {
            // One whose connection is lost may fail.
            drop(post(&served, &format!("/{}", before + number)));
            if number % 20 == 0 {
                cut();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let read: u32 = readers.map(|reader| reader.join().expect("it has read")).iter().sum();
        assert!(read > 0, "{arguments:?}");
    });
    served.stop();
}
