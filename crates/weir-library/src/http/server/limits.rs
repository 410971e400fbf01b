//! The limits of a server, with their defaults.

use std::time::{Duration, Instant};

use weir_events::{Event, after};

/// Limits on the behaviour of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Maximum size of a request's head in bytes: its first line and fields. A larger one is answered with 431.
    pub header_bytes_max: usize,
    /// Maximum time from the first byte of a head to its last.
    pub header_timeout: Duration,
    /// Maximum size of a request's body in bytes. A larger one is answered with 413.
    pub body_bytes_max: usize,
    /// Maximum time from the head of a request to the last byte of its body; afterwards the answer is 408.
    pub body_timeout: Duration,
    /// Maximum time between two pieces of a body; afterwards the answer is 408.
    pub body_idle_timeout: Duration,
    /// Maximum time from a complete request to its response; afterwards its flow is cancelled and the answer is 503.
    pub answer_timeout: Duration,
    /// Maximum time between a response and the next request on the same connection, and before the first request.
    pub idle_timeout: Duration,
    /// Time after which an idle HTTP/1 connection releases its buffers, to allocate new ones for its next request.
    pub release_buffers_after: Duration,
    /// Maximum time during which a client may accept nothing of a response.
    pub write_timeout: Duration,
    /// Minimum rate, in bytes per second, at which a client must accept data, on average since the server first had to
    /// wait for it.
    pub write_rate_min: u64,
    /// Maximum number of open connections over all event loops; further ones wait in the listener's queue.
    pub connections_max: usize,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub streams_max: u32,
    /// Maximum time that pending requests may take once the server stops.
    pub shutdown_grace: Duration,
    /// True if a client that has ended its half of the connection gets the responses to the requests that it has sent;
    /// otherwise it counts as gone.
    pub half_close: bool,
    /// Maximum time during which a connection that ends early is read on, or a stream of HTTP/2 that is answered early, so that the
    /// client sees the response.
    pub linger_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            header_bytes_max: 32 * 1024,
            header_timeout: Duration::from_secs(10),
            body_bytes_max: 2 * 1024 * 1024,
            body_timeout: Duration::from_secs(60),
            body_idle_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            release_buffers_after: Duration::from_secs(1),
            write_timeout: Duration::from_secs(30),
            write_rate_min: 512,
            connections_max: 10_000,
            streams_max: 128,
            shutdown_grace: Duration::from_secs(10),
            half_close: false,
            linger_timeout: Duration::from_secs(2),
        }
    }
}

/// Deadlines of one request; the events are created once, and synchronised only by requests that have to wait.
#[derive(Clone, Debug)]
pub struct RequestDeadlines {
    /// The body did not arrive completely in time.
    pub(super) body: Event<()>,
    /// The next piece of the body did not arrive in time.
    pub(super) piece: Event<()>,
    /// The body has not arrived, and the response was not ready, in the time for both.
    pub(in crate::http) body_and_answer: Event<()>,
    /// The rest of a body that nobody reads has not arrived in the time for it.
    pub(in crate::http) rest: Event<()>,
    /// Time in which the response must be ready. Every request that waits for something needs it, so that it is no event but
    /// a timer of the event loop, which costs less.
    pub(in crate::http) answer: Duration,
}

impl RequestDeadlines {
    /// Creates the deadlines of these limits; each counts from the moment that something waits for it.
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        RequestDeadlines {
            body: after(limits.body_timeout),
            piece: after(limits.body_idle_timeout),
            body_and_answer: after(limits.body_timeout.saturating_add(limits.answer_timeout)),
            rest: after(limits.linger_timeout),
            answer: limits.answer_timeout,
        }
    }
}

/// Returns the end of a time limit; a limit beyond the range of the clock is replaced by thirty years.
pub(super) fn end_of(start: Instant, limit: Duration) -> Instant {
    /// Thirty years.
    const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    start.checked_add(limit).unwrap_or_else(|| start + FOREVER)
}
