//! Distributed traces: the trace context of a request is passed on, and named in the log.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use crate::support::{Scratch, Served};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A program that calls another service twice, at the same time, and logs.
const PROGRAM: &str = "use client, http, log

config origin: Text = \"\"

service front on http(port: 1) {
  get \"/\" {
    let one = client.get(\"{origin}/one\", private: true)?
    let two = client.get(\"{origin}/two\", private: true)?
    log.info(\"called\", statuses: [one.status(), two.status()])
    if two.status() == 200 { fail(\"on purpose\") }
    http.text(\"\")
  }
  post \"/\" (body text: Text) {
    http.text(\"{client.post(\"{origin}/post\", text, private: true)?.status()}\")
  }
}
";

/// Begins a service that answers every request, and returns its address and the values of `traceparent` and `tracestate` that
/// it gets.
fn upstream() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sender) = (stream.expect("a connection"), sender.clone());
            std::thread::spawn(move || {
                let mut request = Vec::new();
                while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read(&mut byte).unwrap_or(0) == 0 {
                        return;
                    }
                    request.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&request).into_owned();
                let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").to_owned();
                let _ = sender.send((field("traceparent: "), field("tracestate: ")));
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            });
        }
    });
    (address, requests)
}

/// Sends a request with these header fields, and waits for the end of the answer.
fn request(served: &Served, method: &str, fields: &str) {
    let mut stream = served.connect();
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n{fields}\r\n");
    stream.write_all(head.as_bytes()).expect("the request is sent");
    stream.read_to_end(&mut Vec::new()).expect("the answer comes");
}

#[test]
fn every_engine_passes_the_trace_of_a_request_on() {
    let program = Scratch::new("traces.weir", PROGRAM.as_bytes());
    for engine in weir_runtime::ENGINES {
        let (origin, calls) = upstream();
        let origin = format!("origin={origin}");
        let served = Served::start(program.path(), &["--engine", engine.name, "--threads", "2", "--set", &origin]);
        for method in ["GET", "POST"] {
            request(&served, method, &format!("traceparent: {PARENT}\r\ntracestate: a=1\r\ntracestate: b=2\r\n"));
            let first = calls.recv().expect("a call");
            assert!(first.0.starts_with(&PARENT[..36]) && first.0.ends_with("-01"), "{}: {first:?}", engine.name);
            assert!(first.0 != PARENT && first.1 == "a=1,b=2", "{}: {first:?}", engine.name);
        }
        let second = calls.recv().expect("the second call of the first route");
        assert!(second.0.starts_with(&PARENT[..36]), "{}: {second:?}", engine.name);
        // A trace of its own for each request that has none, or one that is malformed.
        let mut traces = vec![TRACE_ID.to_owned()];
        for fields in ["", "traceparent: 00-4bf9-01\r\ntracestate: a=1\r\n", ""] {
            request(&served, "GET", fields);
            let [one, two] = [(); 2].map(|()| calls.recv().expect("a call"));
            assert_eq!((&one.0[..35], &one.1[..], &two.1[..]), (&two.0[..35], "", ""), "{}", engine.name);
            assert_ne!(one.0, two.0);
            traces.push(one.0[3..35].to_owned());
        }
        traces.sort();
        traces.dedup();
        assert_eq!(traces.len(), 4, "{}", engine.name);
    }
}

#[test]
fn the_log_names_the_trace() {
    let program = Scratch::new("traced_log.weir", PROGRAM.as_bytes());
    let (origin, _calls) = upstream();
    let origin = format!("origin={origin}");
    let parent = format!("traceparent: {PARENT}\r\n");
    let served = Served::start(program.path(), &["--set", &origin]);
    request(&served, "GET", &parent);
    let (_, log) = served.stop();
    assert!(log.contains(&format!("INFO called statuses=[200,200] trace_id={TRACE_ID}\n")), "{log}");
    assert!(log.contains(&format!(": on purpose\n    trace_id={TRACE_ID}\n")), "{log}");
    let served = Served::start(program.path(), &["--set", &origin, "--log-format", "json"]);
    request(&served, "GET", &parent);
    let (_, log) = served.stop();
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<serde_json::Value> = lines.filter(|line: &serde_json::Value| line["trace_id"] == TRACE_ID).collect();
    assert!(lines.iter().any(|line| line["message"] == "called"), "{log}");
    assert!(lines.iter().any(|line| line["fields"]["event"] == "failure"), "{log}");
}
