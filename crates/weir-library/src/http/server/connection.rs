//! One connection: protocol detection, requests, and its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::activity::{ActivityTracker, Watchdog, WatchdogEvent};
use super::chunked_body::ChunkedBody;
use super::graceful_shutdown::ShutdownHandle;
use super::metered_body::MeteredBody;
use super::request_validation::ValidatingStream;
use super::{Handler, Limits};

/// The connection preface of HTTP/2 (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum number of bytes read to detect the protocol; most first requests are shorter.
const FIRST_BYTES: usize = 4096;
/// A response up to this length is copied behind its head and sent as one buffer, because hyper and the kernel handle
/// that faster than several buffers. Above about this length they do not.
const COPIED_BYTES_MAX: usize = 64 * 1024;

/// Serves one connection until the client closes it, a limit ends it, or the server stops.
///
/// A connection that has been idle for a while releases hyper's state, most of all its buffers, and creates it anew
/// when something arrives; an idle connection thus costs little more than its socket. The same happens once when a
/// response turns out to be too large to be copied, because hyper has to know before the first response whether it
/// should copy.
pub(super) async fn serve_connection<H: Handler>(
    mut stream: TcpStream,
    limits: Rc<Limits>,
    handler: Rc<H>,
    handle: ShutdownHandle,
) {
    let activity = Rc::new(ActivityTracker::default());
    let mut supervisor = ConnectionSupervisor {
        activity: &activity,
        watchdog: Watchdog::new(&limits, handle.entry(), handle.stopping()),
        _shutdown: handle,
    };
    let mut first = Vec::new();
    match supervisor.before(|cx| poll_protocol(&stream, &mut first, cx)).await.flatten() {
        Some(Protocol::Http1) => {}
        Some(Protocol::Http2) => {
            let validated = ValidatingStream::http2(stream, first, Rc::clone(&activity));
            return Box::pin(serve_http2(validated, &limits, handler, Rc::clone(&activity), supervisor)).await;
        }
        None => return,
    }
    loop {
        let validated = ValidatingStream::http1(stream, first, Rc::clone(&activity));
        // Boxed separately, like the HTTP/2 future: an idle connection keeps only its own small future.
        let Some(resting) = Box::pin(serve_http1(validated, &limits, &*handler, &mut supervisor)).await else { return };
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
fn poll_protocol(stream: &TcpStream, first: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<Option<Protocol>> {
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
        first.reserve(FIRST_BYTES);
        match stream.try_read_buf(first) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return Poll::Ready(None),
        }
    }
}

/// Serves HTTP/1. Returns the socket and the bytes already read if hyper's state is released between requests.
async fn serve_http1<H: Handler>(
    validated: ValidatingStream,
    limits: &Limits,
    handler: &H,
    supervisor: &mut ConnectionSupervisor<'_>,
) -> Option<(TcpStream, Vec<u8>)> {
    let activity = supervisor.activity;
    let copies = !activity.large.get();
    let piece_bytes_max = if copies { COPIED_BYTES_MAX } else { usize::MAX };
    let service = service_fn(move |request| {
        // Called outside the future, so that the request is not moved into it.
        let answer = handler.handle(request);
        async move {
            let _answering = CountGuard::one_more(&activity.answering);
            let answer = answer.await;
            activity.large.set(answer.body().len() > COPIED_BYTES_MAX);
            Ok::<_, Infallible>(answer.map(|body| ChunkedBody::new(body, piece_bytes_max)))
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The watchdog enforces all timeouts, of which hyper knows only this one.
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes_max)
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

async fn serve_http2<H: Handler>(
    validated: ValidatingStream,
    limits: &Limits,
    handler: Rc<H>,
    activity: Rc<ActivityTracker>,
    mut supervisor: ConnectionSupervisor<'_>,
) {
    let service = service_fn(move |request| {
        let (handler, activity) = (Rc::clone(&handler), Rc::clone(&activity));
        async move {
            activity.heads.set(activity.heads.get() + 1);
            let answer = {
                let _answering = CountGuard::one_more(&activity.answering);
                handler.handle(request).await
            };
            Ok::<_, Infallible>(answer.map(|body| MeteredBody::new(body, activity)))
        }
    });
    let header_bytes_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(SameThread)
        .timer(TokioTimer::new())
        .max_header_list_size(header_bytes_max)
        .max_concurrent_streams(limits.streams_max)
        .serve_connection(TokioIo::new(validated), service);
    // The state of frames and windows must not be lost, so an HTTP/2 connection never releases it.
    supervisor.drive(pin!(connection), http2::Connection::graceful_shutdown, || false).await;
}

/// Executor that runs the streams of HTTP/2 on the connection's thread.
#[derive(Clone)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for SameThread {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}

/// Supervises a connection: ends it at a timeout or when the server stops.
struct ConnectionSupervisor<'a> {
    activity: &'a ActivityTracker,
    watchdog: Watchdog<'a>,
    _shutdown: ShutdownHandle,
}

/// Outcome of driving a connection.
enum DriveResult {
    Ended,
    /// The connection is between requests and should release everything but its socket.
    Released,
}

impl ConnectionSupervisor<'_> {
    /// Polls until the operation is complete; `None` if the connection has to end before.
    async fn before<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| {
            loop {
                match self.watchdog.poll(self.activity, cx) {
                    Poll::Ready(WatchdogEvent::Stopping | WatchdogEvent::Expired) => return Poll::Ready(None),
                    Poll::Ready(WatchdogEvent::Idle) => {}
                    Poll::Pending => return poll(cx).map(Some),
                }
            }
        })
        .await
    }

    /// Polls the connection until it ends, is idle for long, or `releases` returns `true`; `finish` makes it end after
    /// the requests that it has begun.
    async fn drive<C: Future>(
        &mut self,
        mut connection: Pin<&mut C>,
        finish: impl Fn(Pin<&mut C>),
        releases: impl Fn() -> bool,
    ) -> DriveResult {
        poll_fn(|cx| {
            loop {
                // The error has been answered if possible, and needs no further report.
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(DriveResult::Ended);
                }
                if releases() && self.activity.is_between_requests() {
                    return Poll::Ready(DriveResult::Released);
                }
                match ready!(self.watchdog.poll(self.activity, cx)) {
                    WatchdogEvent::Stopping => finish(connection.as_mut()),
                    WatchdogEvent::Expired => return Poll::Ready(DriveResult::Ended),
                    WatchdogEvent::Idle if self.activity.is_between_requests() => {
                        return Poll::Ready(DriveResult::Released);
                    }
                    WatchdogEvent::Idle => {}
                }
            }
        })
        .await
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
