//! Bodies of requests, which a flow reads behind `before`.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::streams::engines;
use crate::support::{PATIENCE, Scratch, Served, said, weir};

const PROGRAM: &str = r#"use html, http

record Order { item: Text, count: Int = 1 }

record Sent { name: Text, letter: html.Part }

shared seen = 0

service shop on http(port: 8080, body_bytes_max: 100kb) {
  before (header key: Text = "") {
    if key != "k1" { return http.problem(401, "log in first")? }
    let user = "Ada"
  }
  post "/orders" (body order: Order) {
    on failure of checked { http.status(422, "{order.item} is not sold to {user}")? }
    http.text("{user}: {order.count} of {checked(order.item)?}, {seen.add(1)}")
  }
  post "/note" (body note: Text = "none") { http.text("{user}: {note.length()}") }
  post "/maybe" (body order: Option(Order)) {
    http.text(match order { Some(order) => order.item, None => "nothing" })
  }
  post "/bytes" (body content: Bytes) { http.text("{content.length()}") }
  post "/form" (form sent: Sent) { http.text("{sent.name} {sent.letter.content.length()}") }
  post "/tenant" (body order: Order) {
    session = order.item
    http.text("{order.item}")
  }
}

fn checked(item: Text) -> Result(Text) {
  if item == "x" { fail("no") }
  Ok(item)
}

test "a body is read behind before" {
  let key = ["key": "k1"]
  expect shop.post("/orders", "\{").status() == 401
  expect shop.post("/orders", "\{", headers: key).status() == 415
  expect shop.post("/orders", Order { item: "a", count: 2 }, headers: key).text()? == "Ada: 2 of a, 1"
  expect shop.post("/orders", Order { item: "x", count: 2 }, headers: key).status() == 422
  expect shop.post("/note", "", headers: key).text()? == "Ada: 4"
  expect shop.post("/maybe", "", headers: key).text()? == "nothing"
  expect shop.post("/note", "x".repeat(200_000)).status() == 401
  expect shop.post("/note", "x".repeat(200_000), headers: key).status() == 413
}
"#;

const JSON: &str = "Content-Type: application/json\r\n";
const KEY: &str = "Key: k1\r\n";

/// Sends the header of a request that announces a body of this length.
fn announced(served: &Served, path: &str, fields: &str, length: usize) -> TcpStream {
    let mut stream = served.connect();
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the header is sent");
    stream
}

/// Returns the status and the body of an answer.
fn answer(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    format!("{} {body}", head.get(9..12).unwrap_or("none"))
}

fn sent(served: &Served, path: &str, fields: &str, body: &str) -> String {
    let mut stream = announced(served, path, fields, body.len());
    _ = stream.write_all(body.as_bytes());
    answer(stream)
}

#[test]
fn a_sender_who_is_refused_before_a_route_sends_no_body() {
    let program = Scratch::new("shop.weir", PROGRAM.as_bytes());
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine]);
        // Nothing of the body has come, and nothing is asked for.
        for (path, fields) in [("/orders", JSON), ("/note", "Expect: 100-continue\r\n"), ("/form", "")] {
            let refused = answer(announced(&served, path, fields, 1_000_000_000));
            assert!(refused.starts_with("401 ") && refused.contains("log in first"), "{engine} {path}: {refused}");
        }
        // Who may send one is asked for it.
        let mut stream = announced(&served, "/note", &format!("{KEY}Expect: 100-continue\r\n"), 5);
        let mut continued = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut continued).expect("the server asks for the body");
        assert_eq!(&continued[..], b"HTTP/1.1 100 Continue\r\n\r\n", "{engine}");
        for byte in b"01234" {
            stream.write_all(&[*byte]).expect("the body is sent in pieces");
        }
        assert_eq!(answer(stream), "200 Ada: 5", "{engine}");
        assert_eq!(served.stop().0, Some(0), "{engine}");
    }
}

#[test]
fn a_body_behind_before_is_read_and_refused_as_others_are() {
    let program = Scratch::new("shop.weir", PROGRAM.as_bytes());
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine]);
        let (json, form) = (format!("{JSON}{KEY}"), format!("{KEY}Content-Type: multipart/form-data; boundary=X\r\n"));
        let part = |name: &str, more: &str, text: &str| {
            format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{text}\r\n")
        };
        let whole = format!("{}{}--X--\r\n", part("name", "", "Ada"), part("letter", "; filename=\"a\"", "xyz"));
        let long = "x".repeat(50_000);
        let cases = [
            ("/orders", &*json, r#"{"item": "a", "count": 3}"#, "200 Ada: 3 of a, 1"),
            ("/orders", &json, r#"{"item": "x"}"#, "422 x is not sold to Ada"),
            ("/orders", &json, r#"{"item": 7}"#, "400 body.item: expected a text, found `7`"),
            ("/orders", KEY, "{}", "415 the body must be JSON and say so: `Content-Type: application/json`"),
            ("/note", KEY, "", "200 Ada: 4"),
            ("/note", KEY, &long, "200 Ada: 50000"),
            ("/maybe", KEY, "", "200 nothing"),
            ("/bytes", KEY, "abc", "200 3"),
            ("/form", &form, &whole, "200 Ada 3"),
            ("/form", &form, "--X--\r\n", "400 "),
            ("/form", KEY, "a", "415 "),
            ("/tenant", &json, r#"{"item": "t"}"#, "200 t"),
        ];
        for (path, fields, body, expected) in cases {
            let told = sent(&served, path, fields, body);
            assert!(told.starts_with(expected), "{engine} {path} {body:.40}: {told}");
        }
        assert!(answer(announced(&served, "/note", KEY, 200_000)).starts_with("413 "), "{engine}");
        // A client that leaves within its body ends its flow, and nobody else's.
        drop(announced(&served, "/note", KEY, 10));
        assert_eq!(sent(&served, "/note", KEY, "abc"), "200 Ada: 3", "{engine}");
        assert_eq!(served.stop().0, Some(0), "{engine}");
    }
}

#[test]
fn tests_of_routes_read_bodies_as_the_server_does() {
    let program = Scratch::new("shop.weir", PROGRAM.as_bytes());
    let tested = said(weir(&["test", program.path()]));
    assert_eq!(tested.code, 0, "{}{}", tested.output, tested.messages);
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Returns a frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Reads frames of HTTP/2 until one that ends a stream, a reset, or a ping; returns its kind and the end of its payload.
fn decisive(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("the connection stays open");
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).expect("a whole frame");
        let ends = matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0;
        if ends || matches!(head[3], RST_STREAM | PING) {
            return (head[3], payload);
        }
    }
}

/// Sends the header of a request over HTTP/2 that announces 2,000 bytes, and the first 500 of them.
fn begun_over_http2(served: &Served, path: &str) -> TcpStream {
    let mut stream = served.connect();
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    // `:method POST`, `:scheme http`, `:authority a`, the path, and the length, as HPACK encodes them.
    let path = [&[0x04, u8::try_from(path.len()).expect("it is short")], path.as_bytes()].concat();
    let fields = [&[0x83, 0x86, 0x01, 1, b'a'], &path[..], &[0x0f, 0x0d, 4], b"2000"].concat();
    let frames = [frame(4, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, &fields), frame(DATA, 0, 1, &[b'x'; 500])];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("the preface is sent");
    stream.write_all(&frames.concat()).expect("the request begins");
    stream
}

/// Some clients report an error of a stream that is reset behind an answer, and not the answer (RFC 9113, section 8.1).
#[test]
fn a_body_that_nobody_reads_is_read_on_over_http2_before_its_stream_is_reset() {
    let program = Scratch::new("shop.weir", PROGRAM.as_bytes());
    for engine in engines() {
        let served = Served::start(program.path(), &["--engine", engine]);
        // Refused by `before`, and by the server, which knows no such route.
        let mut silent = ["/orders", "/nowhere"].map(|path| begun_over_http2(&served, path));
        for path in ["/orders", "/nowhere"] {
            let mut stream = begun_over_http2(&served, path);
            assert!(matches!(decisive(&mut stream), (DATA | HEADERS, _)), "{engine} {path}");
            let rest = [frame(DATA, END_STREAM, 1, &[b'x'; 1_500]), frame(PING, 0, 0, b"is there")].concat();
            stream.write_all(&rest).expect("the rest is sent");
            assert_eq!(decisive(&mut stream), (PING, b"is there".to_vec()), "{engine} {path}");
        }
        for stream in &mut silent {
            assert!(matches!(decisive(stream), (DATA | HEADERS, _)), "{engine}");
            assert_eq!(decisive(stream), (RST_STREAM, vec![0; 4]), "{engine}");
        }
    }
}
