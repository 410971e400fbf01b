//! How long a connection waits for its other side, and what else ends a wait.
//!
//! A connection waits often and seldom for long, so it does not set a timer for each wait. It has one synchronisation of
//! "the program stops, or an instant comes", and keeps it from wait to wait:
//! 1. A step that has to wait begins with the clock, and knows its deadline. The instant that was set for an earlier wait
//!    is no later than that.
//! 2. When the instant comes before the deadline, it is set anew, to the deadline.
//! 3. The program's stop is noted, and ends only waits for something new.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use weir::{Failure, FailureKind};
use weir_events::{Event, Synchronisation, at};

/// The limits of all connections of one listener.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    idle: Duration,
    stopped: Event<()>,
}

impl Limits {
    /// No step may take longer than `idle`, and nothing new begins after `stopped`.
    pub(super) fn new(idle: Duration, stopped: &Event<()>) -> Self {
        Limits { idle, stopped: stopped.clone() }
    }
}

/// Why waiting is over.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// An instant has come.
    Late,
    /// The program stops.
    Stopped,
}

/// The waits of one connection, one at a time.
pub(super) struct Waits {
    limits: Limits,
    is_stopped: bool,
    over: Option<Synchronisation<Over>>,
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waits(at most {:?})", self.limits.idle)
    }
}

impl Waits {
    pub(super) fn new(limits: Limits) -> Self {
        Waits { limits, is_stopped: false, over: None }
    }

    /// Waits for a step of the other side.
    ///
    /// # Errors
    /// If the step fails or takes too long; `what` says what the other side did instead.
    pub(super) async fn within<T>(
        &mut self,
        what: &str,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Failure> {
        let (mut step, mut deadline) = (pin!(step), None);
        poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done.map_err(Failure::from)),
            Poll::Pending => {
                ready!(self.poll_late(&mut deadline, context));
                Poll::Ready(Err(self.failure(what)))
            }
        })
        .await
    }

    /// Waits for the first step of something new; `None` where the program stops.
    ///
    /// # Errors
    /// If the step fails or takes too long; `what` says what the other side did instead.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        what: &str,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<Option<T>, Failure> {
        let (mut step, mut deadline) = (pin!(step), None);
        poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done.map(Some).map_err(Failure::from)),
            Poll::Pending => match self.poll_late(&mut deadline, context) {
                _ if self.is_stopped => Poll::Ready(Ok(None)),
                Poll::Ready(()) => Poll::Ready(Err(self.failure(what))),
                Poll::Pending => Poll::Pending,
            },
        })
        .await
    }

    /// Ready when the deadline has come, which is set where there is none yet.
    fn poll_late(&mut self, deadline: &mut Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.limits.idle);
        loop {
            let over = self.over.get_or_insert_with(|| match self.is_stopped {
                true => at(deadline).wrap(|()| Over::Late).into_future(),
                false => first_of(&self.limits.stopped, deadline),
            });
            let ended = ready!(Pin::new(over).poll(context));
            self.over = None;
            match ended {
                Over::Stopped => self.is_stopped = true,
                Over::Late if deadline <= Instant::now() => return Poll::Ready(()),
                // It was set for an earlier wait.
                Over::Late => {}
            }
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(FailureKind::Timeout, format!("the other side {what} for {:?}", self.limits.idle))
    }
}

/// The program's stop, or a deadline.
fn first_of(stopped: &Event<()>, deadline: Instant) -> Synchronisation<Over> {
    let stopped = stopped.wrap(|()| Over::Stopped);
    stopped.or(&at(deadline).wrap(|()| Over::Late)).into_future()
}
