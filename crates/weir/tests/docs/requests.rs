//! Runs a program of a guide, and compares its responses with those in the guide.
//!
//! The block after the program alternates requests and responses:
//!
//! ```text
//! POST /posts {"title": "x"}
//! 201 kept
//! ```
//!
//! A response may have several lines.

use std::io::Write;

use crate::markdown::Block;
use crate::scratch::Scratch;
use crate::support::{Served, read_answer};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"];

/// A request, and the response in the guide.
struct Exchange<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    answer: String,
}

fn exchanges(block: &Block) -> Vec<Exchange<'_>> {
    let mut exchanges: Vec<Exchange<'_>> = Vec::new();
    for line in block.text.lines() {
        let mut words = line.splitn(3, ' ');
        let method = words.next().unwrap_or_default();
        match (METHODS.contains(&method), exchanges.last_mut()) {
            (true, _) => {
                let path = words.next().unwrap_or_default();
                let body = words.next().unwrap_or_default();
                exchanges.push(Exchange { method, path, body, answer: String::new() });
            }
            (false, Some(last)) => last.answer.extend([line, "\n"]),
            (false, None) => panic!("{}: begins with a request", block.place),
        }
    }
    exchanges
}

fn answer(served: &Served, exchange: &Exchange<'_>) -> String {
    let mut stream = served.connect();
    let Exchange { method, path, body, .. } = exchange;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        if body.starts_with(['{', '[']) { "application/json" } else { "application/x-www-form-urlencoded" },
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let answer = read_answer(stream);
    let body = String::from_utf8(answer.body).expect("the answers in the guides are texts");
    let answer = format!("{} {body}", answer.status);
    format!("{}\n", answer.trim_end())
}

/// Runs the program under every engine, sends the requests of the guide, and returns the responses that differ.
pub(crate) fn differences(program: &Block, wanted: &Block) -> Vec<String> {
    let file = Scratch::new(program);
    let exchanges = exchanges(wanted);
    assert!(!exchanges.is_empty(), "{}: nothing is asked", wanted.place);
    let mut differences = Vec::new();
    for engine in weir_runtime::ENGINES {
        // Each engine begins with empty tables.
        let data = crate::support::Scratch::folder("tables");
        let served = Served::start(file.path(), &["--engine", engine.name, "--data", data.path()]);
        for exchange in &exchanges {
            let found = answer(&served, exchange);
            if found != exchange.answer {
                let asked = format!("{} {} at {}", exchange.method, exchange.path, wanted.place);
                differences.push(format!("{asked} under {}: {found:?} instead of {:?}", engine.name, exchange.answer));
            }
        }
        assert_eq!(served.stop().0, Some(0), "{}", program.place);
    }
    differences
}
