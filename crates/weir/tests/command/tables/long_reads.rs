//! Reads that take long leave the thread of their flow: others are answered, and may write, before they end.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{post, text};
use crate::support::{Scratch, Served, read_answer};

const READINGS: &str = r#"use http

record Reading { id: Int, value: Int }

table readings: Reading key id auto

service weather on http(port: 8080) {
  get "/count" { http.text("{readings.count(|r| r.value == 7)}") }
  get "/rows" { http.text("{(for r in readings if r.value == 7 { r }).filter(|r| r.id > 0).length()}") }
  get "/sum" { http.text("{(for r in readings if r.value == 7 { r.value }).sum()}") }
  get "/average" { http.text("{(for r in readings if r.value == 7 { r.value }).average()}") }
  get "/distinct" { http.text("{(for r in readings if r.value < 8 { r.value }).unique().length()}") }
  get "/groups" {
    http.text("{for (value, of) in (for r in readings { r }).group_by(|r| r.value) if of.length() > 3 { value }}")
  }
  get "/limited" {
    match (readings.count(|r| r.value == 7) within 1ms) {
      Ok(count) => http.text("{count}")
      Err(why) => http.text("{why.kind()}")
    }
  }
  get "/{id}" (id: Int) { http.text("{readings[id] != None}") }
  post "/{value}" (value: Int) { http.text("{readings.insert(Reading { value })? > 0}") }
}
"#;
/// The scans, and their answers before the first write.
const SCANS: [(&str, &str); 6] =
    [("/count", "3"), ("/rows", "3"), ("/sum", "21"), ("/average", "Some(7.0)"), ("/distinct", "8"), ("/groups", "[]")];
/// Number of rows.
const ROWS: u32 = 1_000_000;

/// Returns whether the answer has begun to arrive.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("the mode can be set");
    let seen = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).expect("the mode can be set");
    seen
}

#[test]
fn others_read_and_write_while_a_large_table_is_read() {
    let (program, data) = (Scratch::new("readings.weir", READINGS.as_bytes()), Scratch::folder("long-reads"));
    let arguments = ["--data", data.path(), "--engine", "event", "--threads", "1"];
    let database = Path::new(program.path()).with_extension("db");
    let database = Path::new(data.path()).join(database.file_name().expect("a name"));
    Served::start(program.path(), &arguments).stop();
    // Three rows of each of the values from 1 on, approximately.
    let fill = format!(
        "WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < {ROWS})
         INSERT INTO readings (value) SELECT at / 3 FROM n"
    );
    let filled = Command::new("sqlite3").arg(database).arg(fill).status().expect("sqlite3 is installed");
    assert!(filled.success());
    let served = Served::start(program.path(), &arguments);
    let mut writes_before = 0;
    // Each scan is executed for the first time, when nobody knows how long it takes, and again.
    for (at, (path, expected)) in SCANS.into_iter().chain(SCANS).enumerate() {
        let scan = served.ask(path);
        assert_eq!(text(&served.get("/5")), "true");
        assert!(!is_answered(&scan), "{path} was answered before a small request");
        let written = post(&served, &format!("/{}", i64::from(ROWS) + at as i64)).expect("it is answered");
        assert_eq!(text(&written), "true");
        writes_before += usize::from(!is_answered(&scan));
        let found = read_answer(scan);
        if at < SCANS.len() {
            assert_eq!(text(&found), expected, "{path}");
        }
    }
    // A write waits for the disk, which may take longer than a scan.
    assert!(writes_before > 0, "no write was answered before a scan");
    // A flow whose time is up goes on, although the scan is not over.
    assert_eq!(text(&served.get("/limited")), "timeout");
    assert_eq!(text(&served.get("/5")), "true");
    served.stop();
}
