//! Load generator: keep-alive connections that each send random requests as fast as they are answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::BenchResult;
use crate::server::{SERVER_CORE, ServerProcess, pin};
use crate::tls::HOST;

/// The core of the load generator.
const CORE: usize = SERVER_CORE + 1;
/// The largest latency that is recorded, ten seconds, in nanoseconds. Latencies have three significant digits.
const LATENCY_MAX_NS: u64 = 10_000_000_000;

/// A function that writes the path of the next request, given a random number. A method and a space may precede it:
/// `POST /notes`.
pub type RequestWriter = Arc<dyn Fn(u64, &mut String) + Send + Sync>;

/// The requests of the clients.
#[derive(Clone)]
pub struct Workload {
    /// The paths.
    pub request: RequestWriter,
    /// The number of requests after which a connection is closed and another one opened.
    pub requests_per_connection: u64,
    /// The configuration of TLS; without it, connections are plain.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Workload {
    /// Creates a workload whose connections are never closed.
    #[must_use]
    pub fn kept(request: RequestWriter) -> Self {
        Workload { request, requests_per_connection: u64::MAX, tls: None }
    }
}

/// A load generator on a core of its own.
pub struct Load {
    pub(crate) runtime: Runtime,
    connections: usize,
}

/// The result of one round against one server.
#[derive(Clone, Copy, Debug)]
pub struct LoadSample {
    /// Answers per second.
    pub requests_per_second: f64,
    /// The median of the latencies.
    pub p50_ns: u64,
    /// The 99th percentile of the latencies.
    pub p99_ns: u64,
    /// Processor time of the server and its children per request, in nanoseconds.
    pub cpu_ns: f64,
}

impl Load {
    /// Pins this thread to the load generator's core.
    ///
    /// # Errors
    /// Fails if the system provides no event loop.
    pub fn new(connections: usize) -> BenchResult<Self> {
        pin(CORE);
        Ok(Load { runtime: Builder::new_current_thread().enable_all().build()?, connections })
    }

    /// Requests all paths one after the other, and returns the bodies.
    ///
    /// # Errors
    /// Fails if an answer is not 200.
    pub fn bodies(&self, server: &ServerProcess, paths: &[String]) -> BenchResult<Vec<Vec<u8>>> {
        self.runtime.block_on(async {
            let mut connection = LoadConnection::open(server.port, None).await?;
            let mut bodies = Vec::new();
            for path in paths {
                let (head, length) = connection.ask(path).await?;
                bodies.push(connection.read[head..head + length].to_vec());
            }
            Ok(bodies)
        })
    }

    /// Sends requests for `seconds`. Equal seeds give equal requests in the same order.
    ///
    /// # Errors
    /// Fails if an answer is not 200.
    pub fn run(&self, server: &ServerProcess, seconds: f64, seed: u64, workload: &Workload) -> BenchResult<LoadSample> {
        let cpu_before = server.cpu_time();
        let begin = Instant::now();
        let end = begin + Duration::from_secs_f64(seconds);
        let all = self.runtime.block_on(async {
            let mut clients = JoinSet::new();
            for client in 0..self.connections as u64 {
                clients.spawn(client_until(server.port, end, seed * 1_000 + client, workload.clone()));
            }
            let mut all = histogram();
            while let Some(latencies) = clients.join_next().await {
                all.add(latencies??)?;
            }
            Ok::<_, Box<dyn std::error::Error>>(all)
        })?;
        Ok(LoadSample {
            requests_per_second: all.len() as f64 / begin.elapsed().as_secs_f64(),
            p50_ns: all.value_at_quantile(0.5),
            p99_ns: all.value_at_quantile(0.99),
            cpu_ns: server.cpu_time().saturating_sub(cpu_before).as_nanos() as f64 / all.len() as f64,
        })
    }
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are constants that it takes")
}

async fn client_until(port: u16, end: Instant, seed: u64, workload: Workload) -> Result<Histogram<u64>, String> {
    let open = || async { LoadConnection::open(port, workload.tls.as_ref()).await.map_err(|error| error.to_string()) };
    let mut connection = open().await?;
    let (mut latencies, mut asked) = (histogram(), 0);
    let mut state = seed;
    let mut path = String::new();
    loop {
        let begin = Instant::now();
        if begin >= end {
            return Ok(latencies);
        }
        // The cost of a new connection is part of its first request.
        if asked == workload.requests_per_connection {
            connection = open().await?;
            asked = 0;
        }
        asked += 1;
        path.clear();
        (workload.request)(random(&mut state), &mut path);
        connection.ask(&path).await.map_err(|error| error.to_string())?;
        latencies.saturating_record(begin.elapsed().as_nanos() as u64);
    }
}

/// Returns the next random number (SplitMix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The transport of a connection.
enum LoadStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl LoadStream {
    async fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            LoadStream::Plain(stream) => stream.write_all(bytes).await,
            LoadStream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    async fn read_buf(&mut self, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
        match self {
            LoadStream::Plain(stream) => stream.read_buf(buffer).await,
            LoadStream::Tls(stream) => stream.read_buf(buffer).await,
        }
    }
}

/// A keep-alive connection.
pub(crate) struct LoadConnection {
    stream: LoadStream,
    written: String,
    read: Vec<u8>,
}

impl LoadConnection {
    /// Opens a connection, with TLS if it is configured.
    pub(crate) async fn open(port: u16, tls: Option<&Arc<ClientConfig>>) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let stream = match tls {
            None => LoadStream::Plain(stream),
            Some(config) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let host = ServerName::try_from(HOST).map_err(std::io::Error::other)?;
                LoadStream::Tls(Box::new(connector.connect(host, stream).await?))
            }
        };
        Ok(LoadConnection { stream, written: String::new(), read: Vec::new() })
    }

    /// Requests a path, with `GET` unless a method precedes it. The body of the answer is in `read`; the result is its offset
    /// and length.
    pub(crate) async fn ask(&mut self, target: &str) -> std::io::Result<(usize, usize)> {
        self.written.clear();
        match target.split_once(' ') {
            None => self.written.extend(["GET ", target, " HTTP/1.1\r\nHost: localhost\r\n\r\n"]),
            Some((method, path)) => {
                self.written.extend([method, " ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"])
            }
        }
        self.stream.write_all(self.written.as_bytes()).await?;
        self.read.clear();
        let head = loop {
            self.more().await?;
            if let Some(end) = memchr::memmem::find(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let length = content_length(&self.read[..head]).map_err(std::io::Error::other)?;
        while self.read.len() < head + length {
            self.more().await?;
        }
        Ok((head, length))
    }

    async fn more(&mut self) -> std::io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(std::io::Error::other("the server closed the connection")),
            _ => Ok(()),
        }
    }
}

fn content_length(head: &[u8]) -> Result<usize, String> {
    let head = std::str::from_utf8(head).map_err(|error| error.to_string())?;
    let mut lines = head.lines();
    let status = lines.next().unwrap_or("");
    if !status.starts_with("HTTP/1.1 200") {
        return Err(format!("answered {status:?}"));
    }
    let value = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    value.and_then(|value| value.parse().ok()).ok_or_else(|| "answered without Content-Length".to_string())
}
