//! What a connection is doing, and whether it has done that for too long.
//!
//! The I/O and the service of a connection note what happens in its [`Pulse`]; nobody reads a clock for that. The
//! connection's task looks at it after each step ([`Watch::poll`]):
//! 1. If the *phase* or its *beat* has changed, it reads the clock, and knows the new deadline.
//! 2. The one timer of the connection is only ever set to an earlier moment; when it fires too early, because the
//!    deadline has moved on since, it is set again. So a busy connection sets its timer once in many requests.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::Limits;
use super::limits::after;

/// What happens on one connection; shared by its I/O, its service and its task, which are all on one thread.
#[derive(Default)]
pub(super) struct Pulse {
    /// A head has begun and is not complete.
    pub(super) in_head: Cell<bool>,
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

/// Ends a connection in time.
pub(super) struct Watch<'a> {
    limits: &'a Limits,
    phase: Phase,
    beat: u64,
    /// When the phase began, and the bytes written then.
    since: Instant,
    written_before: u64,
    deadline: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer will still fire.
    armed: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        let since = Instant::now();
        let deadline = after(since, limits.header_timeout);
        Watch {
            limits,
            phase: Phase::Head,
            beat: 0,
            since,
            written_before: 0,
            deadline: Some(deadline),
            timer: Box::pin(sleep_until(deadline)),
            armed: true,
        }
    }

    /// Ready when the connection has done for too long what it does.
    pub(super) fn poll(&mut self, pulse: &Pulse, cx: &mut Context<'_>) -> Poll<()> {
        let phase = pulse.phase();
        let beat = pulse.beat(phase);
        if phase != self.phase || beat != self.beat {
            self.change(phase, beat, pulse);
        }
        self.poll_timer(cx)
    }

    fn change(&mut self, phase: Phase, beat: u64, pulse: &Pulse) {
        let now = Instant::now();
        if phase != self.phase || phase != Phase::Writing {
            (self.since, self.written_before) = (now, pulse.written.get());
        }
        (self.phase, self.beat) = (phase, beat);
        self.deadline = self.time_allowed(now, pulse.written.get());
        let too_late = self.deadline.is_some_and(|deadline| !self.armed || deadline < self.timer.deadline());
        if let (true, Some(deadline)) = (too_late, self.deadline) {
            self.timer.as_mut().reset(deadline);
            self.armed = true;
        }
    }

    fn time_allowed(&self, now: Instant, written: u64) -> Option<Instant> {
        let limits = self.limits;
        match self.phase {
            Phase::Answering => None,
            Phase::Head => Some(after(now, limits.header_timeout)),
            Phase::Idle => Some(after(now, limits.idle_timeout)),
            Phase::Lingering => Some(after(now, limits.linger_timeout)),
            Phase::Writing => {
                let earned = Duration::from_secs((written - self.written_before) / limits.write_rate_min.max(1));
                Some(after(after(self.since, limits.write_timeout), earned).min(after(now, limits.write_timeout)))
            }
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.armed && self.timer.as_mut().poll(cx).is_ready() {
            match self.deadline {
                Some(deadline) if deadline <= Instant::now() => return Poll::Ready(()),
                Some(deadline) => self.timer.as_mut().reset(deadline),
                None => self.armed = false,
            }
        }
        Poll::Pending
    }
}
