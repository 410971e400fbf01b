//! HTTP/2 without TLS, with a client that begins with the preface.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod serving;
mod support;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{BIG, Running, short};
use weir_library::http::server::Limits;

async fn connect(address: std::net::SocketAddr, window: u32) -> SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window).initial_connection_window_size(1 << 20);
    let (requests, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    requests
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://a{path}")).body(Full::default()).unwrap()
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(support::PATIENCE, test).await }).expect("the test ends in time");
}

#[test]
fn many_requests_at_a_time_are_answered_on_one_connection() {
    let server = Running::start(Limits { connections_max: 1, ..Limits::default() });
    block_on(async {
        let mut requests = connect(server.address, 1 << 20).await;
        let held = requests.send_request(get("/hold"));
        let big = requests.send_request(get("/big")).await.unwrap();
        assert_eq!(big.into_body().collect().await.unwrap().to_bytes().len(), BIG);
        let echo = Request::post("http://a/echo").body(Full::from("sent")).unwrap();
        let echoed = requests.send_request(echo).await.unwrap();
        assert_eq!(echoed.into_body().collect().await.unwrap().to_bytes(), "sent");
        server.hold.release.notify_one();
        assert_eq!(held.await.unwrap().into_body().collect().await.unwrap().to_bytes(), "held");
    });
}

#[test]
fn headers_and_bodies_over_their_limits_are_refused() {
    let server = Running::start(Limits { body_bytes_max: 1000, ..Limits::default() });
    block_on(async {
        let mut requests = connect(server.address, 1 << 20).await;
        let long = Request::get("http://a/hello").header("x", "x".repeat(33_000)).body(Full::default()).unwrap();
        let answered = requests.send_request(long).await.unwrap();
        assert_eq!(answered.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        let large = Request::post("http://a/echo").body(Full::from(vec![0; 1001])).unwrap();
        assert_eq!(requests.send_request(large).await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(requests.send_request(get("/hello")).await.unwrap().status(), StatusCode::OK);
    });
}

#[test]
fn a_request_that_names_two_hosts_is_refused() {
    let service = serving::Service::start(vec![serving::route("GET", "/", vec![])]);
    block_on(async {
        let mut requests = connect(service.address, 1 << 20).await;
        for (url, host, status) in
            [("http://a/", "a", 200), ("http://a/", "A", 200), ("http://a/", "b", 400), ("http://u@a/", "u@a", 400)]
        {
            let request = Request::get(url).header("host", host).body(Full::<Bytes>::default()).unwrap();
            assert_eq!(requests.send_request(request).await.unwrap().status(), status, "{url} {host}");
        }
    });
}

#[test]
fn a_field_whose_value_begins_or_ends_with_a_blank_is_refused() {
    let service = serving::Service::start(vec![serving::route("GET", "/", vec![])]);
    block_on(async {
        let mut requests = connect(service.address, 1 << 20).await;
        for (value, status) in [("a b", 200), ("", 200), (" a", 400), ("a\t", 400)] {
            let request = Request::get("http://a/").header("x", value).body(Full::<Bytes>::default()).unwrap();
            assert_eq!(requests.send_request(request).await.unwrap().status(), status, "{value:?}");
        }
    });
}

#[test]
fn routes_read_the_host_and_the_cookies_as_in_http_1() {
    let header = |name| serving::parameter(name, weir::Type::option(weir::Type::Text), weir::ParameterFrom::Header);
    let service = serving::Service::start(vec![serving::route("GET", "/", vec![header("host"), header("cookie")])]);
    block_on(async {
        let mut requests = connect(service.address, 1 << 20).await;
        for (cookies, told) in [
            (&[][..], "#1(\"a:80\")|#0"),
            (&["x=1"], "#1(\"a:80\")|#1(\"x=1\")"),
            (&["x=1", "y=2; z=3", "w=4"], "#1(\"a:80\")|#1(\"x=1; y=2; z=3; w=4\")"),
        ] {
            let request =
                cookies.iter().fold(Request::get("http://a:80/"), |built, cookie| built.header("cookie", *cookie));
            let answer = requests.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), told);
        }
    });
}

#[test]
fn a_preface_that_does_not_come_to_its_end_has_the_time_of_a_header() {
    let server = Running::start(Limits { idle_timeout: Duration::from_secs(3600), ..short() });
    let mut client = server.connect();
    client.send("PRI * HT");
    client.assert_closed();
}

#[test]
fn an_idle_connection_ends_in_time() {
    let server = Running::start(Limits { connections_max: 1, ..short() });
    block_on(async {
        let mut requests = connect(server.address, 1 << 20).await;
        requests.send_request(get("/hello")).await.unwrap();
        while requests.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    server.assert_serves();
}

#[test]
fn a_client_that_does_not_read_its_response_is_disconnected() {
    let limits = Limits { idle_timeout: Duration::from_secs(60), connections_max: 1, ..short() };
    let server = Running::start(limits);
    block_on(async {
        let mut requests = connect(server.address, 1000).await;
        let answer = requests.send_request(get("/big")).await.unwrap();
        let mut body = answer.into_body();
        assert!(!body.frame().await.unwrap().unwrap().into_data().unwrap().is_empty());
        // Reads nothing until the server has closed the connection.
        while requests.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(body.collect().await.is_err());
    });
    server.assert_serves();
}

#[test]
fn stopping_completes_pending_requests() {
    let mut server = Running::start(Limits::default());
    block_on(async {
        let mut requests = connect(server.address, 1 << 20).await;
        let held = requests.send_request(get("/hold"));
        let holds = tokio::spawn(held);
        server.hold.begun.notified().await;
        server.stop();
        server.hold.release.notify_one();
        assert_eq!(holds.await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes(), "held");
    });
    server.wait();
}

#[test]
fn a_flow_that_still_waits_at_the_end_of_the_grace_period_is_answered_503() {
    let limits = [("shutdown_grace", weir::Value::Duration(50_000_000))];
    let service = serving::Service::start_with(vec![serving::route("GET", "/never", vec![])], &limits);
    block_on(async {
        let mut requests = connect(service.address, 1 << 20).await;
        let waiting = [(); 3].map(|()| tokio::spawn(requests.send_request(get("/never"))));
        while service.flows.begun.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        service.stop();
        for answer in waiting {
            assert_eq!(answer.await.unwrap().unwrap().status(), 503);
        }
    });
    service.flows.given_up.wait_for(3);
}

#[test]
fn an_incomplete_preface_times_out() {
    let server = Running::start(short());
    let mut half = server.connect();
    half.send("PRI * HTTP/2.0\r\n");
    let mut whole = server.connect();
    whole.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    server.assert_serves();
    half.assert_closed();
    whole.rest();
}

#[test]
fn the_preface_may_come_byte_by_byte() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    for byte in [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat() {
        client.send_all_it_takes(&[byte]);
    }
    let mut frame = [0; 9];
    std::io::Read::read_exact(&mut client.stream, &mut frame).unwrap();
    assert_eq!(frame[3], 4, "the server's settings come first");
}
