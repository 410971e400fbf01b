//! Time limits, races and retries of a real process, under engines of every kind.

use crate::support::{Answer, Scratch, Served, say};

const PROGRAM: &str = r#"use http, time, text

/// Waits, then returns the text.
fn after(wait: Duration, text: Text) -> Text {
  time.sleep(wait)
  text
}

service timed on http(port: 80, answer_timeout: 200ms) {
  get "/late" { http.text(after(1h, "there") within 10ms else { "too late" }) }
  get "/soon" { http.text(after(1ms, "there") within 1h else { "too late" }) }
  get "/first" { http.text(race { after(1h, "one"), after(1ms, "other") }) }
  get "/tries" {
    let number = retry(3, backoff: 1ms) { text.parse_int("none")? } else as failure { return http.text("{failure}") }
    http.text("{number}")
  }
  get "/limit" { http.text((after(1h, "there") within 10ms)?) }
  get "/never" { http.text(after(1h, "there")) }
}
"#;

/// The check takes longer than the limit, so that the effects behind it must not happen.
const EFFECTS: &str = r#"use stdio, stream, time

shared ledger = 0

for n in stream.range(0, 3) {
  let booked = { time.sleep(1h); ledger.add(1) } within 10ms else { return }
  stdio.print("booked {booked}")?
} at end {
  let raced = race { { time.sleep(1h); ledger.add(10) }, { time.sleep(10ms); 0 } }
  let all = { for n in [1, 2] { time.sleep(1h); ledger.add(100) } } within 10ms else { [] }
  { for n in [1, 2] { if n == 1 { time.sleep(1h) } else { ledger.add(1000) } } } within 10ms else { [] }
  { for n in [1, 2] { atomic ledger { if n == 2 { ledger.add(10_000) } }; time.sleep(1h) } } within 10ms else { [] }
  stdio.print("{ledger} {raced} {all}")?
}
"#;

#[test]
fn effects_behind_a_slow_check_do_not_happen_when_the_time_is_up() {
    let program = Scratch::new("effects.weir", EFFECTS.as_bytes());
    for engine in ENGINES {
        let said = say(&["run", program.path(), "--engine", engine, "--threads", "2"]);
        assert_eq!((said.code, said.output.as_str()), (0, "0 0 []\n"), "{engine}: {}", said.messages);
    }
}

/// The step takes longer than the limit, and its result is computed behind it.
const LATE_STEP: &str = r#"use stdio, stream, time

shared ledger = 0

fn add() -> Result(Text) {
  let count = atomic ledger {
    time.sleep(50ms)
    ledger.add(1)
  }
  if count > 1 { return fail("added {count} times") }
  Ok("added once")
}

for n in stream.range(0, 1) {
  let added = retry(4) { (add() within 10ms)? } else as failure { "{failure}" }
  stdio.print(added)?
}
"#;

#[test]
fn a_limit_has_the_result_of_an_atomic_step_that_was_under_way() {
    let program = Scratch::new("late_step.weir", LATE_STEP.as_bytes());
    for engine in ENGINES {
        let said = say(&["run", program.path(), "--engine", engine, "--threads", "2"]);
        assert_eq!((said.code, said.output.as_str()), (0, "added once\n"), "{engine}: {}", said.messages);
    }
}

/// A change of a table and one of a shared value behind a wait that is given up.
const BEHIND_A_WAIT: &str = r#"use http, time

record Entry { id: Int, text: Text }
table entries: Entry key id soft
shared pushed: List(Text) = []

service late on http(port: 80, answer_timeout: 200ms) {
  get "/late" {
    time.sleep(1h)
    entries.insert(Entry { id: 1, text: "late" })?
    pushed.push("late")
    http.text("late")
  }
  get "/" {
    http.text("{entries.count()} {pushed.length()}")
  }
}
"#;

#[test]
fn what_follows_a_sleep_in_the_text_waits_with_it() {
    let program = Scratch::new("behind.weir", BEHIND_A_WAIT.as_bytes());
    for engine in ENGINES {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2"]);
        assert_eq!(served.get("/late").status, 503, "{engine}");
        assert_eq!(text(&served.get("/")), (200, "0 0"), "{engine}");
        served.stop();
    }
}

const ENGINES: [&str; 4] = ["event", "pool", "thread-per-flow", "elastic"];

fn text(answer: &Answer) -> (u16, &str) {
    (answer.status, std::str::from_utf8(&answer.body).expect("a text"))
}

#[test]
fn limits_races_and_tries_answer_the_same_under_every_engine() {
    let program = Scratch::new("timed.weir", PROGRAM.as_bytes());
    for engine in ENGINES {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2"]);
        assert_eq!(text(&served.get("/late")), (200, "too late"), "{engine}");
        assert_eq!(text(&served.get("/soon")), (200, "there"), "{engine}");
        assert_eq!(text(&served.get("/first")), (200, "other"), "{engine}");
        let tried = served.get("/tries");
        assert!(text(&tried).1.contains("none"), "{engine}: {tried:?}");
        assert_eq!(served.get("/limit").status, 500, "{engine}");
        // The whole response takes too long, so the flow is cancelled.
        assert_eq!(served.get("/never").status, 503, "{engine}");
        // A client that disconnects while its flow waits delays nothing, and not the end of the program.
        drop(served.ask("/never"));
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{engine}: {log}");
        assert!(log.contains("the time is up"), "{engine}: {log}");
    }
}
