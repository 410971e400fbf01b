//! The loops around peers that are written by hand on hyper: one thread, connections that are kept.
//!
//! There are two. The *bare* one does what the benchmark asks for, and has hyper's limit for the time of a head. The other
//! keeps the *limits* that Weir keeps where nothing is said, each in the cheapest good way that hyper and tokio have:
//!
//! | limit | by |
//! |---|---|
//! | connections at a time | a semaphore |
//! | time of a head, and between requests | hyper's timer, as in the bare one |
//! | bytes of a head | hyper's switch |
//! | bytes and time of a body | it reads none |
//! | time of an answer | tokio's `timeout` around it |
//! | time in which a client takes nothing of an answer | a timer that is set where the socket takes no more (`Patient`) |
//! | requests that can be read in two ways | a look at three fields; bare line feeds, which hyper takes, are not seen there |

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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};

use crate::Outcome;

const CONNECTIONS_MAX: usize = 10_000;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 32 * 1024;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers every request at this port of 127.0.0.1 until the process is killed.
///
/// # Errors
/// Fails where it cannot listen, or the system gives no event loop.
pub fn serve<A>(port: u16, answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static) -> Outcome<()>
where
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    run(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                // A client that goes away is no error of the server's.
                _ = builder().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The same within limits.
///
/// # Errors
/// Fails where it cannot listen, or the system gives no event loop.
pub fn serve_within_limits<A>(
    port: u16,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) -> Outcome<()>
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

fn run(serving: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serving)
}

fn builder() -> http1::Builder {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).pipeline_flush(true);
    server
}

/// The answer, where the request is clear and there is one in time.
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

/// Returns true if a proxy cannot interpret the request differently: it names one host and has one length.
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

/// A socket that gives a client up which takes nothing.
struct Patient {
    stream: TcpStream,
    /// Set while the socket takes no more.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn within_time<T>(&mut self, written: Poll<std::io::Result<T>>, cx: &mut Context<'_>) -> Poll<std::io::Result<T>> {
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
        this.within_time(written, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
