//! Time limits, races and retries of a real process, under engines of every kind.

use crate::support::{Answer, Scratch, Served};

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
