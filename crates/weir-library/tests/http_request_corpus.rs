//! A corpus of requests and the statuses of their answers. The last request of each connection is a valid one: its answer is
//! missing after a request that closes the connection, and an additional answer would reveal a smuggled request.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod support;

use support::Running;
use weir_library::http::server::Limits;

/// The request that follows each row.
const LAST: &str = "GET /hello HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n";
/// The request that rows try to smuggle.
const SMUGGLED: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

/// The statuses of the answers to a row and to the request behind it, and the row's part of a request.
type Row = (&'static str, &'static str);

/// First lines.
const FIRST_LINES: &[Row] = &[
    ("200 200", "GET /hello HTTP/1.1"),
    ("200 200", "GET /hello?a=b&c HTTP/1.1"),
    ("200 200", "GET /hello? HTTP/1.1"),
    ("200 200", "GET http://a/hello HTTP/1.1"),
    ("200 200", "GET HTTP://a/hello HTTP/1.1"),
    ("404 200", "GET / HTTP/1.1"),
    ("404 200", "GET //hello HTTP/1.1"),
    ("404 200", "GET /hello/ HTTP/1.1"),
    ("404 200", "GET /HELLO HTTP/1.1"),
    ("404 200", "GET /./hello HTTP/1.1"),
    ("404 200", "GET /x/../hello HTTP/1.1"),
    ("404 200", "GET /..%2fhello HTTP/1.1"),
    ("404 200", "GET /%00 HTTP/1.1"),
    ("404 200", "GET /%zz HTTP/1.1"),
    ("404 200", "GET /hello% HTTP/1.1"),
    ("404 200", "GET /hello;a=b HTTP/1.1"),
    ("404 200", "GET http://a HTTP/1.1"),
    ("400", "GET http:///hello HTTP/1.1"),
    ("400", "GET http://user@a/hello HTTP/1.1"),
    ("400", "GET http://user:secret@a/hello HTTP/1.1"),
    ("400", "GET https://a/hello HTTP/1.1"),
    ("400", "GET ftp://a/hello HTTP/1.1"),
    ("400", "GET file:///hello HTTP/1.1"),
    ("400", "GET javascript:alert(1) HTTP/1.1"),
    ("400", "GET a/hello HTTP/1.1"),
    ("400", "GET hello HTTP/1.1"),
    ("400", "GET * HTTP/1.1"),
    ("400", "GET a:80 HTTP/1.1"),
    ("400", "GET  /hello HTTP/1.1"),
    ("400", "GET /hello  HTTP/1.1"),
    ("400", "GET\t/hello HTTP/1.1"),
    ("400", "GET /hello\tHTTP/1.1"),
    ("400", " GET /hello HTTP/1.1"),
    ("400", "GET /hello HTTP/1.1 "),
    ("400", "GET /hel lo HTTP/1.1"),
    ("400", "GET /hello"),
    ("400", "GET /hello HTTP"),
    ("400", "GET /hello HTTP/"),
    ("400", "GET /hello HTTP/1"),
    ("400", "GET /hello HTTP/1."),
    ("400", "GET /hello HTTP/1.2"),
    ("400", "GET /hello HTTP/1.10"),
    ("400", "GET /hello HTTP/0.9"),
    ("400", "GET /hello HTTP/2.0"),
    ("400", "GET /hello HTTP/3"),
    ("400", "GET /hello http/1.1"),
    ("400", "GET /hello HTTP/1,1"),
    ("400", "GET /hello HTTP/01.1"),
    ("400", "GET /hello HTTPS/1.1"),
    ("400", "GET /hello\0 HTTP/1.1"),
    ("400", "GET /hello\u{1} HTTP/1.1"),
    ("400", "GET /hello\u{7f} HTTP/1.1"),
    ("400", "GET /hello\rX: y HTTP/1.1"),
    ("400", "GET /hello HTTP/1.1\r"),
    ("400", "GET /hello HTTP/1.1\nX: y"),
    ("400", "/hello HTTP/1.1"),
    ("400", "GET"),
    ("400", "GET HTTP/1.1"),
    ("400", "G\0T /hello HTTP/1.1"),
    ("400", "G(T /hello HTTP/1.1"),
    ("400", "G\u{e9}T /hello HTTP/1.1"),
    ("400", "\u{16}\u{3}\u{1}\u{2} TLS"),
];

/// Lines of fields behind a valid `Host`.
const FIELDS: &[Row] = &[
    ("200 200", "X: y"),
    ("200 200", "X:y"),
    ("200 200", "X: "),
    ("200 200", "X:"),
    ("200 200", "X:\t y \t"),
    ("200 200", "X: y\r\nX: z"),
    ("200 200", "!#$%&'*+-.^_`|~1: y"),
    ("200 200", "X: \u{fc}\u{df}"),
    ("200 200", "Connection: keep-alive"),
    ("200 200", "Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"),
    ("200", "Connection: close"),
    ("200", "Connection: Close, x"),
    ("400", "X"),
    ("400", ": y"),
    ("400", "X : y"),
    ("400", "X\t: y"),
    ("400", " X: y"),
    ("400", "\tX: y"),
    ("400", "X Y: z"),
    ("400", "X: y\r\n z"),
    ("400", "X: y\r\n\tz"),
    ("400", "X: y\rZ: z"),
    ("400", "X: y\nZ: z"),
    ("400", "X: y\n\nGET /hello HTTP/1.1"),
    ("400", "X: \0"),
    ("400", "X: a\0b"),
    ("400", "X: \u{1}"),
    ("400", "X: \u{8}"),
    ("400", "X: \u{7f}"),
    ("400", "X\0: y"),
    ("400", "X(: y"),
    ("400", "X\": y"),
    ("400", "X/: y"),
    ("400", "X@: y"),
    ("400", "X{}: y"),
    ("400", "\u{fc}: y"),
    ("400", "Host: a"),
    ("400", "Host: b"),
    ("400", "HOST: a"),
    ("400", "Host:"),
];

/// `Host` lines, or what stands for them.
const HOSTS: &[Row] = &[
    ("200 200", "Host: a.example"),
    ("200 200", "Host: a.example:8080"),
    ("200 200", "Host: 127.0.0.1"),
    ("200 200", "Host: [::1]"),
    ("200 200", "Host: [::1]:80"),
    ("200 200", "hOsT:a"),
    ("400", "X: y"),
    ("400", "Host : a"),
    ("400", "Host: a b"),
    ("400", "Host: a, b"),
    ("400", "Host: a/b"),
    ("400", "Host: a?b"),
    ("400", "Host: a#b"),
    ("400", "Host: user@a"),
    ("400", "Host: http://a"),
    ("400", "Host: a\\b"),
    ("400", "Host: <a>"),
    ("400", "Host: \"a\""),
    ("400", "Host: a\0"),
];

/// Fields of a `POST` with the body `abcde`.
const LENGTHS: &[Row] = &[
    ("200 200", "Content-Length: 5"),
    ("200 200", "content-length:5"),
    ("200 200", "Content-Length: \t5 "),
    ("200 200", "Content-Length: 005"),
    ("400", "Content-Length: 5\r\nContent-Length: 5"),
    ("400", "Content-Length: 5\r\nContent-Length: 6"),
    ("400", "Content-Length: 5, 6"),
    ("400", "Content-Length: +5"),
    ("400", "Content-Length: -5"),
    ("400", "Content-Length: 5.0"),
    ("400", "Content-Length: 0x5"),
    ("400", "Content-Length: 5 5"),
    ("400", "Content-Length: 5a"),
    ("400", "Content-Length:"),
    ("400", "Content-Length: five"),
    ("400", "Content-Length: \u{665}"),
    ("400", "Content-Length: 99999999999999999999"),
    ("400", "Content-Length: 18446744073709551621"),
    ("400", "Content-Length : 5"),
    ("400", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
    ("400", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
    ("400", "Transfer-Encoding: chunked, chunked"),
    ("400", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    ("400", "Transfer-Encoding: identity"),
    ("400", "Transfer-Encoding: gzip"),
    ("400", "Transfer-Encoding: chunked, gzip"),
    ("400", "Transfer-Encoding: gzip, chunked"),
    ("400", "Transfer-Encoding: xchunked"),
    ("400", "Transfer-Encoding: chunkedx"),
    ("400", "Transfer-Encoding: \"chunked\""),
    ("400", "Transfer-Encoding: chunked;a=b"),
    ("400", "Transfer-Encoding: \u{b}chunked"),
    ("400", "Transfer-Encoding:"),
    ("400", "Transfer-Encoding : chunked"),
];

/// Bodies behind `Transfer-Encoding: chunked`.
const CHUNKS: &[Row] = &[
    ("200 200", "0\r\n\r\n"),
    ("200 200", "3\r\nabc\r\n0\r\n\r\n"),
    ("200 200", "A\r\n0123456789\r\n0\r\n\r\n"),
    ("200 200", "a\r\n0123456789\r\n00\r\n\r\n"),
    ("200 200", "003\r\nabc\r\n0\r\n\r\n"),
    ("200 200", "3;a=b\r\nabc\r\n0;c\r\n\r\n"),
    ("200 200", "3;a=\"b;c\"\r\nabc\r\n0\r\n\r\n"),
    ("200 200", "3\r\nabc\r\n0\r\nT: u\r\n\r\n"),
    ("400", "3 \r\nabc\r\n0\r\n\r\n"),
    ("400", " 3\r\nabc\r\n0\r\n\r\n"),
    ("400", "3\t\r\nabc\r\n0\r\n\r\n"),
    ("400", "0x3\r\nabc\r\n0\r\n\r\n"),
    ("400", "+3\r\nabc\r\n0\r\n\r\n"),
    ("400", "-3\r\nabc\r\n0\r\n\r\n"),
    ("400", "g\r\nabc\r\n0\r\n\r\n"),
    ("400", "\r\nabc\r\n0\r\n\r\n"),
    ("400", ";a\r\nabc\r\n0\r\n\r\n"),
    ("400", "3\nabc\r\n0\r\n\r\n"),
    ("400", "3\rabc\r\n0\r\n\r\n"),
    ("400", "3\r\nabc0\r\n\r\n"),
    ("400", "3\r\nabc\n0\r\n\r\n"),
    ("400", "3\r\nabcd\r\n0\r\n\r\n"),
    ("400", "2\r\nabc\r\n0\r\n\r\n"),
    ("400", "3;a=\0\r\nabc\r\n0\r\n\r\n"),
    ("400", "3;a\nb\r\nabc\r\n0\r\n\r\n"),
    ("400", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
    ("400", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\nT: u\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\n\n"),
    ("400", "3\r\nabc\r\n0\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\nT u\r\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\nT : u\r\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\n T: u\r\n\r\n"),
    ("400", "3\r\nabc\r\n0\r\nT: \0\r\n\r\n"),
];

/// Returns the statuses of the answers on a connection that sends the request and [`LAST`].
fn statuses(server: &Running, request: &str) -> String {
    let mut client = server.connect();
    client.send_all_it_takes(format!("{request}{LAST}").as_bytes());
    let answers = client.rest();
    let statuses = answers.split("HTTP/1.").skip(1).map(|answer| answer.get(2..5).unwrap_or("none"));
    statuses.collect::<Vec<_>>().join(" ")
}

/// Returns the rows whose answers are not the expected ones.
fn wrong(server: &Running, rows: &[Row], request: impl Fn(&str) -> String) -> Vec<String> {
    let answered = rows.iter().map(|(expected, part)| (expected, part, statuses(server, &request(part))));
    let wrong = answered.filter(|(expected, _, found)| *expected != found);
    wrong.map(|(expected, part, found)| format!("{part:?}: expected {expected}, found {found}")).collect()
}

#[test]
fn each_request_has_the_expected_answers() {
    let server = Running::start(Limits::default());
    let post = "POST /echo HTTP/1.1\r\nHost: a\r\n";
    let found = [
        wrong(&server, FIRST_LINES, |line| format!("{line}\r\nHost: a\r\n\r\n")),
        wrong(&server, FIELDS, |fields| format!("GET /hello HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")),
        wrong(&server, HOSTS, |host| format!("GET /hello HTTP/1.1\r\n{host}\r\n\r\n")),
        wrong(&server, LENGTHS, |fields| format!("{post}{fields}\r\n\r\nabcde")),
        wrong(&server, CHUNKS, |body| format!("{post}Transfer-Encoding: chunked\r\n\r\n{body}")),
    ];
    assert_eq!(found.concat(), Vec::<String>::new());
    server.assert_serves();
}

/// A body that looks like a request is no request, by whichever framing it comes.
#[test]
fn a_body_is_never_a_request() {
    let server = Running::start(Limits::default());
    let (post, length) = ("POST /hello HTTP/1.1\r\nHost: a\r\n", SMUGGLED.len());
    for fields in ["", "X: y\r\n", "Connection: keep-alive\r\n", "Expect: 100-continue\r\n"] {
        let by_length = format!("{post}{fields}Content-Length: {length}\r\n\r\n{SMUGGLED}");
        let by_chunk = format!("{post}{fields}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n");
        for request in [by_length, by_chunk] {
            let found = statuses(&server, &request);
            assert!(["200 200", "200", "100 200 200"].contains(&&*found), "{request:?}: {found}");
        }
    }
}
