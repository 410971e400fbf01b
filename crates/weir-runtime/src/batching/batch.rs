//! One batch: the calls that have joined it, and the sender that has it answered.
//!
//! All state is behind one mutex. Two sides share it:
//!
//! * *Members*, one for each call. A member registers the waker of its flow in the critical section in which it finds no
//!   answer, and the sender takes all wakers in the one in which it stores the answers. Dropping a member that has no
//!   answer leaves the batch.
//! * *The sender* registers its waker likewise, before it waits for the flows that have joined to come to rest, and while
//!   the function works, in case all members leave.

use indexmap::IndexMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use foldhash::fast::FixedState;
use tokio::task::yield_now;
use weir_host::{Outcome, Value};

use super::CallSlack;
use super::sync::{BatchMutant, Mutex, is};
use crate::platform::Platform;

/// A batch.
pub(crate) struct GatheredBatch {
    /// The arguments that all calls have in common.
    common: Box<[Value]>,
    /// The time at which the first call has joined.
    pub(super) began_ns: u64,
    state: Mutex<BatchState>,
}

struct BatchState {
    stage: BatchStage,
    requests: Vec<GatheredRequest>,
    /// The index of each request, if equal ones are sent once.
    known: Option<IndexMap<Value, u32, FixedState>>,
    /// The waker of each member that waits.
    wakers: Vec<Option<Waker>>,
    /// The slack of each member; none until its flow waits.
    slack: Vec<CallSlack>,
    /// The number of members that have neither left nor taken their answer.
    members: usize,
    /// The number of flows that have joined and still run.
    running: usize,
    sender: Option<Waker>,
}

/// The stage of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchStage {
    /// Calls join.
    Gathers,
    /// As many calls have joined as may.
    Full,
    /// The sender waits only for the flows that have joined so far.
    Leaves,
    /// The sender waits for further calls until this time, because no flow ends later for that.
    Delayed { due_ns: u64 },
    /// The function has the requests since this time.
    Sent { sent_ns: u64 },
    /// The answers are there.
    Answered,
}

/// A request, of one call or of several.
struct GatheredRequest {
    value: Value,
    /// The number of members that have made it and not left.
    users: usize,
    answer: Option<Outcome>,
}

/// The requests of a batch that is sent.
pub(super) struct SentRequests {
    /// The requests.
    pub values: Vec<Value>,
    /// The index of each of them among all requests of the batch.
    places: Vec<usize>,
    /// The number of calls.
    pub calls: usize,
}

/// A call in a batch. Dropping it cancels the call.
pub(crate) struct Member {
    batch: Arc<GatheredBatch>,
    request: u32,
    index: u32,
    is_through: bool,
}

/// The outcome of joining a batch.
pub(super) struct Joined {
    /// True if the batch is full now.
    pub is_full: bool,
    /// True if the batch waits for the flow to come to rest, until [`GatheredBatch::end_run`].
    pub is_awaited: bool,
}

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

impl GatheredBatch {
    /// Returns an empty batch. Equal requests are sent once if there is a hash function, `merges`.
    pub(super) fn new(common: Box<[Value]>, merges: Option<FixedState>, began_ns: u64) -> GatheredBatch {
        let state = BatchState {
            stage: BatchStage::Gathers,
            requests: Vec::new(),
            known: merges.map(IndexMap::with_hasher),
            wakers: Vec::new(),
            slack: Vec::new(),
            members: 0,
            running: 0,
            sender: None,
        };
        GatheredBatch { common, began_ns, state: Mutex::new(state) }
    }

    pub(super) fn common(&self) -> &[Value] {
        &self.common
    }

    /// Adds calls of a flow that runs, until the batch is full.
    pub(super) fn join(
        batch: &Arc<GatheredBatch>,
        values: &mut impl Iterator<Item = Value>,
        at_most: usize,
        joined: &mut impl FnMut(Member),
    ) -> Joined {
        let mut state = batch.state.lock();
        let mut is_full = false;
        while !is_full && let Some(value) = values.next() {
            let (request, index) = (state.request(value), state.wakers.len() as u32);
            state.wakers.push(None);
            state.slack.push(CallSlack::default());
            state.members += 1;
            is_full = state.requests.len() >= at_most;
            joined(Member { batch: Arc::clone(batch), request, index, is_through: false });
        }
        let is_delayed = matches!(state.stage, BatchStage::Delayed { .. });
        if is_full {
            state.stage = BatchStage::Full;
        } else if is_delayed {
            state.stage = BatchStage::Gathers;
        }
        let is_awaited = state.stage == BatchStage::Gathers;
        state.running += usize::from(is_awaited);
        let sender = if is_delayed && !is(BatchMutant::KeepsDelayed) { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
        Joined { is_full, is_awaited }
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
            let mut timer = pin!(platform.at(due_ns).synchronise());
            let is_due = |context: &mut Context<'_>| match timer.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => self.poll_delay(context).map(|()| false),
            };
            due = poll_fn(is_due).await.then_some(due_ns);
        }
    }

    /// Returns the time until which the batch may wait for further calls, and does so; `None` if it leaves now.
    pub(super) fn delay(&self, now_ns: u64) -> Option<u64> {
        let mut state = self.state.lock();
        if state.stage == BatchStage::Full {
            return None;
        }
        let due_ns = state.due().filter(|due_ns| *due_ns > now_ns)?;
        state.stage = BatchStage::Delayed { due_ns };
        Some(due_ns)
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
    pub(super) fn send(&self, sent_ns: u64) -> SentRequests {
        let mut state = self.state.lock();
        (state.stage, state.known) = (BatchStage::Sent { sent_ns }, None);
        let calls = state.members;
        let (mut values, mut places) = (Vec::with_capacity(state.requests.len()), Vec::new());
        for (place, request) in state.requests.iter_mut().enumerate() {
            if request.users > 0 || is(BatchMutant::SendsAbandoned) {
                values.push(request.value.take());
                places.push(place);
            }
        }
        SentRequests { values, places, calls }
    }

    /// Returns true if all calls have left; otherwise the sender's task is woken when they have.
    pub(super) fn is_abandoned(&self, context: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if state.members == 0 {
            return true;
        }
        if !state.sender.as_ref().is_some_and(|sender| sender.will_wake(context.waker())) {
            state.sender = Some(context.waker().clone());
        }
        false
    }

    /// Passes each call its answer. `fault` answers those for which there is none.
    pub(super) fn answer(&self, sent: &SentRequests, answers: Vec<Outcome>, fault: impl Fn() -> Outcome) {
        let mut answers = answers.into_iter();
        let mut state = self.state.lock();
        for place in &sent.places {
            state.requests[*place].answer = Some(answers.next().unwrap_or_else(&fault));
        }
        let wakers = state.end();
        drop(state);
        wake(wakers);
    }

    /// Answers all calls with a fault: the batch will not be sent.
    pub(super) fn refuse(&self, fault: impl Fn() -> Outcome) {
        let mut state = self.state.lock();
        state.requests.iter_mut().for_each(|request| request.answer = Some(fault()));
        let wakers = state.end();
        drop(state);
        wake(wakers);
    }
}

/// Wakes the members. Neighbours are often of the same flow, which is woken once.
fn wake(wakers: Vec<Option<Waker>>) {
    let mut last: Option<Waker> = None;
    for waker in wakers.into_iter().flatten() {
        if !last.as_ref().is_some_and(|last| last.will_wake(&waker)) {
            waker.wake_by_ref();
            last = Some(waker);
        }
    }
}

impl BatchState {
    /// Returns the index of a request, which is new unless an equal one is known.
    fn request(&mut self, value: Value) -> u32 {
        let next = self.requests.len() as u32;
        if let Some(known) = &mut self.known {
            let index = *known.entry(value.clone()).or_insert(next);
            if index != next {
                self.requests[index as usize].users += 1;
                return index;
            }
        }
        self.requests.push(GatheredRequest { value, users: 1, answer: None });
        next
    }

    /// Returns true if there are no answers; then this member's flow is woken when they are there.
    fn waits(&mut self, member: u32, context: &Context<'_>) -> bool {
        if self.stage == BatchStage::Answered {
            return false;
        }
        let waker = &mut self.wakers[member as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        true
    }

    /// Returns the time at which the first of the members has no slack left; `None` if no further call is expected.
    fn due(&self) -> Option<u64> {
        let expects = self.slack.iter().any(|slack| slack.expects);
        let latest_ns = self.slack.iter().map(|slack| slack.latest_ns).min();
        latest_ns.filter(|_| expects)
    }

    /// Notes that the answers are there; returns the wakers of the members.
    fn end(&mut self) -> Vec<Option<Waker>> {
        (self.stage, self.sender) = (BatchStage::Answered, None);
        if is(BatchMutant::KeepsAnswers) { Vec::new() } else { std::mem::take(&mut self.wakers) }
    }
}

impl Member {
    /// Returns true if the call is not answered; then the flow is woken when it is.
    #[inline]
    pub(crate) fn waits(&self, context: &Context<'_>) -> bool {
        self.batch.state.lock().waits(self.index, context)
    }

    /// Returns the progress of the call.
    pub(crate) fn progress(&self) -> MemberProgress {
        match self.batch.state.lock().stage {
            BatchStage::Sent { sent_ns } => MemberProgress::Sent(sent_ns),
            BatchStage::Answered => MemberProgress::Answered,
            _ => MemberProgress::Gathers,
        }
    }

    /// Notes the slack of the call.
    pub(crate) fn delay(&self, slack: CallSlack) {
        let mut state = self.batch.state.lock();
        let Some(known) = state.slack.get_mut(self.index as usize) else { return };
        let is_new = std::mem::replace(known, slack) != slack;
        let is_delayed = matches!(state.stage, BatchStage::Delayed { .. });
        let sender = if is_new && is_delayed && !is(BatchMutant::KeepsDue) { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }

    /// Returns the answer.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Outcome> {
        let mut state = self.batch.state.lock();
        if state.waits(self.index, context) {
            return Poll::Pending;
        }
        self.is_through = true;
        state.members -= 1;
        let request = &mut state.requests[self.request as usize];
        request.users -= 1;
        let answer = if request.users == 0 { request.answer.take() } else { request.answer.clone() };
        Poll::Ready(answer.expect("a request of a member is answered"))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.is_through {
            return;
        }
        let mut state = self.batch.state.lock();
        if let Some(waker) = state.wakers.get_mut(self.index as usize) {
            *waker = None;
            state.slack[self.index as usize] = CallSlack { latest_ns: u64::MAX, expects: false };
        }
        state.members -= 1;
        let request = &mut state.requests[self.request as usize];
        request.users -= if is(BatchMutant::TakesRequestAlong) { request.users } else { 1 };
        let abandoned =
            state.members == 0 && matches!(state.stage, BatchStage::Sent { .. }) && !is(BatchMutant::KeepsAbandoned);
        let sender = if abandoned { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }
}
