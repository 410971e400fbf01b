//! Ticket order: the flows of an ordered source pass a stateful call in the order of the source.
//!
//! A flow's sequence number is its ticket. Every flow passes every gate once: when its call there has ended, when the
//! call is skipped, or when the flow ends. Passing announces that the flow will not reach the call again, so that the
//! next one need not wait for it. All state is behind one mutex.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The ticket gate of one stateful call.
#[derive(Default)]
pub(crate) struct TicketGate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    /// The sequence number of the flow whose turn it is.
    next: u64,
    /// The sequence numbers of later flows that have passed already.
    passed: BTreeSet<u64>,
    waiting: BTreeMap<u64, Waker>,
}

impl TicketGate {
    /// Returns ready if it is the turn of this flow; otherwise registers its waker.
    pub(crate) fn poll(&self, sequence: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.next >= sequence {
            return Poll::Ready(());
        }
        state.waiting.insert(sequence, context.waker().clone());
        Poll::Pending
    }

    /// Records that this flow has passed, or will not reach the call. Passing is idempotent.
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
