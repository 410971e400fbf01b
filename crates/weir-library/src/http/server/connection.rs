//! One connection: which protocol it speaks, its requests, its end.

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

/// What every connection of HTTP/2 begins with (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What is read at most to know the protocol; most first requests are shorter.
const FIRST_BYTES: usize = 4096;
/// An answer up to this length is copied behind its head and sent as one part: hyper and the system are through with that
/// sooner than with several parts. From about this length on they are not.
const COPIED_BYTES_MAX: usize = 64 * 1024;

/// Serves one connection until it ends, by itself, by its limits, or because the server stops.
///
/// Where nothing comes for a while it *rests*: hyper's part of it, its buffers first of all, is given up and made anew when
/// something comes. So an idle connection costs little more than its socket. The same happens once where an answer turns out
/// to be too large to be copied: hyper has to know before the first whether it should.
pub(super) async fn serve_connection<H: Handler>(
    mut stream: TcpStream,
    limits: Rc<Limits>,
    handler: Rc<H>,
    handle: ShutdownHandle,
) {
    let activity = Rc::new(ActivityTracker::default());
    let mut supervisor = ConnectionSupervisor {
        activity: &activity,
        watchdog: Watchdog::new(&limits, handle.stopping()),
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
        // Apart, like the other: a connection that rests keeps its own future, and nothing of this one.
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

/// Reads until it is clear whether the connection begins as HTTP/2 does; `None` where it ends before.
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

/// Yields the socket and what was read of it already, where hyper's part of the connection is given up between requests.
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
        // Outside the future, so that the request is not moved into it.
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
        // The watch has all time limits, of which hyper knows only this one.
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
    // What it has of frames and windows must not be lost, so that it never rests.
    supervisor.drive(pin!(connection), http2::Connection::graceful_shutdown, || false).await;
}

/// Runs the streams of HTTP/2 beside their connection.
#[derive(Clone)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for SameThread {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}

/// What ends a connection from outside.
struct ConnectionSupervisor<'a> {
    activity: &'a ActivityTracker,
    watchdog: Watchdog<'a>,
    _shutdown: ShutdownHandle,
}

/// What has become of a connection.
enum DriveResult {
    Ended,
    /// It is between requests, and should keep no more than its socket, for now or until the next.
    Released,
}

impl ConnectionSupervisor<'_> {
    /// What is polled, unless the connection has to end before.
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

    /// Polls the connection to its end, or until it rests or `releases`; `finish` makes it end after the requests that it has
    /// begun.
    async fn drive<C: Future>(
        &mut self,
        mut connection: Pin<&mut C>,
        finish: impl Fn(Pin<&mut C>),
        releases: impl Fn() -> bool,
    ) -> DriveResult {
        poll_fn(|cx| {
            loop {
                // Its error has been answered where it can be, and says nothing to anybody else.
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

/// One more in a count, until it is dropped.
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
