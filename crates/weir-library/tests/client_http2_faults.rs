//! The HTTP client against servers that violate HTTP/2 in the second answer on a connection: the call fails, and the next one
//! gets its answer over another connection.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

mod certificates;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use certificates::Certificate;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use weir::{Failure, FailureKind, Size};
use weir_library::client::{self, CallOptions, Client, ClientResponse, Headers};
use weir_library::network::Network;

/// Longest time that a call may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of the preface that a client sends before its frames.
const PREFACE_LENGTH: usize = 24;
/// Types of frames, and the flags that are used here.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The field `:status: 200`, compressed.
const STATUS_200: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The second answer on a connection: frames that are sent once, and frames that are sent until the client has gone.
#[derive(Clone)]
struct Answer {
    once: Vec<u8>,
    repeated: Vec<u8>,
}

/// Serves a connection: answers its first request well, and the second one like this; then waits until the client closes it.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, answer: Answer) -> Option<()> {
    let mut stream = acceptor.accept(stream).await.ok()?;
    let mut preface = [0; PREFACE_LENGTH];
    stream.read_exact(&mut preface).await.ok()?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
    read_request(&mut stream).await?;
    stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, STATUS_200)).await.ok()?;
    read_request(&mut stream).await?;
    stream.write_all(&answer.once).await.ok()?;
    let (mut reading, mut writing) = tokio::io::split(stream);
    let flood = async { while !answer.repeated.is_empty() && writing.write_all(&answer.repeated).await.is_ok() {} };
    let drain = async {
        let mut bytes = [0; 4096];
        while reading.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
    };
    tokio::join!(flood, drain);
    Some(())
}

/// Reads frames up to those of a request.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == HEADERS {
            return Some(());
        }
    }
}

async fn get(client: &Client, port: u16, timeout: Duration) -> Result<ClientResponse, Failure> {
    let (headers, bytes_max) = (Headers::new(), Size(100_000));
    let options = CallOptions { headers, bearer: None, timeout, bytes_max, redirects_max: 5, private: true };
    client::get(client, format!("https://a.example:{port}/").as_str().into(), options).await
}

/// Calls a server three times, which gives this answer to the second call; returns its outcome.
async fn call(certificate: &Certificate, once: Vec<u8>, repeated: Vec<u8>, timeout: Duration) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, connections) = (certificate.acceptor(&[b"h2"]), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let stream = listener.accept().await.unwrap().0;
            count.fetch_add(1, Ordering::SeqCst);
            let answer = Answer { once: once.clone(), repeated: repeated.clone() };
            tokio::spawn(serve(stream, acceptor.clone(), answer));
        }
    });
    let network = Network::default().with_hosts([("a.example".to_owned(), address)]).with_roots(certificate.roots());
    let client = Client::new(network);
    get(&client, address.port(), PATIENCE).await.unwrap();
    let faulty = get(&client, address.port(), timeout).await.map(|_| ());
    let next = get(&client, address.port(), PATIENCE).await.unwrap();
    assert_eq!((client::status(&next), connections.load(Ordering::SeqCst)), (200, 2), "after {faulty:?}");
    faulty
}

#[test]
fn a_faulty_answer_ends_its_call_and_its_connection() {
    let Some(certificate) = Certificate::new("http2-faults") else { return };
    let headers = |flags, fields: &[u8]| frame(HEADERS, flags, 3, fields);
    let length_5 = [STATUS_200, b"\x0f\x0d\x015"].concat();
    // A field without indexing: `x: …`.
    let field = [b"\x00\x01x\x7f\x81\x07".as_slice(), &[b'y'; 1_024]].concat();
    let brief = Duration::from_millis(300);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        for (name, once, repeated, timeout) in [
            ("goodbye", frame(GO_AWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2]), vec![], PATIENCE),
            ("no settings", frame(DATA, 0, 0, b"x"), vec![], PATIENCE),
            ("unknown stream", frame(DATA, 0, 7, b"x"), vec![], PATIENCE),
            ("pushed", frame(PUSH_PROMISE, END_HEADERS, 3, &[0, 0, 0, 2, 0x82]), vec![], PATIENCE),
            ("no status", headers(END_HEADERS | END_STREAM, b"\x0f\x0d\x010"), vec![], PATIENCE),
            ("reset", frame(RESET, 0, 3, &[0, 0, 0, 2]), vec![], PATIENCE),
            (
                "reset without an error",
                [headers(END_HEADERS, STATUS_200), frame(DATA, 0, 3, b"abc"), frame(RESET, 0, 3, &[0; 4])].concat(),
                vec![],
                PATIENCE,
            ),
            (
                "reset without an error before the length",
                [headers(END_HEADERS, &length_5), frame(DATA, 0, 3, b"abc"), frame(RESET, 0, 3, &[0; 4])].concat(),
                vec![],
                PATIENCE,
            ),
            ("wrong compression", headers(END_HEADERS, &[0xff; 20]), vec![], PATIENCE),
            (
                "too short",
                [headers(END_HEADERS, &length_5), frame(DATA, END_STREAM, 3, b"xy")].concat(),
                vec![],
                PATIENCE,
            ),
            ("too long", [headers(END_HEADERS, &length_5), frame(DATA, 0, 3, b"xyzxyz")].concat(), vec![], PATIENCE),
            ("too much", headers(END_HEADERS, STATUS_200), frame(DATA, 0, 3, &[b'x'; 1_000]), PATIENCE),
            ("window", headers(END_HEADERS, STATUS_200), frame(WINDOW_UPDATE, 0, 3, &[0x7f, 0xff, 0xff, 0xff]), brief),
            ("endless head", headers(0, STATUS_200), frame(CONTINUATION, 0, 3, &field), PATIENCE),
            ("silence", vec![], vec![], brief),
            ("pings", vec![], frame(PING, 0, 0, &[0; 8]), brief),
            ("settings", vec![], frame(SETTINGS, 0, 0, &[]), brief),
        ] {
            let outcome = call(&certificate, once, repeated, timeout).await;
            assert!(outcome.is_err(), "{name}");
        }
    });
}

#[test]
fn too_many_informational_answers_end_their_call_at_once() {
    let Some(certificate) = Certificate::new("http2-informational") else { return };
    // The field `:status: 103`, without an entry in the table.
    let informational = frame(HEADERS, END_HEADERS, 3, b"\x08\x03103");
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let refused = call(&certificate, vec![], informational, PATIENCE).await.unwrap_err();
        assert_ne!(refused.kind, FailureKind::Timeout);
        let reason = "more than 16 informational responses (100 to 199) in a row";
        assert!(refused.message.ends_with(reason), "{}", refused.message);
    });
}
