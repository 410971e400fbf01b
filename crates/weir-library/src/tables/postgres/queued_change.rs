//! A change of one row that is queued, and the flow that waits for it.
//!
//! A wake-up from another thread is a system call, and the flows of a group belong to few threads. So if a group is answered, one flow
//! of each other thread is woken, and that one wakes the others of its thread when it goes on, or is given up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::ThreadId;

use parking_lot::Mutex;
use weir::{Failure, Value};

use super::table_layout::TableLayout;
use crate::tables::rows::{ChangeAnswered, RowChange};

/// A change of a row of a table, and the flow that waits for it.
pub(super) struct QueuedChange {
    pub(super) table: Arc<TableLayout>,
    pub(super) change: RowChange,
    /// True if an insertion may be one statement with others. The database tells of these only how many rows it has inserted.
    pub(super) joins: bool,
    answered: ChangeAnswered,
    flow: ChangeEnd,
}

/// The answer to a change, and the number of its commit; `None` if nobody will answer.
type ChangeAnswer = Option<(Result<Value, Failure>, Option<u64>)>;

/// The end of a change that answers it. Dropping it answers that nobody will.
struct ChangeEnd {
    wait: Arc<Mutex<ChangeWait>>,
    /// The thread of the flow.
    thread: ThreadId,
}

/// The end of a change that its flow waits for.
pub(super) struct PendingChange(Arc<Mutex<ChangeWait>>);

#[derive(Default)]
struct ChangeWait {
    answer: Option<ChangeAnswer>,
    waker: Option<Waker>,
    /// The flows that this one wakes.
    followers: Vec<Waker>,
    /// True if the flow does not wait any more.
    is_gone: bool,
}

impl QueuedChange {
    /// Returns a change of the flow that calls this, and its answer.
    pub(super) fn new(
        (table, change): (Arc<TableLayout>, RowChange),
        answered: ChangeAnswered,
    ) -> (QueuedChange, PendingChange) {
        let wait = Arc::<Mutex<ChangeWait>>::default();
        let flow = ChangeEnd { wait: Arc::clone(&wait), thread: std::thread::current().id() };
        let joins = !table.may_interfere();
        (QueuedChange { table, change, joins, answered, flow }, PendingChange(wait))
    }

    /// Gives the flow its answer, and the number of the commit. The flow is woken with `woken`.
    pub(super) fn end(self, answer: Result<Value, Failure>, commit: Option<u64>, woken: &mut WokenFlows) {
        (self.answered)(&answer);
        woken.add(self.flow, Some((answer, commit)));
    }
}

impl Drop for ChangeEnd {
    fn drop(&mut self) {
        let waker = {
            let mut wait = self.wait.lock();
            wait.answer.get_or_insert(None);
            wait.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Future for PendingChange {
    type Output = ChangeAnswer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ChangeAnswer> {
        let mut wait = self.0.lock();
        let followers = std::mem::take(&mut wait.followers);
        let polled = match wait.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                wait.waker = Some(context.waker().clone());
                Poll::Pending
            }
        };
        drop(wait);
        followers.into_iter().for_each(Waker::wake);
        polled
    }
}

impl Drop for PendingChange {
    fn drop(&mut self) {
        let followers = {
            let mut wait = self.0.lock();
            wait.is_gone = true;
            std::mem::take(&mut wait.followers)
        };
        followers.into_iter().for_each(Waker::wake);
    }
}

/// Flows whose changes were answered. They are woken when this is dropped.
#[derive(Default)]
pub(super) struct WokenFlows(Vec<ThreadFlows>);

/// The flows of a thread.
struct ThreadFlows {
    thread: ThreadId,
    /// The flow that wakes the others.
    leader: (Arc<Mutex<ChangeWait>>, Waker),
    others: Vec<Waker>,
}

impl WokenFlows {
    fn add(&mut self, flow: ChangeEnd, answer: ChangeAnswer) {
        let waker = {
            let mut wait = flow.wait.lock();
            wait.answer = Some(answer);
            wait.waker.take()
        };
        // A flow that was not polled yet, or that is gone, has none.
        let Some(waker) = waker else { return };
        match self.0.iter_mut().find(|flows| flows.thread == flow.thread) {
            Some(flows) => flows.others.push(waker),
            None => {
                let leader = (Arc::clone(&flow.wait), waker);
                self.0.push(ThreadFlows { thread: flow.thread, leader, others: Vec::new() });
            }
        }
    }
}

impl Drop for WokenFlows {
    fn drop(&mut self) {
        let own = std::thread::current().id();
        for ThreadFlows { thread, leader: (leader, waker), mut others } in self.0.drain(..) {
            if thread != own {
                let mut leader = leader.lock();
                if !leader.is_gone {
                    leader.followers.append(&mut others);
                }
            }
            waker.wake();
            others.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use test_support::CountingWaker;

    use super::*;

    struct Flow {
        pending: Option<PendingChange>,
        waker: Arc<CountingWaker>,
    }

    impl Flow {
        /// Returns a flow of another thread, which waits, and the end of its change.
        fn waiting(thread: ThreadId) -> (Flow, ChangeEnd) {
            let wait = Arc::<Mutex<ChangeWait>>::default();
            let flow = Flow { pending: Some(PendingChange(Arc::clone(&wait))), waker: Arc::default() };
            (flow, ChangeEnd { wait, thread })
        }

        fn poll(&mut self) -> Option<ChangeAnswer> {
            let waker = Waker::from(Arc::clone(&self.waker));
            let pending = self.pending.as_mut().expect("it waits");
            match Pin::new(pending).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            }
        }
    }

    fn other_thread() -> ThreadId {
        std::thread::spawn(|| std::thread::current().id()).join().expect("it does not panic")
    }

    /// Returns three flows of this thread that wait, and the flows that are woken when the last value is dropped.
    fn answered(thread: ThreadId) -> ([Flow; 3], WokenFlows) {
        let mut woken = WokenFlows::default();
        let flows = [1, 2, 3].map(|number| {
            let (mut flow, end) = Flow::waiting(thread);
            assert!(flow.poll().is_none());
            woken.add(end, Some((Ok(Value::Int(number)), None)));
            flow
        });
        (flows, woken)
    }

    fn counts(flows: &[Flow]) -> Vec<usize> {
        flows.iter().map(|flow| flow.waker.count()).collect()
    }

    #[test]
    fn one_flow_of_another_thread_is_woken_and_wakes_the_others() {
        let (mut flows, woken) = answered(other_thread());
        assert_eq!(counts(&flows), [0, 0, 0]);
        drop(woken);
        assert_eq!(counts(&flows), [1, 0, 0]);
        assert_eq!(flows[0].poll(), Some(Some((Ok(Value::Int(1)), None))));
        assert_eq!(counts(&flows), [1, 1, 1]);
        assert_eq!(flows[2].poll(), Some(Some((Ok(Value::Int(3)), None))));
    }

    #[test]
    fn a_flow_that_is_given_up_wakes_the_others_before_and_after_it_is_woken() {
        let (mut flows, woken) = answered(other_thread());
        drop(woken);
        flows[0].pending = None;
        assert_eq!(counts(&flows), [1, 1, 1]);
        let (mut flows, woken) = answered(other_thread());
        flows[0].pending = None;
        drop(woken);
        assert_eq!(counts(&flows), [1, 1, 1]);
    }

    #[test]
    fn flows_of_the_own_thread_are_woken_at_once_and_a_change_that_nobody_answers_ends() {
        let (flows, woken) = answered(std::thread::current().id());
        drop(woken);
        assert_eq!(counts(&flows), [1, 1, 1]);
        let (mut flow, end) = Flow::waiting(other_thread());
        assert!(flow.poll().is_none());
        drop(end);
        assert_eq!((flow.waker.count(), flow.poll()), (1, Some(None)));
    }
}
