//! The HTTP client uses a connection of HTTP/1 again if it may: each peer follows a script, and the number of its connections shows
//! which of them were used again.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use weir::{Failure, Size};
use weir_library::client::{self, CallOptions, Client, ClientResponse, Headers};

/// Longest time that a call may take.
const PATIENCE: Duration = Duration::from_secs(60);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FORGED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";

/// A connection to a peer, and what the peer has read of it.
struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Reads the head of a request, and returns the length of its body; `None` after the last request.
    fn head(&mut self) -> Option<usize> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                return Some(length);
            }
        }
    }

    /// Reads a request with its body; returns `false` after the last one.
    fn request(&mut self) -> bool {
        let Some(length) = self.head() else { return false };
        self.reader.read_exact(&mut vec![0; length]).is_ok()
    }

    /// Answers each request by these bytes.
    fn answer_all(&mut self, answer: &[u8]) {
        while self.request() && self.stream.write_all(answer).is_ok() {}
    }
}

/// A server each of whose connections follows a script, which gets the number of the connection, from 1 on.
struct Scripted {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    fn start(script: impl Fn(usize, &mut Connection) + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (count, script) = (Arc::clone(&connections), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (number, script) = (count.fetch_add(1, Ordering::SeqCst) + 1, Arc::clone(&script));
                let stream = stream.unwrap();
                let mut connection = Connection { reader: BufReader::new(stream.try_clone().unwrap()), stream };
                std::thread::spawn(move || script(number, &mut connection));
            }
        });
        Scripted { address, connections }
    }

    async fn send(&self, client: &Client, method: &str, body: Bytes) -> Result<ClientResponse, Failure> {
        let (headers, bytes_max, timeout) = (Headers::new(), Size(100_000), PATIENCE);
        let options = CallOptions { headers, bearer: None, timeout, bytes_max, redirects_max: 5, private: true };
        let url = format!("http://{}/", self.address);
        client::send(client, method.into(), url.as_str().into(), body, "text/plain".into(), options).await
    }

    async fn post(&self, client: &Client) -> String {
        self.text(client, "POST").await
    }

    /// Sends a request that is never sent twice, and returns the body of its answer.
    async fn text(&self, client: &Client, method: &str) -> String {
        let answer = self.send(client, method, Bytes::new()).await.unwrap();
        String::from_utf8(client::body(&answer).to_vec()).unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Waits for a message of a peer, and until the event loop has asked the system what has arrived.
async fn told(told: Receiver<()>) {
    tokio::task::spawn_blocking(move || told.recv_timeout(PATIENCE).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A sender that several threads may use.
fn messages() -> (Arc<parking_lot::Mutex<Sender<()>>>, Receiver<()>) {
    let (sender, receiver) = channel();
    (Arc::new(parking_lot::Mutex::new(sender)), receiver)
}

#[test]
fn a_write_that_finds_its_connection_closed_is_sent_over_another() {
    let (closed, is_closed) = messages();
    let peer = Scripted::start(move |number, connection| {
        if number > 1 {
            return connection.answer_all(OK);
        }
        connection.request();
        connection.stream.write_all(OK).unwrap();
        connection.stream.shutdown(Shutdown::Both).unwrap();
        closed.lock().send(()).unwrap();
    });
    block_on(async {
        let client = Client::default();
        assert_eq!(peer.post(&client).await, "ok");
        told(is_closed).await;
        // `POST` is sent once: nothing of it was sent over the closed connection.
        assert_eq!(peer.post(&client).await, "ok");
    });
    assert_eq!(peer.connections(), 2);
}

#[test]
fn an_answer_to_no_request_reaches_no_call() {
    let (forged, is_forged) = messages();
    let peer = Scripted::start(move |number, connection| {
        if number > 1 {
            return connection.answer_all(OK);
        }
        connection.request();
        connection.stream.write_all(OK).unwrap();
        // Later than the answer, so that the connection is kept.
        connection.request_or_forge(&forged);
    });
    block_on(async {
        let client = Client::default();
        assert_eq!(peer.post(&client).await, "ok");
        told(is_forged).await;
        assert_eq!(peer.post(&client).await, "ok");
    });
    assert_eq!(peer.connections(), 2);
}

impl Connection {
    /// Writes an answer that nobody has asked for, once the client has had time to keep the connection.
    fn request_or_forge(&mut self, forged: &parking_lot::Mutex<Sender<()>>) {
        self.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let asked = self.reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        assert!(!asked, "the client sends its second request after the message");
        self.stream.write_all(FORGED).unwrap();
        forged.lock().send(()).unwrap();
        self.stream.set_read_timeout(None).unwrap();
        self.answer_all(FORGED);
    }
}

#[test]
fn a_connection_is_kept_if_both_sides_may_use_it() {
    let chunks = |trailers: &str| {
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n{trailers}\r\n")
    };
    let length = "Content-Length: 2\r\n\r\nok";
    for (answer, is_kept) in [
        (format!("HTTP/1.1 200 OK\r\n{length}"), true),
        (format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n{length}"), true),
        (format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{length}"), false),
        (format!("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n{length}"), false),
        (format!("HTTP/1.0 200 OK\r\n{length}"), false),
        (format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{length}"), true),
        (format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n{length}"), true),
        (chunks(""), true),
        (chunks("Trailer: a\r\nOther: b\r\n"), true),
    ] {
        let bytes = answer.clone().into_bytes();
        let peer = Scripted::start(move |_, connection| connection.answer_all(&bytes));
        block_on(async {
            let client = Client::default();
            for _ in 0..3 {
                assert_eq!(peer.post(&client).await, "ok", "{answer}");
            }
        });
        assert_eq!(peer.connections(), if is_kept { 1 } else { 3 }, "{answer}");
    }
}

#[test]
fn an_answer_without_a_body_ends_with_its_head() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
        ("POST", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
    ] {
        for (behind, connections) in [("", 1), ("hello", 3)] {
            let bytes = format!("{answer}{behind}").into_bytes();
            let peer = Scripted::start(move |_, connection| connection.answer_all(&bytes));
            block_on(async {
                let client = Client::default();
                for _ in 0..3 {
                    assert_eq!(peer.text(&client, method).await, "", "{method}: {answer}{behind}");
                }
            });
            assert_eq!(peer.connections(), connections, "{method}: {answer}{behind}");
        }
    }
}

#[test]
fn an_answer_that_comes_before_the_end_of_its_request_is_an_answer() {
    const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge";
    for reads_on in [true, false] {
        let (answered, is_answered) = channel();
        let is_answered = parking_lot::Mutex::new(is_answered);
        let peer = Scripted::start(move |number, connection| {
            if number > 1 {
                return connection.answer_all(OK);
            }
            connection.head().unwrap();
            connection.stream.write_all(TOO_LARGE).unwrap();
            if reads_on {
                // Before, it could get all of the request, and its connection would be used again.
                is_answered.lock().recv_timeout(PATIENCE).unwrap();
                drop(std::io::copy(&mut connection.reader, &mut std::io::sink()));
            } else {
                // It keeps the connection, and reads nothing more of it. (Closing it would reset it, and could destroy the answer.)
                loop {
                    std::thread::park();
                }
            }
        });
        block_on(async {
            let client = Client::default();
            // More than the buffers of two sockets take.
            let refused = peer.send(&client, "POST", vec![b'x'; 32 << 20].into()).await.unwrap();
            assert_eq!((client::status(&refused), &client::body(&refused)[..]), (413, &b"large"[..]), "{reads_on}");
            answered.send(()).unwrap();
            assert_eq!(peer.post(&client).await, "ok");
        });
        assert_eq!(peer.connections(), 2);
    }
}

#[test]
fn a_call_that_is_given_up_within_its_answer_takes_its_connection_along() {
    let (begun, is_begun) = messages();
    let peer = Scripted::start(move |number, connection| {
        if number > 1 {
            return connection.answer_all(OK);
        }
        connection.request();
        connection.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha").unwrap();
        begun.lock().send(()).unwrap();
        // The rest comes although nobody waits for it.
        if connection.request() {
            connection.stream.write_all(b"lf").unwrap();
            connection.answer_all(FORGED);
        }
    });
    block_on(async {
        let client = Client::default();
        tokio::select! {
            answer = peer.send(&client, "GET", Bytes::new()) => panic!("{answer:?}"),
            () = told(is_begun) => {}
        }
        assert_eq!(peer.post(&client).await, "ok");
    });
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_call_that_is_given_up_within_its_request_takes_its_connection_along() {
    let (begun, is_begun) = messages();
    let peer = Scripted::start(move |number, connection| {
        if number > 1 {
            return connection.answer_all(OK);
        }
        connection.head().unwrap();
        begun.lock().send(()).unwrap();
        drop(std::io::copy(&mut connection.reader, &mut std::io::sink()));
    });
    block_on(async {
        let client = Client::default();
        let large = Bytes::from(vec![b'x'; 32 << 20]);
        tokio::select! {
            answer = peer.send(&client, "POST", large) => panic!("{answer:?}"),
            () = told(is_begun) => {}
        }
        assert_eq!(peer.post(&client).await, "ok");
    });
    assert_eq!(peer.connections(), 2);
}
