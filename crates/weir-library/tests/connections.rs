//! Connections that programs make, over the loopback interface: `tcp.connect`, `tls.connect`, `udp.ask` and `dns.lookup`.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

mod certificates;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use bytes::Bytes;
use certificates::Certificate;
use weir::{Failure, FailureKind, ReachableHosts};
use weir_library::network::Network;
use weir_library::tcp::{self, ConnectOptions, Connection};
use weir_library::{dns, files, udp};

/// Longer than any of these exchanges takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn options() -> ConnectOptions {
    ConnectOptions { timeout: PATIENCE, idle: PATIENCE, private: true }
}

/// Serves one connection on a thread; returns its address.
fn serve_one(serve: impl FnOnce(std::net::TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, spawn(move || serve(listener.accept().unwrap().0)))
}

async fn connect(address: SocketAddr, options: ConnectOptions) -> Result<Connection, Failure> {
    tcp::connect(&Network::default(), "127.0.0.1".into(), address.port().into(), options).await
}

#[test]
fn a_program_talks_to_a_server_line_by_line() {
    let (address, server) = serve_one(|stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            (&stream).write_all(format!("{}\r\n", line.to_uppercase()).as_bytes()).unwrap();
        }
    });
    block_on(async {
        let mut connection = connect(address, options()).await.unwrap();
        assert_eq!(tcp::peer(&connection), address.to_string());
        for word in ["hello", "there"] {
            tcp::write_text(&mut connection, format!("{word}\n").into()).await.unwrap();
            let answer = tcp::read_line(&mut connection, 100).await.unwrap().unwrap();
            assert_eq!(answer.as_str(), word.to_uppercase());
        }
        tcp::close(connection).await.unwrap();
    });
    server.join().unwrap();
}

#[test]
fn private_addresses_and_hosts_that_the_plan_does_not_permit_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = i64::from(listener.local_addr().unwrap().port());
    let plan = Network::default().with_reachable(ReachableHosts::only(["a.example", "::1"]).unwrap());
    block_on(async {
        let public = ConnectOptions { private: false, ..options() };
        for host in ["127.0.0.1", "localhost"] {
            let refused = tcp::connect(&Network::default(), host.into(), port, ConnectOptions { ..public }).await;
            let said = refused.unwrap_err().message.to_string();
            assert!(said.starts_with(&format!("`{host}` has the private address")), "{said}");
        }
        let refused = [
            tcp::connect(&plan, "localhost".into(), port, options()).await.unwrap_err(),
            tcp::connect_tls(&plan, "localhost".into(), port, options()).await.unwrap_err(),
            udp::ask(&plan, "localhost".into(), port, Bytes::new(), PATIENCE, true).await.unwrap_err(),
            dns::lookup(&plan, "localhost".into(), PATIENCE).await.unwrap_err(),
        ];
        for failure in refused {
            let expected = "the plan does not permit the host `localhost`; add it to `hosts` in the plan";
            assert_eq!(failure.message.as_str(), expected);
        }
        let to = format!("127.0.0.1:{port}");
        let refused = udp::send(&plan, udp::socket().unwrap(), to, Bytes::new()).await.unwrap_err();
        assert!(refused.message.contains("does not permit the host `127.0.0.1`"), "{refused}");
    });
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_silent_server_ends_a_read_and_a_silent_handshake_a_connection() {
    let (address, server) = serve_one(|mut stream| _ = stream.read_to_end(&mut Vec::new()));
    block_on(async {
        let idle = Duration::from_millis(20);
        let mut connection = connect(address, ConnectOptions { idle, ..options() }).await.unwrap();
        let late = tcp::read(&mut connection).await.unwrap_err();
        assert_eq!((late.kind, late.message.as_str()), (FailureKind::Timeout, "the peer sent nothing for 20ms"));
        drop(connection);
    });
    server.join().unwrap();
    let (address, server) = serve_one(|mut stream| _ = stream.read_to_end(&mut Vec::new()));
    block_on(async {
        let short = ConnectOptions { timeout: Duration::from_millis(20), ..options() };
        let late = tcp::connect_tls(&Network::default(), "127.0.0.1".into(), address.port().into(), short).await;
        assert_eq!(late.unwrap_err().message.as_str(), "no connection to `127.0.0.1` within 20ms");
    });
    server.join().unwrap();
}

#[test]
fn bad_ports_and_hosts_are_refused() {
    block_on(async {
        for port in [0, -1, 65_536, i64::MAX] {
            let refused = tcp::connect(&Network::default(), "127.0.0.1".into(), port, options()).await.unwrap_err();
            assert_eq!((refused.kind, refused.message.as_str()), (FailureKind::Argument, "a port is 1 to 65535"));
        }
        for host in ["", "a b", "nowhere.invalid"] {
            assert!(tcp::connect(&Network::default(), host.into(), 9, options()).await.is_err(), "{host}");
            assert!(tcp::connect_tls(&Network::default(), host.into(), 9, options()).await.is_err(), "{host}");
        }
    });
}

#[test]
fn a_packet_is_answered() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = i64::from(socket.local_addr().unwrap().port());
    let server = spawn(move || {
        let mut packet = [0; 100];
        let (count, sender) = socket.recv_from(&mut packet).unwrap();
        // A packet of somebody else is not the answer.
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"forged", sender).unwrap();
        packet[..count].reverse();
        socket.send_to(&packet[..count], sender).unwrap();
    });
    let ask = |port, bytes: &'static str, timeout| {
        let network = Network::default();
        block_on(async { udp::ask(&network, "127.0.0.1".into(), port, bytes.into(), timeout, true).await })
    };
    assert_eq!(ask(port, "abc", PATIENCE).unwrap(), "cba");
    server.join().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = i64::from(silent.local_addr().unwrap().port());
    let late = ask(port, "x", Duration::from_millis(20)).unwrap_err();
    assert_eq!((late.kind, late.message.as_str()), (FailureKind::Timeout, "no answer from `127.0.0.1` within 20ms"));
}

#[test]
fn names_have_addresses() {
    let look_up = |name: &str| block_on(dns::lookup(&Network::default(), name.into(), PATIENCE));
    assert!(look_up("localhost").unwrap().iter().any(|address| address == "127.0.0.1" || address == "::1"));
    assert_eq!(look_up("192.0.2.7").unwrap(), ["192.0.2.7"]);
    let unknown = look_up("nowhere.invalid").unwrap_err();
    assert!(unknown.message.starts_with("`nowhere.invalid` has no address"), "{unknown}");
}

#[test]
fn tls_checks_the_server_and_carries_files() {
    let Some(certificate) = Certificate::new("connect") else { return };
    let content: String = (0..300_000).map(|number: u32| char::from(b'a' + (number % 26) as u8)).collect();
    std::fs::write(certificate.folder().join("file"), &content).unwrap();
    block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = certificate.acceptor(&[]);
        let server = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let untrusted = acceptor.accept(listener.accept().await.unwrap().0).await;
            assert!(untrusted.is_err());
            let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            stream.write_all(b"220 ready\r\n").await.unwrap();
            stream.flush().await.unwrap();
            let mut all = String::new();
            stream.read_to_string(&mut all).await.unwrap();
            all
        });
        let port = i64::from(address.port());
        let known = Network::default().with_hosts([("a.example".to_owned(), address)]);
        let untrusted = tcp::connect_tls(&known, "a.example".into(), port, options()).await.unwrap_err();
        assert!(untrusted.message.starts_with("no TLS with `a.example`: invalid peer certificate"), "{untrusted}");
        let trusting = known.with_roots(certificate.roots());
        let mut connection = tcp::connect_tls(&trusting, "a.example".into(), port, options()).await.unwrap();
        assert_eq!(tcp::read_line(&mut connection, 100).await.unwrap().unwrap().as_str(), "220 ready");
        let root = files::Root::open(certificate.folder()).unwrap();
        let file = files::open(&root, "file").unwrap();
        tcp::send_file(&mut connection, "head".into(), file).await.unwrap();
        tcp::close(connection).await.unwrap();
        assert!(server.await.unwrap() == format!("head{content}"));
    });
}
