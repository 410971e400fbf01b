//! The connections of one event loop: who is there, and how they are told to stop.
//!
//! Two events make it: a signal that every connection waits for among other things, and a channel on which nobody sends,
//! of which every connection holds a sending half, so that it closes with the last of them.

use std::convert::Infallible;

use tokio::sync::OwnedSemaphorePermit;
use weir_events::{Channel, Event, Receiver, Sender, Signal, halves};

use super::Limits;
use super::activity::WakeReason;

/// All connections of one loop.
pub(super) struct GracefulShutdown {
    stop: Signal,
    /// Made once for all.
    stopping: Event<WakeReason>,
    present: Sender<Infallible>,
    gone: Receiver<Infallible>,
}

impl GracefulShutdown {
    /// Nobody yet.
    pub(super) fn new() -> Self {
        let stop = Signal::new();
        let (present, gone) = halves(Channel::rendezvous());
        GracefulShutdown { stopping: stop.fired().wrap(|()| WakeReason::Stopping), stop, present, gone }
    }

    /// Adds a connection, which keeps its slot, until its [`ShutdownHandle`] is dropped.
    pub(super) fn join(&self, slot: OwnedSemaphorePermit) -> ShutdownHandle {
        ShutdownHandle { stopping: self.stopping.clone(), _present: self.present.clone(), _slot: slot }
    }

    /// Tells every connection to end after the requests that it has begun, and waits within the grace time until all
    /// have.
    pub(super) async fn shut_down(self, limits: &Limits) {
        self.stop.fire();
        drop(self.present);
        // Whoever is still there when the time is up is given up by the caller.
        let _ = self.gone.receive().wrap(drop).within(limits.shutdown_grace).await;
    }
}

/// One connection's place in its crowd.
pub(super) struct ShutdownHandle {
    stopping: Event<WakeReason>,
    _present: Sender<Infallible>,
    _slot: OwnedSemaphorePermit,
}

impl ShutdownHandle {
    /// Takes effect when the connection should end.
    pub(super) fn stopping(&self) -> &Event<WakeReason> {
        &self.stopping
    }
}
