//! Server loops for peers that are written by hand on hyper: one thread, keep-alive connections.
//!
//! The *bare* loop does what the benchmark asks for, and has only hyper's time limit for a head. The other one keeps
//! the *limits* that Weir keeps by default, each in the cheapest good way that hyper and tokio offer:
//!
//! | limit | means |
//! |---|---|
//! | connections at a time | a semaphore |
//! | time of a head, and between requests | hyper's timer, as in the bare loop |
//! | bytes of a head | hyper's setting |
//! | bytes and time of a body | it reads none |
//! | time of an answer | tokio's `timeout` around it |
//! | time in which a client takes nothing of an answer | a timer that is set when the socket takes no more (`Patient`) |
//! | ambiguous requests | checks of three fields; bare line feeds, which hyper accepts, are not detected |

use std::convert::Infallible;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::BenchResult;

const CONNECTIONS_MAX: usize = 10_000;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 32 * 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers every request at this port of 127.0.0.1 until the process is killed.
///
/// # Errors
/// Fails if it cannot listen, or if the system provides no event loop.
pub fn serve<A>(port: u16, answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static) -> BenchResult<()>
where
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    run(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve_connection(stream, answer.clone()));
        }
    })
}

/// Answers every request over TLS.
///
/// # Errors
/// Fails if it cannot listen, or if the system provides no event loop.
pub fn serve_tls<A>(
    port: u16,
    config: Arc<ServerConfig>,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) -> BenchResult<()>
where
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    run(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let acceptor = TlsAcceptor::from(config);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (handshake, answer) = (acceptor.accept(stream), answer.clone());
            tokio::spawn(async move {
                if let Ok(stream) = handshake.await {
                    serve_connection(stream, answer).await;
                }
            });
        }
    })
}

async fn serve_connection<A>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: impl Fn(Request<Incoming>) -> A)
where
    A: Future<Output = Response<Full<Bytes>>>,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // A client that disconnects is not an error of the server.
    _ = builder().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers every request within limits.
///
/// # Errors
/// Fails if it cannot listen, or if the system provides no event loop.
pub fn serve_within_limits<A>(
    port: u16,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) -> BenchResult<()>
where
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    run(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let slot = Arc::clone(&slots).acquire_owned().await?;
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = is_clear(&request).then(|| timeout(ANSWER_TIMEOUT, answer(request)));
                    async move { Ok::<_, Infallible>(within_time(answer).await) }
                });
                let mut server = builder();
                server.max_header_size(HEADER_BYTES_MAX);
                _ = server.serve_connection(TokioIo::new(Patient { stream, blocked: None }), service).await;
                drop(slot);
            });
        }
    })
}

fn run(serving: impl Future<Output = BenchResult<()>>) -> BenchResult<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serving)
}

fn builder() -> http1::Builder {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).pipeline_flush(true);
    server
}

/// Returns the answer if the request is clear and the answer comes in time, and a refusal otherwise.
async fn within_time<E>(
    answer: Option<impl Future<Output = Result<Response<Full<Bytes>>, E>>>,
) -> Response<Full<Bytes>> {
    let Some(answer) = answer else { return refusal(StatusCode::BAD_REQUEST) };
    answer.await.unwrap_or_else(|_| refusal(StatusCode::SERVICE_UNAVAILABLE))
}

fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns whether no proxy can read the request differently: it names one host and one length.
fn is_clear(request: &Request<Incoming>) -> bool {
    let fields = request.headers();
    let mut hosts = fields.get_all(HOST).iter();
    let one_host = match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => request.version() != Version::HTTP_11,
        (Some(_), Some(_)) => false,
    };
    one_host && !(fields.contains_key(CONTENT_LENGTH) && fields.contains_key(TRANSFER_ENCODING))
}

/// A socket that disconnects a client which takes nothing for too long.
struct Patient {
    stream: TcpStream,
    /// The timer that runs while the socket takes no more.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn poll_within_time<T>(
        &mut self,
        written: Poll<std::io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let timer = self.blocked.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        timer.as_mut().poll(cx).map(|()| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.poll_within_time(written, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
