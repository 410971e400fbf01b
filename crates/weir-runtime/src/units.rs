//! Units of work: the measure by which flows that compute take turns.
//!
//! A *unit* is about one node of a graph. The number of units that a flow spends is a function of the program and its
//! input alone, so that under one seed of the platform a program yields at the same places in each run.
//!
//! Units are spent at *safe points*, the places at which a flow can be interrupted: at the back edge of each loop (the
//! number of nodes of its body, taken or not) and after each call of a host function ([`CALL`]). A *quantum* is a number
//! of units; only when it is spent does the slow path run. A *slice* is a number of quanta. When it is over, the flow
//! *yields*: it returns to its engine, which gives the next slice to whoever waits ([`Advanced::Yields`]).
//!
//! Code that computes follows three rules:
//!
//! 1. It spends *after* work, not before: while a slice is over, every call of [`Units::spend`] returns
//!    [`Spent::Yield`], and code that spends before its first round would make no progress.
//! 2. If told to yield it stores everything that it needs to go on ([`Stage`](crate::frame)), and returns to its caller.
//!    It may not begin anything else, and it may not block. It goes on when it is resumed, with the units of a new slice.
//! 3. Every cycle contains a safe point, so that no program runs for ever without yielding.

use std::cell::Cell;

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
    /// The units left of the quantum; 0 or less once the slice is over.
    left: Cell<i64>,
    /// The quanta left, with the current one.
    quanta_left: Cell<u32>,
    quantum: u32,
}

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
        let quanta = most.min(length.quanta).max(1);
        Units {
            left: Cell::new(i64::from(length.quantum.max(1))),
            quanta_left: Cell::new(quanta),
            quantum: length.quantum.max(1),
        }
    }

    /// Returns units that do not end, for bodies that nobody interrupts.
    pub(crate) fn endless() -> Units {
        Units { left: Cell::new(i64::MAX), quanta_left: Cell::new(u32::MAX), quantum: 1 }
    }

    /// Spends units at a safe point.
    #[inline(always)]
    pub(crate) fn spend(&self, units: u32) -> Spent {
        let left = self.left.get() - i64::from(units);
        self.left.set(left);
        if left > 0 { Spent::GoOn } else { self.quantum_over(left) }
    }

    #[cold]
    #[inline(never)]
    fn quantum_over(&self, left: i64) -> Spent {
        let quantum = u64::from(self.quantum);
        let overspent = left.unsigned_abs();
        let quanta = u32::try_from(1 + overspent / quantum).unwrap_or(u32::MAX);
        let quanta_left = self.quanta_left.get().saturating_sub(quanta);
        self.quanta_left.set(quanta_left);
        if quanta_left == 0 {
            self.left.set(0);
            return Spent::Yield;
        }
        self.left.set((quantum - overspent % quantum) as i64);
        Spent::GoOn
    }

    /// Returns the number of quanta that are left.
    pub(crate) fn quanta_left(&self) -> u32 {
        self.quanta_left.get()
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
        assert_eq!((units.spend(0), units.quanta_left()), (Spent::Yield, 0));
    }

    #[test]
    fn endless_units_do_not_end() {
        let units = Units::endless();
        assert!((0..1_000).all(|_| units.spend(u32::MAX) == Spent::GoOn));
    }
}
