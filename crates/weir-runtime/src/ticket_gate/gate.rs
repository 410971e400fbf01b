//! Ticket order: the flows of an ordered source pass a stateful call in the order of the source.
//!
//! A flow's sequence number is its ticket. Every flow passes every gate once: when its call there has ended, when the
//! call is skipped, or when the flow ends. Passing announces that the flow will not reach the call again, so that the
//! next one need not wait for it. All state is behind one mutex.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use super::sync::{Mutex, TicketMutant, is};

/// The ticket gate of one stateful call.
pub(crate) struct TicketGate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    /// The sequence number of the flow whose turn it is.
    next: u64,
    /// The sequence numbers of later flows that have passed already.
    passed: BTreeSet<u64>,
    waiting: BTreeMap<u64, Waker>,
}

impl Default for TicketGate {
    fn default() -> Self {
        TicketGate(Mutex::new(GateState::default()))
    }
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
        } else if sequence == state.next || is(TicketMutant::PassesAgain) {
            state.advance();
        }
    }
}

impl GateState {
    fn advance(&mut self) {
        self.next += 1;
        while self.passed.remove(&self.next) && !is(TicketMutant::ForgetsPassed) {
            self.next += 1;
        }
        if let Some(waker) = self.waiting.remove(&self.next)
            && !is(TicketMutant::LeavesWaiting)
        {
            waker.wake();
        }
    }
}
