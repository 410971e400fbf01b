//! How long a connection waits for its other side, and what else ends a wait.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use weir::{Failure, FailureKind};
use weir_events::{Event, after, choose_biased, until};

/// The limits of all connections of one listener.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    idle: Duration,
    late: Event<()>,
    /// Also while nothing of something new has come.
    over: Event<Over>,
}

/// Why waiting for something new is over.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// It took too long.
    Late,
    /// The program stops.
    Stopped,
}

impl Limits {
    /// No step may take longer than `idle`, and nothing new begins after `stopped`.
    pub(super) fn new(idle: Duration, stopped: &Event<()>) -> Self {
        let late = after(idle);
        let over = choose_biased([stopped.wrap(|()| Over::Stopped), late.wrap(|()| Over::Late)]);
        Limits { idle, late, over }
    }

    /// Waits for a step of the other side.
    ///
    /// # Errors
    /// If the step fails or takes too long; `what` says what the other side did instead.
    pub(super) async fn within<T>(&self, what: &str, step: impl Future<Output = io::Result<T>>) -> Result<T, Failure> {
        until(pin!(step), &self.late).await.map_err(|()| self.failure(what))?.map_err(Failure::from)
    }

    /// Waits for the first step of something new; `None` where the program stops.
    ///
    /// # Errors
    /// If the step fails or takes too long; `what` says what the other side did instead.
    pub(super) async fn unless_stopped<T>(
        &self,
        what: &str,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<Option<T>, Failure> {
        match until(pin!(step), &self.over).await {
            Ok(done) => Ok(Some(done?)),
            Err(Over::Stopped) => Ok(None),
            Err(Over::Late) => Err(self.failure(what)),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(FailureKind::Timeout, format!("the other side {what} for {:?}", self.idle))
    }
}
