//! Accepted requests, refused requests, and the offset of the refusal.

use std::rc::Rc;

use hyper::header::HeaderName;
use hyper::{Request, Version};

use super::{Framing, FramingVerdict};
use crate::http::server::repeated_fields::RepeatedFields;

fn framing() -> Framing {
    Framing::new(1_000, Rc::default())
}

/// Follows `text` in pieces of `length` bytes; returns the offset at which it is refused.
fn refused_at(text: &[u8], length: usize) -> Option<usize> {
    let mut framing = framing();
    for (index, piece) in text.chunks(length).enumerate() {
        if let FramingVerdict::Refuse { at } = framing.follow(piece) {
            return Some(index * length + at);
        }
    }
    None
}

/// Checks that the offset does not depend on how the text is cut, and returns it.
fn place(text: &str) -> Option<usize> {
    let whole = refused_at(text.as_bytes(), text.len());
    for length in 1..text.len() {
        assert_eq!(refused_at(text.as_bytes(), length), whole, "cut into pieces of {length}: {text:?}");
    }
    whole
}

/// A head whose body comes in chunks.
const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const OK: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn valid_requests_leave_the_connection_between_requests() {
    for request in [
        OK,
        "\r\n\r\nGET / HTTP/1.1\r\nhOsT:a:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET http://a/b@c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET HTTP://a HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 ;a=\"b\"\r\nx\r\n0;c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\nabc\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n4;x=y\r\n\nab\n\r\n0\r\nT: u\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n00\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHostess: b\r\nContent-Lengthy: x\r\nTE: trailers\r\n\r\n",
    ] {
        let two = format!("{request}{OK}");
        assert_eq!(place(&two), None, "{request:?}");
        let mut framing = framing();
        framing.follow(two.as_bytes());
        assert!(framing.is_between() && framing.heads_begun() == 2, "{request:?}");
    }
}

#[test]
fn invalid_requests_are_refused_at_the_end_of_their_line() {
    for (before, line) in [
        ("", "GET / HTTP/1.1\n"),
        ("", "GET http://user@a/ HTTP/1.1\r\n"),
        ("", "GET http://user:secret@a HTTP/1.1\r\n"),
        ("", "GET https://a/ HTTP/1.1\r\n"),
        ("", "GET ftp://a/ HTTP/1.1\r\n"),
        ("", "GET http:///x HTTP/1.1\r\n"),
        ("", "GET a HTTP/1.1\r\n"),
        ("", "GET * HTTP/1.1\r\n"),
        ("", "OPTIONS *x HTTP/1.1\r\n"),
        (CHUNKED, "3 \r\n"),
        (CHUNKED, "3 a\r\n"),
        (CHUNKED, "3;a=\0\r\n"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "T: u\n"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "T: \0\r\n"),
        ("", "\n"),
        ("GET / HTTP/1.1\r\n", "Host: a\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "\n"),
        ("GET / HTTP/1.1\r\n", "\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Host: a\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "HOST: b\r\n"),
        ("GET / HTTP/1.1\r\n", "Host: a b\r\n"),
        ("GET / HTTP/1.1\r\n", "Host: a, b\r\n"),
        ("GET / HTTP/1.1\r\n", "Host: me@a\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n", "Content-Length: 3\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Content-Length: 3, 3\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Content-Length: +3\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Content-Length: \r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Content-Length: 18446744073709551616\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Transfer-Encoding: gzip\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "Transfer-Encoding: gzip, chunked\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n", "\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", "\r\n"),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "3\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "ffffffffffffffff\r\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "T: u\n"),
    ] {
        let text = format!("{OK}{before}{line}{OK}");
        assert_eq!(place(&text), Some(OK.len() + before.len() + line.len() - 1), "{before:?} {line:?}");
    }
}

#[test]
fn a_head_is_begun_by_its_first_byte_and_ended_by_its_last() {
    let mut framing = framing();
    assert!(!framing.is_in_head());
    for byte in &OK.as_bytes()[..OK.len() - 1] {
        assert_eq!(framing.follow(&[*byte]), FramingVerdict::Pass);
        assert!(framing.is_in_head() && framing.heads_begun() == 1);
    }
    framing.follow(b"\n");
    assert!(!framing.is_in_head() && framing.is_between());
    framing.follow(b"\r\n");
    assert!(framing.is_between() && framing.heads_begun() == 1);
}

#[test]
fn fields_that_only_begin_like_known_ones_are_examined() {
    let plain = "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n";
    for other in ["GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nHost: c\r\n\r\n", "GET / HTTP/1.1\r\nAccept: b\r\n\r\n"] {
        let alone = refused_at(other.as_bytes(), usize::MAX).map(|at| at + 2 * plain.len());
        assert!(alone.is_some());
        assert_eq!(place(&format!("{plain}{plain}{other}")), alone, "{other:?}");
    }
    let mut framing = framing();
    framing.follow(format!("{plain}POST / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nContent-Length: 3\r\n\r\nab").as_bytes());
    assert!(!framing.is_between(), "its body has another byte");
}

/// A framing and the service behind it, which gets every request at once.
struct FramedConnection {
    framing: Framing,
    repeated: Rc<RepeatedFields>,
}

impl FramedConnection {
    fn new() -> Self {
        let repeated = Rc::<RepeatedFields>::default();
        FramedConnection { framing: Framing::new(60, Rc::clone(&repeated)), repeated }
    }

    /// Passes heads through hyper; returns the parts of them that it reads.
    fn read(&mut self, heads: &str) -> String {
        self.pass(heads).0
    }

    /// Passes a head through hyper; returns the fields that the service sees.
    fn serve(&mut self, head: &str) -> String {
        self.pass(head).1
    }

    /// Returns the parts of heads that hyper reads, and the fields that the service sees in the last one.
    fn pass(&mut self, heads: &str) -> (String, String) {
        assert_eq!(self.framing.follow(heads.as_bytes()), FramingVerdict::Pass);
        let mut read = heads.to_owned();
        self.framing.left_out().iter().rev().for_each(|range| read.replace_range(range.clone(), ""));
        let seen = read.split_inclusive("\r\n\r\n").map(|head| self.of_service(head)).last();
        (read, seen.unwrap())
    }

    /// Returns the fields that the service sees in a head that hyper has read.
    fn of_service(&self, read: &str) -> String {
        let (line, fields) = read.split_once("\r\n").unwrap();
        let mut request = Request::new(());
        let version = if line.ends_with("1.1") { Version::HTTP_11 } else { Version::HTTP_10 };
        *request.version_mut() = version;
        for (name, value) in fields.lines().filter_map(|field| field.split_once(": ")) {
            request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let repeated = self.repeated.of(&request);
        let all = repeated.as_deref().map_or(request.headers(), |repeated| repeated);
        all.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect()
    }
}

const X: &str = "host: a\r\nx: 1\r\n";
const Y: &str = "host: a\r\nx: 2\r\n";

fn head(line: &str, fields: &str) -> String {
    format!("{line}\r\n{fields}\r\n")
}

#[test]
fn repeated_fields_are_left_out_once_the_service_remembers_them() {
    let mut connection = FramedConnection::new();
    let x = head("GET / HTTP/1.1", X);
    for _ in 0..2 {
        assert_eq!(connection.serve(&x), X);
    }
    assert_eq!(connection.read(&x), "GET / HTTP/1.1\r\n\r\n");
    assert_eq!(connection.read(&x.repeat(2)), "GET / HTTP/1.1\r\n\r\n".repeat(2));
    let mixed = format!("{x}{}{x}", head("GET /y HTTP/1.1", Y));
    assert_eq!(connection.read(&mixed), mixed.replacen(X, "", 1), "the service does not remember those of `y` yet");
}

#[test]
fn every_request_gets_its_own_fields() {
    let mut connection = FramedConnection::new();
    let (x, y) = (head("GET / HTTP/1.1", X), head("GET / HTTP/1.1", Y));
    let old = head("GET / HTTP/1.0", X);
    for (sent, fields) in
        [(&x, X), (&y, Y), (&y, Y), (&y, Y), (&x, X), (&x, X), (&y, Y), (&x, X), (&x, X), (&x, X), (&old, X)]
    {
        assert_eq!(connection.serve(sent), fields);
    }
}

#[test]
fn fields_for_hyper_and_heads_that_are_too_long_are_read_as_they_are() {
    for field in ["Connection: close", "Upgrade: h2c", "Expect: 100-continue", "TE: trailers"] {
        let mut connection = FramedConnection::new();
        let sent = head("GET / HTTP/1.1", &format!("host: a\r\n{field}\r\n"));
        (0..4).for_each(|_| assert!(connection.serve(&sent).contains("host: a")));
        assert_eq!(connection.read(&sent), sent);
    }
    let mut connection = FramedConnection::new();
    let kept = head("GET / HTTP/1.1", &format!("{X}Connection: Keep-Alive\r\n"));
    (0..2).for_each(|_| _ = connection.serve(&kept));
    assert_eq!(connection.read(&kept), "GET / HTTP/1.1\r\n\r\n");
    let long = kept.replace('/', "/0123456789");
    assert_eq!(connection.read(&long), long, "the limit is that of the whole head");
}

#[test]
fn fields_for_hyper_in_between_displace_no_repeated_fields() {
    let mut connection = FramedConnection::new();
    let empty = format!("{X}Content-Length: 0\r\n");
    let (x, y, empty) = (head("GET / HTTP/1.1", X), head("GET / HTTP/1.1", Y), head("POST / HTTP/1.1", &empty));
    let closing = head("GET / HTTP/1.1", &format!("{X}Expect: 100-continue\r\n"));
    (0..2).for_each(|_| assert_eq!(connection.serve(&x), X));
    for _ in 0..3 {
        assert!(connection.serve(&closing).contains("expect: 100-continue"));
        assert_eq!(connection.read(&closing), closing);
        assert!(connection.serve(&empty).contains("content-length: 0"));
        assert_eq!(connection.serve(&x), X);
        assert_eq!(connection.read(&x), "GET / HTTP/1.1\r\n\r\n", "the service still remembers them");
    }
    for (sent, fields) in [(&y, Y), (&empty, "0"), (&y, Y), (&empty, "0"), (&y, Y), (&x, X), (&empty, "0"), (&y, Y)] {
        assert!(connection.serve(sent).contains(fields), "{sent}");
    }
    assert_eq!(connection.read(&empty), "POST / HTTP/1.1\r\n\r\n", "a request without the field has no body either");
    assert!(connection.serve(&empty.repeat(3)).contains("content-length: 0"));
    let turns = [&x, &empty, &y, &empty, &y].map(String::as_str).concat();
    assert_eq!(connection.serve(&turns), Y);
    let mut refused = FramedConnection::new();
    (0..2).for_each(|_| _ = refused.serve(&empty));
    let without_host = "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
    assert_ne!(refused.framing.follow(without_host.as_bytes()), FramingVerdict::Pass);
}

#[test]
fn a_mistake_in_counting_gives_no_request_the_fields_of_another() {
    let repeated = RepeatedFields::default();
    repeated.ask(0, 1, head("", X).trim_start().as_bytes());
    let mut other = Request::new(());
    other.headers_mut().insert("host", "a".parse().unwrap());
    other.headers_mut().insert("x", "2".parse().unwrap());
    assert!(repeated.of(&other).is_none() && !repeated.leaves_out(0, 1));
    assert!(repeated.of(&Request::new(())).is_none());
}

proptest::proptest! {
    #[test]
    fn the_partition_of_the_bytes_does_not_matter(
        parts in proptest::collection::vec(proptest::sample::select(&[
            "GET / HTTP/1.1", "\r\n", "\n", "\r", "Host: a", "Host:", "Content-Length: 3", "Content-Length: ", "abc",
            "Transfer-Encoding: chunked", "3", "0", ";x", "f", " ", "\0", OK,
        ][..]), 0..24),
        length in 1usize..9,
    ) {
        let text = parts.concat();
        assert_eq!(refused_at(text.as_bytes(), length), refused_at(text.as_bytes(), usize::MAX), "{text:?}");
    }
}
