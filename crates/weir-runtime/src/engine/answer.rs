//! The answer of a flow that runs on another thread than the loop that it began on.
//!
//! 1. The loop makes an [`Answer`] and awaits it ([`PendingAnswer`]); the thread has the other hold of it.
//! 2. The thread runs the flow to its end ([`run`]) and gives the answer, which wakes the loop.
//! 3. Where the loop drops what it awaits first, the flow is given up: before it begins, or at its next wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_host::{Begun, Failure, Value};

use crate::admission::Permit;
use crate::flow::ActiveFlow;

/// An answer, or who waits for it.
#[derive(Default)]
pub(super) struct Reply {
    answer: Option<Result<Value, Failure>>,
    asker: Option<Waker>,
}

impl Reply {
    /// Puts the answer in, and yields who waits for it, to be woken when nothing is locked.
    pub(super) fn give(&mut self, answer: Result<Value, Failure>) -> Option<Waker> {
        self.answer = Some(answer);
        self.asker.take()
    }

    /// Takes the answer out, or waits for it.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Value, Failure>> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        self.asker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Where a flow's answer is put and awaited.
#[derive(Default)]
pub(super) struct Answer(Mutex<AnswerState>);

#[derive(Default)]
struct AnswerState {
    reply: Reply,
    /// Nobody waits any more.
    given_up: bool,
    /// The thread that runs the flow, while the flow waits.
    runner: Option<Waker>,
}

/// The loop's end of an answer, and its place among those who await one.
struct PendingAnswer(Arc<Answer>, #[expect(dead_code, reason = "held, and left when dropped")] Permit);

impl Answer {
    /// The future of this answer, for who began the flow. Until it is dropped it is one of those who await an answer.
    pub(super) fn going(self: &Arc<Self>, permit: Permit) -> Begun {
        let mut awaited = PendingAnswer(Arc::clone(self), permit);
        Begun::Pending(Box::pin(poll_fn(move |context| awaited.poll(context))))
    }

    /// Gives the answer.
    pub(super) fn give(&self, answer: Result<Value, Failure>) {
        let asker = self.0.lock().reply.give(answer);
        asker.into_iter().for_each(Waker::wake);
    }

    /// Whether nobody waits any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.0.lock().given_up
    }

    /// Whether nobody waits any more; else the waker is woken when that changes.
    pub(super) fn poll_given_up(&self, context: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        state.runner = Some(context.waker().clone());
        state.given_up
    }
}

impl PendingAnswer {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        self.0.0.lock().reply.poll(context)
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.given_up = true;
        let runner = state.runner.take();
        drop(state);
        runner.into_iter().for_each(Waker::wake);
    }
}

/// Runs a flow to its end on this thread, and gives its answer where somebody still waits for it.
pub(super) fn run(mut flow: ActiveFlow, answer: &Answer, handle: &Handle) {
    if answer.is_given_up() {
        return;
    }
    let given = match flow.advance(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(given) => Some(given),
        Poll::Pending => handle.block_on(poll_fn(|context| {
            if answer.poll_given_up(context) {
                return Poll::Ready(None);
            }
            flow.advance(context).map(Some)
        })),
    };
    given.into_iter().for_each(|given| answer.give(given));
}
