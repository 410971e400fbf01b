//! `weir test --tables`: each test has stored tables of its own, and the data of the database stays as it is.

use std::thread;

use test_support::postgres::PostgresServer;

use crate::support::{Scratch, Served, say, weir};

const WORDS: &str = r#"use http

record Word { text: Text, count: Int }

table words: Word key text default(count: 0)

fn learn(text: Text) -> Result(Int) {
  atomic words {
    let known = words[text] else { Word { text, count: 0 } }
    words.upsert(Word { ..known, count: known.count + 1 })?
  }
  let word = words[text] else { return fail("{text} is missing") }
  Ok(word.count)
}

service dictionary on http(port: 8080) {
  post "/{text}" (text: Text) { http.text("{learn(text)?}") }
}

test "a word is counted" {
  learn("weir")?
  expect learn("weir")? == 2
  expect words.count() == 1
}

test "tests share no tables" {
  expect words.count() == 0
  expect dictionary.post("/weir", "").text()? == "1"
}

test "no tables" { expect 1 + 1 == 2 }
"#;

/// A test that has written a row, and does not end.
const ENDLESS: &str = r#"record Word { text: Text }

table words: Word key text

test "endless" {
  atomic words {
    words.insert(Word { text: "weir" })?
    let n = loop n = 0 { if n > 9 { 0 } else { n + 1 } } until n < 0 at most 1_000_000_000
    expect n == 0
  }
}
"#;

/// Names of all scratch schemas.
const SCHEMAS: &str = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'weir\\_test%' ORDER BY 1";

#[test]
fn tests_use_scratch_schemas_and_leave_the_data_as_it_is() {
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("words.weir", WORDS.as_bytes()), server.schema("tested"));
    let served = Served::start(program.path(), &["--tables", &address]);
    assert_eq!(super::post(&served, "/weir").map(|answer| answer.status), Some(200));
    // While the program runs, and twice, as tables of the first run would fail the second one.
    for _ in 0..2 {
        let said = say(&["test", program.path(), "--tables", &address]);
        assert!(said.output.contains("3 passed"), "{}{}", said.output, said.messages);
    }
    served.stop();
    assert_eq!(server.execute("tested", "SELECT * FROM words").trim(), "weir|1");
    assert_eq!(server.execute("tested", SCHEMAS).trim(), "");
    // A schema of this name that no run has created is not dropped.
    server.execute("public", "CREATE SCHEMA weir_test_0000000a_1");
    let endless = Scratch::new("endless.weir", ENDLESS.as_bytes());
    let said = say(&["test", endless.path(), "--tables", &address, "--time-limit", "3"]);
    assert!(said.output.contains("1 failed"), "{}{}", said.output, said.messages);
    assert_eq!(server.execute("tested", SCHEMAS).trim(), "weir_test_0000000a_1");
}

#[test]
fn the_schemas_of_a_killed_run_are_dropped_by_the_next_one_and_those_of_a_run_in_progress_are_not() {
    let Some(server) = PostgresServer::start() else { return };
    let (program, address) = (Scratch::new("endless.weir", ENDLESS.as_bytes()), server.address("public"));
    let begin = || weir(&["test", program.path(), "--tables", &address]).spawn().unwrap();
    let with_table = "SELECT count(*) FROM pg_tables WHERE schemaname LIKE 'weir\\_test%' AND tablename = 'words'";
    let schemas = |count: &str| {
        while server.execute("public", with_table).trim() != count {
            thread::yield_now();
        }
        server.execute("public", SCHEMAS)
    };
    let mut killed = begin();
    let left = schemas("1");
    let mut running = begin();
    let both = schemas("2");
    assert_eq!((left.lines().count(), both.lines().count()), (1, 2));
    let run = left.trim().split('_').nth(2).unwrap();
    let locks = format!("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = x'{run}'::bigint::oid");
    assert_eq!(server.execute("public", &locks).trim(), "1");
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The database notices after a moment that the program is gone.
    while server.execute("public", &locks).trim() != "0" {
        thread::yield_now();
    }
    let words = Scratch::new("words.weir", WORDS.as_bytes());
    let said = say(&["test", words.path(), "--tables", &address]);
    assert!(said.output.contains("3 passed"), "{}{}", said.output, said.messages);
    let kept = server.execute("public", SCHEMAS);
    assert!(both.contains(kept.trim()) && kept.lines().count() == 1 && !left.contains(kept.trim()), "{kept}");
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn an_address_that_is_none_or_that_nobody_answers_is_reported() {
    let program = Scratch::new("words.weir", WORDS.as_bytes());
    let said = say(&["test", program.path(), "--tables", "words.db"]);
    assert_eq!(said.code, 2, "{}", said.messages);
    assert!(said.messages.contains("an address such as `postgres://user@host:5432/database`"), "{}", said.messages);
    let said = say(&["test", program.path(), "--tables", "postgres://weir@127.0.0.1:1/words"]);
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains("start PostgreSQL, or correct its address"), "{}", said.messages);
}
