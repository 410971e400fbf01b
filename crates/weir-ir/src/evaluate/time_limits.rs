//! Time limits of `within`, for evaluations in which they expire, those of tests; and the ends of calls with which a `race` ends.
//!
//! Only the time counts for which the flow waits in calls, so that a slow machine lets no limit expire. A limit expires in a call
//! that waits, or behind an atomic step in which a call has waited: such a step is never left half done, and the limits around
//! it are hidden from the calls in it.

use std::task::{Context, Poll};
use std::time::Duration;

use weir_host::{Pending, Settled, Value};

use super::flow::{FlowEnd, FlowEvaluation};
use crate::expr::{Atom, Block};

/// A call that is awaited while other bodies of a race run.
pub(super) enum RivalCall {
    Pending(Pending),
    Settled(Settled),
}

impl RivalCall {
    /// Returns whether the call has ended.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let RivalCall::Pending(pending) = self
            && let Poll::Ready(settled) = pending.as_mut().poll(context)
        {
            *self = RivalCall::Settled(settled);
        }
        matches!(self, RivalCall::Settled(_))
    }
}

/// The end of the time for a body.
enum Deadline {
    /// The time for which the flow has waited then.
    After(Duration),
    /// The end of this call.
    AtEndOf(RivalCall),
}

/// The limits around the operation that is being evaluated.
pub(super) struct TimeLimits<'p> {
    /// False if no limit ever expires.
    expire: bool,
    /// The time for which the flow has waited.
    waited: Duration,
    /// The time at which each limit expires, the outermost limit first.
    deadlines: Vec<Deadline>,
    /// The races around the operation, whose last bodies run: the bodies before, until they begin.
    races: Vec<Option<&'p [Block]>>,
    /// The numbers of the outer limits and races that are hidden by an atomic step.
    hidden: (usize, usize),
}

impl<'p> TimeLimits<'p> {
    pub(super) const NEVER: TimeLimits<'p> =
        TimeLimits { expire: false, waited: Duration::ZERO, deadlines: Vec::new(), races: Vec::new(), hidden: (0, 0) };

    /// Makes limits expire.
    pub(super) fn expire(&mut self) {
        self.expire = true;
    }

    /// Returns whether limits expire.
    pub(super) fn do_expire(&self) -> bool {
        self.expire
    }

    /// Begins a limit, and returns its number. A negative one is zero.
    pub(super) fn begin(&mut self, nanoseconds: i64) -> usize {
        let limit = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
        self.deadlines.push(Deadline::After(self.waited.saturating_add(limit)));
        self.deadlines.len() - 1
    }

    /// Ends this limit, and those inside of it.
    pub(super) fn end(&mut self, limit: usize) {
        self.deadlines.truncate(limit);
    }

    /// Begins a limit that expires when the call ends, and returns its number.
    pub(super) fn begin_at_end_of(&mut self, call: RivalCall) -> usize {
        self.deadlines.push(Deadline::AtEndOf(call));
        self.deadlines.len() - 1
    }

    /// Ends such a limit. Returns the result of the call if it has ended.
    pub(super) fn end_at_end_of(&mut self, limit: usize) -> Option<Settled> {
        self.deadlines.truncate(limit + 1);
        match self.deadlines.pop() {
            Some(Deadline::AtEndOf(RivalCall::Settled(settled))) => Some(settled),
            _ => None,
        }
    }

    /// Begins a race whose bodies `before` the last one are still to begin, and returns its number.
    pub(super) fn begin_race(&mut self, before: &'p [Block]) -> usize {
        self.races.push(Some(before));
        self.races.len() - 1
    }

    pub(super) fn end_race(&mut self, race: usize) {
        self.races.truncate(race);
    }

    /// Returns the bodies that begin now, because the innermost race whose bodies have not begun waits, and its number.
    pub(super) fn next_race(&mut self) -> Option<(usize, &'p [Block])> {
        let visible = self.races.iter_mut().enumerate().skip(self.hidden.1);
        visible.rev().find_map(|(race, bodies)| Some((race, bodies.take()?)))
    }

    /// Hides all limits and races, and returns what `show` needs.
    pub(super) fn hide(&mut self) -> (usize, usize) {
        std::mem::replace(&mut self.hidden, (self.deadlines.len(), self.races.len()))
    }

    /// Shows the limits and races again that were visible before `hide`.
    pub(super) fn show(&mut self, hidden: (usize, usize)) {
        self.hidden = hidden;
    }

    /// Returns the time for which a call may wait, if there is a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        let first = self.visible().map(|(_, deadline)| deadline).min()?;
        Some(first.saturating_sub(self.waited))
    }

    /// Returns whether limits or races are visible, so that a call may be given up.
    pub(super) fn may_give_up(&self) -> bool {
        self.expire && (self.deadlines.len() > self.hidden.0 || self.races.len() > self.hidden.1)
    }

    /// Returns the time for which the flow has waited.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Counts the time for which a call has waited.
    pub(super) fn wait(&mut self, time: Duration) {
        self.waited = self.waited.saturating_add(time);
    }

    /// Returns the number of the limit that expires first.
    pub(super) fn first(&self) -> Option<usize> {
        self.visible().min_by_key(|(_, deadline)| *deadline).map(|(limit, _)| limit)
    }

    /// Returns the number of the limit that has expired first, if one has.
    pub(super) fn expired(&self) -> Option<usize> {
        let (limit, deadline) = self.visible().min_by_key(|(_, deadline)| *deadline)?;
        (deadline < self.waited).then_some(limit)
    }

    /// Returns the number of the outermost limit whose call has ended.
    pub(super) fn ended(&mut self, context: &mut Context<'_>) -> Option<usize> {
        let calls = self.deadlines.iter_mut().enumerate().skip(self.hidden.0);
        let mut calls = calls.filter(|_| self.expire);
        calls.find_map(|(limit, deadline)| match deadline {
            Deadline::AtEndOf(call) => call.has_ended(context).then_some(limit),
            Deadline::After(_) => None,
        })
    }

    /// Returns the limits that are not hidden and expire after a time, with their numbers.
    fn visible(&self) -> impl Iterator<Item = (usize, Duration)> {
        let of_flow = self.deadlines.iter().enumerate().skip(self.hidden.0);
        let timed = of_flow.filter_map(|(limit, deadline)| match deadline {
            Deadline::After(time) => Some((limit, *time)),
            Deadline::AtEndOf(_) => None,
        });
        timed.filter(|_| self.expire)
    }
}

impl<'p> FlowEvaluation<'_, 'p> {
    /// Evaluates a body with a time limit. Unless limits expire, the outcome is the one with a body that ends in time.
    pub(super) fn within(&mut self, limit: &Atom, body: &'p Block) -> Result<Value, FlowEnd> {
        let Value::Duration(nanoseconds) = self.value(limit) else { panic!("the verifier let a limit pass") };
        let limit = self.evaluator.limits.begin(nanoseconds);
        let value = self.block(body);
        self.evaluator.limits.end(limit);
        match value {
            Err(FlowEnd::TimeUp(expired)) if expired == limit => Ok(Value::none()),
            value => Ok(Value::some(value?)),
        }
    }
}
