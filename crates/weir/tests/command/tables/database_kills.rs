//! A PostgreSQL server that is killed again and again under a program that writes: nothing acknowledged is lost, doubled or half.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use test_support::postgres::PostgresServer;

use super::kills::kills;
use super::{request, text};
use crate::support::{Scratch, Served, SetOnDrop};

const WRITERS: u64 = 20;

/// The server keeps its log in memory as long as it may, so that a kill loses every commit that nobody has synced.
const LATE_LOG: [&str; 2] = ["wal_writer_delay=10s", "wal_writer_flush_after=1GB"];

/// A statement of its own, and a transaction. No rule prevents that a row is stored twice.
const PROGRAM: &str = r#"use http

record Entry { id: Int, by: Int, number: Int, counted: Bool }

record Total { name: Text, count: Int }

table entries: Entry key id auto index (by, number)
table totals: Total key name

service ledger on http(port: 8080) {
  post "/{by}/{number}" (by: Int, number: Int) {
    let id = atomic entries, totals {
      let id = entries.insert(Entry { by, number, counted: true })?
      let known = totals["all"] else { Total { name: "all", count: 0 } }
      totals.upsert(Total { ..known, count: known.count + 1 })?
      id
    }
    http.text("{id}")
  }
  put "/{by}/{number}" (by: Int, number: Int) {
    http.text("{entries.insert(Entry { by, number, counted: false })?}")
  }
}
"#;

/// The ids of the rows that were acknowledged, by writer and number.
type Acknowledged = BTreeMap<(u64, u64), u64>;

#[test]
fn what_was_acknowledged_survives_kills_of_the_database_under_twenty_writers() {
    let Some(server) = PostgresServer::start_with(&LATE_LOG) else { return };
    let (program, address) = (Scratch::new("ledger.weir", PROGRAM.as_bytes()), server.schema("database_kills"));
    let served = Served::start(program.path(), &["--tables", &address]);
    let kills = kills().div_ceil(4);
    let acknowledged = written_under_kills(&served, &server, kills);
    let (code, said) = served.stop();
    assert_eq!(code, Some(0), "{said}");
    let rows = server.execute("database_kills", "SELECT \"by\", number, id, counted::int FROM entries");
    let total = server.execute("database_kills", "SELECT coalesce(sum(count), 0) FROM totals");
    compare(&acknowledged, &rows, total.trim().parse().expect("a number"));
    eprintln!("{kills} kills, {} acknowledged, {} stored", acknowledged.len(), rows.lines().count());
}

/// Writes until the server has been killed this many times.
fn written_under_kills(served: &Served, server: &PostgresServer, kills: u64) -> Acknowledged {
    let (acknowledged, done) = (Mutex::new(Acknowledged::new()), AtomicBool::new(false));
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let _done = SetOnDrop(&done);
        for by in 0..WRITERS {
            let (acknowledged, done, answered) = (&acknowledged, &done, &answered);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !done.load(Ordering::Relaxed)) {
                    let method = if number % 3 == 0 { "POST" } else { "PUT" };
                    let answer = request(served, method, &format!("/{by}/{number}"));
                    // Nobody knows whether what was answered otherwise is stored; it is not sent again.
                    if let Some(answer) = answer.filter(|answer| answer.status == 200) {
                        let id = text(&answer).trim().parse().expect("the id of the row");
                        acknowledged.lock().expect("no writer fails").insert((by, number), id);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for kill in 0..kills as usize {
            let before_kill = answered.load(Ordering::Relaxed) + 20 + kill % 7 * 30;
            while answered.load(Ordering::Relaxed) < before_kill {
                thread::yield_now();
            }
            server.crash();
            server.run();
        }
    });
    acknowledged.into_inner().expect("no writer fails")
}

/// Compares what was acknowledged with what is stored.
fn compare(acknowledged: &Acknowledged, rows: &str, total: usize) {
    let mut stored = Acknowledged::new();
    let mut counted = 0;
    for row in rows.lines() {
        let numbers: Vec<u64> = row.split('|').map(|number| number.parse().expect("a number")).collect();
        let [by, number, id, in_transaction] = numbers[..] else { panic!("no row of four numbers: {row}") };
        assert_eq!(in_transaction == 1, number % 3 == 0, "another request has stored {row}");
        assert_eq!(stored.insert((by, number), id), None, "sent once, and stored twice: {row}");
        counted += in_transaction as usize;
    }
    assert_eq!(counted, total, "a transaction is torn");
    let other = |(sent, id): &(&(u64, u64), &u64)| stored.get(*sent) != Some(*id);
    let lost: Vec<_> = acknowledged.iter().filter(other).collect();
    assert!(lost.is_empty(), "acknowledged, and lost or stored with another id: {lost:?}");
    assert!(!acknowledged.is_empty(), "nothing was acknowledged");
}
