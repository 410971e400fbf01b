//! Units of work: the measure by which flows that compute take turns.
//!
//! A *unit* is about one node of a graph. The number of units that a flow spends is a function of the program and its
//! input alone, so that under one seed of the platform a program yields at the same places in each run.
//!
//! Units are spent at *safe points*, the places at which a flow can be interrupted: at the back edge of each loop (the
//! number of nodes of its body, taken or not) and after each call of a host function ([`CALL`]). A *slice* is a number of
//! units, in *quanta*. Only after some units, at most a quantum, does the slow path run; it also reads the clock, because
//! a host function may take longer than its units tell. When the slice is over, the flow *yields*: it returns to its
//! engine, which gives the next slice to whoever waits ([`Advanced::Yields`]).
//!
//! Code that computes follows three rules:
//!
//! 1. It spends *after* work, not before: while a slice is over, every call of [`Units::spend_timed`] returns
//!    [`Spent::Yield`], and code that spends before its first round would make no progress.
//! 2. If told to yield it stores everything that it needs to go on ([`Stage`](crate::frame)), and returns to its caller.
//!    It may not begin anything else, and it may not block. It goes on when it is resumed, with the units of a new slice.
//! 3. Every cycle contains a safe point, so that no program runs for ever without yielding.

use std::cell::Cell;

use weir_host::memory;

use crate::platform::Platform;

/// The units of a call of a host function, beside those of its node.
pub(crate) const CALL: u32 = 1;

/// The number of quanta that a flow may spend at a time on an event loop that has other things to do, before it is
/// passed to a thread. Chosen by judgement: passing it on costs about as much as a quantum.
pub(crate) const QUANTA_ON_LOOP: u32 = 2;

/// The length of slices: the work that a flow may do before others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLength {
    /// The number of units of a quantum.
    pub quantum: u32,
    /// The number of quanta of a slice.
    pub quanta: u32,
}

impl SliceLength {
    /// Slices of one unit, so that a flow yields at each safe point. For tests: no length may change an answer.
    pub const ONE_UNIT: SliceLength = SliceLength { quantum: 1, quanta: 1 };
}

impl Default for SliceLength {
    /// Chosen by measurement: a node takes about 22 ns as a step, so that a quantum takes about 20 µs, and a slice, for
    /// which a small request may have to wait, about 0.2 ms.
    fn default() -> Self {
        SliceLength { quantum: 1_000, quanta: 10 }
    }
}

/// The units that a flow may still spend until it yields.
pub(crate) struct Units {
    /// The units left until the next check; 0 or less once the slice is over.
    left: Cell<i64>,
    /// The units of the slice behind the next check.
    rest: Cell<u64>,
    /// The units between the next check and the one after it.
    next: Cell<u32>,
    /// The time of the first check; 0 before.
    since_ns: Cell<u64>,
    /// The time of the next heartbeat, while the work that spends the units is told about heartbeats; otherwise [`NEVER_NS`].
    beat_at_ns: Cell<u64>,
    /// The time of the next heartbeat for work that is told about them; 0 before the first check.
    next_beat_ns: Cell<u64>,
    quantum: u32,
    /// The units at the beginning.
    total: u64,
}

/// The time between two heartbeats, at which a flow that computes may offer a part of its work to an idle core. Chosen by
/// judgement: an offer costs some 5 µs, and so a tenth of the time at most.
const HEARTBEAT_NS: u64 = 50_000;

/// The time of a heartbeat that does not come.
const NEVER_NS: u64 = u64::MAX;

/// The units before the first check. Chosen by judgement: a request with a few calls reads the clock once or twice.
const FIRST_CHECK: u64 = 4;
/// The units between the first check and the second; each further distance is twice as long, up to a quantum, so that a
/// loop around a slow call is noticed after a few rounds.
const SECOND_CHECK: u32 = 4;
/// The time after which a slice is over, however few units were spent: host functions may take long.
const SLICE_MAX_NS: u64 = 500_000;

/// The answer of a safe point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Spent {
    /// The flow goes on.
    GoOn,
    /// The slice is over: the flow returns to its engine.
    Yield,
}

/// The outcome of advancing a frame, a step with bodies, or a flow.
pub(crate) enum Advanced<T> {
    /// It has come to its end, or to the end of its segment.
    Ready(T),
    /// It waits for something outside, and its waker is called when it can go on.
    Waits,
    /// It computes and its slice is over. Nothing wakes it: whoever advances it does so again.
    Yields,
}

impl Units {
    /// Returns the units of a whole slice.
    pub(crate) fn slice(length: SliceLength) -> Units {
        Units::quanta(length, length.quanta)
    }

    /// Returns the units of at most this many quanta of a slice.
    pub(crate) fn quanta(length: SliceLength, most: u32) -> Units {
        let quantum = length.quantum.max(1);
        let total = u64::from(quantum) * u64::from(most.min(length.quanta).max(1));
        let first = total.min(FIRST_CHECK);
        Units {
            left: Cell::new(first as i64),
            rest: Cell::new(total - first),
            next: Cell::new(SECOND_CHECK.min(quantum)),
            since_ns: Cell::new(0),
            beat_at_ns: Cell::new(NEVER_NS),
            next_beat_ns: Cell::new(0),
            quantum,
            total,
        }
    }

    /// Returns units that do not end, for bodies that nobody interrupts.
    pub(crate) fn endless() -> Units {
        Units {
            left: Cell::new(i64::MAX),
            rest: Cell::new(u64::MAX),
            next: Cell::new(1),
            since_ns: Cell::new(0),
            beat_at_ns: Cell::new(NEVER_NS),
            next_beat_ns: Cell::new(0),
            quantum: 1,
            total: u64::MAX,
        }
    }

    /// Spends units without looking at the clock.
    #[cfg(test)]
    pub(crate) fn spend(&self, units: u32) -> Spent {
        let left = self.left.get() - i64::from(units);
        self.left.set(left);
        if left > 0 { Spent::GoOn } else { self.go_on(left) }
    }

    /// Spends the units that a call has declared. They are noticed at the safe point behind the call.
    #[inline(always)]
    pub(crate) fn spend_declared(&self, units: u64) {
        if units > 0 {
            self.left.set(self.left.get().saturating_sub(units.cast_signed().max(0)));
        }
    }

    /// Spends the estimated units of a primitive over data, at most a quantum. They are noticed at the safe point behind it.
    #[inline(always)]
    pub(crate) fn spend_data(&self, units: u64) {
        self.spend_declared(units.min(u64::from(self.quantum)));
    }

    /// Returns the number of rounds of this many units that can run before the next check.
    pub(crate) fn rounds_before_check(&self, units: u32) -> u64 {
        let before = self.left.get().saturating_sub(1).max(0).unsigned_abs();
        before / u64::from(units.max(1))
    }

    /// Spends the units of rounds that come before the next check.
    pub(crate) fn spend_rounds(&self, rounds: u64, units: u32) {
        self.left.set(self.left.get() - (rounds * u64::from(units)).cast_signed());
    }

    /// Spends units at a safe point. The slice is also over if it takes long by the platform's clock.
    #[inline(always)]
    pub(crate) fn spend_timed(&self, units: u32, platform: &dyn Platform) -> Spent {
        let left = self.left.get() - i64::from(units);
        self.left.set(left);
        if left > 0 { Spent::GoOn } else { self.check(left, platform) }
    }

    #[cold]
    #[inline(never)]
    fn check(&self, left: i64, platform: &dyn Platform) -> Spent {
        if self.go_on(left) == Spent::Yield {
            return Spent::Yield;
        }
        // The flow fails where it yields.
        if memory::is_over() {
            self.end();
            return Spent::Yield;
        }
        let (now_ns, since_ns) = (platform.now_ns(), self.since_ns.get());
        if since_ns == 0 {
            self.since_ns.set(now_ns.max(1));
        } else if now_ns.saturating_sub(since_ns) >= SLICE_MAX_NS {
            self.end();
            return Spent::Yield;
        }
        // One comparison, whether the work could be divided or not.
        if now_ns < self.beat_at_ns.get() { Spent::GoOn } else { self.beat(now_ns) }
    }

    /// Tells work that could be divided about a heartbeat, as if the slice were over.
    fn beat(&self, now_ns: u64) -> Spent {
        let is_first = self.beat_at_ns.replace(now_ns.saturating_add(HEARTBEAT_NS)) == 0;
        if is_first { Spent::GoOn } else { Spent::Yield }
    }

    /// Runs work that could be divided, and that is told to yield at each heartbeat, too. After that the slice goes on
    /// unless [it is over](Units::is_over).
    #[inline(always)]
    pub(crate) fn with_heartbeats<R>(&self, run: impl FnOnce() -> R) -> R {
        self.beat_at_ns.set(self.next_beat_ns.get());
        let result = run();
        self.next_beat_ns.set(self.beat_at_ns.replace(NEVER_NS));
        result
    }

    /// Returns true if the slice is over.
    pub(crate) fn is_over(&self) -> bool {
        self.left.get() <= 0
    }

    /// Begins the units between two checks, unless the slice is over.
    #[cold]
    #[inline(never)]
    fn go_on(&self, left: i64) -> Spent {
        let rest = self.rest.get().saturating_sub(left.unsigned_abs());
        if rest == 0 {
            self.end();
            return Spent::Yield;
        }
        let next = rest.min(u64::from(self.next.get()));
        self.left.set(next as i64);
        self.rest.set(rest - next);
        self.next.set(self.next.get().saturating_mul(2).min(self.quantum));
        Spent::GoOn
    }

    fn end(&self) {
        self.left.set(0);
        self.rest.set(0);
    }

    /// Returns true if units were spent.
    pub(crate) fn has_spent(&self) -> bool {
        self.spent() > 0
    }

    fn spent(&self) -> u64 {
        let left = self.rest.get().saturating_add(self.left.get().max(0).unsigned_abs());
        self.total.saturating_sub(left)
    }

    /// Returns the number of whole quanta that were spent.
    #[inline]
    pub(crate) fn quanta_spent(&self) -> u32 {
        let (spent, quantum) = (self.spent(), u64::from(self.quantum));
        // Most flows spend less, and need no division.
        if spent < quantum { 0 } else { u32::try_from(spent / quantum).unwrap_or(u32::MAX) }
    }
}

impl<T> Advanced<T> {
    /// Applies a function to the result.
    pub(crate) fn map<R>(self, change: impl FnOnce(T) -> R) -> Advanced<R> {
        match self {
            Advanced::Ready(value) => Advanced::Ready(change(value)),
            Advanced::Waits => Advanced::Waits,
            Advanced::Yields => Advanced::Yields,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::ScriptedPlatform;

    const LENGTH: SliceLength = SliceLength { quantum: 100, quanta: 3 };

    fn spent(units: &Units, each: u32) -> u32 {
        (1..).find(|_| units.spend(each) == Spent::Yield).unwrap_or(0)
    }

    #[test]
    fn a_slice_is_over_when_all_of_its_quanta_are_spent() {
        assert_eq!(spent(&Units::slice(LENGTH), 1), 300);
        assert_eq!(spent(&Units::slice(LENGTH), 7), 43);
        assert_eq!(spent(&Units::slice(LENGTH), 1_000), 1);
        assert_eq!(spent(&Units::quanta(LENGTH, 2), 1), 200);
        assert_eq!(spent(&Units::quanta(LENGTH, 0), 1), 100);
        assert_eq!(spent(&Units::slice(SliceLength::ONE_UNIT), 1), 1);
    }

    #[test]
    fn a_slice_that_is_over_stays_over() {
        let units = Units::slice(LENGTH);
        assert_eq!(units.spend(u32::MAX), Spent::Yield);
        assert_eq!((units.spend(0), units.quanta_spent()), (Spent::Yield, 3));
    }

    #[test]
    fn a_slice_of_slow_calls_is_over_after_a_few() {
        let (units, platform) = (Units::slice(SliceLength::default()), ScriptedPlatform::new(0));
        platform.pass_ns(1);
        let calls = (1..).find(|_| {
            platform.pass_ns(10_000_000);
            units.spend_timed(4, &platform) == Spent::Yield
        });
        assert_eq!(calls, Some(2));
    }

    #[test]
    fn endless_units_do_not_end() {
        let units = Units::endless();
        assert!((0..1_000).all(|_| units.spend(u32::MAX) == Spent::GoOn));
    }
}
