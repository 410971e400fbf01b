//! Reads that PostgreSQL refuses in the last attempt of a transaction on an existing database: the `fn` or `retry` around it fails.

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Scratch, Served, say};

const PROGRAM: &str = r#"use http, list

record Rate { id: Int, value: Int }

config bank_of: Text

table rates: Rate key id existing(database: bank_of)
table sums: Rate key id existing(database: bank_of, writable: true)

fn by_key(id: Int) -> Result(Int) {
  let value = atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    let rate = rates[id] else { fail("no rate") }
    rate.value
  }
  Ok(value)
}

fn search(_id: Int) -> Result(Int) {
  let values = atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    for rate in rates if rate.id < 2 { rate.value }
  }
  Ok(values.sum())
}

fn number(_id: Int) -> Result(Int) {
  let count = atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    rates.count(|rate| rate.value == 5) + 6
  }
  Ok(count)
}

fn total(_id: Int) -> Result(Int) {
  let total = atomic sums { (for rate in rates if rate.id < 2 { rate.value }).sum() }
  Ok(total)
}

fn joined(_id: Int) -> Result(Int) {
  let values = atomic sums {
    sums.upsert(Rate { id: 1, value: 1 })?
    for sum in sums if sum.id < 10 { (rates[sum.id].map(|rate| rate.value) else { 0 }) * 2 }
  }
  Ok(values.sum())
}

fn in_rounds(id: Int) -> Result(Int) {
  let values = atomic sums {
    for n in [0, 1] {
      sums.upsert(Rate { id: 90 + n, value: 1 })?
      let rate = rates[n + id - 1] else { fail("no rate") }
      rate.value
    }
  }
  Ok(values.sum())
}

fn in_closure(id: Int) -> Result(Int) {
  let values = atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    [0, 1].map(|n| rates[n * id].map(|rate| rate.value) else { 0 })
  }
  Ok(values.sum())
}

/// The failure leaves the transaction, past the handler inside of it.
fn inner(id: Int) -> Result(Int) {
  let value = atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    rate_of(id) else { -1 }
  }
  Ok(value * 2)
}

fn rate_of(id: Int) -> Result(Int) {
  let rate = rates[id] else { fail("no rate") }
  Ok(rate.value)
}

fn both(id: Int, next: Int) -> Result(Int) {
  let value = atomic sums {
    let one = rates[id].map(|rate| rate.value) else { 0 }
    let other = rates[next].map(|rate| rate.value) else { 0 }
    one + other
  }
  Ok(value)
}

fn returned(id: Int) -> Result(Int) {
  atomic sums {
    sums.upsert(Rate { id: 90, value: 1 })?
    let rate = rates[id] else { return Ok(0) }
    return Ok(rate.value * 2)
  }
}

fn of_update(id: Int) -> Result(Int) {
  sums.upsert(Rate { id: 1, value: 0 })?
  let sum = sums.update(1, |sum| {
    let rate = rates[id] else { fail("no rate") }
    Rate { ..sum, value: rate.value * 2 }
  })? else { fail("no sum") }
  Ok(sum.value)
}

service bank on http(port: 8080) {
  post "/by_key" { answer_by(by_key(1).map(|value| value * 2)) }
  post "/search" { answer_by(search(1)) }
  post "/number" { answer_by(number(1)) }
  post "/total" { answer_by(total(1)) }
  post "/joined" { answer_by(joined(1)) }
  post "/in_rounds" { answer_by(in_rounds(1)) }
  post "/in_closure" { answer_by(in_closure(1)) }
  post "/inner" { answer_by(inner(1)) }
  post "/both" { answer_by(both(1, 0)) }
  post "/returned" { answer_by(returned(1)) }
  post "/of_update" { answer_by(of_update(1)) }
  post "/retry" {
    let value = retry(2) {
      let value = atomic sums {
        sums.upsert(Rate { id: 90, value: 1 })?
        let rate = rates[1] else { fail("no rate") }
        rate.value * 2
      }
      value
    } else as failure { return http.status(409, "{failure.kind()}: {failure}")? }
    http.text("{value}")
  }
  post "/end" {
    let rate = atomic sums { rates[1] }
    http.text("{rate.map(|rate| rate.value * 2) else { 0 }}")
  }
  post "/passed" { http.text("{by_key(1)? * 2}") }
}

fn answer_by(outcome: Result(Int)) -> http.Response {
  let value = outcome else as failure { return http.status(409, "{failure.kind()}: {failure}") else { http.text("none") } }
  http.text("{value}")
}
"#;

const WAYS: [&str; 12] = [
    "by_key",
    "search",
    "number",
    "total",
    "joined",
    "in_rounds",
    "in_closure",
    "inner",
    "both",
    "returned",
    "of_update",
    "retry",
];

/// A view refuses as many reads as it is told, as if other programs had changed what it has read.
#[test]
fn a_read_that_is_refused_in_the_last_attempt_fails_its_transaction_as_the_commit_does() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.schema("refused_reads");
    let program = Scratch::new("bank.weir", PROGRAM.as_bytes());
    let sql = |sql: &str| server.execute("refused_reads", sql).trim().to_owned();
    sql("CREATE SEQUENCE reads;
         CREATE TABLE sums (id bigint PRIMARY KEY, value bigint NOT NULL);
         CREATE FUNCTION value(times int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
           IF nextval('reads') <= times THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END IF;
           RETURN 5;
         END $$");
    let refuse = |times: u32| {
        let rates = format!("SELECT id, value({times}) AS value FROM generate_series(0::bigint, 1) AS id");
        sql(&format!("CREATE OR REPLACE VIEW rates AS {rates}; ALTER SEQUENCE reads RESTART; DELETE FROM sums"));
    };
    refuse(0);
    for engine in ["event", "elastic"] {
        let data = Scratch::folder("refused-reads");
        let option = format!("bank_of={address}");
        let arguments = ["--data", data.path(), "--set", &option, "--engine", engine];
        let served = Served::start(program.path(), &arguments);
        let asked = |way: &str| {
            let answer = post(&served, &format!("/{way}")).expect("the program answers");
            (answer.status, text(&answer).trim().to_owned())
        };
        for way in WAYS.iter().chain(&["end", "passed"]) {
            refuse(2);
            let right = if *way == "number" { "8" } else { "10" };
            assert_eq!(asked(way), (200, right.to_owned()), "{way} under `{engine}`");
        }
        for way in WAYS {
            refuse(1000);
            let (status, said) = asked(way);
            assert_eq!(status, 409, "{way} under `{engine}`: {said}");
            assert!(said.starts_with("conflict: "), "{way} under `{engine}`: {said}");
            let kept = if way == "of_update" { "0" } else { "" };
            assert_eq!(sql("SELECT value FROM sums"), kept, "{way} under `{engine}`");
        }
        refuse(1000);
        assert_eq!((asked("end").0, asked("passed").0), (500, 500), "under `{engine}`");
        refuse(0);
        assert_eq!(asked("by_key"), (200, "10".to_owned()), "under `{engine}`");
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("failed at") && log.contains("13:16, in `by_key`"), "{log}");
    }
}

/// A read that keeps its failure is no obstacle: a transaction whose first read has failed needs no other row.
#[test]
fn a_transaction_on_an_existing_database_asks_for_all_rows_before_it_waits_for_the_first_one() {
    let program = Scratch::new("bank.weir", PROGRAM.as_bytes());
    let shown = say(&["graph", program.path(), "--ir", "expr"]).output;
    let both = shown.split("flow \"post /both\"").nth(1).expect("the route");
    let at = |part: &str| both.find(part).unwrap_or_else(|| panic!("no {part}\n{both}"));
    assert!(at("call tables.expect ") < at("call tables.get "), "{both}");
}
