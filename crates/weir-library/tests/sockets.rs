//! TCP and UDP over the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod streaming;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use streaming::{PATIENCE, Place, Running, open};
use weir::{FailureKind, HostType, Value};
use weir_library::network::Network;
use weir_library::tcp::{self, Connection};
use weir_library::{files, udp};

fn listen(idle: Duration) -> Running {
    let idle = Value::Duration(i64::try_from(idle.as_nanos()).unwrap());
    Running::start("tcp.listen", &[Value::Int(0), Value::text("127.0.0.1"), idle], None)
}

fn connect(running: &Running) -> TcpStream {
    let stream = TcpStream::connect(running.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns both ends of a connection.
fn pair(running: &Running) -> (TcpStream, Connection) {
    let client = connect(running);
    (client, Connection::from_value(running.next()).unwrap())
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("it comes") })
}

#[test]
fn a_connection_returns_bytes_and_lines() {
    let running = listen(PATIENCE);
    let (mut client, mut connection) = pair(&running);
    assert_eq!(tcp::peer(&connection), client.local_addr().unwrap().to_string());
    client.write_all(b"first\r\n\nHEAD\r\nA: b\r\n\r\nbodyrest\xffof\nlast").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    wait(async {
        let connection = &mut connection;
        assert_eq!(tcp::read_line(connection, 100).await.unwrap().unwrap().as_str(), "first");
        assert_eq!(tcp::read_line(connection, 100).await.unwrap().unwrap().as_str(), "");
        let head = tcp::read_until(connection, "\r\n\r\n", 100).await.unwrap().unwrap();
        assert_eq!(head, "HEAD\r\nA: b\r\n\r\n");
        assert_eq!(tcp::read_exactly(connection, 0).await.unwrap(), "");
        assert_eq!(tcp::read_exactly(connection, 4).await.unwrap(), "body");
        assert_eq!(tcp::read_line(connection, 100).await.unwrap_err().message.as_str(), "a line is not UTF-8");
        assert_eq!(tcp::read_line(connection, 100).await.unwrap().unwrap().as_str(), "last");
        assert_eq!(tcp::read_line(connection, 100).await.unwrap(), None);
        assert_eq!(tcp::read(connection).await.unwrap(), "");
        assert!(tcp::read_until(connection, "x", 10).await.unwrap().is_none());
        assert!(tcp::read_exactly(connection, 1).await.is_err());
    });
}

#[test]
fn a_missing_terminator_within_the_limit_is_refused() {
    let running = listen(PATIENCE);
    let (mut client, mut connection) = pair(&running);
    client.write_all(&[b'x'; 200]).unwrap();
    let failure = wait(tcp::read_line(&mut connection, 100)).unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Limit, "no terminator within 100 bytes"));
    for at_most in [0, -1, i64::MAX] {
        assert_eq!(wait(tcp::read_line(&mut connection, at_most)).unwrap_err().kind, FailureKind::Argument);
    }
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(wait(tcp::read(&mut connection)).unwrap(), vec![b'x'; 200]);
}

#[test]
fn an_idle_client_times_out() {
    let running = listen(Duration::from_millis(20));
    let (client, mut connection) = pair(&running);
    assert_eq!(wait(tcp::read(&mut connection)).unwrap_err().kind, FailureKind::Timeout);
    // The peer does not read either, so that the buffers fill up.
    let failure = wait(async {
        loop {
            if let Err(failure) = tcp::write(&mut connection, Bytes::from(vec![0; 1 << 20])).await {
                return failure;
            }
        }
    });
    assert_eq!(failure.kind, FailureKind::Timeout);
    drop(client);
}

#[test]
fn many_short_waits_pass_and_a_long_one_times_out() {
    // Far longer than a busy machine delays a thread.
    const IDLE: Duration = Duration::from_secs(1);
    let running = listen(IDLE);
    let (mut client, mut connection) = pair(&running);
    let begun = Instant::now();
    // The last answer is sent when the time limit of one wait has passed, and the client asks no more.
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            let (mut asked, mut answer) = (0, [0; 2]);
            while !is_over.load(Ordering::Relaxed) {
                client.write_all(b"ask\n").unwrap();
                client.read_exact(&mut answer).unwrap();
                asked += 1;
            }
            (asked, client)
        }
    });
    let (answered, failure, waited) = wait(async {
        let mut answered = 0;
        loop {
            let began = Instant::now();
            match tcp::read_line(&mut connection, 10).await {
                Ok(line) => assert_eq!(line.unwrap().as_str(), "ask"),
                Err(failure) => return (answered, failure, began.elapsed()),
            }
            is_over.store(begun.elapsed() > IDLE * 3 / 2, Ordering::Relaxed);
            tcp::write_both(&mut connection, "o".into(), "k".into()).await.unwrap();
            answered += 1;
        }
    });
    let (asked, _client) = asking.join().unwrap();
    assert_eq!((answered, failure.kind), (asked, FailureKind::Timeout));
    assert!(is_over.load(Ordering::Relaxed), "a wait timed out although all before were short");
    assert!(waited >= IDLE, "it was idle for {waited:?}");
}

#[test]
fn writes_arrive_in_order_until_close() {
    let running = listen(PATIENCE);
    let (mut client, mut connection) = pair(&running);
    let large = Bytes::from((0..3_000_000_u32).map(|number| number as u8).collect::<Vec<_>>());
    let expected = [b"text".as_slice(), b"head", &large, &large].concat();
    let reading = std::thread::spawn(move || {
        let mut read = Vec::new();
        client.read_to_end(&mut read).unwrap();
        read
    });
    wait(async {
        tcp::write_text(&mut connection, "text".into()).await.unwrap();
        tcp::write(&mut connection, Bytes::new()).await.unwrap();
        tcp::write_both(&mut connection, "head".into(), large.clone()).await.unwrap();
        tcp::write_both(&mut connection, Bytes::new(), large).await.unwrap();
        tcp::close(connection).await.unwrap();
    });
    assert!(reading.join().unwrap() == expected);
}

#[test]
fn files_are_sent_after_their_head() {
    let place = Place::new("send-file");
    let large: Vec<u8> = (0..5_000_000_u32).map(|number| (number / 7) as u8).collect();
    place.write("large", &large);
    place.write("empty", "");
    let root = place.root();
    let running = listen(PATIENCE);
    let (mut client, mut connection) = pair(&running);
    let reading = std::thread::spawn(move || {
        let mut read = Vec::new();
        client.read_to_end(&mut read).unwrap();
        read
    });
    wait(async {
        for name in ["large", "empty", "large"] {
            let file = files::open(&root, name).unwrap();
            let head = format!("{name} {}\n", files::length(&file));
            tcp::send_file(&mut connection, head.into(), file).await.unwrap();
        }
    });
    drop(connection);
    let expected = [b"large 5000000\n".as_slice(), &large, b"empty 0\n", b"large 5000000\n", &large].concat();
    assert!(reading.join().unwrap() == expected);
}

#[test]
fn a_file_that_has_become_shorter_is_a_failure() {
    let place = Place::new("shorter");
    place.write("file", "0123456789");
    let running = listen(PATIENCE);
    let (_client, mut connection) = pair(&running);
    let file = files::open(&place.root(), "file").unwrap();
    std::fs::OpenOptions::new().write(true).open(place.0.join("file")).unwrap().set_len(4).unwrap();
    let failure = wait(tcp::send_file(&mut connection, "".into(), file)).unwrap_err();
    assert_eq!(failure.message.as_str(), "the file ended after 4 of 10 bytes");
}

#[test]
fn connections_are_accepted_until_the_program_stops() {
    let running = listen(PATIENCE);
    let address = running.address();
    let pairs: Vec<_> = (0..50).map(|_| pair(&running)).collect();
    assert_eq!(pairs.len(), 50);
    assert!(running.stop().is_ok());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn idle_connections_end_when_the_program_stops_and_begun_requests_are_read() {
    let running = listen(PATIENCE);
    let ((_client, mut idle), (mut client, mut begun)) = (pair(&running), pair(&running));
    client.write_all(b"before; first half, ").unwrap();
    assert_eq!(wait(tcp::read_until(&mut begun, "; ", 100)).unwrap().unwrap(), "before; ");
    let waiting = std::thread::spawn(move || wait(tcp::read_line(&mut idle, 100)));
    assert!(running.stop().is_ok());
    assert_eq!(waiting.join().unwrap().unwrap(), None);
    client.write_all(b"second half;").unwrap();
    assert_eq!(wait(tcp::read_until(&mut begun, ";", 100)).unwrap().unwrap(), "first half, second half;");
    assert_eq!(wait(tcp::read(&mut begun)).unwrap(), "");
}

#[test]
fn a_port_in_use_fails_at_start() {
    let running = listen(PATIENCE);
    let port = Value::Int(running.address().port().into());
    let says = |source, arguments: &[Value]| open(source, arguments, None).err().unwrap().message.to_string();
    assert!(says("tcp.listen", &[port]).starts_with(&format!("cannot listen at {}: ", running.address())));
    for source in ["tcp.listen", "tcp.lines", "udp.packets"] {
        assert_eq!(says(source, &[Value::Int(70_000)]), "`port` must be 0 to 65535, not 70000");
        let address = "`address` must be an IP address such as 127.0.0.1, or `localhost`, not \"x\"";
        assert_eq!(says(source, &[Value::Int(0), Value::text("x")]), address);
    }
}

#[test]
fn lines_of_a_connection_come_in_order_and_an_invalid_one_is_skipped_and_reported() {
    let running = Running::start("tcp.lines", &[Value::Int(0)], None);
    let mut clients = [connect(&running), connect(&running)];
    for number in 0..1_000 {
        clients.iter_mut().zip(["a", "b"]).for_each(|(client, name)| writeln!(client, "{name} {number}").unwrap());
    }
    let lines = running.shown(2_000);
    for name in ["a", "b"] {
        let expected: Vec<String> = (0..1_000).map(|number| format!("{name} {number}")).collect();
        let of_name: Vec<&String> = lines.iter().filter(|line| line.starts_with(name)).collect();
        assert!(of_name.iter().copied().eq(&expected), "{name}");
    }
    clients[0].write_all(b"\xff\nbehind\n").unwrap();
    assert_eq!(running.shown(1), ["behind"]);
    let from = clients[0].local_addr().unwrap();
    assert_eq!(running.skipped(), [format!("{from}: line 1001 is not UTF-8")]);
    clients[1].write_all(b"still\nhere").unwrap();
    clients[1].shutdown(Shutdown::Write).unwrap();
    assert_eq!(running.shown(2), ["still", "here"]);
    assert!(running.stop().is_ok());
}

#[test]
fn packets_come_with_their_sender_and_are_answered() {
    let running = Running::start("udp.packets", &[Value::Int(0)], None);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for payload in [&b"hello"[..], b"", &[7; 60_000]] {
        client.send_to(payload, running.address()).unwrap();
        let packet = udp::Packet::from_value(running.next()).unwrap();
        assert_eq!((&*packet.bytes, packet.sender.as_str()), (payload, &*client.local_addr().unwrap().to_string()));
        wait(udp::send(&Network::default(), packet.socket, packet.sender, packet.bytes)).unwrap();
        let mut answer = vec![0; 65_535];
        let (length, from) = client.recv_from(&mut answer).unwrap();
        assert_eq!((&answer[..length], from), (payload, running.address()));
    }
    assert!(running.stop().is_ok());
}

#[test]
fn packets_are_sent_to_addresses_only() {
    wait(async {
        let failure =
            udp::send(&Network::default(), udp::socket().unwrap(), "nowhere".into(), Bytes::new()).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Argument);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = client.local_addr().unwrap().to_string();
        udp::send(&Network::default(), udp::socket().unwrap(), to, "there".into()).await.unwrap();
        let mut packet = [0; 10];
        assert_eq!(client.recv(&mut packet).unwrap(), 5);
    });
}

#[test]
fn beyond_the_maximum_the_connection_that_has_waited_longest_is_closed() {
    let arguments = [Value::Int(0), Value::text("127.0.0.1"), Value::Duration(60_000_000_000), Value::Int(2)];
    let running = Running::start("tcp.listen", &arguments, None);
    let (_first_client, mut first) = pair(&running);
    let (mut second_client, mut second) = pair(&running);
    let (mut third_client, mut third) = pair(&running);
    let failure = wait(tcp::read(&mut first)).unwrap_err();
    assert_eq!(failure.message.as_str(), "closed, because the listener has too many connections");
    second_client.write_all(b"second").unwrap();
    third_client.write_all(b"third").unwrap();
    assert_eq!(wait(tcp::read_exactly(&mut second, 6)).unwrap(), "second");
    assert_eq!(wait(tcp::read_exactly(&mut third, 5)).unwrap(), "third");
}

#[test]
fn a_client_with_idle_connections_locks_out_no_other_client_of_lines() {
    let arguments = [Value::Int(0), Value::text("127.0.0.1"), Value::Duration(60_000_000_000), Value::Int(3)];
    let running = Running::start("tcp.lines", &arguments, None);
    let _idle: Vec<TcpStream> = (0..50).map(|_| connect(&running)).collect();
    connect(&running).write_all(b"a line\n").unwrap();
    assert_eq!(running.next(), Value::text("a line"));
}
