//! `weir test` on calls that wait: time limits and races.

use crate::support::{Scratch, say};

const TIME_LIMITS: &str = r#"use http, time

shared seen: List(Text) = []

fn waited(word: Text, pause: Duration) -> Text {
  time.sleep(pause)
  seen.push(word)
  word
}

fn news(pause: Duration) -> Int {
  loop found = 0 {
    time.sleep(pause)
    seen.read().length()
  } until found > 0 at most 1_000_000
}

fn moved(word: Text) -> Result(Text) {
  time.sleep(9m)
  fail("{word} comes late")
}

service polls on http(port: 8080) {
  get "/" (wait: Duration) { http.text("{news(1ms) within wait else { -1 }}") }
}

test "a body that waits for too long is given up" {
  expect (waited("late", 9m) within 20ms else { "given up" }) == "given up"
  expect (waited("in time", 1ms) within 9m else { "given up" }) == "in time"
  expect seen.read() == ["in time"]
}

test "a loop is given up" {
  expect polls.get("/?wait=20ms").text()? == "-1"
  seen.push("news")
  expect polls.get("/?wait=9m").text()? == "1"
}

test "of nested limits the first one expires" {
  let inner = { waited("inner", 9m) within 10ms else { "inner" } } within 9m else { "outer" }
  let outer = { waited("outer", 9m) within 9m else { "inner" } } within 10ms else { "outer" }
  expect (inner, outer) == ("inner", "outer")
  expect seen.read().is_empty()
}

test "a step is completed, and nothing behind it begins" {
  let late = {
    atomic seen {
      time.sleep(40ms)
      seen.push("step")
    }
    seen.push("behind")
    1
  } within 10ms else { 2 }
  expect late == 2 && seen.read() == ["step"]
}

test "a negative limit expires at the first wait" {
  expect ({ seen.push("before") ; waited("behind", 9m) } within -1s else { "given up" }) == "given up"
  expect (1 + 1 within -1s else { 0 }) == 2
  expect seen.read() == ["before"]
}

test "a wait for a time that has passed takes none" {
  time.sleep(time.now() - 1h - time.now())
  time.back_off(-1h)
  expect ({ time.sleep(-1h); 1 } within 10ms else { 2 }) == 1
}

test "a call that is given up leaves its arguments" {
  let words = ["a", "b"]
  let said = for word in words { moved(word) within 10ms else as failure { "{failure}" } }
  expect said == ["the time is up", "the time is up"]
  expect words == ["a", "b"]
  let tried = retry(3, backoff: 9m) { moved("c")? } within 10ms else as failure { "{failure}" }
  expect tried == "the time is up"
}
"#;

/// A limit expires where a call waits, and behind an atomic step in which one has waited.
#[test]
fn time_limits_expire_in_tests() {
    let program = Scratch::new("limits.weir", TIME_LIMITS.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("7 passed in"), "{}{}", said.output, said.messages);
}

const RACES: &str = r#"use http, time

shared seen: List(Text) = []

fn waited(word: Text, pause: Duration) -> Text {
  seen.push("begun {word}")
  time.sleep(pause)
  seen.push(word)
  word
}

fn news() -> Text {
  loop found = "" {
    time.sleep(1ms)
    if seen.read().contains("news") { "news" } else { "" }
  } until found != "" at most 1_000_000
}

fn primary() -> Text { waited("primary", 1ms) }

fn hedged() -> Text {
  race {
    primary()
    {
      time.sleep(30ms)
      "backup"
    }
  }
}

service polls on http(port: 8080) {
  get "/" (wait: Duration) {
    let found = race {
      news()
      {
        time.sleep(wait)
        "nothing"
      }
    }
    http.text(found)
  }
}

test "the body that waits for less wins, and nothing behind the wait of the other happens" {
  expect race { waited("a", 9m), waited("b", 1ms) } == "b"
  expect seen.read().contains("b") && !seen.read().contains("a")
  expect race { waited("c", 1ms), waited("d", 9m) } == "c"
  expect seen.read().contains("c") && !seen.read().contains("d")
  expect race { waited("e", 9m), waited("f", 9m), waited("g", 1ms) } == "g"
  expect race { waited("h", 9m), waited("i", 1ms), waited("j", 9m) } == "i"
  expect race { waited("k", 1ms), waited("l", 9m), waited("m", 9m) } == "k"
}

test "bodies use the same values while one waits with them" {
  // A literal would be no variable.
  let pause = 2ms + 1ms * seen.read().length()
  let first = race { { time.sleep(pause); "x" }, { time.sleep(pause); "y" } }
  expect (first == "x" || first == "y") && pause == 2ms
}

test "a body that does not wait wins" {
  expect race { "a", waited("b", 1ms) } == "a"
  expect race { waited("c", 9m), "d" } == "d"
  expect race { "e", "f" } == "e"
  expect seen.read() == ["begun c"]
}

test "a loop that waits for news is given up in time" {
  expect polls.get("/?wait=20ms").text()? == "nothing"
  seen.push("news")
  expect polls.get("/?wait=9m").text()? == "news"
}

test "a replacement chooses the winner" {
  expect hedged() == "primary"
  with primary = || "at once" { expect hedged() == "at once" }
  with primary = || waited("late", 9m) { expect hedged() == "backup" }
}

test "a return in a body ends the fn, and a step is completed" {
  let first = || race { { time.sleep(1ms); Ok("done") }, { time.sleep(9m); Err(Failure("late")) } }
  expect first() == Ok("done")
  let stepped = race {
    {
      atomic seen {
        time.sleep(5ms)
        seen.push("step")
      }
      seen.push("behind")
      time.sleep(9m)
      1
    }
    {
      time.sleep(1ms)
      2
    }
  }
  expect stepped == 2 && seen.read().first() == Some("step")
}

test "limits around and in a race" {
  expect (race { waited("a", 9m), waited("b", 9m) } within 10ms else { "given up" }) == "given up"
  let inner = race { waited("c", 9m) within 5ms else { "inner" }, waited("d", 9m) }
  let outer = race { waited("e", 9m), waited("f", 9m) within 5ms else { "outer" } }
  expect (inner, outer) == ("inner", "outer")
  expect (race { race { waited("g", 9m), waited("h", 9m) }, waited("i", 1ms) }) == "i"
  expect (race { waited("j", 9m), race { waited("k", 9m), waited("l", 1ms) } }) == "l"
}
"#;

/// The waits of the bodies decide, and a body that has lost does nothing behind its wait.
#[test]
fn each_body_of_a_race_can_win_in_tests() {
    let program = Scratch::new("races.weir", RACES.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "20"]);
    assert!(said.output.contains("7 passed in"), "{}{}", said.output, said.messages);
}

const EXPIRY: &str = r#"use time

record Code { text: Text, user: Text }

table codes: Code key text soft(ttl: 50ms)
table kept: Code key text soft(ttl: 24h)

fn is_there(text: Text) -> Result(Bool) {
  atomic codes {
    codes.upsert(Code { text, user: "ada" })?
    Ok(codes[text] != None)
  }
}

test "a row is there, and then has expired" {
  expect is_there("a")?
  time.sleep(50ms)
  expect codes["a"] == None
  expect codes.count() == 0 && !codes.exists(|c| c.user == "ada")
}

test "a row expires while the clock of the test stands" {
  let begin = time.now()
  with time.now = || begin {
    expect is_there("a")?
    time.sleep(50ms)
    expect codes["a"] == None && time.now() == begin
  }
}

test "a row does not expire by the clock of the test" {
  let begin = time.now()
  kept.upsert(Code { text: "a", user: "ada" })?
  with time.now = || begin + 9_000h {
    expect kept["a"] != None && time.now() == begin + 9_000h
  }
}
"#;

/// No row expires in a transaction, so that the first read does not depend on the speed of the machine; afterwards the time to live has to
/// pass.
#[test]
fn a_test_reads_a_soft_row_before_and_after_it_has_expired() {
    let program = Scratch::new("expiry.weir", EXPIRY.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    assert!(said.output.contains("3 passed"), "{}", said.output);
}
