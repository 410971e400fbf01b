//! The limits of a server, each with its name and a sound default.

use std::time::{Duration, Instant};

use weir_events::{Event, after};

/// What a server bears from its clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request's head: its first line and fields. More is answered 431.
    pub header_bytes_max: usize,
    /// From the first byte of a head to its last, and from the connection's beginning to its first byte.
    pub header_timeout: Duration,
    /// Bytes of a request's body. More is answered 413.
    pub body_bytes_max: usize,
    /// From the head of a request to the last byte of its body. Later is answered 408.
    pub body_timeout: Duration,
    /// Between two pieces of a body. Later is answered 408.
    pub body_idle_timeout: Duration,
    /// From a whole request to its answer. Later its flow is given up and it is answered 503.
    pub answer_timeout: Duration,
    /// Between an answer and the next request on its connection.
    pub idle_timeout: Duration,
    /// How long a connection of HTTP/1 is idle until it gives up its buffers, to have new ones for its next request.
    pub release_buffers_after: Duration,
    /// How long a client may take nothing of an answer that it is being sent.
    pub write_timeout: Duration,
    /// Bytes a second that a client has to take, on average since it first kept the server waiting.
    pub write_rate_min: u64,
    /// Connections at a time, over all event loops; further ones wait in the listener's queue.
    pub connections_max: usize,
    /// Requests at a time on one connection of HTTP/2.
    pub streams_max: u32,
    /// How long requests that have begun may take once the server stops.
    pub shutdown_grace: Duration,
    /// How long a connection that ends early is read on, so that the client gets to see the answer.
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
            linger_timeout: Duration::from_secs(2),
        }
    }
}

/// The time limits of one request, as events: made once, and synchronised only by a request that has to wait.
#[derive(Clone, Debug)]
pub struct RequestDeadlines {
    /// Its body was not whole in time.
    pub(super) body: Event<()>,
    /// The next piece of its body did not come in time.
    pub(super) piece: Event<()>,
    /// Its answer was not there in time.
    pub(in crate::http) answer: Event<()>,
}

impl RequestDeadlines {
    /// The events of these limits; each counts from the moment that something waits for it.
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        RequestDeadlines {
            body: after(limits.body_timeout),
            piece: after(limits.body_idle_timeout),
            answer: after(limits.answer_timeout),
        }
    }
}

/// The end of a time limit; one that lasts longer than the clock goes on does not end.
pub(super) fn end_of(start: Instant, limit: Duration) -> Instant {
    /// Thirty years.
    const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    start.checked_add(limit).unwrap_or_else(|| start + FOREVER)
}
