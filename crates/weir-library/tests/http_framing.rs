//! Random requests, whole, in pieces and damaged: request validation and hyper agree about where each begins and ends.
//!
//! `WEIR_FRAMING_CASES` sets the number of generated connections for each law.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod serving;
mod support;

use std::net::Shutdown;
use std::sync::LazyLock;

use proptest::prelude::*;
use serving::{Service, parameter, route};
use support::{Client, Running};
use weir::{ParameterFrom, Type};
use weir_library::http::server::Limits;

/// A request and its expected response.
#[derive(Clone, Debug)]
struct Asked {
    request: Vec<u8>,
    body: Vec<u8>,
}

/// Generates bodies that look like requests.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n0\r\n\r\n".to_vec()),
        Just(b"Host: b\n\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        Just(Asked { request: b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), body: b"hello".to_vec() }),
        Just(Asked {
            request: b"\r\nGET /hello HTTP/1.1\r\nHost:a\r\nX: \ty \r\n\r\n".to_vec(),
            body: b"hello".to_vec()
        }),
        body().prop_map(|body| {
            let head = format!("POST /echo HTTP/1.1\r\nHost: a\r\ncontent-length:{}\r\n\r\n", body.len());
            Asked { request: [head.as_bytes(), &body].concat(), body }
        }),
        (body(), 1usize..30, any::<bool>()).prop_map(|(body, size, extra)| {
            let (extension, trailer) = if extra { (";a=\"b\"", "T: u\r\n") } else { ("", "") };
            let mut request = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n".to_vec();
            for chunk in body.chunks(size) {
                request.extend(format!("{:X}{extension}\r\n", chunk.len()).bytes());
                request.extend_from_slice(chunk);
                request.extend(b"\r\n");
            }
            request.extend(format!("0\r\n{trailer}\r\n").bytes());
            Asked { request, body }
        }),
    ]
}

/// A request with one of a few field blocks, which its answer contains, and whether the client waits for the answer before it
/// sends the next one.
fn with_fields() -> impl Strategy<Value = (Asked, bool)> {
    let value = prop_oneof![4 => Just("1"), 1 => Just("2"), 1 => Just("three")];
    let further = prop_oneof![
        4 => Just(""),
        1 => Just("Connection: keep-alive\r\n"),
        1 => Just("TE: trailers\r\n"),
        1 => Just("Accept: */*\r\nAccept: text/plain\r\n"),
    ];
    let target = prop_oneof![Just("GET /now"), Just("GET /later"), Just("POST /body")];
    (value, further, target, prop_oneof![3 => Just(true), 1 => Just(false)]).prop_map(
        |(value, further, target, waits)| {
            let has_body = target.starts_with("POST");
            let (length, body) = if has_body { ("Content-Length: 2\r\n", "ab") } else { ("", "") };
            let request = format!("{target} HTTP/1.1\r\nHost: a\r\nX-Value: {value}\r\n{further}{length}\r\n{body}");
            let answer = if has_body { format!("{value}|{body}") } else { value.to_owned() };
            (Asked { request: request.into_bytes(), body: answer.into_bytes() }, waits)
        },
    )
}

/// A service that answers with a field of the request, at once or later, or with the field and the body. It serves all
/// connections of a test, because it takes long to start.
static SHOWN: LazyLock<Service> = LazyLock::new(|| {
    let value = || parameter("x_value", Type::Text, ParameterFrom::Header);
    let body = parameter("body", Type::Text, ParameterFrom::Body);
    Service::start(vec![
        route("GET", "/now", vec![value()]),
        route("GET", "/later", vec![value()]),
        route("POST", "/body", vec![value(), body]),
    ])
});

fn send_in_pieces(client: &mut Client, bytes: &[u8], length: usize) {
    for piece in bytes.chunks(length) {
        client.send_all_it_takes(piece);
    }
}

/// Returns the number of generated connections for each law.
fn cases() -> u32 {
    std::env::var("WEIR_FRAMING_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_of_a_connection_gets_its_own_answer(
        all in proptest::collection::vec(asked(), 1..8), length in prop_oneof![1usize..40, Just(usize::MAX)],
    ) {
        let server = Running::start(Limits::default());
        let mut client = server.connect();
        let bytes: Vec<u8> = all.iter().flat_map(|asked| asked.request.clone()).collect();
        send_in_pieces(&mut client, &bytes, length);
        for asked in &all {
            let answer = client.answer();
            prop_assert_eq!((answer.status, &answer.body), (200, &asked.body));
        }
    }

    #[test]
    fn damaged_requests_affect_only_their_connection(
        all in proptest::collection::vec(asked(), 1..4), at in any::<prop::sample::Index>(),
        damage in prop_oneof![Just(vec![]), Just(b"\n".to_vec()), Just(b"\r\n".to_vec()), proptest::collection::vec(any::<u8>(), 1..4)],
        removed in 0usize..4,
    ) {
        let server = Running::start(support::short());
        let mut client = server.connect();
        let mut bytes: Vec<u8> = all.iter().flat_map(|asked| asked.request.clone()).collect();
        let at = at.index(bytes.len());
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, damage);
        client.send_all_it_takes(&bytes);
        let _ = client.stream.shutdown(Shutdown::Write);
        let answers = client.rest();
        prop_assert!(answers.is_empty() || answers.starts_with("HTTP/1."), "{:?}", answers);
        server.assert_serves();
    }
}

proptest! {
    // A client that waits for answers takes longer.
    #![proptest_config(ProptestConfig { cases: cases().div_ceil(4), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_its_own_fields(
        all in proptest::collection::vec(with_fields(), 1..24), length in prop_oneof![1 => 1usize..40, 3 => Just(usize::MAX)],
    ) {
        let mut client = Client::connect(SHOWN.address);
        let mut unanswered = Vec::new();
        for (index, (asked, waits)) in all.iter().enumerate() {
            send_in_pieces(&mut client, &asked.request, length);
            unanswered.push(&asked.body);
            if *waits || index + 1 == all.len() {
                for body in unanswered.drain(..) {
                    let answer = client.answer();
                    prop_assert_eq!((answer.status, &answer.body), (200, body));
                }
            }
        }
    }
}
