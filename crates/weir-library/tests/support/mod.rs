//! A server on a thread of its own, and clients that violate the protocol.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::sync::Notify;
use weir_events::Signal;
use weir_library::http::server::{
    BodyRest, Handler, HandlerResponse, Limits, RepeatedHeader, RequestDeadlines, Server, read_body,
};

/// Longest time that a test waits for something that should happen immediately.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The length of the response of `/big`: more than any socket buffers.
pub(crate) const BIG: usize = 32 * 1024 * 1024;

/// Returns limits short enough for tests that wait until they are reached.
pub(crate) fn short() -> Limits {
    let brief = Duration::from_millis(300);
    Limits {
        header_timeout: brief,
        body_timeout: 2 * brief,
        body_idle_timeout: brief,
        idle_timeout: brief,
        write_timeout: brief,
        linger_timeout: brief,
        body_bytes_max: 1000,
        ..Limits::default()
    }
}

/// Signals between a test and the handler of `/hold`.
#[derive(Default)]
pub(crate) struct Hold {
    pub(crate) begun: Notify,
    pub(crate) release: Notify,
    /// Lets the handler of `/block` go on, which blocks its event loop.
    pub(crate) unblocked: AtomicBool,
}

struct Routes {
    limits: Limits,
    late: RequestDeadlines,
    hold: Arc<Hold>,
}

impl Handler for Routes {
    fn handle(
        &self,
        request: &mut Option<Request<Incoming>>,
        _repeated: Option<Rc<RepeatedHeader>>,
        _peer: IpAddr,
    ) -> HandlerResponse<'_> {
        HandlerResponse::Later(Box::pin(self.answer(request.take().unwrap())))
    }
}

impl Routes {
    async fn answer(&self, request: Request<Incoming>) -> Response<Bytes> {
        match request.uri().path() {
            "/hello" => Response::new(Bytes::from_static(b"hello")),
            "/big" => Response::new(vec![b'x'; BIG].into()),
            "/hold" => {
                self.hold.begun.notify_one();
                self.hold.release.notified().await;
                Response::new(Bytes::from_static(b"held"))
            }
            "/block" => {
                self.hold.begun.notify_one();
                while !self.hold.unblocked.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                Response::new(Bytes::new())
            }
            "/echo" => match read_body(&mut BodyRest::split(request).1, self.limits.body_bytes_max, &self.late).await {
                Ok(body) => Response::new(body),
                Err(error) => with_status(error.status()),
            },
            _ => with_status(StatusCode::NOT_FOUND),
        }
    }
}

fn with_status(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// A running server; it stops when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) hold: Arc<Hold>,
    stop: Signal,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(limits: Limits) -> Running {
        Running::start_loops(limits, 1)
    }

    pub(crate) fn start_loops(limits: Limits, loops: usize) -> Running {
        let server = Arc::new(Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), limits.clone()).unwrap());
        let address = server.address();
        let (hold, stop) = (Arc::new(Hold::default()), Signal::new());
        let spawn = |_| {
            let routes =
                Routes { late: RequestDeadlines::of(&limits), limits: limits.clone(), hold: Arc::clone(&hold) };
            let (server, stopped) = (Arc::clone(&server), stop.fired());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::LocalRuntime::new().unwrap();
                let serving = server.run(routes, &stopped, Duration::MAX);
                runtime.block_on(serving).unwrap();
            })
        };
        let threads = (0..loops).map(spawn).collect();
        Running { address, hold, threads, stop }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Asserts that other clients are served: a valid request is answered.
    pub(crate) fn assert_serves(&self) {
        let mut client = self.connect();
        client.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().body, b"hello");
    }

    /// Tells the server to stop, without waiting for it.
    pub(crate) fn stop(&self) {
        self.stop.fire();
    }

    /// Waits until every event loop has returned.
    pub(crate) fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.hold.release.notify_waiters();
    }
}

/// Waits for a signal in a synchronous test.
pub(crate) fn wait_for(signal: &Notify) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, signal.notified()).await }).expect("the signal comes");
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Sends as much as the server accepts before it closes the connection.
    pub(crate) fn send_all_it_takes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn read_more(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let length = match self.stream.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("neither answered nor closed: {error}"),
        };
        self.unread.extend_from_slice(&piece[..length]);
        length > 0
    }

    /// Returns the next response, with a body of the length that its head says.
    pub(crate) fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Answer {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.read_more(), "closed in a head: {:?}", String::from_utf8_lossy(&self.unread));
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let status = head[9..12].parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let length = if method == "HEAD" { 0 } else { length };
        while self.unread.len() < length {
            assert!(self.read_more(), "closed in a body");
        }
        answer.body = self.unread.drain(..length).collect();
        answer
    }

    /// Waits for the end of the connection; returns everything received before.
    pub(crate) fn rest(&mut self) -> String {
        while self.read_more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }

    /// Asserts that the connection ends without another response.
    pub(crate) fn assert_closed(&mut self) {
        assert_eq!(self.rest(), "");
    }
}
