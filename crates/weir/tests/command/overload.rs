//! More requests than a server can answer, in a real process: some are refused early, the others are answered, and waiting
//! is no overload.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Answer, Scratch, Served, SetOnDrop, read_answer};

/// Engines whose threads flows queue for.
const ENGINES: [&str; 4] = ["event", "pool", "staged", "elastic"];

const PROGRAM: &str = r#"use http
use time

fn work() -> Int {
  loop i = 0 { i + 1 } until i >= 40_000 at most 100_000
}

service overload on http(port: 80) {
  post "/work" (body body: Text) { http.text("{work() + body.length()}") }
  get "/small" { http.text("small") }
  get "/asleep" {
    time.sleep(1s)
    http.text("awake")
  }
}
"#;

/// Sends a request on a new connection, and returns the answer.
fn ask(address: &str, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("the program accepts connections");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit can be set");
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    read_answer(stream)
}

/// Sends the head of a request whose body does not come, and returns the beginning of the answer if it comes at once.
fn post_without_body(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).expect("the program accepts connections");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit can be set");
    let request = format!("POST /work HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..length]).to_ascii_lowercase())
}

/// Calls `action` again and again until it returns true; fails after a minute.
fn until(what: &str, mut action: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !action() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
    }
}

#[test]
fn too_many_requests_that_compute_are_refused_early_and_the_others_answered() {
    let program = Scratch::new("overload.weir", PROGRAM.as_bytes());
    for engine in ENGINES {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "1"]);
        let (over, address) = (AtomicBool::new(false), served.address.as_str());
        std::thread::scope(|scope| {
            let client = || {
                let mut statuses = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    statuses.push(ask(address, "POST", "/work").status);
                }
                statuses
            };
            let clients: Vec<_> = (0..80).map(|_| scope.spawn(client)).collect();
            let ends = SetOnDrop(&over);
            // A body is refused before it is read.
            until(engine, || {
                let answer = post_without_body(address).unwrap_or_default();
                answer.starts_with("http/1.1 503") && answer.contains("retry-after: 1")
            });
            // Flows that do not wait for a thread are not refused.
            if engine == "event" {
                assert_eq!(ask(address, "GET", "/small").status, 200, "{engine}");
            }
            drop(ends);
            let statuses: Vec<u16> =
                clients.into_iter().flat_map(|client| client.join().expect("a client does not panic")).collect();
            let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
            assert_eq!(count(200) + count(503), statuses.len(), "{engine}: {statuses:?}");
            assert!(count(200) >= 12, "{engine}: {} of {}", count(200), statuses.len());
        });
        until(engine, || ask(address, "POST", "/work").status == 200);
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{engine}: {log}");
        assert!(log.contains("flow refused: overloaded"), "{engine}: {log}");
    }
}

#[test]
fn requests_that_wait_for_something_else_are_no_overload() {
    let program = Scratch::new("asleep.weir", PROGRAM.as_bytes());
    // Under `pool`, a flow holds its thread while it sleeps.
    for engine in ["event", "staged", "elastic", "manual"] {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "1"]);
        for _ in 0..2 {
            // One after the other, because 200 requests that come at once are an overload where other tests use the processors.
            let sleeping = |_| {
                let asleep = served.ask("/asleep");
                assert_eq!(served.get("/small").status, 200, "{engine}");
                asleep
            };
            let asleep: Vec<_> = (0..200).map(sleeping).collect();
            let statuses: Vec<u16> = asleep.into_iter().map(|stream| read_answer(stream).status).collect();
            assert_eq!(statuses, [200; 200], "{engine}");
        }
    }
}

/// A stream whose flows wait beside a service. With 8 flows at most, the stream has 6.
const BESIDE_STREAM: &str = r#"use http
use stream
use time

shared begun = 0

for number in stream.range(0, 1_000) {
  begun.add(1)
  time.sleep(1h)
}

service beside on http(port: 80) {
  get "/" { http.text("{begun}") }
}
"#;

#[test]
fn a_stream_leaves_places_to_services() {
    let program = Scratch::new("beside-stream.weir", BESIDE_STREAM.as_bytes());
    // Under `pool`, flows that wait hold the threads, whatever their number.
    for engine in ["event", "elastic", "thread-per-flow"] {
        let arguments = ["--engine", engine, "--flows-max", "8"];
        let served = Served::start(program.path(), &arguments);
        until("the stream takes its places", || {
            let answer = served.get("/");
            assert_eq!(answer.status, 200, "{engine}");
            answer.body.trim_ascii() == b"6"
        });
        assert_eq!(served.get("/").body.trim_ascii(), b"6", "{engine}");
    }
}
