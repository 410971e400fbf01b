//! What a connection is doing, and whether it has done that for too long.
//!
//! The I/O and the service of a connection note what happens in its [`ActivityTracker`]; nobody reads a clock for that. The
//! connection's task looks at it after each step ([`Watchdog::poll`]):
//! 1. If the *phase* or its *beat* has changed, it reads the clock, and knows the new deadline.
//! 2. What ends a connection is one choice of two events: the server stops, or an instant comes. It is synchronised anew
//!    only for an earlier instant; when it takes effect too early, because the deadline has moved on since, it is
//!    synchronised again. So a busy connection sets its timer once in many requests, and in between a look at it is the
//!    load of one word.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use weir_events::{Event, Synchronisation, at, never};

use super::Limits;
use super::limits::end_of;

/// What happens on one connection; shared by its I/O, its service and its task, which are all on one thread.
#[derive(Default)]
pub(super) struct ActivityTracker {
    /// A head has begun and is not complete.
    pub(super) in_head: Cell<bool>,
    /// All of every request that has begun has been read; of HTTP/2 it is not known.
    pub(super) between: Cell<bool>,
    /// All that has come has been read, and more was asked for.
    pub(super) starved: Cell<bool>,
    /// The last answer was too large to be copied.
    pub(super) large: Cell<bool>,
    /// Heads begun.
    pub(super) heads: Cell<u64>,
    /// The socket takes no more at present.
    pub(super) write_blocked: Cell<bool>,
    /// Bytes that the socket has taken.
    pub(super) written: Cell<u64>,
    /// Requests whose answer is being made.
    pub(super) answering: Cell<u32>,
    /// Answers of HTTP/2 that are not wholly taken.
    pub(super) unsent: Cell<u32>,
    /// Nothing more is written; the rest of the input is thrown away.
    pub(super) lingering: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    Head,
    Idle,
    Answering,
    Writing,
    Lingering,
}

impl ActivityTracker {
    /// Whether hyper waits for the next request and holds nothing of this or an earlier one: it asks for more only when it
    /// has used what it was given, and a write that is not through is noted.
    pub(super) fn is_between_requests(&self) -> bool {
        self.between.get() && self.starved.get() && self.phase() == ConnectionPhase::Idle
    }

    fn phase(&self) -> ConnectionPhase {
        if self.lingering.get() {
            ConnectionPhase::Lingering
        } else if self.write_blocked.get() {
            ConnectionPhase::Writing
        } else if self.answering.get() > 0 {
            ConnectionPhase::Answering
        } else if self.unsent.get() > 0 {
            ConnectionPhase::Writing
        } else if self.in_head.get() {
            ConnectionPhase::Head
        } else {
            ConnectionPhase::Idle
        }
    }

    /// Changes whenever the phase makes such progress that its time begins anew.
    fn progress(&self, phase: ConnectionPhase) -> u64 {
        match phase {
            ConnectionPhase::Writing => self.written.get(),
            _ => self.heads.get(),
        }
    }
}

/// What a connection is woken for, whatever it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    /// The server stops.
    Stopping,
    /// The time is up for which it was set.
    Time,
}

/// Why a connection has to end, or to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchdogEvent {
    /// Nothing has come for a while: it should keep no more than its socket.
    Idle,
    /// The server stops: after the requests that it has begun.
    Stopping,
    /// It has done for too long what it does: at once.
    Expired,
}

/// Ends a connection in time.
pub(super) struct Watchdog<'a> {
    limits: &'a Limits,
    phase: ConnectionPhase,
    progress: u64,
    /// When the phase began, and the bytes written then.
    since: Instant,
    written_before: u64,
    deadline: Option<Instant>,
    /// Takes effect when the server stops; never, once it has.
    stopping: Event<WakeReason>,
    /// Takes effect when the server stops, or at `armed`.
    wake: Synchronisation<WakeReason>,
    armed: Option<Instant>,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(limits: &'a Limits, stopping: &Event<WakeReason>) -> Self {
        let since = Instant::now();
        let deadline = Some(end_of(since, limits.header_timeout));
        Watchdog {
            limits,
            phase: ConnectionPhase::Head,
            progress: 0,
            since,
            written_before: 0,
            deadline,
            wake: first_of(stopping, deadline),
            stopping: stopping.clone(),
            armed: deadline,
        }
    }

    /// Ready when the connection has to end or to rest; `Stopping` comes once, and `Due` may follow it. To be polled by one
    /// task.
    pub(super) fn poll(&mut self, activity: &ActivityTracker, cx: &mut Context<'_>) -> Poll<WatchdogEvent> {
        let phase = activity.phase();
        let progress = activity.progress(phase);
        if phase != self.phase || progress != self.progress {
            self.change(phase, progress, activity);
        }
        // The task keeps its waker, so a glance is enough until something has happened.
        if self.wake.is_waiting() { Poll::Pending } else { self.poll_ending(cx) }
    }

    fn change(&mut self, phase: ConnectionPhase, progress: u64, activity: &ActivityTracker) {
        let now = Instant::now();
        if phase != self.phase || phase != ConnectionPhase::Writing {
            (self.since, self.written_before) = (now, activity.written.get());
        }
        (self.phase, self.progress) = (phase, progress);
        self.deadline = self.time_allowed(now, activity.written.get());
        let too_late = self.deadline.is_some_and(|deadline| self.armed.is_none_or(|armed| deadline < armed));
        if too_late {
            self.arm();
        }
    }

    fn time_allowed(&self, now: Instant, written: u64) -> Option<Instant> {
        let limits = self.limits;
        match self.phase {
            ConnectionPhase::Answering => None,
            ConnectionPhase::Head => Some(end_of(now, limits.header_timeout)),
            ConnectionPhase::Idle => Some(end_of(now, limits.idle_timeout.min(limits.release_buffers_after))),
            ConnectionPhase::Lingering => Some(end_of(now, limits.linger_timeout)),
            ConnectionPhase::Writing => {
                let earned = Duration::from_secs((written - self.written_before) / limits.write_rate_min.max(1));
                Some(end_of(end_of(self.since, limits.write_timeout), earned).min(end_of(now, limits.write_timeout)))
            }
        }
    }

    /// What the deadline means that has come. An idle connection rests first, and has the rest of its time before it.
    fn due(&mut self) -> WatchdogEvent {
        let idle_until = end_of(self.since, self.limits.idle_timeout);
        if self.phase != ConnectionPhase::Idle || self.deadline >= Some(idle_until) {
            return WatchdogEvent::Expired;
        }
        self.deadline = Some(idle_until);
        self.arm();
        WatchdogEvent::Idle
    }

    fn arm(&mut self) {
        self.armed = self.deadline;
        self.wake = first_of(&self.stopping, self.armed);
    }

    #[cold]
    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<WatchdogEvent> {
        loop {
            match ready!(Pin::new(&mut self.wake).poll(cx)) {
                WakeReason::Stopping => {
                    self.stopping = never();
                    self.arm();
                    return Poll::Ready(WatchdogEvent::Stopping);
                }
                WakeReason::Time if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    return Poll::Ready(self.due());
                }
                // The deadline has moved on since.
                WakeReason::Time => self.arm(),
            }
        }
    }
}

/// The server's stop, or a deadline.
fn first_of(stopping: &Event<WakeReason>, deadline: Option<Instant>) -> Synchronisation<WakeReason> {
    match deadline {
        Some(deadline) => stopping.or(&at(deadline).wrap(|()| WakeReason::Time)).into_future(),
        None => stopping.synchronise(),
    }
}
