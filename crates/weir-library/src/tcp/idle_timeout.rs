//! Idle timeout of a connection, and the end of its waits when the program stops.
//!
//! A connection waits often but rarely for long, so it does not set a timer for each wait. It has one synchronisation
//! of "the program stops, or an instant comes", and keeps it from wait to wait:
//! 1. An operation that has to wait reads the clock and computes its deadline. An instant that was set for an earlier
//!    wait is no later than this deadline. If there is none, the connection uses the event that all connections of a
//!    listener share: the idle timeout, from the current time. A connection that has never waited before therefore
//!    needs no event of its own.
//! 2. If the instant comes before the deadline, the timer is set again, to the deadline.
//! 3. The program's stop is recorded, and ends only waits for a new message.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use weir::{Failure, FailureKind};
use weir_events::{Event, Signal, Synchronisation, after, at, never};

use crate::connection_table::TablePlace;

/// Limits shared by all connections of one listener.
#[derive(Clone, Debug)]
pub(super) struct IdleLimits {
    idle: Duration,
    stopped: Event<WaitEnd>,
    /// A connection has been idle for too long, or the program stops.
    over: Event<WaitEnd>,
}

impl IdleLimits {
    /// Creates limits: no operation takes longer than `idle`, and no new message is awaited after `stopped`.
    pub(super) fn new(idle: Duration, stopped: &Event<()>) -> Self {
        let stopped = stopped.wrap(|()| WaitEnd::Stopped);
        let over = stopped.or(&after(idle).wrap(|()| WaitEnd::Late));
        IdleLimits { idle, stopped, over }
    }
}

/// The place of a connection in the table of its listener, and the signal by which the table closes it.
pub(super) struct ConnectionClient {
    pub(super) place: TablePlace,
    pub(super) shed: Signal,
}

/// Reason why a wait is over.
#[derive(Clone, Copy, Debug)]
enum WaitEnd {
    /// An instant has come.
    Late,
    /// The program stops.
    Stopped,
    /// The listener has too many connections, and closes this one.
    Shed,
}

/// Idle timer of one connection, which waits for one thing at a time.
pub(super) struct IdleTimer {
    limits: IdleLimits,
    /// Its place among the connections of its listener; `None` if the program has made it.
    client: Option<ConnectionClient>,
    is_stopped: bool,
    is_shed: bool,
    over: Option<Synchronisation<WaitEnd>>,
}

impl fmt::Debug for IdleTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waits(at most {:?})", self.limits.idle)
    }
}

impl IdleTimer {
    pub(super) fn new(limits: IdleLimits, client: Option<ConnectionClient>) -> Self {
        IdleTimer { limits, client, is_stopped: false, is_shed: false, over: None }
    }

    /// Awaits an operation of the peer.
    ///
    /// # Errors
    /// Fails if the operation fails or takes too long; `what` says what the peer did instead.
    pub(super) async fn within<T>(
        &mut self,
        what: &str,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Failure> {
        let (mut step, mut deadline) = (pin!(step), None);
        let done = poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done.map_err(Failure::from)),
            Poll::Pending => {
                ready!(self.poll_late(&mut deadline, context));
                Poll::Ready(Err(self.failure(what)))
            }
        })
        .await;
        self.note_end(deadline);
        done
    }

    /// Awaits the first operation of a new message; `None` if the program stops.
    ///
    /// # Errors
    /// Fails if the operation fails or takes too long; `what` says what the peer did instead.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        what: &str,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<Option<T>, Failure> {
        let (mut step, mut deadline) = (pin!(step), None);
        let done = poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done.map(Some).map_err(Failure::from)),
            Poll::Pending => match self.poll_late(&mut deadline, context) {
                _ if self.is_stopped => Poll::Ready(Ok(None)),
                Poll::Ready(()) => Poll::Ready(Err(self.failure(what))),
                Poll::Pending => Poll::Pending,
            },
        })
        .await;
        self.note_end(deadline);
        done
    }

    /// Notes that the connection no longer waits for its peer, if it has.
    fn note_end(&self, deadline: Option<Instant>) {
        if let (Some(_), Some(client)) = (deadline, &self.client) {
            client.place.entry().note(Instant::now(), true);
        }
    }

    /// Returns `Ready` when the deadline has come; sets the deadline if there is none.
    fn poll_late(&mut self, deadline: &mut Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let begins = deadline.is_none();
        let deadline = *deadline.get_or_insert_with(|| {
            let now = Instant::now();
            if let Some(client) = &self.client {
                client.place.entry().note(now, false);
            }
            now + self.limits.idle
        });
        let shed = || self.client.as_ref().map_or_else(never, |client| client.shed.fired().wrap(|()| WaitEnd::Shed));
        if begins && self.over.is_none() && !self.is_stopped && !self.is_shed {
            self.over = Some(self.limits.over.or(&shed()).synchronise());
        }
        loop {
            if self.is_shed {
                return Poll::Ready(());
            }
            let over = self.over.get_or_insert_with(|| {
                let late = at(deadline).wrap(|()| WaitEnd::Late).or(&shed());
                if self.is_stopped { late.synchronise() } else { self.limits.stopped.or(&late).synchronise() }
            });
            let ended = ready!(Pin::new(over).poll(context));
            self.over = None;
            match ended {
                WaitEnd::Stopped => self.is_stopped = true,
                WaitEnd::Shed => self.is_shed = true,
                WaitEnd::Late if deadline <= Instant::now() => return Poll::Ready(()),
                // The instant was set for an earlier wait.
                WaitEnd::Late => {}
            }
        }
    }

    fn failure(&self, what: &str) -> Failure {
        if self.is_shed {
            return Failure::new(FailureKind::Limit, "closed, because the listener has too many connections");
        }
        Failure::new(FailureKind::Timeout, format!("the peer {what} for {:?}", self.limits.idle))
    }
}
