//! Programs and transactions that have nothing in common with a program but the server.

use std::thread;

use test_support::postgres::PostgresServer;

use super::post;
use crate::support::{Scratch, Served};

const NUMBERS: &str = r#"use http, list

record Number { id: Int, count: Int }

table numbers: Number key id

service counting on http(port: 8080) {
  post "/fill" {
    for id in list.numbers(0, 10)? { numbers.upsert(Number { id, count: 0 })? }
    http.text("filled")
  }
  post "/update" {
    for at in list.numbers(0, 1000)? { numbers.update(at % 10, |n| Number { ..n, count: n.count + 1 })? }
    http.text("updated")
  }
}
"#;

/// Transaction of another schema, which stays open.
const OPEN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE others SET count = count + 1; SELECT pg_sleep(600)";
const IS_OPEN: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

/// The server keeps what committed transactions have read as long as another one is open. A server of few connections keeps little.
#[test]
fn a_long_transaction_on_tables_of_another_schema_hinders_no_write() {
    let small = ["max_connections=20", "max_worker_processes=0", "max_wal_senders=0"];
    let Some(server) = PostgresServer::start_with(&small) else { return };
    server.schema("others");
    server.execute("others", "CREATE TABLE others (count bigint); INSERT INTO others VALUES (0)");
    let (program, address) = (Scratch::new("numbers.weir", NUMBERS.as_bytes()), server.schema("numbers"));
    let served = Served::start(program.path(), &["--tables", &address]);
    assert_eq!(post(&served, "/fill").map(|answer| answer.status), Some(200));
    let mut open = server.psql("others", OPEN).spawn().expect("psql is there");
    while server.execute("others", IS_OPEN).trim() != "1" {
        thread::yield_now();
    }
    for _ in 0..3 {
        assert_eq!(post(&served, "/update").map(|answer| answer.status), Some(200));
    }
    assert_eq!(server.execute("others", IS_OPEN).trim(), "1");
    open.kill().expect("psql runs");
    open.wait().expect("psql ends");
    assert_eq!(server.execute("numbers", "SELECT sum(count) FROM numbers").trim(), "3000");
    served.stop();
}
