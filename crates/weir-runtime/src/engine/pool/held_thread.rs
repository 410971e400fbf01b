//! Threads of the pool whose flows wait and hold them.
//!
//! Such a thread goes on with flows that have run before. One of these may have what others wait for: a lock, a turn, a batch
//! that has to be sent, a connection. If it had to wait for a thread, too, nothing would go on until one of the flows that hold
//! threads has waited for something else, such as the end of a `time.sleep`. Therefore:
//!
//! 1. A thread registers its task before it sleeps, in the critical section of the queue in which it has found no such flow.
//! 2. Whoever puts a flow into the queue wakes an idle thread, and, if more flows are queued than idle threads are about to
//!    take, a registered one, in the same critical section ([`FlowQueueState::thread_to_wake`]).
//! 3. A thread that is woken, for whatever reason, withdraws its task, polls its flows, and takes one from the queue.
//!
//! So no thread sleeps while a flow that has run before waits for one. A flow counts as one that has run before also if that was
//! on the event loop: it may have begun a call that keeps locks.
//!
//! The thread takes a new flow only if one of its flows has gone on and waits again. That flow may sleep again and again until it
//! sees what a new flow is to do.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{FlowQueue, FlowQueueState, HeldFlow, threadless_wait};
use crate::units::{Advanced, Units};

/// The registered tasks, each with the number of its thread.
pub(super) type SleepingThreads = Vec<(usize, Waker)>;

/// A thread, and the flows that wait on it.
pub(super) struct HeldThread {
    number: usize,
    flows: Vec<FlowOnThread>,
}

struct FlowOnThread {
    held: HeldFlow,
    /// True if the flow has waited on this thread.
    has_waited: bool,
}

impl HeldThread {
    /// Returns the thread of this number, which a flow holds.
    pub(super) fn new(number: usize, waiting: HeldFlow) -> HeldThread {
        HeldThread { number, flows: vec![FlowOnThread { held: waiting, has_waited: true }] }
    }

    /// Polls the flows, until all of them have ended or yielded, or wait without a thread.
    pub(super) fn poll(&mut self, queue: &Arc<FlowQueue>, context: &mut Context<'_>) -> Poll<()> {
        queue.jobs.lock().sleeping.retain(|(number, _)| *number != self.number);
        let goes_on = self.advance_flows(queue, context);
        if self.flows.is_empty() {
            return Poll::Ready(());
        }
        if let Some(held) = queue.next_beside(self.number, goes_on, context) {
            self.flows.push(FlowOnThread { held, has_waited: false });
            // Not polled at once, because the budget of tokio's resources is renewed only between two polls.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Advances the flows. Returns true if one has waited here, has gone on, and waits again.
    fn advance_flows(&mut self, queue: &Arc<FlowQueue>, context: &mut Context<'_>) -> bool {
        let (flows, mut index, mut goes_on) = (&mut self.flows, 0, false);
        while let Some(FlowOnThread { held, has_waited }) = flows.get_mut(index) {
            let units = Units::slice(held.flow.slice());
            match held.advance(&units, context) {
                Advanced::Waits if held.flow.leaves_thread() => {
                    let waiting = threadless_wait::park(queue, flows.remove(index).held);
                    let waiting = waiting.map(|held| FlowOnThread { held, has_waited: true });
                    waiting.into_iter().for_each(|waiting| flows.insert(index, waiting));
                }
                Advanced::Waits => {
                    goes_on |= *has_waited && units.has_spent();
                    *has_waited = true;
                    index += 1;
                }
                Advanced::Ready(()) => drop(flows.remove(index)),
                Advanced::Yields => queue.put_back(flows.remove(index).held),
            }
        }
        goes_on
    }
}

impl FlowQueue {
    /// Takes a flow beside those that wait on this thread: one that has run before, or if `may_be_new`, also a new one. If there is
    /// none, registers the task of this thread, which is about to sleep.
    fn next_beside(&self, number: usize, may_be_new: bool, context: &Context<'_>) -> Option<HeldFlow> {
        let mut jobs = self.jobs.lock();
        let new = if may_be_new { jobs.new.pop_front() } else { None };
        let Some(flow) = new.or_else(|| jobs.begun.pop()) else {
            jobs.sleeping.push((number, context.waker().clone()));
            return None;
        };
        self.note_length(&jobs);
        drop(jobs);
        self.note_leaving(&flow);
        Some(flow.held)
    }
}

impl FlowQueueState {
    /// Returns the task of a registered thread, to be woken, if it has to take a flow that has run before. `taking` is the number of
    /// threads that are about to take a flow, beside the idle ones.
    pub(super) fn thread_to_wake(&mut self, taking: usize) -> Option<Waker> {
        let are_enough = self.len() <= self.idle + taking;
        if are_enough || self.begun.len() == 0 { None } else { self.sleeping.pop().map(|(_, task)| task) }
    }
}
