//! Time limits of `within`, for evaluations in which they expire: those of tests.
//!
//! Only the time counts for which the flow waits in calls, so that a slow machine lets no limit expire. A limit expires in a call
//! that waits, or behind an atomic step in which a call has waited: such a step is never left half done, and the limits around
//! it are hidden from the calls in it.

use std::time::Duration;

/// The limits around the operation that is being evaluated.
pub(super) struct TimeLimits {
    /// False if no limit ever expires.
    expire: bool,
    /// The time for which the flow has waited.
    waited: Duration,
    /// The waiting time at which each limit expires, the outermost limit first.
    deadlines: Vec<Duration>,
    /// The number of the outer limits that are hidden by an atomic step.
    hidden: usize,
}

impl TimeLimits {
    pub(super) const NEVER: TimeLimits =
        TimeLimits { expire: false, waited: Duration::ZERO, deadlines: Vec::new(), hidden: 0 };

    /// Makes limits expire.
    pub(super) fn expire(&mut self) {
        self.expire = true;
    }

    /// Begins a limit, and returns its number. A negative one is zero.
    pub(super) fn begin(&mut self, nanoseconds: i64) -> usize {
        let limit = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
        self.deadlines.push(self.waited.saturating_add(limit));
        self.deadlines.len() - 1
    }

    /// Ends this limit, and those inside of it.
    pub(super) fn end(&mut self, limit: usize) {
        self.deadlines.truncate(limit);
    }

    /// Hides all limits, and returns what `show` needs.
    pub(super) fn hide(&mut self) -> usize {
        std::mem::replace(&mut self.hidden, self.deadlines.len())
    }

    /// Shows the limits again that were visible before `hide`.
    pub(super) fn show(&mut self, hidden: usize) {
        self.hidden = hidden;
    }

    /// Returns the time for which a call may wait, if there is a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        let first = self.visible().map(|(_, deadline)| deadline).min()?;
        Some(first.saturating_sub(self.waited))
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
        self.first().filter(|limit| self.deadlines[*limit] < self.waited)
    }

    /// Returns the limits that are not hidden, with their numbers.
    fn visible(&self) -> impl Iterator<Item = (usize, Duration)> {
        let of_flow = self.deadlines.iter().copied().enumerate().skip(self.hidden);
        of_flow.filter(|_| self.expire)
    }
}
