//! Requests whose bodies become values deeper than any stack.

use std::io::Write;

use crate::support::{Answer, Scratch, Served, read_answer};

const CHAINS: &[u8] = br#"use http

enum Chain {
  End
  Link(number: Int, rest: Chain)
}

fn chain(numbers: List(Int)) -> Chain {
  fold rest = End for number in numbers { Link(number, rest) }
}

shared kept: Map(Text, Chain) = [:]

service chains on http(port: 8080) {
  post "/same" (body numbers: List(Int)) { http.json(chain(numbers) == chain(numbers)) }
  post "/keyed" (body numbers: List(Int)) {
    let counts = [chain(numbers): 1, chain(numbers): 2]
    http.json(counts[chain(numbers)])
  }
  post "/kept" (body numbers: List(Int)) {
    kept.put("last", chain(numbers))
    http.text("kept")
  }
  post "/json" (body numbers: List(Int)) { http.json(chain(numbers)) }
}
"#;

/// Number of elements in a body. Dropping chains of this length once overflowed the stack.
const NUMBERS: usize = 60_000;

fn post(served: &Served, path: &str) -> Answer {
    let body = format!("[{}1]", "1,".repeat(NUMBERS - 1));
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n");
    let mut stream = served.connect();
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("the request is sent");
    read_answer(stream)
}

#[test]
fn a_chain_as_long_as_a_body_ends_no_process_under_any_engine() {
    let program = Scratch::new("chains.weir", CHAINS);
    for engine in weir_runtime::ENGINES {
        let served = Served::start(program.path(), &["--engine", engine.name, "--threads", "2"]);
        let answers = ["/same", "/keyed", "/kept", "/kept"].map(|path| post(&served, path).body);
        assert_eq!(answers, [&b"true"[..], b"2", b"kept", b"kept"], "{}", engine.name);
        assert_eq!(post(&served, "/json").status, 500, "{}", engine.name);
        let (code, messages) = served.stop();
        assert_eq!(code, Some(0), "{messages}");
        assert!(messages.contains("JSON nests at most 127 deep"), "{messages}");
    }
}
