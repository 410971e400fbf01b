//! The HTTP client against servers that violate the protocol: the call fails or gets its own answer, no connection is used
//! again after such an answer, and other calls are not affected.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use weir::{Failure, FailureKind, Size};
use weir_library::client::{self, CallOptions, Client, ClientResponse, Headers};

/// Longest time that a call may take.
const PATIENCE: Duration = Duration::from_secs(60);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that answers `/ok` well, and `/bad` by this function, which may write as long as the client reads.
struct FaultyPeer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl FaultyPeer {
    fn start(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> FaultyPeer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (count, answer) = (Arc::clone(&connections), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(stream.unwrap(), &*answer));
            }
        });
        FaultyPeer { address, connections }
    }

    /// Starts a server that answers `/bad` by these bytes, and then waits for the next request.
    fn saying(answer: impl Into<Vec<u8>>) -> FaultyPeer {
        let answer = answer.into();
        FaultyPeer::start(move |stream| drop(stream.write_all(&answer)))
    }

    async fn get(&self, client: &Client, path: &str) -> Result<ClientResponse, Failure> {
        let (headers, bytes_max, timeout) = (Headers::new(), Size(100_000), PATIENCE);
        let options = CallOptions { headers, bearer: None, timeout, bytes_max, redirects_max: 5, private: true };
        client::get(client, format!("http://{}{path}", self.address).as_str().into(), options).await
    }

    /// Gets `/bad`, and then `/ok`, which has to arrive over another connection.
    fn bad_then_ok(&self) -> Result<ClientResponse, Failure> {
        block_on(async {
            let client = Client::default();
            let bad = self.get(&client, "/bad").await;
            let ok = self.get(&client, "/ok").await.unwrap();
            assert_eq!((client::status(&ok), &client::body(&ok)[..]), (200, &b"ok"[..]), "after /bad");
            assert_eq!(self.connections.load(Ordering::SeqCst), 2, "after {:?}", bad.map(|bad| bad.len()));
            bad
        })
    }
}

/// Serves a connection until the client closes it.
fn serve(mut stream: TcpStream, answer: &dyn Fn(&mut TcpStream)) {
    let mut request = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|read| read == 1) {
        request.push(byte[0]);
        if request.ends_with(b"\r\n\r\n") {
            match request.starts_with(b"GET /bad ") {
                true => answer(&mut stream),
                false => drop(stream.write_all(OK)),
            }
            request.clear();
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Returns a response with these header fields and these bytes behind them.
fn raw(fields: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{rest}")
}

#[test]
fn a_good_answer_leaves_its_connection() {
    let peer = FaultyPeer::saying(OK);
    block_on(async {
        let client = Client::default();
        for path in ["/bad", "/ok", "/ok"] {
            peer.get(&client, path).await.unwrap();
        }
    });
    assert_eq!(peer.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_second_answer_reaches_no_other_call() {
    let second = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    for first in [raw("Content-Length: 2\r\n", "ok"), raw("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n")] {
        let answer = FaultyPeer::saying(first + second).bad_then_ok().unwrap();
        assert_eq!(&client::body(&answer)[..], b"ok");
    }
    for (fields, rest) in [("Content-Length: 1\r\n", "ok"), ("Content-Length: 0\r\n", "ok")] {
        assert!(FaultyPeer::saying(raw(fields, rest)).bad_then_ok().unwrap().len() < 2);
    }
    // Answers that have no body, whatever their header says.
    for status in ["204 No Content", "304 Not Modified"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{second}", second.len());
        assert_eq!(FaultyPeer::saying(answer).bad_then_ok().unwrap().len(), 0);
    }
}

/// Length of a response's body.
trait Length {
    fn len(&self) -> usize;
}

impl Length for ClientResponse {
    fn len(&self) -> usize {
        client::body(self).len()
    }
}

#[test]
fn doubtful_lengths_are_refused() {
    let chunks = "2\r\nok\r\n0\r\n\r\n";
    for (fields, rest) in [
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", chunks),
        ("Content-Length: 2\r\nTransfer-Encoding: identity\r\n", "ok"),
        ("Transfer-Encoding: gzip, chunked\r\n", chunks),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks),
        ("Transfer-Encoding: xchunked\r\n", chunks),
        ("Content-Length: 2\r\nContent-Length: 3\r\n", "ok"),
        ("Content-Length: 2, 3\r\n", "ok"),
        ("Content-Length: +2\r\n", "ok"),
        ("Content-Length: -2\r\n", "ok"),
        ("Content-Length: 0x2\r\n", "ok"),
        ("Content-Length: 99999999999999999999\r\n", "ok"),
        ("Content-Length:\r\n", "ok"),
    ] {
        let answer = FaultyPeer::saying(raw(fields, rest)).bad_then_ok();
        assert!(answer.is_err(), "{fields}: {answer:?}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert!(FaultyPeer::saying(old).bad_then_ok().is_err());
}

#[test]
fn malformed_chunks_end_the_call() {
    for chunks in [
        "zz\r\nok\r\n0\r\n\r\n",
        "-2\r\nok\r\n0\r\n\r\n",
        "2\r\nokay\r\n0\r\n\r\n",
        "2 2\r\nok\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\nok",
        "2\r\nok\n0\r\n\r\n",
        "\r\n2\r\nok\r\n0\r\n\r\n",
        &format!("2;{}\r\nok\r\n0\r\n\r\n", "x".repeat(100_000)),
        &format!("0\r\n{}\r\n", "a: b\r\n".repeat(20_000)),
    ] {
        let answer = FaultyPeer::saying(raw("Transfer-Encoding: chunked\r\n", chunks)).bad_then_ok();
        assert!(answer.is_err(), "{}: {answer:?}", &chunks[..chunks.len().min(40)]);
    }
}

#[test]
fn unusual_answers_with_one_meaning_are_accepted() {
    for answer in [
        raw("Content-Length: 2\r\nContent-Length: 2\r\n", "ok"),
        raw("Transfer-Encoding: chunked\r\n", "2 \r\nok\r\n0\r\n\r\n"),
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".to_owned(),
    ] {
        let got = block_on(FaultyPeer::saying(answer.clone()).get(&Client::default(), "/bad")).unwrap();
        assert_eq!(&client::body(&got)[..], b"ok", "{answer}");
    }
}

#[test]
fn malformed_and_endless_heads_end_the_call() {
    let many: String = (0..1_000).map(|n| format!("x{n}: y\r\n")).collect();
    for head in [
        "no HTTP at all\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/3.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname : value\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nfolded: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: \0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        &format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 0\r\n\r\n"),
        &format!("HTTP/1.1 200 OK\r\na: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(100_000)),
    ] {
        let answer = FaultyPeer::saying(head).bad_then_ok();
        assert!(answer.is_err(), "{}", &head[..head.len().min(60)]);
    }
}

/// Writes a part again and again, until the client has closed the connection.
fn flood(begin: &'static str, part: &'static str) -> FaultyPeer {
    let parts = part.repeat(1_000);
    FaultyPeer::start(move |stream| {
        let _ = stream.write_all(begin.as_bytes());
        while stream.write_all(parts.as_bytes()).is_ok() {}
    })
}

#[test]
fn floods_end_at_their_limits_and_their_connections_with_them() {
    for (peer, said) in [
        (flood("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), "more than 16 informational responses"),
        (flood("", "HTTP/1.1 100 Continue\r\n\r\n"), "more than 16 informational responses"),
        (flood("HTTP/1.1 200 OK\r\n", "a: b\r\n"), "no response from 127.0.0.1"),
        (flood("HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", "body"), "(`bytes_max`)"),
        (flood("HTTP/1.1 200 OK\r\n\r\n", "body"), "(`bytes_max`)"),
        (flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), "(`bytes_max`)"),
    ] {
        let failure = peer.bad_then_ok().unwrap_err();
        assert!(failure.message.contains(said), "{failure}");
    }
}

#[test]
fn a_flood_of_informational_answers_ends_a_call_over_a_kept_connection() {
    // Each write is small, so that answers arrive while others are parsed.
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(50);
    let peer = FaultyPeer::start(move |stream| while stream.write_all(hints.as_bytes()).is_ok() {});
    block_on(async {
        let client = Client::default();
        for calls in 1..=5 {
            peer.get(&client, "/ok").await.unwrap();
            assert_eq!(peer.connections.load(Ordering::SeqCst), calls);
            let failure = peer.get(&client, "/bad").await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Limit, "{failure}");
            assert!(failure.message.contains("more than 16 informational responses"), "{failure}");
        }
    });
}

#[test]
fn informational_answers_are_counted_in_one_piece_with_the_answer() {
    for (number, is_accepted) in [(0, true), (16, true), (17, false), (300, false), (5_000, false)] {
        let informational = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(number);
        let peer = FaultyPeer::saying([informational.as_bytes(), OK].concat());
        let answer = block_on(peer.get(&Client::default(), "/bad"));
        assert_eq!(answer.is_ok(), is_accepted, "{number}: {answer:?}");
        if let Err(failure) = answer {
            assert!(failure.message.contains("more than 16 informational responses"), "{failure}");
        }
    }
}

#[test]
fn decompression_is_bounded_while_the_answer_arrives() {
    // Members of 1 MB of zeros each, without end.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 1_000_000]).unwrap();
    let member = encoder.finish().unwrap();
    let peer = FaultyPeer::start(move |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
        while stream.write_all(&member).is_ok() {}
    });
    let refused = peer.bad_then_ok().unwrap_err();
    assert_eq!(refused.kind, FailureKind::Limit);
    for (encoding, body) in [("gzip", "no gzip"), ("gzip", "\u{1f}"), ("GZIP", "x")] {
        let fields = format!("Content-Encoding: {encoding}\r\nContent-Length: {}\r\n", body.len());
        assert!(FaultyPeer::saying(raw(&fields, body)).bad_then_ok().is_err(), "{encoding} {body}");
    }
}

#[test]
fn answers_that_break_off_are_failures() {
    let whole =
        [raw("Content-Length: 10\r\n", "0123456789"), raw("Transfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n")];
    block_on(async {
        let client = Client::default();
        for whole in whole {
            for length in 0..whole.len() {
                let part = whole.as_bytes()[..length].to_vec();
                let peer = FaultyPeer::start(move |stream| {
                    let _ = stream.write_all(&part);
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                });
                let answer = peer.get(&client, "/bad").await;
                assert!(answer.is_err(), "{length} bytes: {answer:?}");
            }
        }
    });
}

#[test]
fn an_answer_that_trickles_holds_up_no_other_call() {
    for begin in ["HTTP/1.1 200 OK\r\na: ", "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"] {
        let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (has_begun, has_ended) = (Arc::clone(&begun), Arc::clone(&ended));
        let peer = FaultyPeer::start(move |stream| {
            let _ = stream.write_all(begin.as_bytes());
            has_begun.notify_one();
            // A byte now and then, until the client closes the connection.
            stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            while stream.write_all(b"x").is_ok() && !stream.read(&mut [0]).is_ok_and(|read| read == 0) {}
            has_ended.notify_one();
        });
        block_on(async {
            let client = Client::default();
            let others = async {
                begun.notified().await;
                for _ in 0..20 {
                    peer.get(&client, "/ok").await.unwrap();
                }
            };
            tokio::select! {
                answer = peer.get(&client, "/bad") => panic!("{answer:?}"),
                () = others => {}
            }
            // The call is given up, and with it its connection.
            tokio::time::timeout(PATIENCE, ended.notified()).await.unwrap();
        });
    }
}
