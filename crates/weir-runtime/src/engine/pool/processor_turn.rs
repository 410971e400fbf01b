//! Turns on a processor that a thread of the pool shares with the event loop.
//!
//! Threads that compute never rest. If they and the event loop outnumber the processors, the system lets the loop wait until
//! it ends the turn of a thread: some milliseconds, and for each small request again. A thread therefore yields its processor
//! between two slices, if the loop has begun flows since the thread did so last.
//!
//! The system makes a thread that yields wait for some milliseconds if others want the processor. So a thread keeps it for
//! [`TURN_NS`] at least: flows that compute then progress beside small requests about as fast as under `event`.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The time between two yields. Measured on two processors that eight clients and other work kept busy: with it, six flows that
/// compute for 0.6 s each take 5 s (`event`: 5.2 to 5.7 s), and 22 s if each slice ends in a yield.
const TURN_NS: u64 = 300_000;

/// The number of flows that the event loop has begun.
#[derive(Default)]
pub(super) struct LoopFlows(AtomicUsize);

impl LoopFlows {
    /// Counts a flow. Only the event loop calls this, so that no addition is lost. Relaxed: the count is a hint.
    #[inline]
    pub(super) fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The turn of one thread.
pub(super) struct ProcessorTurn {
    /// True if the threads and the event loop outnumber the processors.
    is_shared: bool,
    /// The flows of the event loop when the turn began.
    seen: usize,
    began_ns: u64,
}

impl ProcessorTurn {
    /// Begins the first turn of one of so many threads.
    pub(super) fn new(threads: usize, processors: usize) -> ProcessorTurn {
        ProcessorTurn { is_shared: threads + 1 > processors, seen: 0, began_ns: 0 }
    }

    /// Returns true if the thread has to yield its processor after a slice. The next turn begins then.
    pub(super) fn is_over(&mut self, flows: &LoopFlows, now_ns: impl FnOnce() -> u64) -> bool {
        let begun = flows.0.load(Ordering::Relaxed);
        if !self.is_shared || begun == self.seen {
            return false;
        }
        let now_ns = now_ns();
        if now_ns.saturating_sub(self.began_ns) < TURN_NS {
            return false;
        }
        (self.seen, self.began_ns) = (begun, now_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_after_a_while_if_the_loop_has_begun_a_flow() {
        let (mut turn, flows) = (ProcessorTurn::new(2, 2), LoopFlows::default());
        assert!(!turn.is_over(&flows, || 10 * TURN_NS), "without a flow");
        flows.count();
        assert!(!turn.is_over(&flows, || TURN_NS - 1), "too early");
        assert!(turn.is_over(&flows, || TURN_NS));
        assert!(!turn.is_over(&flows, || 10 * TURN_NS), "without a further flow");
        flows.count();
        assert!(!turn.is_over(&flows, || 2 * TURN_NS - 1) && turn.is_over(&flows, || 2 * TURN_NS));
    }

    #[test]
    fn a_thread_with_a_processor_of_its_own_does_not_yield() {
        let (mut turn, flows) = (ProcessorTurn::new(2, 3), LoopFlows::default());
        flows.count();
        assert!(!turn.is_over(&flows, || 10 * TURN_NS));
    }
}
