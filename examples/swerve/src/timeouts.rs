//! The timeout manager: when a request has taken too long, as an event.

use std::time::{Duration, Instant};

use weir_events::{Event, Signal, at, choose};

/// Takes effect when the time of a request that begins now is up, or when the server stops.
pub(crate) fn abort(limit: Duration, stop: &Signal) -> Event<()> {
    choose([at(Instant::now() + limit), stop.fired()])
}
