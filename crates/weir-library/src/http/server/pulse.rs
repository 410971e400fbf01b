//! What a connection is doing, and whether it has done that for too long.
//!
//! The I/O and the service of a connection note what happens in its [`Pulse`]; nobody reads a clock for that. The
//! connection's task looks at it after each step ([`Watch::poll`]):
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
pub(super) struct Pulse {
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
enum Phase {
    Head,
    Idle,
    Answering,
    Writing,
    Lingering,
}

impl Pulse {
    /// Whether hyper waits for the next request and holds nothing of this or an earlier one: it asks for more only when it
    /// has used what it was given, and a write that is not through is noted.
    pub(super) fn is_between_requests(&self) -> bool {
        self.between.get() && self.starved.get() && self.phase() == Phase::Idle
    }

    fn phase(&self) -> Phase {
        if self.lingering.get() {
            Phase::Lingering
        } else if self.write_blocked.get() {
            Phase::Writing
        } else if self.answering.get() > 0 {
            Phase::Answering
        } else if self.unsent.get() > 0 {
            Phase::Writing
        } else if self.in_head.get() {
            Phase::Head
        } else {
            Phase::Idle
        }
    }

    /// Changes whenever the phase makes such progress that its time begins anew.
    fn beat(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Writing => self.written.get(),
            _ => self.heads.get(),
        }
    }
}

/// What a connection is woken for, whatever it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// The server stops.
    Stopping,
    /// The time is up for which it was set.
    Time,
}

/// Why a connection has to end, or to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing has come for a while: it should keep no more than its socket.
    Resting,
    /// The server stops: after the requests that it has begun.
    Stopping,
    /// It has done for too long what it does: at once.
    Due,
}

/// Ends a connection in time.
pub(super) struct Watch<'a> {
    limits: &'a Limits,
    phase: Phase,
    beat: u64,
    /// When the phase began, and the bytes written then.
    since: Instant,
    written_before: u64,
    deadline: Option<Instant>,
    /// Takes effect when the server stops; never, once it has.
    stopping: Event<Alarm>,
    /// Takes effect when the server stops, or at `armed`.
    alarm: Synchronisation<Alarm>,
    armed: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(limits: &'a Limits, stopping: &Event<Alarm>) -> Self {
        let since = Instant::now();
        let deadline = Some(end_of(since, limits.header_timeout));
        Watch {
            limits,
            phase: Phase::Head,
            beat: 0,
            since,
            written_before: 0,
            deadline,
            alarm: first_of(stopping, deadline),
            stopping: stopping.clone(),
            armed: deadline,
        }
    }

    /// Ready when the connection has to end or to rest; `Stopping` comes once, and `Due` may follow it. To be polled by one
    /// task.
    pub(super) fn poll(&mut self, pulse: &Pulse, cx: &mut Context<'_>) -> Poll<Ending> {
        let phase = pulse.phase();
        let beat = pulse.beat(phase);
        if phase != self.phase || beat != self.beat {
            self.change(phase, beat, pulse);
        }
        // The task keeps its waker, so a glance is enough until something has happened.
        if self.alarm.is_waiting() { Poll::Pending } else { self.poll_ending(cx) }
    }

    fn change(&mut self, phase: Phase, beat: u64, pulse: &Pulse) {
        let now = Instant::now();
        if phase != self.phase || phase != Phase::Writing {
            (self.since, self.written_before) = (now, pulse.written.get());
        }
        (self.phase, self.beat) = (phase, beat);
        self.deadline = self.time_allowed(now, pulse.written.get());
        let too_late = self.deadline.is_some_and(|deadline| self.armed.is_none_or(|armed| deadline < armed));
        if too_late {
            self.arm();
        }
    }

    fn time_allowed(&self, now: Instant, written: u64) -> Option<Instant> {
        let limits = self.limits;
        match self.phase {
            Phase::Answering => None,
            Phase::Head => Some(end_of(now, limits.header_timeout)),
            Phase::Idle => Some(end_of(now, limits.idle_timeout.min(limits.rest_after))),
            Phase::Lingering => Some(end_of(now, limits.linger_timeout)),
            Phase::Writing => {
                let earned = Duration::from_secs((written - self.written_before) / limits.write_rate_min.max(1));
                Some(end_of(end_of(self.since, limits.write_timeout), earned).min(end_of(now, limits.write_timeout)))
            }
        }
    }

    /// What the deadline means that has come. An idle connection rests first, and has the rest of its time before it.
    fn due(&mut self) -> Ending {
        let idle_until = end_of(self.since, self.limits.idle_timeout);
        if self.phase != Phase::Idle || self.deadline >= Some(idle_until) {
            return Ending::Due;
        }
        self.deadline = Some(idle_until);
        self.arm();
        Ending::Resting
    }

    fn arm(&mut self) {
        self.armed = self.deadline;
        self.alarm = first_of(&self.stopping, self.armed);
    }

    #[cold]
    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        loop {
            match ready!(Pin::new(&mut self.alarm).poll(cx)) {
                Alarm::Stopping => {
                    self.stopping = never();
                    self.arm();
                    return Poll::Ready(Ending::Stopping);
                }
                Alarm::Time if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    return Poll::Ready(self.due());
                }
                // The deadline has moved on since.
                Alarm::Time => self.arm(),
            }
        }
    }
}

/// The server's stop, or a deadline.
fn first_of(stopping: &Event<Alarm>, deadline: Option<Instant>) -> Synchronisation<Alarm> {
    match deadline {
        Some(deadline) => stopping.or(&at(deadline).wrap(|()| Alarm::Time)).into_future(),
        None => stopping.synchronise(),
    }
}
