//! Accepted requests, refused requests, and the offset of the refusal.

use super::{Framing, FramingVerdict};

/// Follows `text` in pieces of `length` bytes; returns the offset at which it is refused.
fn refused_at(text: &[u8], length: usize) -> Option<usize> {
    let mut framing = Framing::new();
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
        let mut framing = Framing::new();
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
    let mut framing = Framing::new();
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
    let mut framing = Framing::new();
    framing.follow(format!("{plain}POST / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nContent-Length: 3\r\n\r\nab").as_bytes());
    assert!(!framing.is_between(), "its body has another byte");
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
