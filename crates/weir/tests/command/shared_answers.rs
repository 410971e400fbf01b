//! The header fields, compression, log and health route that all routes of a service share.

use std::io::{Read, Write};

use crate::support::{Scratch, Served, say};

const SERVICE: &str = "use http, list

service api on http(
  port: 1, headers: [\"X-Frame-Options\": \"DENY\", \"Server\": \"weir\"], compressed: true, log_requests: true,
  health: \"/health\", allowed_origins: [\"https://a.example\"],
) {
  before (header key: Text = \"k\") {
    if key == \"\" { return http.status(401, \"no key\")? }
  }
  get \"/\" { http.text(\"hello\") |> http.with_header(\"server\", \"own\")? }
  get \"/long\" { http.json(list.numbers(0, 2_000)?) }
  get \"/fail\" { http.text(\"{1 / (key.length() - 1)}\") }
}
";

/// Sends a request with these header fields, and returns the answer, in lower case as far as it is text.
fn exchange(served: &Served, line: &str, fields: &str) -> String {
    let mut stream = served.connect();
    let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answer comes");
    String::from_utf8_lossy(&answer).to_ascii_lowercase()
}

#[test]
fn all_answers_have_the_headers_and_a_line_of_the_log() {
    let program = Scratch::new("shared.weir", SERVICE.as_bytes());
    let served = Served::start(program.path(), &[]);
    let own = exchange(&served, "GET /", "Origin: https://a.example\r\n");
    assert!(own.contains("server: own\r\n") && own.contains("access-control-allow-origin: https://a.example"), "{own}");
    for (line, fields, status) in [
        ("GET /", "", 200),
        ("GET /", "key:\r\n", 401),
        ("GET /fail", "", 500),
        ("GET /none?token=secret", "", 404),
        ("POST /", "content-length: 0\r\n", 405),
        ("POST /", "content-length: 0\r\nsec-fetch-site: cross-site\r\n", 403),
        ("GET /health", "", 200),
    ] {
        let answer = exchange(&served, line, fields);
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{line}: {answer}");
        assert_eq!(answer.matches("x-frame-options: deny\r\n").count(), 1, "{line}: {answer}");
        assert_eq!(answer.matches("server: ").count(), 1, "{line}: {answer}");
    }
    let (_, log) = served.stop();
    for line in [
        "INFO request method=GET path=/ status=200 milliseconds=",
        "INFO request method=GET path=/ status=401 ",
        "INFO request method=GET path=/none status=404 ",
        "INFO request method=POST path=/ status=403 ",
        "INFO request method=GET path=/health status=200 ",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert!(!log.contains("secret"), "{log}");
    // The failure and the request have the same trace.
    let trace = |begin: &str| {
        let behind = &log[log.find(begin).expect("it is logged")..];
        behind[behind.find("trace_id=").expect("it has a trace")..].lines().next().expect("a line").to_owned()
    };
    assert_eq!(trace("failure in get /fail"), trace("path=/fail"));
}

#[test]
fn a_service_goes_on_while_load_balancers_learn_that_it_stops() {
    let text = SERVICE.replace("health: \"/health\"", "health: \"/health\", shutdown_delay: 1h");
    let program = Scratch::new("stopping.weir", text.as_bytes());
    let served = Served::start(program.path(), &[]);
    assert!(exchange(&served, "GET /health", "").starts_with("http/1.1 200 "));
    served.terminate();
    while !exchange(&served, "GET /health", "").starts_with("http/1.1 503 ") {}
    assert!(exchange(&served, "GET /", "").ends_with("hello"));
    // A second signal ends the program at once.
    served.terminate();
    assert_eq!(served.end().0, Some(130));
}

#[test]
fn long_answers_are_compressed_for_clients_that_accept_it() {
    let program = Scratch::new("compressed.weir", SERVICE.as_bytes());
    let served = Served::start(program.path(), &[]);
    let packed = exchange(&served, "GET /long", "Accept-Encoding: gzip\r\n");
    let length = packed.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse::<u32>().ok());
    assert!(packed.contains("content-encoding: gzip\r\n") && length.is_some_and(|length| length < 6_000), "{length:?}");
    let plain = exchange(&served, "GET /long", "");
    assert!(!plain.contains("content-encoding") && plain.contains("vary: accept-encoding") && plain.ends_with("1999]"));
    assert!(!exchange(&served, "GET /", "Accept-Encoding: gzip\r\n").contains("content-encoding"));
    // An error for a client that prefers JSON is one.
    let problem = exchange(&served, "GET /none", "Accept: application/json\r\nAccept-Encoding: gzip\r\n");
    assert!(problem.contains("content-type: application/problem+json"), "{problem}");
}

#[test]
fn an_answer_names_all_that_it_depends_on() {
    let text = SERVICE.replace("\"Server\": \"weir\"", "\"Vary\": \"Cookie\"");
    let text = text.replace("http.with_header(\"server\", \"own\")", "http.with_header(\"vary\", \"key\")");
    let program = Scratch::new("vary.weir", text.as_bytes());
    let served = Served::start(program.path(), &[]);
    for (line, own) in
        [("GET /", "key"), ("GET /long", "accept-encoding"), ("HEAD /long", "accept-encoding"), ("GET /none", "cookie")]
    {
        let answer = exchange(&served, line, "");
        for field in ["cookie", "origin", own] {
            assert_eq!(answer.matches(&format!("vary: {field}\r\n")).count(), 1, "{line}: {answer}");
        }
    }
}

#[test]
fn wrong_settings_are_refused_at_start() {
    for (wrong, expected) in [
        ("headers: [\"Content-Length\": \"5\"]", "the header field `Content-Length` is set by the server"),
        ("headers: [\"a b\": \"5\"]", "\"a b\" is not the name of a header field"),
        ("headers: [\"a\": \"x\\ny\"]", "the value of the header field `a`"),
        ("health: \"health\"", "the path of `health` begins with `/`"),
        ("health: \"/\"", "the path of `health`, \"/\", is also that of a route"),
        ("shutdown_delay: -1s", "`shutdown_delay` must not be negative"),
    ] {
        let text =
            format!("use http\n\nservice a on http(port: 1, {wrong}) {{\n  get \"/\" {{ http.text(\"\") }}\n}}\n");
        let program = Scratch::new("wrong_shared.weir", text.as_bytes());
        let said = say(&["run", program.path(), "--port", "0"]);
        assert!(said.code != 0 && said.messages.contains(expected), "{wrong}: {}", said.messages);
    }
}
