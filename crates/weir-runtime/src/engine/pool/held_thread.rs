//! Threads of the pool whose flows wait and hold them.
//!
//! Such a thread takes no new flow, but goes on with flows that have run before. One of these may have what the flows of all
//! threads wait for: a lock, a turn, a batch that has to be sent. If it had to wait for a thread, too, nothing would go on until
//! one of the others has waited for something else, such as the end of a `time.sleep` in a `race`. Therefore:
//!
//! 1. A thread registers its task before it sleeps, in the critical section of the queue in which it has found no such flow.
//! 2. Whoever puts a flow into the queue wakes an idle thread, and, if more flows are queued than idle threads are about to
//!    take, a registered one, in the same critical section ([`FlowQueueState::thread_to_wake`]).
//! 3. A thread that is woken, for whatever reason, withdraws its task, polls its flows, and takes one from the queue.
//!
//! So no thread sleeps while a flow that has run before waits for one. A flow counts as one that has run before also if that was
//! on the event loop: it may have begun a call that keeps locks.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{FlowQueue, FlowQueueState, HeldFlow, threadless_wait};
use crate::units::Advanced;

/// The registered tasks, each with the number of its thread.
pub(super) type SleepingThreads = Vec<(usize, Waker)>;

/// A thread, and the flows that wait on it.
pub(super) struct HeldThread {
    number: usize,
    flows: Vec<HeldFlow>,
}

impl HeldThread {
    /// Returns the thread of this number, which a flow holds.
    pub(super) fn new(number: usize, waiting: HeldFlow) -> HeldThread {
        HeldThread { number, flows: vec![waiting] }
    }

    /// Polls the flows, until all of them have ended or yielded, or wait without a thread.
    pub(super) fn poll(&mut self, queue: &Arc<FlowQueue>, context: &mut Context<'_>) -> Poll<()> {
        queue.jobs.lock().sleeping.retain(|(number, _)| *number != self.number);
        self.advance_flows(queue, context);
        if self.flows.is_empty() {
            return Poll::Ready(());
        }
        if let Some(begun) = queue.next_begun(self.number, context) {
            self.flows.push(begun);
            // Not polled at once, because the budget of tokio's resources is renewed only between two polls.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn advance_flows(&mut self, queue: &Arc<FlowQueue>, context: &mut Context<'_>) {
        let (flows, mut index) = (&mut self.flows, 0);
        while let Some(flow) = flows.get_mut(index) {
            match flow.advance(context) {
                Advanced::Waits if flow.flow.leaves_thread() => {
                    let waiting = threadless_wait::park(queue, flows.remove(index));
                    waiting.into_iter().for_each(|waiting| flows.insert(index, waiting));
                }
                Advanced::Waits => index += 1,
                Advanced::Ready(()) => drop(flows.remove(index)),
                Advanced::Yields => queue.put_back(flows.remove(index)),
            }
        }
    }
}

impl FlowQueue {
    /// Takes a flow that has run before; if there is none, registers the task of this thread, which is about to sleep.
    fn next_begun(&self, number: usize, context: &Context<'_>) -> Option<HeldFlow> {
        let mut jobs = self.jobs.lock();
        let Some(flow) = jobs.begun.pop() else {
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
