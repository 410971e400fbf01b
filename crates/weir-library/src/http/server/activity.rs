//! Activity tracking and timeouts of a connection.
//!
//! The I/O and the service of a connection record what happens in its [`ActivityTracker`], without reading a clock. The
//! connection's task checks the tracker after each step ([`Watchdog::poll`]):
//! 1. If the *phase* or its *progress counter* has changed, the watchdog reads the clock and computes a new deadline.
//! 2. A connection is ended by a choice of two events: the server stops, or an instant comes. The choice is
//!    synchronised again only for an earlier instant; if it takes effect too early, because the deadline has moved on,
//!    it is synchronised once more. A busy connection therefore sets its timer once in many requests, and a check in
//!    between costs the load of one word.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use weir_events::{Event, Synchronisation, at, never};

use super::Limits;
use super::arriving_bytes::ArrivingBytes;
use super::limits::end_of;
use crate::connection_table::{ConnectionTable, TableEntry};

/// Activity of one connection; shared by its I/O, its service and its task, which all run on one thread.
pub(super) struct ActivityTracker {
    table: Arc<ConnectionTable>,
    entry: Arc<TableEntry>,
    /// A request head has begun and is not complete.
    pub(super) in_head: Cell<bool>,
    /// All of every request that has begun has been read. Not tracked for HTTP/2.
    pub(super) between: Cell<bool>,
    /// Everything received has been read, and the connection has asked for more.
    pub(super) starved: Cell<bool>,
    /// The last response was too large to be copied.
    pub(super) large: Cell<bool>,
    /// Number of request heads begun.
    pub(super) heads: Cell<u64>,
    /// The socket accepts no more data at present.
    pub(super) write_blocked: Cell<bool>,
    /// Bytes that the socket has accepted.
    pub(super) written: Cell<u64>,
    /// Number of requests whose response is being computed.
    pub(super) answering: Cell<u32>,
    /// The grace period is over; waiters are notified.
    pub(super) overdue: Notify,
    /// Number of HTTP/2 responses that the client has not fully received.
    pub(super) unsent: Cell<u32>,
    /// Nothing more is written, and the rest of the input is discarded.
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

impl ConnectionPhase {
    /// Returns true if a request is being answered, as opposed to awaited.
    fn is_busy(self) -> bool {
        !matches!(self, ConnectionPhase::Head | ConnectionPhase::Idle)
    }
}

impl ActivityTracker {
    /// Creates the tracker of a connection that has just been accepted.
    pub(super) fn new(table: Arc<ConnectionTable>, entry: Arc<TableEntry>) -> Self {
        ActivityTracker {
            table,
            entry,
            in_head: Cell::default(),
            between: Cell::default(),
            starved: Cell::default(),
            large: Cell::default(),
            heads: Cell::default(),
            write_blocked: Cell::default(),
            written: Cell::default(),
            answering: Cell::default(),
            overdue: Notify::new(),
            unsent: Cell::default(),
            lingering: Cell::default(),
        }
    }

    /// Sets the number of bytes that the connection holds for its client; returns false if it must not hold as many.
    #[inline]
    pub(super) fn hold(&self, bytes: u64) -> bool {
        !self.entry.held.set(bytes) || self.table.make_room(&self.entry, bytes)
    }

    /// Adds the bytes of one stream to those that the connection holds; returns false if it must not hold as many.
    pub(super) fn hold_more(&self, bytes: u64) -> bool {
        let held = &self.entry.held;
        !held.set(held.without_arrived() + bytes) || self.table.make_room(&self.entry, bytes)
    }

    /// Releases some of the bytes that the connection holds.
    pub(super) fn release(&self, bytes: u64) {
        let held = &self.entry.held;
        _ = held.set(held.without_arrived().saturating_sub(bytes));
    }

    /// Returns the count of a body that announces no length.
    pub(super) fn arriving(&self) -> ArrivingBytes {
        ArrivingBytes::new(&self.table, &self.entry)
    }

    /// Returns `true` if hyper waits for the next request and holds nothing of this or an earlier one: it asks for more
    /// input only when it has used up what it got, and an incomplete write is recorded.
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

    /// Progress counter: changes whenever the phase has made enough progress for its timeout to begin anew.
    fn progress(&self, phase: ConnectionPhase) -> u64 {
        match phase {
            ConnectionPhase::Writing => self.written.get(),
            _ => self.heads.get(),
        }
    }
}

/// Reason why the connection's task is woken, independent of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    /// The server stops.
    Stopping,
    /// The grace period is over.
    Overdue,
    /// The instant has come for which the timer was set.
    Time,
}

/// Event on which the connection's task has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchdogEvent {
    /// Nothing has arrived for a while: release everything but the socket.
    Idle,
    /// The server stops: end after the requests that have begun.
    Stopping,
    /// The grace period is over, and the handler answers what it has not answered yet: end with these answers.
    Overdue,
    /// A timeout has expired: end at once.
    Expired,
}

/// Watchdog: enforces the timeouts of a connection.
pub(super) struct Watchdog<'a> {
    limits: &'a Limits,
    phase: ConnectionPhase,
    progress: u64,
    /// Time at which the phase began, and the bytes written by then.
    since: Instant,
    written_before: u64,
    deadline: Option<Instant>,
    /// Takes effect when the server stops; then when the grace period is over.
    stopping: Event<WakeReason>,
    ending: Event<WakeReason>,
    /// Takes effect with `stopping`, or at `armed`.
    wake: Synchronisation<WakeReason>,
    armed: Option<Instant>,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(limits: &'a Limits, stopping: &Event<WakeReason>, ending: &Event<WakeReason>) -> Self {
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
            ending: ending.clone(),
            armed: deadline,
        }
    }

    /// Returns `Ready` when the task has to act. `Stopping` and then `Overdue` are returned once, and `Expired` may follow. Must be
    /// polled by one task only.
    pub(super) fn poll(&mut self, activity: &ActivityTracker, cx: &mut Context<'_>) -> Poll<WatchdogEvent> {
        let phase = activity.phase();
        let progress = activity.progress(phase);
        if phase != self.phase || progress != self.progress {
            self.change(phase, progress, activity);
        }
        // The event keeps the task's waker, so this check suffices until something has happened.
        if self.wake.is_waiting() { Poll::Pending } else { self.poll_ending(cx) }
    }

    fn change(&mut self, phase: ConnectionPhase, progress: u64, activity: &ActivityTracker) {
        let now = Instant::now();
        activity.entry.note(now, phase.is_busy());
        if phase == ConnectionPhase::Idle {
            _ = activity.hold(0);
        }
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

    /// Returns the meaning of the deadline that has come. An idle connection first releases its buffers, and then has
    /// the rest of its idle timeout.
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
                    self.stopping = std::mem::replace(&mut self.ending, never());
                    self.arm();
                    return Poll::Ready(WatchdogEvent::Stopping);
                }
                WakeReason::Overdue => {
                    self.stopping = never();
                    self.arm();
                    return Poll::Ready(WatchdogEvent::Overdue);
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

/// Begins to wait for the server's stop, or for a deadline.
fn first_of(stopping: &Event<WakeReason>, deadline: Option<Instant>) -> Synchronisation<WakeReason> {
    match deadline {
        Some(deadline) => stopping.or(&at(deadline).wrap(|()| WakeReason::Time)).into_future(),
        None => stopping.synchronise(),
    }
}
