//! The timeout manager: the time limit of a request, as an event.

use std::time::{Duration, Instant};

use weir_events::{Event, Signal, at, choose};

/// Takes effect when the time limit of a request that begins now has expired, or when the server stops.
pub(crate) fn abort(limit: Duration, stop: &Signal) -> Event<()> {
    choose([at(Instant::now() + limit), stop.fired()])
}
