//! Turns: how the flows of an ordered source pass a stateful call in the source's order.
//!
//! Every flow passes every turnstile once: when its call there is through, when the call is skipped, or when the flow
//! ends. Passing announces that the flow will not come any more, so the next one need not wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The gate of one stateful call.
#[derive(Default)]
pub(crate) struct TicketGate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    /// The flow whose turn it is, by its sequence number.
    next: u64,
    /// Later flows that have passed already.
    passed: BTreeSet<u64>,
    waiting: BTreeMap<u64, Waker>,
}

impl TicketGate {
    /// Whether it is the turn of the flow `sequence`; else its waker is kept.
    pub(crate) fn poll(&self, sequence: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.next >= sequence {
            return Poll::Ready(());
        }
        state.waiting.insert(sequence, context.waker().clone());
        Poll::Pending
    }

    /// The flow `sequence` is through, or will not come. Passing twice is passing once.
    pub(crate) fn pass(&self, sequence: u64) {
        let mut state = self.0.lock();
        state.waiting.remove(&sequence);
        if sequence > state.next {
            state.passed.insert(sequence);
        } else if sequence == state.next {
            state.advance();
        }
    }
}

impl GateState {
    fn advance(&mut self) {
        self.next += 1;
        while self.passed.remove(&self.next) {
            self.next += 1;
        }
        if let Some(waker) = self.waiting.remove(&self.next) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_turn_of(gate: &TicketGate, sequence: u64) -> bool {
        gate.poll(sequence, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn flows_come_in_their_order_and_those_that_passed_are_not_waited_for() {
        let gate = TicketGate::default();
        assert!(is_turn_of(&gate, 0) && !is_turn_of(&gate, 1));
        gate.pass(2);
        gate.pass(1);
        assert!(!is_turn_of(&gate, 3));
        gate.pass(0);
        gate.pass(0);
        assert!(is_turn_of(&gate, 3) && !is_turn_of(&gate, 4));
    }
}
