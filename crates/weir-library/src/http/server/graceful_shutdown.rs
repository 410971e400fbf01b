//! Graceful shutdown of the connections of one event loop.
//!
//! It consists of two signals that every connection waits for among other things, and a channel on which nothing is ever sent.
//! Every connection holds a sending half of the channel, so that the channel closes when the last connection ends.
//!
//! 1. `stop` tells connections to end after the requests that they have begun.
//! 2. `overdue` comes with the end of the grace period: the handler has been told to answer what it has not answered yet, and
//!    connections that are still open pass these answers on, for which they have [`LAST_ANSWERS_MAX`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use weir_events::{Event, Receiver, Sender, Signal, rendezvous};

use super::Limits;
use super::activity::{ActivityTracker, WakeReason};
use crate::connection_table::TablePlace;

/// The time in which clients accept the answers that they get at the end of the grace period. Chosen by judgement: such an answer
/// fits into the buffer of a socket unless an earlier one is there.
const LAST_ANSWERS_MAX: Duration = Duration::from_millis(500);

/// Returns the grace period of a server that has to end within the time `end`, and needs a part of it for the last answers.
pub(super) fn grace_before(end: Duration, limits: &Limits) -> Duration {
    limits.shutdown_grace.min(end.saturating_sub((2 * LAST_ANSWERS_MAX).min(end / 4)))
}

/// The connections of one event loop.
pub(super) struct GracefulShutdown {
    stop: Signal,
    overdue: Signal,
    /// The events of `stop` and `overdue`, created once for all connections.
    stopping: Event<WakeReason>,
    ending: Event<WakeReason>,
    present: Sender<Infallible>,
    gone: Receiver<Infallible>,
}

impl GracefulShutdown {
    /// Creates an empty group.
    pub(super) fn new() -> Self {
        let (stop, overdue) = (Signal::new(), Signal::new());
        let (present, gone) = rendezvous();
        let stopping = stop.fired().wrap(|()| WakeReason::Stopping);
        let ending = overdue.fired().wrap(|()| WakeReason::Overdue);
        GracefulShutdown { stop, overdue, stopping, ending, present, gone }
    }

    /// Adds a connection, which holds its place in the table, until its [`ShutdownHandle`] is dropped.
    pub(super) fn join(&self, place: TablePlace) -> ShutdownHandle {
        let (stopping, ending) = (self.stopping.clone(), self.ending.clone());
        ShutdownHandle { stopping, ending, _present: self.present.clone(), place }
    }

    /// Tells every connection to end after the requests that it has begun, and waits until all have ended or the grace
    /// period is over. `answer_all` then lets the handler answer what it has not answered yet.
    pub(super) async fn shut_down(self, grace: Duration, answer_all: impl FnOnce()) {
        self.stop.fire();
        drop(self.present);
        let gone = self.gone.recv().wrap(drop);
        if gone.clone().within(grace).await.is_none() {
            answer_all();
            self.overdue.fire();
            // The caller cancels the connections that are still open.
            let _ = gone.within(LAST_ANSWERS_MAX).await;
        }
    }
}

/// Membership of one connection in the group.
pub(super) struct ShutdownHandle {
    stopping: Event<WakeReason>,
    ending: Event<WakeReason>,
    _present: Sender<Infallible>,
    place: TablePlace,
}

impl ShutdownHandle {
    /// Returns the event that takes effect when the connection should end.
    pub(super) fn stopping(&self) -> &Event<WakeReason> {
        &self.stopping
    }

    /// Returns the event that takes effect when the grace period is over.
    pub(super) fn ending(&self) -> &Event<WakeReason> {
        &self.ending
    }

    /// Returns a tracker of the connection's activity.
    pub(super) fn activity(&self) -> ActivityTracker {
        ActivityTracker::new(self.place.table(), Arc::clone(self.place.entry()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_period_leaves_time_for_the_last_answers() {
        let limits = Limits { shutdown_grace: Duration::from_secs(10), ..Limits::default() };
        let grace = |end: u64| grace_before(Duration::from_millis(end), &limits).as_millis();
        assert_eq!([30_000, 10_500, 8_000, 1_000, 0].map(grace), [10_000, 9_500, 7_000, 750, 0]);
        assert_eq!(grace_before(Duration::MAX, &limits), limits.shutdown_grace);
    }
}
