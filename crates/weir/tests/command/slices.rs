//! Requests that compute for ever, in a real process under every engine: others are answered, and every time limit holds.

use crate::streams::engines;
use crate::support::{Scratch, Served, read_answer, weir};

const PROGRAM: &str = r#"use http

shared hits = 0

fn rounds() -> Int {
  loop i = 0 { i + 1 } until i < 0 at most 1_000_000_000
}

fn forever() -> Int {
  fold sum = 0 for i in [1, 2, 3] { sum + rounds() }
}

service endless on http(port: 80, answer_timeout: 300ms) {
  get "/small" { http.text("small") }
  get "/endless" { http.text("{forever()}") }
  get "/limited" { http.text("{forever() within 10ms else { -1 }}") }
  get "/raced" { http.text("{race { forever(), forever() } within 10ms else { -2 }}") }
  get "/step" {
    let sum = atomic hits { hits.add(1); forever() }
    http.text("{sum}")
  }
}
"#;

fn text(served: &Served, path: &str) -> (u16, String) {
    let answer = served.get(path);
    (answer.status, String::from_utf8(answer.body).expect("a text"))
}

#[test]
fn every_time_limit_holds_for_computation_under_every_engine() {
    let program = Scratch::new("endless.weir", PROGRAM.as_bytes());
    let plan = Scratch::new("endless.plan.toml", b"drain_timeout = \"1s\"\n");
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2", "--plan", plan.path()]);
        let endless: Vec<_> = (0..4).map(|_| served.ask("/endless")).collect();
        let answers = ["/small", "/limited", "/raced"].map(|path| text(&served, path));
        let expected = [(200, "small"), (200, "-1"), (200, "-2")].map(|(status, text)| (status, text.to_owned()));
        assert_eq!(answers, expected, "{engine}");
        // `answer_timeout` ends the flow.
        assert_eq!(served.get("/endless").status, 503, "{engine}");
        drop(endless);
        // An atomic step that never ends cannot be given up, and still does not keep the process from ending.
        let step = served.ask("/step");
        assert_eq!(text(&served, "/small"), (200, "small".to_owned()), "{engine}");
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{engine}: {log}");
        drop(step);
    }
}

/// Routes whose functions take long on what they make.
const LONG_CALLS: &str = r#"use http
use json
use list
use text

service long on http(port: 80, answer_timeout: 60s) {
  get "/small" { http.text("small") }
  get "/sort" {
    let texts = for i in list.numbers(from: 0, to: 200_000)? { "{i * 7_919 % 200_003}" }
    http.text("{list.sort(texts)[0]}")
  }
  get "/sort-by" {
    let texts = for i in list.numbers(from: 0, to: 200_000)? { "{i * 7_919 % 200_003}" }
    http.text("{list.sort_by(texts, |text| text)[0]}")
  }
  get "/parse" {
    let numbers = text.repeat("1,", times: 300_000)?
    http.text("{json.items(json.parse("[{numbers}1]")?).length()}")
  }
  get "/split" {
    let texts = text.repeat("ab,", times: 300_000)?
    http.text("{text.split(texts, separator: ",").length()}")
  }
  get "/limited" {
    let words = text.repeat("b a ", times: 1_000_000)?
    let sorted = { list.sort(text.words(words)).length() } within 1ms else { -1 }
    http.text("{sorted}")
  }
}
"#;

#[test]
fn calls_that_take_long_end_under_every_engine_and_their_time_limits_hold() {
    let program = Scratch::new("long.weir", LONG_CALLS.as_bytes());
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2"]);
        let long = ["/sort", "/sort-by", "/parse", "/split"].map(|path| served.ask(path));
        let answers = ["/small", "/limited"].map(|path| text(&served, path));
        let expected = [(200, "small"), (200, "-1")].map(|(status, text)| (status, text.to_owned()));
        assert_eq!(answers, expected, "{engine}");
        let long = long.map(read_answer).map(|answer| String::from_utf8(answer.body).expect("a text"));
        assert_eq!(long, ["0", "0", "300001", "300001"], "{engine}");
    }
}

/// A program whose sessions have an initial value that takes for ever for one of them.
const SESSIONS: &str = r#"use http

shared own = {
  let few = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
  let many = fold all = few for _i in [1, 2, 3, 4, 5, 6] { all + all }
  fold a = 1 for _i in many { fold b = a for _j in many { fold c = b for _k in many { fold _d = c for l in many { l } } } }
} per session

service sessions on http(port: 80, answer_timeout: 300ms) {
  session = id

  get "/small/{id}" (id: Text) { http.text("small") }
  get "/own/{id}" (id: Text) { http.text("{own.add(1)}") }
  get "/limited/{id}" (id: Text) { http.text("{own.add(1) within 10ms else { -1 }}") }
}
"#;

#[test]
fn the_initial_value_of_a_session_holds_up_nobody_under_every_engine() {
    let program = Scratch::new("sessions.weir", SESSIONS.as_bytes());
    let plan = Scratch::new("sessions.plan.toml", b"drain_timeout = \"1s\"\n");
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2", "--plan", plan.path()]);
        let endless: Vec<_> = (0..4).map(|id| served.ask(&format!("/own/{id}"))).collect();
        let answers = ["/small/a", "/limited/a"].map(|path| text(&served, path));
        let expected = [(200, "small"), (200, "-1")].map(|(status, text)| (status, text.to_owned()));
        assert_eq!(answers, expected, "{engine}");
        // `answer_timeout` ends the flow.
        assert_eq!(served.get("/own/b").status, 503, "{engine}");
        drop(endless);
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{engine}: {log}");
    }
}

/// Returns true if the process handles SIGTERM.
fn handles_termination(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    assert!(!status.contains("State:\tZ"), "the process has ended");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux tells");
    u64::from_str_radix(caught.trim(), 16).expect("a mask") >> 14 & 1 == 1
}

#[test]
fn a_signal_ends_a_program_whose_initial_value_takes_for_ever() {
    let text = "use http\nshared endless = { loop i = 0 { loop j = i { j + 1 } until j < 0 at most 1_000_000_000 } until i < 0 at most 1_000_000_000 }\n\
                service s on http(port: 80) { get \"/\" { http.text(\"{endless.read()}\") } }\n";
    let program = Scratch::new("start.weir", text.as_bytes());
    let served = Served::without_banner(weir(&["run", program.path(), "--port", "0"]));
    while !handles_termination(served.pid()) {
        std::thread::yield_now();
    }
    served.terminate();
    let (code, messages) = served.end();
    assert_eq!(code, Some(130), "{messages}");
    assert!(messages.contains("stopped before it had started"), "{messages}");
}
