//! The HTTP server when it stops: which requests are answered, and which connections are closed or refused.

mod support;

use std::time::{Duration, Instant};

use support::{Running, wait_for};
use weir_library::http::server::Limits;

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn stopping_completes_pending_requests_and_closes_idle_connections() {
    let mut server = Running::start(Limits::default());
    let mut idle = server.connect();
    idle.send(HELLO);
    idle.answer();
    let mut silent = server.connect();
    let mut busy = server.connect();
    busy.send(&format!("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n{HELLO}"));
    wait_for(&server.hold.begun);
    server.stop();
    idle.assert_closed();
    silent.assert_closed();
    server.hold.release.notify_one();
    assert_eq!(busy.answer().body, b"held");
    busy.rest();
    server.wait();
    assert!(std::net::TcpStream::connect(server.address).is_err(), "still listening");
}

#[test]
fn stopping_ends_within_the_grace_period() {
    let mut server = Running::start(Limits { shutdown_grace: Duration::from_millis(100), ..Limits::default() });
    let mut busy = server.connect();
    busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    server.stop();
    server.wait();
    busy.assert_closed();
}

#[test]
fn while_pending_requests_are_completed_new_connections_are_refused() {
    let mut server = Running::start_loops(Limits::default(), 2);
    let mut busy = server.connect();
    busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    server.stop();
    let begun = Instant::now();
    while std::net::TcpStream::connect(server.address).is_ok() {
        assert!(begun.elapsed() < support::PATIENCE, "still listening");
        std::thread::yield_now();
    }
    server.hold.release.notify_one();
    assert_eq!(busy.answer().body, b"held");
    server.wait();
}

#[test]
fn requests_that_were_sent_before_the_stop_are_answered() {
    let mut server = Running::start(Limits::default());
    let mut blocking = server.connect();
    blocking.send("GET /block HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    // The event loop is blocked: it accepts these connections no earlier than it learns of the stop.
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(HELLO));
    server.stop();
    server.hold.unblocked.store(true, std::sync::atomic::Ordering::Release);
    for mut client in clients {
        assert_eq!(client.answer().body, b"hello");
        client.rest();
    }
    server.wait();
}
