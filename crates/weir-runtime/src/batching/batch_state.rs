//! The state of a batch, which its sender and its members share.

use std::task::{Context, Waker};

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use weir_host::Value;

use super::batch_flows::BatchFlows;
use super::call_slack::CallSlack;
use super::requests::{RequestIndices, Requests, SentRequests};
use super::sync::{BatchMutant, is};

/// The state of a batch.
pub(super) struct BatchState {
    pub stage: BatchStage,
    pub requests: Requests,
    pub members: SmallVec<[MemberState; 1]>,
    pub flows: BatchFlows,
    /// The number of calls that have neither left nor taken their answer.
    pub calls: usize,
    /// The number of flows that have joined and still run.
    pub running: usize,
    /// True if another batch needs the sender, so that this one waits for no further calls.
    pub leaves_sender: bool,
    /// True if it has waited for further calls until another batch needed the sender.
    pub has_left_sender: bool,
    /// The bytes of the answer of a call, on average.
    pub bytes_of_answer: i64,
    /// The number of the last commit that the answers depend on; 0 if there is none.
    pub last_seen: u64,
    pub sender: Option<Waker>,
}

/// The state of a member.
#[derive(Clone, Default)]
pub(super) struct MemberState {
    /// The waker of the flow, if it waits.
    pub waker: Option<Waker>,
    /// True if the answers have woken the flow.
    pub is_woken: bool,
    /// The slack of the calls; none until the flow waits.
    pub slack: CallSlack,
}

/// The stage of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchStage {
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

/// The wakers of flows.
pub(super) type Wakers = SmallVec<[Waker; 4]>;

/// The calls of a batch that is sent.
pub(super) struct SentCalls {
    pub sent_ns: u64,
    pub requests: SentRequests,
    pub flows: BatchFlows,
    /// The number of calls that have not left.
    pub calls: usize,
    pub members: usize,
}

/// A flow that joins a batch.
#[derive(Clone, Copy, Default)]
pub(super) struct JoiningFlow<'w> {
    /// Its waker, if it is to be woken when the calls are answered.
    pub waker: Option<&'w Waker>,
    /// True if the batch waits for it already.
    pub has_claim: bool,
    /// Its number, if it has joined the batch before, as far as its thread knows.
    pub number: Option<u32>,
}

/// The calls of a member that has joined.
pub(super) struct JoinedCalls {
    /// The request of each call.
    pub requests: RequestIndices,
    /// The index of the member.
    pub index: u32,
    /// The number of the flow.
    pub flow: u32,
    /// True if the batch is full now.
    pub is_full: bool,
    /// True if the batch waits for the flow to come to rest.
    pub is_awaited: bool,
    /// The sender that waited for further calls, to be woken.
    pub sender: Option<Waker>,
}

impl BatchState {
    /// Returns the state of an empty batch, with room for as many calls and members as are expected. Equal requests are sent once
    /// if there is a hash function, `merges`.
    pub(super) fn new(merges: Option<FixedState>, calls: usize, members: usize) -> BatchState {
        BatchState {
            stage: BatchStage::Gathers,
            requests: Requests::new(merges, calls),
            members: SmallVec::with_capacity(members),
            flows: BatchFlows::default(),
            calls: 0,
            running: 0,
            leaves_sender: false,
            has_left_sender: false,
            bytes_of_answer: 0,
            last_seen: 0,
            sender: None,
        }
    }

    /// Adds calls of a flow that runs, of which there is at least one, until the batch is full.
    pub(super) fn join(
        &mut self,
        values: &mut impl ExactSizeIterator<Item = Value>,
        at_most: usize,
        JoiningFlow { waker, has_claim, number }: JoiningFlow<'_>,
    ) -> JoinedCalls {
        let flow = self.flows.join(self.requests.len(), number.or_else(|| self.last_flow(waker?)));
        let requests = self.requests.add_all(values, at_most);
        let is_full = self.requests.len() >= at_most;
        self.calls += requests.len();
        let index = self.members.len() as u32;
        self.members.push(MemberState { waker: waker.cloned(), ..MemberState::default() });
        let is_delayed = matches!(self.stage, BatchStage::Delayed { .. });
        if is_full {
            self.stage = BatchStage::Full;
        } else if is_delayed {
            self.stage = BatchStage::Gathers;
        }
        let is_awaited = !has_claim && self.await_flow();
        let sender = if is_delayed && !is(BatchMutant::KeepsDelayed) { self.sender.take() } else { None };
        JoinedCalls { requests, index, flow, is_full, is_awaited, sender }
    }

    /// Returns the number of the flow that has joined last, if it has this waker.
    fn last_flow(&self, waker: &Waker) -> Option<u32> {
        let of_last = self.members.last()?.waker.as_ref()?;
        self.flows.last().filter(|_| of_last.will_wake(waker))
    }

    /// Lets the batch wait for a flow that has joined to come to rest, if it gathers; returns true if it does.
    pub(super) fn await_flow(&mut self) -> bool {
        let gathers = self.stage == BatchStage::Gathers;
        self.running += usize::from(gathers);
        gathers
    }

    /// Returns true if there are no answers; then this member's flow is woken when they are there.
    pub(super) fn waits(&mut self, member: u32, context: &Context<'_>) -> bool {
        if self.stage == BatchStage::Answered {
            return false;
        }
        let waker = &mut self.members[member as usize].waker;
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        true
    }

    /// Returns the time until which the batch may wait for further calls, and does so; `None` if it leaves now.
    pub(super) fn delay(&mut self, now_ns: u64) -> Option<u64> {
        if self.stage == BatchStage::Full {
            return None;
        }
        let due_ns = self.due().filter(|due_ns| *due_ns > now_ns)?;
        self.stage = BatchStage::Delayed { due_ns };
        Some(due_ns)
    }

    /// Returns the time at which the first of the members has no slack left; `None` if no further call is expected by then,
    /// or the sender is needed.
    pub(super) fn due(&self) -> Option<u64> {
        if self.leaves_sender {
            return None;
        }
        let latest_ns = self.members.iter().map(|member| member.slack.latest_ns).min()?;
        let next_ns = self.members.iter().filter_map(|member| member.slack.next_ns).min()?;
        (next_ns <= latest_ns).then_some(latest_ns)
    }

    /// Returns the requests, which the function gets now. No call joins any more.
    pub(super) fn send(&mut self, sent_ns: u64) -> SentCalls {
        self.stage = BatchStage::Sent { sent_ns };
        let requests = self.requests.send(|users| users > 0 || is(BatchMutant::SendsAbandoned));
        let flows = std::mem::take(&mut self.flows);
        SentCalls { sent_ns, requests, flows, calls: self.calls, members: self.members.len() }
    }

    /// Notes that the answers are there; returns the wakers of the members.
    pub(super) fn end(&mut self) -> Wakers {
        (self.stage, self.sender) = (BatchStage::Answered, None);
        if is(BatchMutant::KeepsAnswers) {
            return Wakers::new();
        }
        let mut wakers = Wakers::with_capacity(self.members.len());
        for member in &mut self.members {
            member.is_woken = member.waker.is_some() && !is(BatchMutant::ForgetsWoken);
            wakers.extend(member.waker.take());
        }
        wakers
    }
}
