//! The HTTP server with well-behaved and misbehaving clients, over real sockets.

mod support;

use std::time::{Duration, Instant};

use support::{BIG, Running, short, wait_for};
use weir_library::http::server::Limits;

const HELLO: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_connection_serves_many_requests() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(HELLO);
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
        assert!(answer.header("date").is_some());
    }
}

#[test]
fn limits_may_be_as_large_as_can_be() {
    let forever = Duration::MAX;
    let server = Running::start(Limits {
        header_timeout: forever,
        body_timeout: forever,
        body_idle_timeout: forever,
        idle_timeout: forever,
        write_timeout: forever,
        write_rate_min: 0,
        connections_max: usize::MAX,
        body_bytes_max: usize::MAX,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(client.answer().body, b"ab");
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().body.len(), BIG);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    client.send(&format!("{HELLO}GET /none HTTP/1.1\r\nHost: a\r\n\r\n{HELLO}"));
    assert_eq!([client.answer().status, client.answer().status, client.answer().status], [200, 404, 200]);
}

#[test]
fn large_and_small_answers_follow_each_other() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    let big = "GET /big HTTP/1.1\r\nHost: a\r\n\r\n";
    for asked in [big, HELLO, big, big, HELLO, &[big, HELLO, big].concat(), HELLO, &[HELLO, big].concat(), HELLO] {
        client.send(asked);
        for line in asked.lines().filter(|line| line.starts_with("GET")) {
            let body = client.answer().body;
            let whole = if line.contains("big") { body.len() == BIG } else { body == b"hello" };
            assert!(whole, "{line}: {} bytes", body.len());
        }
    }
}

#[test]
fn several_loops_serve_one_socket() {
    let mut server = Running::start_loops(Limits::default(), 3);
    let mut clients: Vec<_> = (0..9).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(HELLO);
    }
    assert!(clients.iter_mut().all(|client| client.answer().status == 200));
    server.stop();
    server.wait();
    clients.iter_mut().for_each(support::Client::assert_closed);
}

#[test]
fn a_client_of_http_1_0_is_answered_and_closed() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /hello HTTP/1.0\r\n\r\n");
    assert_eq!(client.answer().body, b"hello");
    client.assert_closed();
}

#[test]
fn silence_incomplete_heads_and_idle_connections_time_out() {
    let server = Running::start(short());
    let mut clients = [server.connect(), server.connect(), server.connect(), server.connect()];
    clients[1].send("GET /hello HT");
    clients[2].send(&format!("{HELLO}GET /hello HTTP/1.1\r\nHos"));
    clients[3].send(&format!("{HELLO}\r\n"));
    server.assert_serves();
    for answered in &mut clients[2..] {
        assert_eq!(answered.answer().status, 200);
    }
    clients.iter_mut().for_each(support::Client::assert_closed);
}

/// Returns limits under which idle connections release their buffers immediately.
fn restless() -> Limits {
    Limits { release_buffers_after: Duration::ZERO, ..Limits::default() }
}

#[test]
fn a_connection_that_released_its_buffers_is_served_as_before() {
    let server = Running::start(restless());
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(HELLO);
        assert_eq!(client.answer().body, b"hello");
        client.send(&format!("{HELLO}POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab"));
        assert_eq!(client.answer().body, b"hello");
        client.send("cdGET /hello HT");
        assert_eq!(client.answer().body, b"abcd");
        client.send("TP/1.1\r\nHost: a\r\n\r\n\r\n");
        assert_eq!(client.answer().body, b"hello");
    }
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    client.assert_closed();
}

#[test]
fn a_connection_without_buffers_times_out_and_stops_with_the_server() {
    let server = Running::start(Limits { release_buffers_after: Duration::ZERO, ..short() });
    let mut client = server.connect();
    client.send(HELLO);
    assert_eq!(client.answer().status, 200);
    client.assert_closed();
    let mut server = Running::start(restless());
    let mut client = server.connect();
    client.send(HELLO);
    assert_eq!(client.answer().status, 200);
    server.stop();
    client.assert_closed();
    server.wait();
}

#[test]
fn a_trickling_head_times_out() {
    let limits = Limits { idle_timeout: Duration::from_secs(60), ..short() };
    let server = Running::start(limits);
    let mut client = server.connect();
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\n");
    client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let begun = Instant::now();
    // Reading paces the trickle; it ends when the server has closed the connection.
    while begun.elapsed() < support::PATIENCE {
        client.send_all_it_takes(b"X: y\r\n");
        let mut byte = [0];
        match std::io::Read::read(&mut client.stream, &mut byte) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
    panic!("still open");
}

#[test]
fn a_header_has_at_most_100_fields() {
    let server = Running::start(Limits::default());
    for (others, status) in [(99, 200), (100, 431)] {
        let mut client = server.connect();
        client.send_all_it_takes(
            format!("GET /hello HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(others)).as_bytes(),
        );
        assert_eq!(client.answer().status, status, "{others} fields and the host");
    }
}

#[test]
fn headers_without_end_get_431() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    let endless = format!("GET /hello HTTP/1.1\r\nHost: a\r\n{}", "X-Filler: more and more\r\n".repeat(20_000));
    client.send_all_it_takes(endless.as_bytes());
    assert_eq!(client.answer().status, 431);
    client.assert_closed();
    server.assert_serves();
}

#[test]
fn the_limit_of_the_head_is_exact() {
    let server = Running::start(Limits::default());
    for (length, status) in [(32 * 1024, 200), (32 * 1024 + 1, 431)] {
        let start = "GET /hello HTTP/1.1\r\nHost: a\r\nX: ";
        let mut client = server.connect();
        client.send(&format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4)));
        assert_eq!(client.answer().status, status, "{length} bytes");
    }
}

#[test]
fn what_is_framed_in_more_than_one_way_gets_400_and_is_closed() {
    let server = Running::start(Limits::default());
    for (what, request) in [
        (
            "both lengths",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        ("bare line feed in the first line", "GET /hello HTTP/1.1\nHost: a\r\n\r\n"),
        ("bare line feed in a field", "GET /hello HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"),
        ("bare line feed at the end", "GET /hello HTTP/1.1\r\nHost: a\r\n\n"),
        ("no host", "GET /hello HTTP/1.1\r\nX: y\r\n\r\n"),
        ("two hosts", "GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        ("a host that is none", "GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n"),
        ("two lengths", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        ("a length with a sign", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na"),
        ("an unknown coding", "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("chunks in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("user information", "GET http://user:secret@a/hello HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("another scheme", "GET ftp://a/hello HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("`*` that is not asked for options", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
        (
            "a blank after a chunk size",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
        ),
        (
            "a NUL in a chunk extension",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\0\r\nabc\r\n0\r\n\r\n",
        ),
        (
            "a trailer that ends in a bare line feed",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\n\r\n",
        ),
        (
            "a bare line feed in place of the trailers",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n",
        ),
        ("not HTTP", "hello?\r\n\r\n"),
        ("a folded field", "GET /hello HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n"),
        ("a chunk size that is none", "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n"),
        (
            "a chunk line that ends in a bare line feed",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        ),
    ] {
        let mut client = server.connect();
        client.send_all_it_takes(format!("{HELLO}{request}{HELLO}").as_bytes());
        assert_eq!(client.answer().status, 200, "before {what}");
        assert_eq!(client.answer().status, 400, "{what}");
        client.assert_closed();

        let mut client = server.connect();
        for byte in request.as_bytes().chunks(1) {
            client.send_all_it_takes(byte);
        }
        assert_eq!(client.answer().status, 400, "{what}, byte by byte");
        client.assert_closed();
    }
    server.assert_serves();
}

#[test]
fn bodies_are_read_by_length_and_by_chunks() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\n\r\nab");
    assert_eq!(client.answer().body, b"\n\r\nab");
    client.send(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x\r\nc\nd\r\n0\r\n\r\n",
    );
    assert_eq!(client.answer().body, b"abc\nd");
    client.send(HELLO);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn expect_100_continue_is_answered() {
    let server = Running::start(Limits { body_bytes_max: 1000, ..Limits::default() });
    let head =
        |length| format!("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n");
    let mut client = server.connect();
    client.send(&head(2));
    assert_eq!(client.answer().status, 100);
    client.send("ab");
    assert_eq!(client.answer().body, b"ab");
    client.send(&head(1001));
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_body_over_its_limit_gets_413() {
    let server = Running::start(Limits { body_bytes_max: 1000, ..Limits::default() });
    for (body, status) in [(1000, 200), (1001, 413), (3_000_000, 413)] {
        let mut client = server.connect();
        client
            .send_all_it_takes(format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n").as_bytes());
        client.send_all_it_takes(&vec![b'x'; body]);
        assert_eq!(client.answer().status, status, "{body} bytes");

        let mut client = server.connect();
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
        client.send_all_it_takes(chunk.repeat(body / 100).as_bytes());
        client.send_all_it_takes(
            format!("{:x}\r\n{}\r\n0\r\n\r\n", body % 100 + 100, "x".repeat(body % 100 + 100)).as_bytes(),
        );
        assert_eq!(client.answer().status, if body == 1000 { 413 } else { status }, "{body} bytes in chunks");
    }
    server.assert_serves();
}

#[test]
fn an_announced_body_takes_no_memory_and_times_out() {
    let server = Running::start(Limits { body_bytes_max: usize::MAX, ..short() });
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000000000000\r\n\r\nx");
    assert_eq!(client.answer().status, 408);
    client.assert_closed();
}

#[test]
fn a_body_that_stops_or_trickles_gets_408() {
    let server = Running::start(short());
    let mut stopped = server.connect();
    stopped.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\nx");
    assert_eq!(stopped.answer().status, 408);
    stopped.assert_closed();

    let mut trickling = server.connect();
    trickling.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n");
    trickling.stream.set_read_timeout(Some(Duration::from_millis(40))).unwrap();
    let mut first = [0];
    let answered = (0..500).any(|_| {
        trickling.send_all_it_takes(b"x");
        std::io::Read::read(&mut trickling.stream, &mut first).is_ok()
    });
    assert!(answered && first == *b"H", "answered before all of it came");
    trickling.stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    assert!(trickling.rest().starts_with("TTP/1.1 408"));
    server.assert_serves();
}

#[test]
fn a_client_that_disconnects_during_a_response_affects_nobody_else() {
    let server = Running::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut some = [0; 1000];
    std::io::Read::read_exact(&mut client.stream, &mut some).unwrap();
    drop(client);
    server.assert_serves();
}

#[test]
fn a_client_that_does_not_read_its_response_is_disconnected() {
    let server = Running::start(short());
    let mut client = server.connect();
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    // Nothing of the response is read until the server has given up.
    std::thread::sleep(20 * short().write_timeout);
    assert!(client.rest().len() < BIG);
    server.assert_serves();
}

#[test]
fn a_client_that_reads_too_slowly_is_disconnected() {
    let limits = Limits { write_timeout: Duration::from_millis(400), write_rate_min: 1 << 30, ..short() };
    let server = Running::start(limits);
    let mut slow = server.connect();
    slow.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    // The client reads a little at a time, so that the server sees progress all the time.
    let mut piece = vec![0; 100_000];
    let mut taken = 0;
    loop {
        match std::io::Read::read(&mut slow.stream, &mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => taken += count,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(taken < BIG / 2, "{taken} bytes were taken");
}

#[test]
fn a_slow_client_above_the_minimum_rate_gets_the_whole_response() {
    let server = Running::start(Limits { write_timeout: Duration::from_secs(5), ..short() });
    let mut client = server.connect();
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer().body.len(), BIG);
}

#[test]
fn a_new_connection_takes_the_place_of_the_one_that_has_been_idle_longest() {
    let server = Running::start(Limits { connections_max: 3, ..Limits::default() });
    let mut first = [server.connect(), server.connect(), server.connect()];
    for index in [0, 1, 2, 0] {
        first[index].send(HELLO);
        assert_eq!(first[index].answer().status, 200);
    }
    let mut silent = server.connect();
    first[1].assert_closed();
    server.assert_serves();
    first[2].assert_closed();
    for client in [&mut first[0], &mut silent] {
        client.send(HELLO);
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn hundreds_of_idle_and_half_sent_requests_lock_nobody_out() {
    let server = Running::start_loops(Limits { connections_max: 100, ..Limits::default() }, 2);
    let open = |index| {
        let mut client = server.connect();
        if index % 2 == 0 {
            client.send_all_it_takes(b"GET /hello HTTP/1.1\r\nHo");
        }
        client
    };
    let _open: Vec<_> = (0..300).map(open).collect();
    server.assert_serves();
}

#[test]
fn a_connection_beyond_busy_ones_of_its_address_is_refused_at_once() {
    let server = Running::start(Limits { connections_max: 1, ..Limits::default() });
    let mut busy = server.connect();
    busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    let mut refused = server.connect();
    let answer = refused.answer();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    refused.assert_closed();
    server.hold.release.notify_one();
    assert_eq!(busy.answer().body, b"held");
}

#[test]
fn a_half_closed_client_gets_its_answer_only_if_the_service_says_so() {
    for half_close in [false, true] {
        let server = Running::start(Limits { half_close, ..Limits::default() });
        let mut client = server.connect();
        client.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_for(&server.hold.begun);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        if half_close {
            server.assert_serves();
            server.hold.release.notify_one();
            assert_eq!(client.answer().body, b"held");
        }
        client.assert_closed();
    }
}
