//! Writes with a time limit, of stored and of soft tables: each is there as a whole, and answers so, or is not there.
//!
//! Which limits are met depends on the machine, but for an hour, and for a wait before the write that is longer than its limit.

use std::thread;

use super::{post, text};
use crate::support::{Scratch, Served};

const PROGRAM: &str = r#"use http, time

record Entry { id: Int, of: Int, part: Int }

table stored: Entry key id auto index of
table kept: Entry key id auto index of soft

fn in_stored(of: Int) -> Result(Int) {
  atomic stored {
    for part in [1, 2, 3, 4, 5] { stored.insert(Entry { of, part })? }
  }
  Ok(5)
}

fn in_kept(of: Int) -> Result(Int) {
  atomic kept {
    for part in [1, 2, 3, 4, 5] { kept.insert(Entry { of, part })? }
  }
  Ok(5)
}

fn in_both(of: Int) -> Result(Int) {
  atomic kept, stored {
    for part in [1, 2, 3, 4, 5] {
      stored.insert(Entry { of, part })?
      kept.insert(Entry { of, part })?
    }
  }
  Ok(5)
}

fn added(kind: Text, of: Int) -> Result(Int) {
  match kind {
    "stored" => in_stored(of)
    "kept" => in_kept(of)
    "both" => in_both(of)
    "late" => {
      time.sleep(1h)
      in_both(of)
    }
    _ => fail("none")
  }
}

service entries on http(port: 8080) {
  post "/{kind}/{of}" (kind: Text, of: Int, limit: Duration) {
    added(kind, of) within limit else as failure { return http.text(failure.kind()) }
    http.text("written")
  }
  post "/again/{kind}/{of}" (kind: Text, of: Int, limit: Duration) {
    retry(4) { (added(kind, of) within limit)? } else as failure { return http.text(failure.kind()) }
    http.text("written")
  }
  post "/change/{of}" (of: Int, limit: Duration) {
    stored.update_all(|e| e.of == of, |e| Entry { ..e, part: 0 }) within limit else as failure {
      return http.text(failure.kind())
    }
    http.text("written")
  }
  get "/{of}" (of: Int) { http.text("{stored.count(|e| e.of == of)} {kept.count(|e| e.of == of)}") }
  get "/changed/{of}" (of: Int) { http.text("{stored.count(|e| e.of == of && e.part == 0)}") }
}
"#;

const LIMITS: [&str; 8] = ["0s", "50us", "100us", "200us", "500us", "1ms", "4ms", "1h"];

/// Sends a write until it is not refused for overload, and returns whether it was written in time.
fn write(served: &Served, path: &str) -> bool {
    loop {
        let answer = post(served, path).expect("an answer");
        match (answer.status, text(&answer)) {
            (503, _) => {}
            (200, "written") => return true,
            (200, "timeout") => return false,
            other => panic!("{path} answers {other:?}"),
        }
    }
}

fn read(served: &Served, path: &str) -> String {
    loop {
        let answer = served.get(path);
        if answer.status != 503 {
            return text(&answer).to_owned();
        }
    }
}

/// Sends writes of all kinds with this limit, and fails if one is half there, or not as it has answered.
fn check(served: &Served, client: usize, limit: &str) {
    for (at, (kind, rows)) in [("stored", "5 0"), ("kept", "0 5"), ("both", "5 5")].into_iter().enumerate() {
        for (again, way) in [(0, ""), (1, "/again")] {
            let of = (client * 10 + at) * 2 + again;
            let written = write(served, &format!("{way}/{kind}/{of}?limit={limit}"));
            assert!(written || limit != "1h");
            let expected = if written { rows } else { "0 0" };
            assert_eq!(read(served, &format!("/{of}")), expected, "{way}/{kind} within {limit}");
        }
    }
    let of = client * 20;
    let before: usize =
        read(served, &format!("/{of}")).split(' ').next().expect("two numbers").parse().expect("a number");
    let written = write(served, &format!("/change/{of}?limit={limit}"));
    let expected = if written { before } else { 0 };
    assert_eq!(read(served, &format!("/changed/{of}")), expected.to_string(), "/change within {limit}");
    let late = client * 20 + 19;
    assert!(!write(served, &format!("/late/{late}?limit=1ms")));
    assert_eq!(read(served, &format!("/{late}")), "0 0");
}

#[test]
fn a_write_with_a_time_limit_is_whole_and_answers_or_is_not_there() {
    for engine in ["event", "pool", "elastic", "staged", "manual", "dedicated", "thread-per-flow"] {
        let (program, data) = (Scratch::new("limited.weir", PROGRAM.as_bytes()), Scratch::folder("limited"));
        let served = Served::start(program.path(), &["--data", data.path(), "--engine", engine]);
        thread::scope(|scope| {
            for (client, limit) in LIMITS.into_iter().cycle().take(2 * LIMITS.len()).enumerate() {
                let served = &served;
                scope.spawn(move || check(served, client, limit));
            }
        });
        served.stop();
    }
}
