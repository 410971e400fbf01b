//! Attacks of clients on the state that HTTP/2 makes a server keep, frame by frame: each ends the connection, and others are
//! served meanwhile.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use support::{PATIENCE, Running, short};
use weir_library::http::server::Limits;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const NO_ERROR: u32 = 0;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:method GET`, `:scheme http` and `:authority a`, as HPACK encodes them.
const FIELDS: [u8; 5] = [0x82, 0x86, 0x01, 1, b'a'];

/// Returns a frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the fields of a request for this path.
fn request(path: &str) -> Vec<u8> {
    [&FIELDS[..], &[0x04, u8::try_from(path.len()).unwrap()], path.as_bytes()].concat()
}

/// A client that sends what it likes.
struct Attacker(TcpStream);

impl Attacker {
    fn connect(server: &Running) -> Attacker {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let settings = frame(SETTINGS, 0, 0, &[]);
        stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat()).unwrap();
        Attacker(stream)
    }

    /// Sends bytes; returns false if the connection is closed.
    fn send(&mut self, bytes: &[u8]) -> bool {
        match self.0.write_all(bytes) {
            Ok(()) => true,
            Err(error) => {
                assert!(
                    !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                    "it is neither read nor closed"
                );
                false
            }
        }
    }

    /// Reads frames until one of this kind, and returns its payload; `None` if the connection ends before.
    fn next(&mut self, kind: u8) -> Option<Vec<u8>> {
        loop {
            let (found, _, payload) = self.frame()?;
            if found == kind {
                return Some(payload);
            }
        }
    }

    /// Reads a frame: its kind, flags and payload; `None` if the connection ends before.
    fn frame(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.read(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.read(&mut payload)?;
        Some((head[3], head[4], payload))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Option<()> {
        match self.0.read_exact(buffer) {
            Ok(()) => Some(()),
            Err(error) => {
                assert!(
                    !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                    "the connection stays open"
                );
                None
            }
        }
    }

    /// Asserts that the server ends the connection.
    fn assert_ended(&mut self) {
        while self.next(GOAWAY).is_some() {}
    }
}

/// RFC 9113, section 8.1. (curl 7.88 reports an error of the stream instead of the answer if it reads both at once.)
#[test]
fn an_answer_before_the_end_of_the_request_is_followed_by_a_reset_without_an_error() {
    let server = Running::start(Limits { body_bytes_max: 1_000, ..Limits::default() });
    let mut client = Attacker::connect(&server);
    // `:method POST`, and the length of a body that is refused.
    let fields = [&[0x83][..], &request("/echo")[1..], &[0x0f, 0x0d, 4], b"9999"].concat();
    assert!(client.send(&[frame(HEADERS, END_HEADERS, 1, &fields), frame(DATA, 0, 1, &[b'x'; 500])].concat()));
    let mut has_ended = false;
    loop {
        match client.frame().expect("the connection stays open") {
            (HEADERS | DATA, flags, _) => has_ended = flags & END_STREAM != 0,
            (RST_STREAM, _, reason) => break assert_eq!(reason, NO_ERROR.to_be_bytes()),
            _ => {}
        }
    }
    assert!(has_ended, "the answer is complete before the reset");
}

#[test]
fn requests_that_are_reset_at_once_end_the_connection() {
    let server = Running::start(Limits::default());
    let mut attacker = Attacker::connect(&server);
    let pair = |number: u32| {
        let stream = 2 * number + 1;
        let headers = frame(HEADERS, END_STREAM | END_HEADERS, stream, &request("/hold"));
        [headers, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    };
    let burst: Vec<u8> = (0..20_000).flat_map(pair).collect();
    attacker.send(&burst);
    server.assert_serves();
    attacker.assert_ended();
}

#[test]
fn a_header_that_never_ends_ends_the_connection() {
    let server = Running::start(Limits::default());
    let mut attacker = Attacker::connect(&server);
    assert!(attacker.send(&frame(HEADERS, END_STREAM, 1, &request("/hello"))));
    // A field of 16,000 bytes, without indexing, under a name of its own.
    let mut field = vec![0x00, 1, b'x', 0x7f, 0x81, 0x7c];
    field.resize(6 + 16_000, b'y');
    let continuation = frame(CONTINUATION, 0, 1, &field);
    let sent = (0..10_000).take_while(|_| attacker.send(&continuation)).count();
    assert!(sent < 1_000, "{sent} frames of 16 KB were accepted");
    attacker.assert_ended();
    server.assert_serves();
    // Without a byte in them.
    let mut attacker = Attacker::connect(&server);
    assert!(attacker.send(&frame(HEADERS, END_STREAM, 1, &request("/hello"))));
    let empty: Vec<u8> = (0..1_000).flat_map(|_| frame(CONTINUATION, 0, 1, &[])).collect();
    let sent = (0..1_000).take_while(|_| attacker.send(&empty)).count();
    assert!(sent < 1_000, "a million frames were accepted");
    attacker.assert_ended();
}

#[test]
fn a_header_that_refers_to_a_large_field_again_and_again_is_refused() {
    let server = Running::start(Limits::default());
    let mut attacker = Attacker::connect(&server);
    // A field of 4,000 bytes that enters the table (4,096 bytes with its overhead), and 4,000 references to it.
    let mut fields = request("/hello");
    fields.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    fields.resize(fields.len() + 4_000, b'y');
    fields.resize(fields.len() + 4_000, 0xbe);
    attacker.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields));
    // 431 (indexed by no static entry, so its digits stand in the answer), or the end of the stream or connection.
    let answer = attacker.next(HEADERS);
    assert!(answer.is_none_or(|fields| fields.windows(3).any(|digits| digits == b"431") || is_huffman_431(&fields)));
    server.assert_serves();
}

/// Returns true if the fields contain 431 in the Huffman code of HPACK: `4` is 011010, `3` 011001, `1` 00001.
fn is_huffman_431(fields: &[u8]) -> bool {
    fields.windows(3).any(|bytes| bytes == [0b0110_1001, 0b1001_0000, 0b1111_1111])
}

#[test]
fn floods_of_pings_and_settings_are_not_buffered() {
    for kind in [PING, SETTINGS] {
        let limits = Limits { idle_timeout: PATIENCE, write_timeout: Duration::from_millis(300), ..short() };
        let server = Running::start(limits);
        let mut attacker = Attacker::connect(&server);
        let payload: &[u8] = if kind == PING { &[0; 8] } else { &[] };
        let flood: Vec<u8> = (0..10_000).flat_map(|_| frame(kind, 0, 0, payload)).collect();
        // The attacker reads no answer, so the server stops to read its frames, and gives it up.
        let sent = (0..10_000).take_while(|_| attacker.send(&flood)).count();
        assert!(sent < 10_000, "100 million frames of kind {kind} were read without an answer that was accepted");
        server.assert_serves();
    }
}
