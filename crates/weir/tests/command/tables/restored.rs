//! Shared values that are no tables are restored when the transaction that has changed them is taken back, however it ends, in every
//! store and under every engine; they stay as they are when it commits.

use std::thread;

use test_support::postgres::PostgresServer;

use super::soft::with_short_files;
use super::{post, text};
use crate::support::{ENGINES, Scratch, Served, TableStore, say};

const PROGRAM: &str = r#"use http

record Account { owner: Text, balance: Int }

table accounts: Account key owner
table kept: Account key owner soft

shared visits = 0
shared log: List(Text) = []
shared own = 0 per session

fn refused() -> Result(Int) { fail("refused") }

fn stored(how: Text) -> Result(Int) {
  let written = atomic accounts, visits, log {
    accounts.upsert(Account { owner: how, balance: 1 })?
    visits.add(1)
    log.push(how)
    if how == "returned err" { return refused() }
    if how == "returned ok" { return Ok(1) }
    if how == "tried" { refused()? }
    if how == "failed" { fail("refused") }
    if how == "value err" { refused() } else { Ok(1) }
  }
  written
}

fn soft(how: Text) -> Result(Int) {
  let written = atomic kept {
    kept.upsert(Account { owner: how, balance: 1 })?
    visits.add(1)
    log.push(how)
    if how == "returned err" { return refused() }
    if how == "returned ok" { return Ok(1) }
    if how == "tried" { refused()? }
    if how == "failed" { fail("refused") }
    if how == "value err" { refused() } else { Ok(1) }
  }
  written
}

fn both(how: Text) -> Result(Int) {
  let written = atomic visits {
    atomic accounts, kept, log {
      log.push(how)
      visits.add(1)
      accounts.upsert(Account { owner: how, balance: 1 })?
      kept.upsert(Account { owner: how, balance: 1 })?
      if how == "returned err" { return refused() }
      if how == "returned ok" { return Ok(1) }
      if how == "tried" { refused()? }
      if how == "failed" { fail("refused") }
      if how == "value err" { refused() } else { Ok(1) }
    }
  }
  written
}

fn ended(tables: Text, how: Text) -> Result(Int) {
  if tables == "stored" { stored(how) } else if tables == "soft" { soft(how) } else { both(how) }
}

fn state() -> Text { "{visits} {log} {accounts.count()} {kept.count()}" }

fn right() -> Result(Bool) {
  for tables in ["stored", "soft", "both"] {
    for how in ["returned err", "tried", "failed", "value err"] {
      let before = state()
      let written = ended(tables, how) else { 0 }
      if state() != before || written != 0 { fail("{tables} {how}: {before} {state()}") }
    }
    for how in ["returned ok", "value ok"] {
      let (many, length) = (visits + 1, log.length() + 1)
      let written = ended(tables, how) else { 0 }
      if visits != many || log.length() != length || written != 1 { fail("{tables} {how}: {state()}") }
    }
  }
  Ok(true)
}

service bank on http(port: 8080) {
  get "/" { http.text("{right()?}") }
  get "/state" { http.text(state()) }
  post "/stored" (divisor: Int) {
    atomic accounts, visits, log {
      visits.add(1)
      log.push("divided")
      accounts.upsert(Account { owner: "divided", balance: 1 })?
      accounts.upsert(Account { owner: "divided", balance: 1 / divisor })?
    }
    http.text("done")
  }
  post "/soft" (divisor: Int) {
    atomic kept {
      visits.add(1)
      log.push("divided")
      kept.upsert(Account { owner: "divided", balance: 1 })?
      kept.upsert(Account { owner: "divided", balance: 1 / divisor })?
    }
    http.text("done")
  }
  post "/flow" (divisor: Int) {
    atomic accounts, log {
      log.push("flow")
      accounts.upsert(Account { owner: "flow", balance: 1 })?
      if divisor == 0 { fail("refused") }
      return http.text("done")
    }
  }
  post "/memory" (divisor: Int) {
    atomic accounts, log {
      log.push("memory")
      accounts.upsert(Account { owner: "memory", balance: 1 })?
      let size = if divisor == 0 { 300_000_000 } else { 1 }
      log.push("x".repeat(size)?)
    }
    http.text("done")
  }
  post "/own/{user}" (user: Text, divisor: Int) {
    session = user
    atomic accounts {
      own.add(1)
      accounts.upsert(Account { owner: user, balance: own / divisor })?
    }
    http.text("done")
  }
  get "/own/{user}" (user: Text) {
    session = user
    http.text("{own} {accounts.exists(|account| account.owner == user)}")
  }
  get "/visits" { http.text("{visits} {log.length()}") }
}

test "a transaction that is taken back restores shared values" {
  expect right()?
}
"#;

/// Calls `check` for a program that is served by each engine in each of these turns of the stores: in both, each engine has each store.
fn served(name: &str, turns: &[usize], program: &str, check: impl Fn(&Served, &str)) {
    let program = Scratch::new(&format!("{name}.weir"), program.as_bytes());
    let stores = TableStore::each(name);
    for (engine, store) in turns.iter().flat_map(|turn| TableStore::in_turns(&stores, *turn)) {
        let options = store.with(&["--engine", engine]);
        let served = Served::start(program.path(), &options);
        check(&served, &format!("{options:?}"));
        served.stop();
    }
}

fn get(served: &Served, path: &str) -> String {
    text(&served.get(path)).trim().to_owned()
}

fn status(served: &Served, path: &str) -> u16 {
    post(served, path).map_or(0, |answer| answer.status)
}

#[test]
fn a_transaction_that_is_taken_back_restores_shared_values_in_tests() {
    let program = Scratch::new("restored-test.weir", PROGRAM.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

#[test]
fn a_transaction_that_is_taken_back_restores_shared_values() {
    served("restored", &[0, 1], PROGRAM, |served, how| {
        assert_eq!(get(served, "/"), "true", "{how}");
        for way in ["stored", "soft", "flow", "memory"] {
            let before = get(served, "/state");
            assert!([400, 500, 503].contains(&status(served, &format!("/{way}?divisor=0"))), "{way} with {how}");
            assert_eq!(get(served, "/state"), before, "{way} with {how}");
            assert_eq!(status(served, &format!("/{way}?divisor=1")), 200, "{way} with {how}");
            assert_ne!(get(served, "/state"), before, "{way} with {how}");
        }
    });
}

#[test]
fn a_transaction_that_is_taken_back_restores_values_of_its_session() {
    served("restored-own", &[0], PROGRAM, |served, how| {
        // A user of its own for each engine, because the rows stay.
        let user = how.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let path = format!("/own/{user}");
        for (divisor, expected) in [(0, "0 false"), (1, "1 true"), (0, "1 true"), (1, "2 true")] {
            status(served, &format!("{path}?divisor={divisor}"));
            assert_eq!(get(served, &path), expected, "{how}");
        }
    });
}

#[test]
fn transactions_that_are_taken_back_beside_others_restore_only_their_changes() {
    served("restored-beside", &[1], PROGRAM, |served, how| {
        thread::scope(|scope| {
            for way in ["stored", "soft", "stored", "soft"] {
                scope.spawn(move || {
                    for divisor in [1, 0, 0, 1, 0, 1] {
                        let path = format!("/{way}?divisor={divisor}");
                        let answers = std::iter::repeat_with(|| status(served, &path));
                        let answer = answers.into_iter().find(|status| *status != 503);
                        assert_eq!(answer, Some(if divisor == 0 { 500 } else { 200 }));
                    }
                });
            }
        });
        assert_eq!(get(served, "/visits"), "12 12", "{how}");
    });
}

/// A statement that fails in a transaction which goes on, and what its function has written in a shared value.
const HANDLED: &str = r#"use http

record Seat { id: Int, place: Int }

table stored: Seat key id unique place
table kept: Seat key id unique place soft

shared calls = 0

fn moved() -> Result(Text) {
  let one = atomic stored {
    let moved = stored.update(1, |seat| {
      calls.add(1)
      Seat { ..seat, place: 2 }
    })
    match moved {
      Ok(_) => "moved"
      Err(failure) => failure.kind()
    }
  }
  let all = atomic kept {
    let count = retry(2) {
      kept.update_all(|_| true, |seat| {
        calls.add(1)
        if seat.id == 2 { fail("two") }
        Seat { ..seat, place: seat.place + 10 }
      })?
    } else { 0 - 1 }
    "{count}"
  }
  Ok("{one} {all} {calls} {for seat in stored { seat.place }} {for seat in kept { seat.place }}")
}

fn filled() -> Result(()) {
  for id in [1, 2] {
    stored.upsert(Seat { id, place: id })?
    kept.upsert(Seat { id, place: id })?
  }
  Ok(())
}

service seats on http(port: 8080) {
  post "/" {
    filled()?
    http.text(moved()?)
  }
}

test "a shared value is no part of the statement" {
  filled()?
  expect moved()? == "constraint -1 5 [1, 2] [1, 2]"
}
"#;

#[test]
fn a_statement_that_fails_in_a_transaction_leaves_what_its_function_has_written_in_shared_values() {
    let program = Scratch::new("restored-handled-test.weir", HANDLED.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    served("restored-handled", &[0], HANDLED, |served, how| {
        let answer = post(served, "/").expect("the program answers");
        assert_eq!(text(&answer).trim(), "constraint -1 5 [1, 2] [1, 2]", "{how}");
    });
}

const LARGE: &str = r#"use http

record Note { id: Int, text: Text }

table stored: Note key id

shared written: List(Int) = []

service notes on http(port: 8080) {
  post "/{id}" (id: Int, length: Int) {
    atomic stored, written {
      written.push(id)
      stored.insert(Note { id, text: "x".repeat(length)? })?
    }
    http.text("written")
  }
  get "/" { http.text("{written.length()} {stored.count()}") }
}
"#;

#[test]
fn a_commit_that_meets_a_full_disk_restores_shared_values() {
    let (program, folder) = (Scratch::new("large.weir", LARGE.as_bytes()), Scratch::folder("restored-full"));
    let served = with_short_files(&program, &folder);
    let is_refused = |id: &usize| status(&served, &format!("/{id}?length=4000000")) != 200;
    let refused = (1..100).find(is_refused).expect("the limit is reached");
    assert_eq!(get(&served, "/"), format!("{0} {0}", refused - 1));
    assert!(is_refused(&refused), "once more, and not because a row exists already");
    assert_eq!(get(&served, "/"), format!("{0} {0}", refused - 1));
    served.stop();
}

#[test]
fn a_commit_that_postgres_refuses_restores_shared_values() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("restored-commit.weir", LARGE.as_bytes());
    let address = server.schema("restored_commit");
    for (engine, id) in ENGINES.into_iter().zip((10..).step_by(10)) {
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        server.execute(
            "restored_commit",
            "TRUNCATE stored; ALTER TABLE stored DROP CONSTRAINT IF EXISTS once;
             ALTER TABLE stored ADD CONSTRAINT once UNIQUE (text) DEFERRABLE INITIALLY DEFERRED",
        );
        for (at, length, expected) in [(id, 1, (200, "1 1")), (id + 1, 1, (500, "1 1")), (id + 2, 2, (200, "2 2"))] {
            let answered = status(&served, &format!("/{at}?length={length}"));
            assert_eq!((answered, &*get(&served, "/")), expected, "{at} under `{engine}`");
        }
        served.stop();
    }
}
