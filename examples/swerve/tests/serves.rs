//! Tests that all styles serve the same files, keep to their limits, and stop.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swerve::measure::{load, read_answer};
use swerve::{OpenLog, Server, Settings, Style};

const STYLES: [Style; 3] = [Style::Synchronous, Style::ReadAhead, Style::Asynchronous];

/// A folder with a large and a small file, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("swerve-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("small"), "hello").unwrap();
        std::fs::write(path.join("large"), vec![b'x'; 2_000_000]).unwrap();
        Folder(path)
    }

    fn serve(&self, style: Style, time_limit: Duration) -> Server {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let root = self.0.clone();
        Server::start(&Settings { root, address, style, connections: 8, readers: 2, time_limit }).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(server: &Server, text: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    BufReader::new(stream)
}

#[test]
fn all_styles_serve_files_whole() {
    let folder = Folder::new("whole");
    for style in STYLES {
        let server = folder.serve(style, Duration::from_secs(20));
        let mut text = String::new();
        ask(&server, "GET /small HTTP/1.1\r\nConnection: close\r\n\r\n").read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nhello"), "{text}");
        let mut answers = ask(&server, &"GET /large HTTP/1.1\r\n\r\n".repeat(3));
        let lengths: Vec<_> = (0..3).map(|_| read_answer(&mut answers).unwrap()).collect();
        assert_eq!(lengths, [2_000_000; 3]);
        drop(answers);
        server.stop();
    }
}

#[test]
fn missing_and_forbidden_files_are_not_found() {
    let folder = Folder::new("missing");
    for style in STYLES {
        let server = folder.serve(style, Duration::from_secs(20));
        for path in ["/nothing", "/../small", "/"] {
            let mut text = String::new();
            let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
            ask(&server, &request).read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {text}");
        }
        server.stop();
    }
}

#[test]
fn many_clients_are_served_and_everything_is_logged() {
    let folder = Folder::new("many");
    for style in STYLES {
        let server = folder.serve(style, Duration::from_secs(20));
        load(server.address(), "/small", 20, 20, 4).unwrap();
        let expected = 20 * (5 + 2 * 20);
        while server.lines_logged() < expected {
            std::thread::yield_now();
        }
        assert_eq!(server.lines_logged(), expected);
        server.stop();
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off_when_its_time_is_up() {
    let folder = Folder::new("slow");
    std::fs::write(folder.0.join("huge"), vec![b'x'; 64_000_000]).unwrap();
    for style in STYLES {
        let server = folder.serve(style, Duration::from_millis(100));
        let mut slow = ask(&server, "GET /huge HTTP/1.1\r\n\r\n");
        // The file processor gives up while the socket is full; only afterwards does the client read the rest.
        weir_events::after(Duration::from_millis(400)).sync();
        assert!(read_answer(&mut slow).is_err(), "{style:?}: the answer breaks off");
        server.stop();
    }
}

#[test]
fn a_server_stops_while_clients_are_connected() {
    let folder = Folder::new("stop");
    for style in STYLES {
        let server = folder.serve(style, Duration::from_millis(200));
        let idle: Vec<_> = (0..12).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        server.stop();
        drop(idle);
    }
}

#[test]
fn a_fatal_error_is_in_the_log_before_the_clean_up() {
    let folder = Folder::new("fatal");
    for style in STYLES {
        let log = folder.0.join(format!("log-{style:?}"));
        let path = log.clone();
        let open: OpenLog = Arc::new(move |_| Ok(Box::new(std::fs::File::create(&path)?)));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let time_limit = Duration::from_secs(20);
        let settings = Settings { root: folder.0.clone(), address, style, connections: 4, readers: 1, time_limit };
        let server = Server::start_with_log(&settings, open, weir_events::never()).unwrap();
        load(server.address(), "/small", 1, 1, 1).unwrap();
        let (exited, path) = (weir_events::Channel::unbounded(), log.clone());
        let at_exit = exited.clone();
        server.fail("out of luck", move || at_exit.post(std::fs::read_to_string(&path).unwrap()).unwrap());
        let text = exited.try_recv().unwrap();
        assert!(text.starts_with("connection start\nrequest start small\n"), "{text}");
        assert_eq!(text.matches("fatal: out of luck\n").count(), 1, "{text}");
    }
}
