//! Graceful shutdown of the connections of one event loop.
//!
//! It consists of two events: a signal that every connection waits for among other things, and a channel on which
//! nothing is ever sent. Every connection holds a sending half of the channel, so that the channel closes when the last
//! connection ends.

use std::convert::Infallible;
use std::sync::Arc;

use weir_events::{Event, Receiver, Sender, Signal, rendezvous};

use super::Limits;
use super::activity::{ActivityTracker, WakeReason};
use crate::connection_table::TablePlace;

/// The connections of one event loop.
pub(super) struct GracefulShutdown {
    stop: Signal,
    /// The event of `stop`, created once for all connections.
    stopping: Event<WakeReason>,
    present: Sender<Infallible>,
    gone: Receiver<Infallible>,
}

impl GracefulShutdown {
    /// Creates an empty group.
    pub(super) fn new() -> Self {
        let stop = Signal::new();
        let (present, gone) = rendezvous();
        GracefulShutdown { stopping: stop.fired().wrap(|()| WakeReason::Stopping), stop, present, gone }
    }

    /// Adds a connection, which holds its place in the table, until its [`ShutdownHandle`] is dropped.
    pub(super) fn join(&self, place: TablePlace) -> ShutdownHandle {
        ShutdownHandle { stopping: self.stopping.clone(), _present: self.present.clone(), place }
    }

    /// Tells every connection to end after the requests that it has begun, and waits until all have ended or the grace
    /// period is over.
    pub(super) async fn shut_down(self, limits: &Limits) {
        self.stop.fire();
        drop(self.present);
        // The caller cancels the connections that are still open.
        let _ = self.gone.recv().wrap(drop).within(limits.shutdown_grace).await;
    }
}

/// Membership of one connection in the group.
pub(super) struct ShutdownHandle {
    stopping: Event<WakeReason>,
    _present: Sender<Infallible>,
    place: TablePlace,
}

impl ShutdownHandle {
    /// Returns the event that takes effect when the connection should end.
    pub(super) fn stopping(&self) -> &Event<WakeReason> {
        &self.stopping
    }

    /// Returns a tracker of the connection's activity.
    pub(super) fn activity(&self) -> ActivityTracker {
        ActivityTracker::new(self.place.table(), Arc::clone(self.place.entry()))
    }
}
