//! One batch: the calls that have joined it, and the sender that has it answered.
//!
//! All state is behind one mutex (`batch_state.rs`). Two sides share it:
//!
//! * *Members* (`member.rs`), each with the calls of one flow that have joined together. A member registers the waker of its flow in the
//!   critical section in which it joins or finds no answers, and the sender takes all wakers in the one in which it stores the
//!   answers. Dropping a member that has no answers leaves the batch.
//! * *The sender* registers its waker likewise, before it waits for the flows that have joined to come to rest, and while
//!   the function works, in case all members leave.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;
use tokio::task::yield_now;
use weir_host::{Outcome, Value};

use super::batch_state::{BatchStage, BatchState, JoiningFlow, SentCalls, Wakers};
use super::call_slack::NO_LIMIT;
use super::requests::{RequestIndices, SentRequests};
use super::sync::{BatchMutant, Mutex, is};
use crate::platform::Platform;

/// A batch.
pub(crate) struct GatheredBatch {
    /// The arguments that all calls have in common.
    common: Box<[Value]>,
    /// The time at which the first call has joined.
    pub(super) began_ns: u64,
    pub(super) state: Mutex<BatchState>,
}

/// Calls of one flow in a batch, which wait together. Dropping it cancels them.
pub(crate) struct Member {
    pub(super) batch: Arc<GatheredBatch>,
    /// The request of each call; empty once the answers were taken.
    pub(super) requests: RequestIndices,
    pub(super) index: u32,
    /// Without batching there is no member.
    #[cfg(without_batching)]
    pub(super) never: std::convert::Infallible,
}

/// The identity of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchIdentity(pub(super) usize);

/// The answers of the calls of a member, in their order.
pub(crate) type Answers = SmallVec<[Outcome; 1]>;

/// The progress of a call in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberProgress {
    /// The batch has not been sent.
    Gathers,
    /// The batch was sent at this time.
    Sent(u64),
    /// The answer is there.
    Answered,
}

/// The cost of the answers of a batch, which the flows of its calls are charged for.
#[derive(Clone, Copy, Default)]
pub(super) struct AnswersCost {
    /// The bytes that the function has allocated and not released.
    pub bytes: i64,
    /// The number of the last commit that it has seen; 0 if there is none.
    pub last_seen: u64,
}

/// The outcome of joining a batch.
pub(super) struct Joined {
    /// The calls.
    pub member: Member,
    /// The number of the flow in the batch.
    pub flow: u32,
    /// True if the batch is full now.
    pub is_full: bool,
    /// True if the batch waits for the flow to come to rest, until [`GatheredBatch::end_run`].
    pub is_awaited: bool,
}

impl GatheredBatch {
    /// Returns a batch with this state.
    pub(super) fn new(common: Box<[Value]>, state: BatchState, began_ns: u64) -> GatheredBatch {
        GatheredBatch { common, began_ns, state: Mutex::new(state) }
    }

    pub(super) fn common(&self) -> &[Value] {
        &self.common
    }

    /// Adds calls of a flow that runs ([`BatchState::join`]). The flow is woken when they are answered, if there is a waker;
    /// otherwise it has to poll them.
    pub(super) fn join(
        batch: &Arc<GatheredBatch>,
        values: &mut impl ExactSizeIterator<Item = Value>,
        at_most: usize,
        flow: JoiningFlow<'_>,
    ) -> Joined {
        let mut joined = batch.state.lock().join(values, at_most, flow);
        joined.sender.take().into_iter().for_each(Waker::wake);
        let (flow, is_full, is_awaited) = (joined.flow, joined.is_full, joined.is_awaited);
        Joined { member: Member::of(batch, joined), flow, is_full, is_awaited }
    }

    /// Lets the batch wait for a flow that has joined to come to rest, if it gathers; returns true if it does.
    pub(super) fn await_flow(&self) -> bool {
        self.state.lock().await_flow()
    }

    /// Notes that a flow that had joined has come to rest.
    pub(super) fn end_run(&self) {
        let mut state = self.state.lock();
        state.running -= 1;
        let sender = if state.running == 0 && !is(BatchMutant::KeepsRestless) { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }

    /// Waits until nothing that can run now could still join, and then for further calls as long as the flows that have
    /// joined have time. Returns the time at which the batch was due, if it leaves because of that.
    pub(super) async fn turn(&self, platform: &dyn Platform) -> Option<u64> {
        let mut due = None;
        loop {
            // What becomes ready just when the batch is due may still join.
            if due.is_some() || self.state.lock().stage == BatchStage::Gathers {
                yield_now().await;
            }
            poll_fn(|context| self.poll_rest(context)).await;
            let Some(due_ns) = self.delay(platform.now_ns()) else { return due };
            if due_ns == NO_LIMIT {
                poll_fn(|context| self.poll_delay(context)).await;
                continue;
            }
            let mut timer = pin!(platform.at(due_ns).synchronise());
            let is_due = |context: &mut Context<'_>| match timer.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => self.poll_delay(context).map(|()| false),
            };
            due = poll_fn(is_due).await.then_some(due_ns);
        }
    }

    /// Returns the requests if the batch leaves now: the flows that have joined it are at rest, and no
    /// further call is expected. Otherwise it waits for one. The flow with this waker is not woken for an answer, because it
    /// sends the batch itself.
    pub(super) fn send_if_at_rest(&self, now_ns: u64, of_flow: &Waker) -> Option<SentCalls> {
        let mut state = self.state.lock();
        if state.stage != BatchStage::Full && (state.running > 0 || state.delay(now_ns).is_some()) {
            return None;
        }
        for member in &mut state.members {
            member.waker.take_if(|waker| waker.will_wake(of_flow));
        }
        Some(state.send(now_ns))
    }

    /// Returns the time until which the batch may wait for further calls, and does so; `None` if it leaves now.
    pub(super) fn delay(&self, now_ns: u64) -> Option<u64> {
        self.state.lock().delay(now_ns)
    }

    /// Lets the batch wait for no further calls, because another one needs its sender: a call in that one may be what the
    /// further calls need.
    pub(super) fn leave_sender(&self) {
        let mut state = self.state.lock();
        state.leaves_sender = true;
        let is_delayed = matches!(state.stage, BatchStage::Delayed { .. });
        state.has_left_sender |= is_delayed;
        let sender = if is_delayed && !is(BatchMutant::KeepsSender) { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the batch has waited for further calls until another batch needed the sender.
    pub(super) fn has_left_sender(&self) -> bool {
        self.state.lock().has_left_sender
    }

    /// Returns true if as many calls have joined as may.
    pub(super) fn is_full(&self) -> bool {
        self.state.lock().stage == BatchStage::Full
    }

    /// Waits until a further call has joined, or the batch is due earlier.
    pub(super) fn poll_delay(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        match state.stage {
            BatchStage::Delayed { due_ns } if state.due() >= Some(due_ns) => {
                state.sender = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Waits until the flows that have joined by now are at rest, unless the batch is full.
    pub(super) fn poll_rest(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.stage == BatchStage::Gathers {
            state.stage = BatchStage::Leaves;
        }
        if state.stage == BatchStage::Full || state.running == 0 {
            return Poll::Ready(());
        }
        state.sender = Some(context.waker().clone());
        Poll::Pending
    }

    /// Returns the requests, which the function gets now. No call joins any more.
    pub(super) fn send(&self, sent_ns: u64) -> SentCalls {
        self.state.lock().send(sent_ns)
    }

    /// Returns true if all calls have left; otherwise the sender's task is woken when they have.
    pub(super) fn is_abandoned(&self, context: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if state.calls == 0 {
            return true;
        }
        if !state.sender.as_ref().is_some_and(|sender| sender.will_wake(context.waker())) {
            state.sender = Some(context.waker().clone());
        }
        false
    }

    /// Passes each call its answer, and notes what the answers have cost. `fault` answers those for which there is none.
    pub(super) fn answer(
        &self,
        sent: &SentRequests,
        answers: Vec<Outcome>,
        cost: AnswersCost,
        fault: impl Fn() -> Outcome,
    ) {
        let mut state = self.state.lock();
        state.bytes_of_answer = cost.bytes.max(0) / (state.calls.max(1) as i64);
        state.last_seen = cost.last_seen;
        state.requests.answer(sent, answers, fault);
        let wakers = state.end();
        drop(state);
        wake(wakers);
    }

    /// Answers all calls with a fault: the batch will not be sent.
    pub(super) fn refuse(&self, fault: impl Fn() -> Outcome) {
        let mut state = self.state.lock();
        state.requests.refuse(fault);
        let wakers = state.end();
        drop(state);
        wake(wakers);
    }
}

/// Wakes the members. Neighbours are often of the same flow, which is woken once.
fn wake(wakers: Wakers) {
    let mut last: Option<Waker> = None;
    for waker in wakers {
        if !last.as_ref().is_some_and(|last| last.will_wake(&waker)) {
            last.replace(waker).into_iter().for_each(Waker::wake);
        }
    }
    last.into_iter().for_each(Waker::wake);
}
