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

use super::crowd::Member;
use super::guard::Guard;
use super::metered::Metered;
use super::pieces::Pieces;
use super::pulse::{Ending, Pulse, Watch};
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
    member: Member,
) {
    let pulse = Rc::new(Pulse::default());
    let mut end = End { pulse: &pulse, watch: Watch::new(&limits, member.stopping()), _member: member };
    let mut first = Vec::new();
    match end.before(|cx| poll_protocol(&stream, &mut first, cx)).await.flatten() {
        Some(Protocol::Http1) => {}
        Some(Protocol::Http2) => {
            let guard = Guard::http2(stream, first, Rc::clone(&pulse));
            return Box::pin(serve_http2(guard, &limits, handler, Rc::clone(&pulse), end)).await;
        }
        None => return,
    }
    loop {
        let guard = Guard::http1(stream, first, Rc::clone(&pulse));
        // Apart, like the other: a connection that rests keeps its own future, and nothing of this one.
        let Some(resting) = Box::pin(serve_http1(guard, &limits, &*handler, &mut end)).await else { return };
        (stream, first) = resting;
        if end.before(|cx| stream.poll_read_ready(cx)).await.is_none() {
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
    guard: Guard,
    limits: &Limits,
    handler: &H,
    end: &mut End<'_>,
) -> Option<(TcpStream, Vec<u8>)> {
    let pulse = end.pulse;
    let copies = !pulse.large.get();
    let piece_bytes_max = if copies { COPIED_BYTES_MAX } else { usize::MAX };
    let service = service_fn(move |request| {
        // Outside the future, so that the request is not moved into it.
        let answer = handler.handle(request);
        async move {
            let _answering = Counted::one_more(&pulse.answering);
            let answer = answer.await;
            pulse.large.set(answer.body().len() > COPIED_BYTES_MAX);
            Ok::<_, Infallible>(answer.map(|body| Pieces::new(body, piece_bytes_max)))
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The watch has all time limits, of which hyper knows only this one.
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes_max)
        .writev(!copies)
        .serve_connection(TokioIo::new(guard), service);
    let leaves = || copies && pulse.large.get();
    match end.drive(Pin::new(&mut connection), http1::Connection::graceful_shutdown, leaves).await {
        Driven::Ended => None,
        Driven::Leaves => {
            let parts = connection.into_parts();
            Some((parts.io.into_inner().into_stream(), parts.read_buf.into()))
        }
    }
}

async fn serve_http2<H: Handler>(guard: Guard, limits: &Limits, handler: Rc<H>, pulse: Rc<Pulse>, mut end: End<'_>) {
    let service = service_fn(move |request| {
        let (handler, pulse) = (Rc::clone(&handler), Rc::clone(&pulse));
        async move {
            pulse.heads.set(pulse.heads.get() + 1);
            let answer = {
                let _answering = Counted::one_more(&pulse.answering);
                handler.handle(request).await
            };
            Ok::<_, Infallible>(answer.map(|body| Metered::new(body, pulse)))
        }
    });
    let header_bytes_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(SameThread)
        .timer(TokioTimer::new())
        .max_header_list_size(header_bytes_max)
        .max_concurrent_streams(limits.streams_max)
        .serve_connection(TokioIo::new(guard), service);
    // What it has of frames and windows must not be lost, so that it never rests.
    end.drive(pin!(connection), http2::Connection::graceful_shutdown, || false).await;
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
struct End<'a> {
    pulse: &'a Pulse,
    watch: Watch<'a>,
    _member: Member,
}

/// What has become of a connection.
enum Driven {
    Ended,
    /// It is between requests, and should keep no more than its socket, for now or until the next.
    Leaves,
}

impl End<'_> {
    /// What is polled, unless the connection has to end before.
    async fn before<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| {
            loop {
                match self.watch.poll(self.pulse, cx) {
                    Poll::Ready(Ending::Stopping | Ending::Due) => return Poll::Ready(None),
                    Poll::Ready(Ending::Resting) => {}
                    Poll::Pending => return poll(cx).map(Some),
                }
            }
        })
        .await
    }

    /// Polls the connection to its end, or until it rests or `leaves`; `finish` makes it end after the requests that it has
    /// begun.
    async fn drive<C: Future>(
        &mut self,
        mut connection: Pin<&mut C>,
        finish: impl Fn(Pin<&mut C>),
        leaves: impl Fn() -> bool,
    ) -> Driven {
        poll_fn(|cx| {
            loop {
                // Its error has been answered where it can be, and says nothing to anybody else.
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Driven::Ended);
                }
                if leaves() && self.pulse.is_between_requests() {
                    return Poll::Ready(Driven::Leaves);
                }
                match ready!(self.watch.poll(self.pulse, cx)) {
                    Ending::Stopping => finish(connection.as_mut()),
                    Ending::Due => return Poll::Ready(Driven::Ended),
                    Ending::Resting if self.pulse.is_between_requests() => return Poll::Ready(Driven::Leaves),
                    Ending::Resting => {}
                }
            }
        })
        .await
    }
}

/// One more in a count, until it is dropped.
struct Counted<'a>(&'a std::cell::Cell<u32>);

impl<'a> Counted<'a> {
    fn one_more(count: &'a std::cell::Cell<u32>) -> Self {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
