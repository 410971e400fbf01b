//! Drives the parts of one connection until they are complete, a timeout expires, or the server stops.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpStream;
use weir_events::{Synchronisation, after};

use super::Limits;
use super::activity::{ActivityTracker, Watchdog, WatchdogEvent};
use super::connection_stream::ConnectionStream;
use super::graceful_shutdown::ShutdownHandle;

/// Maximum time from the stop of the server to the first bytes of a connection that has just been accepted. Chosen by judgement:
/// a client that connects sends its request at once.
const FIRST_REQUEST_MAX: Duration = Duration::from_millis(100);

/// Supervises a connection: ends it at a timeout or when the server stops.
pub(super) struct ConnectionSupervisor<'a> {
    pub(super) activity: &'a ActivityTracker,
    watchdog: Watchdog<'a>,
    /// Set when the server stops before the first request has begun: takes effect when it does not begin in time.
    first_request_late: Option<Synchronisation<()>>,
    _shutdown: ShutdownHandle,
}

/// Outcome of driving a connection.
pub(super) enum DriveResult {
    Ended,
    /// The connection is between requests and should release everything but its socket.
    Released,
}

impl<'a> ConnectionSupervisor<'a> {
    /// Returns the supervisor of a connection that has just been accepted.
    pub(super) fn new(activity: &'a ActivityTracker, limits: &'a Limits, handle: ShutdownHandle) -> Self {
        let watchdog = Watchdog::new(limits, handle.stopping(), handle.ending());
        ConnectionSupervisor { activity, watchdog, first_request_late: None, _shutdown: handle }
    }

    /// Returns the transport of a connection, after the handshake of TLS if there is one; `None` if it fails. A handshake is
    /// a part of the first request's head: it has its time limit, and the connection counts as one that waits for its client.
    pub(super) async fn transport(
        &mut self,
        stream: TcpStream,
        tls: Option<Arc<ServerConfig>>,
    ) -> Option<ConnectionStream> {
        let Some(config) = tls else { return Some(ConnectionStream::Plain(stream)) };
        let mut handshake = ConnectionStream::handshake(stream, config);
        self.activity.in_head.set(true);
        let accepted = self.before(|cx| Pin::new(&mut handshake).poll(cx)).await;
        self.activity.in_head.set(false);
        Some(ConnectionStream::Tls(Box::new(accepted?.ok()?)))
    }

    /// Polls until the operation is complete; `None` if the connection has to end before. If the server stops before the first
    /// request has begun, it has a moment to begin: its bytes may be on their way.
    pub(super) async fn before<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(complete) = poll(cx) {
                    return Poll::Ready(Some(complete));
                }
                if let Some(late) = &mut self.first_request_late
                    && Pin::new(late).poll(cx).is_ready()
                {
                    return Poll::Ready(None);
                }
                match ready!(self.watchdog.poll(self.activity, cx)) {
                    WatchdogEvent::Stopping if self.activity.heads.get() == 0 => {
                        self.first_request_late = Some(after(FIRST_REQUEST_MAX).into_future());
                    }
                    WatchdogEvent::Stopping | WatchdogEvent::Overdue | WatchdogEvent::Expired => {
                        return Poll::Ready(None);
                    }
                    WatchdogEvent::Idle => {}
                }
            }
        })
        .await
    }

    /// Polls the connection until it ends, is idle for long, or `releases` returns `true`; `finish` makes it end after
    /// the requests that it has begun.
    pub(super) async fn drive<C: Future>(
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
                if self.first_request_late.take().is_some() {
                    finish(connection.as_mut());
                    continue;
                }
                if releases() && self.activity.is_between_requests() {
                    return Poll::Ready(DriveResult::Released);
                }
                match ready!(self.watchdog.poll(self.activity, cx)) {
                    WatchdogEvent::Stopping => finish(connection.as_mut()),
                    WatchdogEvent::Overdue => self.activity.overdue.notify_waiters(),
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

/// Awaits an answer, which is there when the grace period is over at the latest: the stream is a task of its own, which then has
/// to look once more.
pub(super) async fn with_last_poll<T>(
    mut answer: Pin<Box<dyn Future<Output = T> + '_>>,
    activity: &ActivityTracker,
) -> T {
    let mut overdue = pin!(activity.overdue.notified());
    poll_fn(|cx| {
        let is_overdue = overdue.as_mut().poll(cx).is_ready();
        let polled = answer.as_mut().poll(cx);
        if is_overdue && polled.is_pending() {
            // A completed `Notified` must not be polled again.
            overdue.set(activity.overdue.notified());
            _ = overdue.as_mut().poll(cx);
        }
        polled
    })
    .await
}
