//! Bytes that a server holds for its clients: a quarter of the program's memory, which no request of little needs to wait for.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{BIG, Client, PATIENCE, Running};
use weir::memory::MemoryLimits;
use weir_library::http::server::Limits;

type AnyBody = BoxBody<Bytes, Infallible>;

/// Starts a server in a program whose connections may hold two responses of `/big`.
fn start() -> Running {
    static LIMITED: Once = Once::new();
    LIMITED.call_once(|| MemoryLimits { program: 8 * BIG as u64, ..MemoryLimits::default() }.apply());
    let forever = Duration::from_secs(3600);
    Running::start(Limits {
        body_bytes_max: 2 * BIG - 1,
        body_timeout: forever,
        body_idle_timeout: forever,
        write_timeout: forever,
        ..Limits::default()
    })
}

/// A body of three bytes, and no end.
struct Unfinished(bool);

impl Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::mem::replace(&mut self.0, true) {
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"abc"))))),
            true => Poll::Pending,
        }
    }
}

async fn connect(server: &Running, window: u32) -> SendRequest<AnyBody> {
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window).initial_connection_window_size(1 << 20);
    let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    requests
}

fn get(path: &str) -> Request<AnyBody> {
    Request::get(format!("http://a{path}")).body(Full::default().boxed()).unwrap()
}

fn unfinished() -> Request<AnyBody> {
    Request::post("http://a/echo").body(Unfinished(false).boxed()).unwrap()
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await }).expect("the test ends in time");
}

#[test]
fn large_answers_and_unfinished_bodies_hold_up_no_other_request_of_their_connection() {
    let server = start();
    block_on(async {
        let mut requests = connect(&server, 1000).await;
        let uploads: Vec<_> = (0..20).map(|_| requests.send_request(unfinished())).collect();
        let big = requests.send_request(get("/big")).await.unwrap();
        let announced = Request::post("http://a/echo").header("content-length", BIG / 2);
        let announced = requests.send_request(announced.body(Unfinished(false).boxed()).unwrap());
        let hello = requests.send_request(get("/hello")).await.unwrap();
        assert_eq!(hello.into_body().collect().await.unwrap().to_bytes(), "hello");
        drop((uploads, big, announced));
    });
}

#[test]
fn a_client_that_accepts_nothing_over_http2_makes_the_server_hold_a_quarter_of_its_memory_at_most() {
    let server = start();
    block_on(async {
        let mut requests = connect(&server, 0).await;
        let mut answers = Vec::new();
        for expected in [200, 200, 503, 503, 503] {
            let answer = requests.send_request(get("/big")).await.unwrap();
            assert_eq!(answer.status(), expected, "{}", answers.len());
            assert_eq!(answer.headers().contains_key("retry-after"), expected == 503);
            answers.push(answer);
        }
        assert_eq!(requests.send_request(get("/hello")).await.unwrap().status(), StatusCode::OK);
        drop(answers);
        // The server has room again once it sees that the streams are reset.
        while requests.send_request(get("/big")).await.unwrap().status() != StatusCode::OK {}
    });
}

const CHUNKED: &str = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_chunked_body_counts_as_what_has_arrived() {
    let server = start();
    let begin = |_| {
        let mut client = server.connect();
        client.send(&format!("{CHUNKED}3\r\nabc\r\n"));
        client
    };
    let mut uploads: Vec<Client> = (0..20).map(begin).collect();
    for upload in &mut uploads {
        upload.send("0\r\n\r\n");
        assert_eq!(upload.answer().body, b"abc");
    }
}

#[test]
fn half_sent_chunked_bodies_hold_a_quarter_of_the_memory_at_most() {
    let server = start();
    let begin = |_| {
        let mut client = server.connect();
        client.send(&format!("{CHUNKED}{:x}\r\n", BIG / 2));
        client.send_all_it_takes(&vec![b'x'; BIG / 2]);
        client
    };
    let mut uploads: Vec<Client> = (0..6).map(begin).collect();
    // The oldest one gives way.
    uploads[0].assert_closed();
    let mut last = uploads.pop().unwrap();
    last.send("\r\n0\r\n\r\n");
    assert_eq!(last.answer().body.len(), BIG / 2);
}
