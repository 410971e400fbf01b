//! The answer of a flow that runs on a thread other than that of the event loop on which it began.
//!
//! 1. The event loop makes an [`Answer`], and awaits it as a [`PendingAnswer`]. The thread holds a second reference.
//! 2. The thread runs the flow to its end ([`run`]) and puts the answer, which wakes the event loop.
//! 3. If the event loop drops its [`PendingAnswer`] first, the flow is cancelled: before it begins, when it waits or when
//!    its slice is over, but not inside an atomic step.
//!
//! All state that both sides access is behind one mutex; wakers are called after its release.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use weir_host::{Failure, Value};

use crate::admission::Permit;
use crate::flow::ActiveFlow;
use crate::helpers::CoreUse;
use crate::units::{Advanced, Units};

/// An answer, or the waker of the task that awaits it.
#[derive(Default)]
pub(super) struct Reply {
    answer: Option<Result<Value, Failure>>,
    waiter: Option<Waker>,
}

impl Reply {
    /// Puts the answer, and returns the waker of the task that awaits it, to be called while no lock is held.
    pub(super) fn put(&mut self, answer: Result<Value, Failure>) -> Option<Waker> {
        self.answer = Some(answer);
        self.waiter.take()
    }

    /// Takes the answer, or registers the task to be woken when it is available.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Value, Failure>> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        self.waiter = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The meeting point of the thread that runs a flow and the event loop that awaits its answer.
#[derive(Default)]
pub(super) struct Answer(Mutex<AnswerState>);

#[derive(Default)]
struct AnswerState {
    reply: Reply,
    /// Set when the event loop no longer awaits the answer.
    given_up: bool,
    /// The waker of the thread that runs the flow, while the flow waits.
    runner: Option<Waker>,
}

/// The event loop's end of an answer, with its permit to await an answer.
pub(super) struct PendingAnswer(Arc<Answer>, #[expect(dead_code, reason = "held, and left when dropped")] Permit);

impl Answer {
    /// Returns the future of this answer. It holds its permit until it is dropped.
    pub(super) fn pending(self: &Arc<Self>, permit: Permit) -> PendingAnswer {
        PendingAnswer(Arc::clone(self), permit)
    }

    /// Puts the answer, and wakes the event loop.
    pub(super) fn put(&self, answer: Result<Value, Failure>) {
        let waiter = self.0.lock().reply.put(answer);
        waiter.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the event loop no longer awaits the answer.
    pub(super) fn is_given_up(&self) -> bool {
        self.0.lock().given_up
    }

    /// Returns true if the event loop no longer awaits the answer; otherwise registers the thread to be woken when that
    /// changes.
    pub(super) fn poll_given_up(&self, context: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        state.runner = Some(context.waker().clone());
        state.given_up
    }
}

impl Future for PendingAnswer {
    type Output = Result<Value, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
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

/// Runs a flow on this thread until it yields, and returns it then; or to its end, and puts its answer, unless the event
/// loop stops awaiting it first.
pub(super) fn run(mut flow: ActiveFlow, answer: &Answer, handle: &Handle, cores: &CoreUse) -> Option<ActiveFlow> {
    if answer.is_given_up() && flow.request_give_up() {
        return None;
    }
    let mut advanced = flow.advance(&Units::slice(flow.slice()), &mut Context::from_waker(Waker::noop()));
    if matches!(advanced, Advanced::Waits) {
        let mut poll = |context: &mut Context<'_>| {
            let given_up = answer.poll_given_up(context);
            if given_up && flow.request_give_up() {
                return Poll::Ready(Advanced::Waits);
            }
            match flow.advance(&Units::slice(flow.slice()), context) {
                Advanced::Waits if !given_up || !flow.request_give_up() => Poll::Pending,
                advanced => Poll::Ready(advanced),
            }
        };
        advanced = cores.resting(|| handle.block_on(poll_fn(|context| cores.working(|| poll(context)))));
    }
    match advanced {
        Advanced::Ready(given) => {
            answer.put(given);
            None
        }
        Advanced::Waits => None,
        Advanced::Yields => Some(flow),
    }
}
