//! A server of few lines, which records the requests that it gets.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// Everything that has happened to the server.
#[derive(Default)]
struct Log {
    requests: Vec<String>,
    connections: usize,
    closed: usize,
}

/// The log, and the events on which tests wait.
#[derive(Default)]
struct Record {
    log: Mutex<Log>,
    changed: Condvar,
    requested: Notify,
}

/// An answer that closes the connection without a response.
pub(crate) const CLOSE: &[u8] = b"close";

/// A server on a thread of its own.
pub(crate) struct Peer {
    /// The address on which it listens.
    pub(crate) address: SocketAddr,
    record: Arc<Record>,
}

impl Peer {
    /// Starts a server that answers each request as `answer` says; without bytes, it does not answer.
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, record) = (listener.local_addr().unwrap(), Arc::new(Record::default()));
        let (shared, answer) = (Arc::clone(&record), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (record, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                record.log.lock().connections += 1;
                thread::spawn(move || {
                    serve(stream.unwrap(), &record, &*answer);
                    record.log.lock().closed += 1;
                    record.changed.notify_all();
                });
            }
        });
        Peer { address, record }
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests, each as its head and its body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.record.log.lock().requests.clone()
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.record.log.lock().connections
    }

    /// Waits until a request has arrived.
    pub(crate) async fn wait_for_request(&self) {
        self.record.requested.notified().await;
    }

    /// Waits until the client has closed a connection.
    pub(crate) fn wait_until_closed(&self) {
        let mut log = self.record.log.lock();
        while log.closed == 0 {
            assert!(!self.record.changed.wait_for(&mut log, std::time::Duration::from_secs(20)).timed_out());
        }
    }
}

/// Serves a connection until the client closes it.
fn serve(stream: TcpStream, record: &Record, answer: &dyn Fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(request) = next_request(&mut reader) {
        record.log.lock().requests.push(request.clone());
        record.requested.notify_one();
        let answer = answer(&request);
        let is_last = answer.windows(10).any(|part| part == b"Connection") || answer.ends_with(b"zz\r\n");
        if answer == CLOSE || writer.write_all(&answer).is_err() || is_last {
            return;
        }
    }
}

/// Reads a request, whose body has a length.
fn next_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        request.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.push_str(&String::from_utf8_lossy(&body));
    Some(request)
}

/// Returns a response with header fields, separated by line ends.
pub(crate) fn response(status: u16, fields: &str, body: &[u8]) -> Vec<u8> {
    let fields = if fields.is_empty() { String::new() } else { format!("{fields}\r\n") };
    let mut bytes = format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
