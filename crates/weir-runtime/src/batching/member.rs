//! The side of the members of a batch: waiting for the answers, taking them, and leaving.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;
use weir_host::{SeenCommits, memory};

use super::batch::{Answers, BatchIdentity, GatheredBatch, Member, MemberProgress};
use super::batch_state::{BatchStage, JoinedCalls, MemberState};
use super::call_slack::{CallSlack, NO_LIMIT};
use super::sync::{BatchMutant, is};

impl Member {
    /// Returns the member with these calls.
    #[cfg_attr(without_batching, expect(unreachable_code, unused_variables, reason = "there is no member"))]
    pub(super) fn of(batch: &Arc<GatheredBatch>, joined: JoinedCalls) -> Member {
        Member {
            batch: Arc::clone(batch),
            requests: joined.requests,
            index: joined.index,
            #[cfg(without_batching)]
            never: unreachable!("no call is gathered"),
        }
    }

    /// Returns true if the calls are not answered; then the flow is woken when they are.
    #[inline]
    pub(crate) fn waits(&self, context: &Context<'_>) -> bool {
        self.batch.state.lock().waits(self.index, context)
    }

    /// Returns the progress of the calls.
    pub(crate) fn progress(&self) -> MemberProgress {
        match self.batch.state.lock().stage {
            BatchStage::Sent { sent_ns } => MemberProgress::Sent(sent_ns),
            BatchStage::Answered => MemberProgress::Answered,
            _ => MemberProgress::Gathers,
        }
    }

    /// Returns the identity of the batch, as long as this member exists.
    #[inline]
    pub(crate) fn batch(&self) -> BatchIdentity {
        BatchIdentity(Arc::as_ptr(&self.batch).addr())
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Moves the calls at these places to a member of their own, in the same state.
    pub(crate) fn split_off(&mut self, leave: &[bool]) -> Member {
        let (mut kept, mut left) = (SmallVec::new(), SmallVec::new());
        for (request, leaves) in self.requests.drain(..).zip(leave) {
            if *leaves { left.push(request) } else { kept.push(request) }
        }
        self.requests = kept;
        let mut index = self.index;
        if !self.requests.is_empty() {
            let mut state = self.batch.state.lock();
            index = state.members.len() as u32;
            let same = state.members[self.index as usize].clone();
            state.members.push(if is(BatchMutant::PartsAsleep) { MemberState::default() } else { same });
        }
        Member {
            batch: Arc::clone(&self.batch),
            requests: left,
            index,
            #[cfg(without_batching)]
            never: self.never,
        }
    }

    /// Returns true if the flow was woken because the answers are there, and has not taken them yet.
    pub(crate) fn is_woken(&self) -> bool {
        !self.requests.is_empty() && self.batch.state.lock().members[self.index as usize].is_woken
    }

    /// Notes the slack of the calls, unless their batch has been sent.
    pub(crate) fn delay(&self, slack: CallSlack) {
        let mut state = self.batch.state.lock();
        if matches!(state.stage, BatchStage::Sent { .. } | BatchStage::Answered) {
            return;
        }
        let known = &mut state.members[self.index as usize].slack;
        let is_new = std::mem::replace(known, slack) != slack;
        let is_delayed = matches!(state.stage, BatchStage::Delayed { .. });
        let sender = if is_new && is_delayed && !is(BatchMutant::KeepsDue) { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }

    /// Returns the answers, once.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Answers> {
        let mut state = self.batch.state.lock();
        if state.waits(self.index, context) {
            return Poll::Pending;
        }
        if state.last_seen > 0 {
            SeenCommits::note(state.last_seen);
        }
        if let [request] = self.requests[..] {
            self.requests.clear();
            state.calls -= 1;
            if state.bytes_of_answer > 0 {
                memory::charge(state.bytes_of_answer);
            }
            return Poll::Ready(Answers::from_buf([state.requests.take_answer(request)]));
        }
        let requests = std::mem::take(&mut self.requests);
        state.calls -= requests.len();
        if state.bytes_of_answer > 0 {
            memory::charge(state.bytes_of_answer.saturating_mul(requests.len() as i64));
        }
        Poll::Ready(state.requests.take_answers(&requests).into())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let mut state = self.batch.state.lock();
        let slack = CallSlack { latest_ns: NO_LIMIT, next_ns: None };
        state.members[self.index as usize] = MemberState { slack, ..MemberState::default() };
        state.calls -= self.requests.len();
        for request in self.requests.drain(..) {
            let all = if is(BatchMutant::TakesRequestAlong) { state.requests.users(request) } else { 1 };
            state.requests.leave(request, all);
        }
        let is_over = match state.stage {
            BatchStage::Sent { .. } => state.calls == 0 && !is(BatchMutant::KeepsAbandoned),
            // What the batch waits for may have been a further call of this flow.
            BatchStage::Delayed { due_ns } => state.due() < Some(due_ns) && !is(BatchMutant::KeepsExpectation),
            _ => false,
        };
        let sender = if is_over { state.sender.take() } else { None };
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }
}
