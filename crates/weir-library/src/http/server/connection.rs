//! One connection: protocol detection, requests, and its end.

use std::convert::Infallible;
use std::future::Future;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use weir_events::after;

use super::activity::ActivityTracker;
use super::arriving_bytes::UNREAD_BYTES;
use super::body_rest::BodyRest;
use super::chunked_body::ChunkedBody;
use super::connection_stream::ConnectionStream;
use super::framing::Framing;
use super::graceful_shutdown::ShutdownHandle;
use super::metered_body::{HeldForStream, MeteredBody};
use super::repeated_fields::RepeatedFields;
use super::request_validation::ValidatingStream;
use super::supervisor::{ConnectionSupervisor, DriveResult, with_last_poll};
use super::{Handler, HandlerResponse, Limits};
use crate::connection_table::held_bytes::counted;

/// The connection preface of HTTP/2 (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum number of bytes read to detect the protocol; most first requests are shorter.
const FIRST_BYTES: usize = 4096;
/// A response up to this length is copied behind its head and sent as one buffer, because hyper and the kernel handle
/// that faster than several buffers. Above about this length they do not.
const COPIED_BYTES_MAX: usize = 64 * 1024;

/// Settings of HTTP/2, with their reasons in [`serve_http2`].
const HTTP2_HEADER_TABLE_BYTES: u32 = 4096;
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
const HTTP2_SEND_BUFFER_BYTES: usize = 64 * 1024;
const HTTP2_RESET_STREAMS_MAX: usize = 100;
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves one connection until the client closes it, a limit ends it, or the server stops.
///
/// A connection that has been idle for a while releases hyper's state, most of all its buffers, and creates it anew
/// when something arrives; an idle connection thus costs little more than its socket. The same happens once when a
/// response turns out to be too large to be copied, because hyper has to know before the first response whether it
/// should copy.
pub(super) async fn serve_connection<H: Handler>(
    (stream, peer): (TcpStream, IpAddr),
    tls: Option<Arc<ServerConfig>>,
    limits: Rc<Limits>,
    handler: Rc<H>,
    handle: ShutdownHandle,
) {
    let activity = Rc::new(handle.activity());
    let mut supervisor = ConnectionSupervisor::new(&activity, &limits, handle);
    let Some(mut stream) = supervisor.transport(stream, tls).await else { return };
    let mut first = Vec::new();
    let protocol = match stream.negotiated_http2() {
        true => Some(Protocol::Http2),
        false => {
            let detect = |cx: &mut Context<'_>| {
                let protocol = poll_protocol(&mut stream, &mut first, cx);
                activity.in_head.set(!first.is_empty());
                protocol
            };
            supervisor.before(detect).await.flatten()
        }
    };
    match protocol {
        Some(Protocol::Http1) => {}
        Some(Protocol::Http2) => {
            activity.in_head.set(false);
            let validated = ValidatingStream::http2(stream, first, Rc::clone(&activity));
            return Box::pin(serve_http2((validated, peer), &limits, handler, Rc::clone(&activity), supervisor)).await;
        }
        None => return,
    }
    loop {
        let repeated = Rc::<RepeatedFields>::default();
        let framing = Framing::new(limits.header_bytes_max, Rc::clone(&repeated));
        let validated = ValidatingStream::http1(stream, first, framing, Rc::clone(&activity));
        // Boxed separately, like the HTTP/2 future: an idle connection keeps only its own small future.
        let serving = Box::pin(serve_http1((validated, repeated, peer), &limits, &*handler, &mut supervisor));
        let Some(resting) = serving.await else { return };
        (stream, first) = resting;
        if supervisor.before(|cx| stream.poll_read_ready(cx)).await.is_none() {
            return;
        }
    }
}

enum Protocol {
    Http1,
    Http2,
}

/// Reads until it is clear whether the connection begins with the HTTP/2 preface; `None` if it ends before.
fn poll_protocol(stream: &mut ConnectionStream, first: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<Option<Protocol>> {
    loop {
        if first.starts_with(HTTP2_PREFACE) {
            return Poll::Ready(Some(Protocol::Http2));
        }
        if !HTTP2_PREFACE.starts_with(first) {
            return Poll::Ready(Some(Protocol::Http1));
        }
        if ready!(stream.poll_read_ready(cx)).is_err() {
            return Poll::Ready(None);
        }
        let mut space = [MaybeUninit::uninit(); FIRST_BYTES];
        let mut read = ReadBuf::uninit(&mut space);
        match ready!(Pin::new(&mut *stream).poll_read(cx, &mut read)) {
            Ok(()) if !read.filled().is_empty() => first.extend_from_slice(read.filled()),
            _ => return Poll::Ready(None),
        }
    }
}

/// Serves HTTP/1. Returns the socket and the bytes already read if hyper's state is released between requests.
async fn serve_http1<H: Handler>(
    (validated, repeated, peer): (ValidatingStream, Rc<RepeatedFields>, IpAddr),
    limits: &Limits,
    handler: &H,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<(ConnectionStream, Vec<u8>)> {
    let activity = supervisor.activity;
    let copies = !activity.large.get();
    let piece_bytes_max = if copies { COPIED_BYTES_MAX } else { usize::MAX };
    let service = Http1Service { handler, activity, repeated, peer, limits, piece_bytes_max };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The watchdog enforces all timeouts, of which hyper knows only this one.
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes_max)
        .half_close(limits.half_close)
        .writev(!copies)
        .serve_connection(TokioIo::new(validated), service);
    let releases = || copies && activity.large.get();
    match supervisor.drive(Pin::new(&mut connection), http1::Connection::graceful_shutdown, releases).await {
        DriveResult::Ended => None,
        DriveResult::Released => {
            let parts = connection.into_parts();
            Some((parts.io.into_inner().into_stream(), parts.read_buf.into()))
        }
    }
}

/// The service of a connection of HTTP/1. Unlike a closure that hyper wraps, it moves each request once.
struct Http1Service<'a, H> {
    handler: &'a H,
    activity: &'a ActivityTracker,
    repeated: Rc<RepeatedFields>,
    peer: IpAddr,
    limits: &'a Limits,
    piece_bytes_max: usize,
}

impl<'a, H: Handler> Service<Request<Incoming>> for Http1Service<'a, H> {
    type Response = Response<ChunkedBody>;
    type Error = Infallible;
    type Future = AnswerFuture<'a>;

    #[inline]
    fn call(&self, request: Request<Incoming>) -> AnswerFuture<'a> {
        let Http1Service { handler, activity, repeated, peer, limits, piece_bytes_max } = self;
        // Moved to its place before it is changed, because it would be copied once more otherwise.
        let mut place = None;
        let request = place.insert(request);
        let has_room = activity.hold(announced_bytes(request, activity, limits.body_bytes_max));
        let fields = repeated.of(request);
        // Called outside the future, so that the request is not moved into it.
        let answer = Some(match has_room {
            true => handler.handle(&mut place, fields, *peer),
            false => HandlerResponse::Now(no_room()),
        });
        let mut answer = AnswerFuture { answer, activity, piece_bytes_max: *piece_bytes_max, answering: None };
        if matches!(answer.answer, Some(HandlerResponse::Later(_))) {
            answer.answering = Some(CountGuard::one_more(&activity.answering));
        }
        answer
    }
}

/// The future of an answer over HTTP/1. Most answers are there at once; they are moved once, unlike those of an `async` block.
struct AnswerFuture<'a> {
    /// `None` after the end.
    answer: Option<HandlerResponse<'a>>,
    activity: &'a ActivityTracker,
    piece_bytes_max: usize,
    /// Counts an answer that is not there at once.
    answering: Option<CountGuard<'a>>,
}

impl Future for AnswerFuture<'_> {
    type Output = Result<Response<ChunkedBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(HandlerResponse::Later(answer)) = &mut this.answer {
            let answer = ready!(answer.as_mut().poll(cx));
            this.answer = Some(HandlerResponse::Now(answer));
            this.answering = None;
        }
        let Some(HandlerResponse::Now(answer)) = &mut this.answer else { return Poll::Pending };
        if !this.activity.hold(counted(answer.body())) {
            *answer = no_room();
        }
        this.activity.large.set(answer.body().len() > COPIED_BYTES_MAX);
        let Some(HandlerResponse::Now(answer)) = this.answer.take() else { return Poll::Pending };
        Poll::Ready(Ok(answer.map(|body| ChunkedBody::new(body, this.piece_bytes_max))))
    }
}

async fn serve_http2<H: Handler>(
    (validated, peer): (ValidatingStream, IpAddr),
    limits: &Limits,
    handler: Rc<H>,
    activity: Rc<ActivityTracker>,
    mut supervisor: ConnectionSupervisor<'_>,
) {
    let (body_bytes_max, late) = (limits.body_bytes_max, after(limits.linger_timeout));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (handler, activity, late) = (Rc::clone(&handler), Rc::clone(&activity), late.clone());
        async move {
            activity.heads.set(activity.heads.get() + 1);
            let answer = {
                let body = HeldForStream::new(&activity, announced_bytes(&mut request, &activity, body_bytes_max));
                let _answering = CountGuard::one_more(&activity.answering);
                let mut request = Some(request);
                let answer = match body.has_room {
                    true => handler.handle(&mut request, None, peer),
                    false => HandlerResponse::Now(no_room()),
                };
                if let Some(request) = request {
                    BodyRest::split(request).1.leave(&late);
                }
                match answer {
                    HandlerResponse::Now(answer) => answer,
                    HandlerResponse::Later(answer) => with_last_poll(answer, &activity).await,
                }
            };
            let held = HeldForStream::new(&activity, counted(answer.body()));
            let answer = if held.has_room { answer } else { no_room() };
            Ok::<_, Infallible>(answer.map(|body| MeteredBody::new(body, held)))
        }
    });
    let header_bytes_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(SameThread)
        .timer(TokioTimer::new())
        // RFC 9113 recommends at least 100; the sum of their bodies and answers is bounded by `HeldForStream`.
        .max_concurrent_streams(limits.streams_max)
        // The limit of HTTP/1. Fields over it are answered with 431, and hyper derives from it how many CONTINUATION frames a
        // header may take, which bounds a flood of them.
        .max_header_list_size(header_bytes_max)
        // The size of RFC 7541, which every client expects: a larger table would be memory of each connection.
        .header_table_size(HTTP2_HEADER_TABLE_BYTES)
        // What a client may send of bodies before flows read them, on each stream and on the connection.
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        // What is buffered of an answer below `MeteredBody`, which counts the rest.
        .max_send_buf_size(HTTP2_SEND_BUFFER_BYTES)
        // Streams that the client opens and resets before they are accepted, and streams that the server resets for errors of
        // the client: a client with more attacks (rapid reset, CVE-2023-44487), and its connection is closed.
        .max_pending_accept_reset_streams(HTTP2_RESET_STREAMS_MAX)
        .max_local_error_reset_streams(HTTP2_RESET_STREAMS_MAX)
        // A client that has vanished while a flow waits is found by a ping, and its flows are cancelled.
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT)
        .serve_connection(TokioIo::new(validated), service);
    // The state of frames and windows must not be lost, so an HTTP/2 connection never releases it.
    supervisor.drive(pin!(connection), http2::Connection::graceful_shutdown, || false).await;
}

/// Returns the number of bytes that the body of a request counts from its beginning: its announced length, or what is buffered of
/// one that announces none, which is then counted as it arrives.
#[inline]
fn announced_bytes(request: &mut Request<Incoming>, activity: &ActivityTracker, body_bytes_max: usize) -> u64 {
    if request.body().is_end_stream() {
        return 0;
    }
    let bytes = request.body().size_hint().exact().unwrap_or_else(|| {
        request.extensions_mut().insert(activity.arriving());
        UNREAD_BYTES
    });
    bytes.min(body_bytes_max as u64)
}

/// Returns the response to a request for which connections hold too much.
fn no_room() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Executor that runs the streams of HTTP/2 on the connection's thread.
#[derive(Clone)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for SameThread {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}

/// Increments a counter until it is dropped.
struct CountGuard<'a>(&'a std::cell::Cell<u32>);

impl<'a> CountGuard<'a> {
    fn one_more(count: &'a std::cell::Cell<u32>) -> Self {
        count.set(count.get() + 1);
        CountGuard(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
