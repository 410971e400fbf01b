//! Senders: tasks that send one batch after the other.
//!
//! If a batch fails as a whole and its function may be executed twice, the sender tries the two halves. If one of them
//! succeeds, it goes on with the halves of the other, so that a request which spoils the batch fails alone after
//! some 2 log₂ n calls. If both fail, the sender gives up, because the store may be down: each call has the failure
//! of the last batch that it was part of.
//!
//! The memory that the function allocates counts for the flows of the batch while it works, so that it fails when they may hold no more. If
//! there are several, the requests of each are then sent alone, so that only those fail which need too much.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use weir_host::memory::CarriedAccount;
use weir_host::{BatchAnswers, Failure, FailureKind, Outcome, PendingBatch, SeenCommits, Value};
use weir_trace::BatchDeparture;

use super::batch::{AnswersCost, GatheredBatch};
use super::batch_flows::FlowRequests;
use super::batch_state::SentCalls;
use super::{BorrowedValues, Gatherer};
use crate::lock::{HeldLock, LockAcquisition, LockHandle};
use crate::operations::panicked;

/// A sender. Dropping it before its end refuses its batch and those that queue: the event loop has ended.
pub(super) struct BatchSender {
    gatherer: Arc<Gatherer>,
    batch: Option<Arc<GatheredBatch>>,
    /// The bytes that the function has allocated for the batch and not released. Only the task of the sender uses it.
    bytes: AtomicI64,
    /// The number of times that the function was polled for the batch. Only the task of the sender uses it.
    polls: AtomicU32,
    /// The number of the last commit that the function has seen for the batch; 0 if there is none. Only the task of the sender uses it.
    last_seen: AtomicU64,
}

/// A batch that was sent in place and is not answered: its calls, the copies of its requests, and its first call.
type RestOfBatch = (Arc<GatheredBatch>, SentCalls, Vec<Value>, FirstCall);

/// The rest of the work of a sender.
pub(super) type RestOfSender = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The first call of the function for a batch.
enum FirstCall {
    /// It is to come, for these requests.
    Ahead(Vec<Value>),
    /// It waits for its locks.
    Locking(Vec<Value>, LockAcquisition),
    /// It was polled, and is not answered.
    Pending(PolledCall),
    Answered(BatchAnswers),
}

/// A call of the function that has begun, or failed to, and is polled.
struct PolledCall {
    pending: Result<PendingBatch, Box<Failure>>,
    /// The number of requests.
    count: usize,
    /// The account of the flows for which the function works.
    account: CarriedAccount,
}

impl BatchSender {
    pub(super) fn new(gatherer: Arc<Gatherer>, batch: Arc<GatheredBatch>) -> BatchSender {
        BatchSender {
            gatherer,
            batch: Some(batch),
            bytes: AtomicI64::new(0),
            polls: AtomicU32::new(0),
            last_seen: AtomicU64::new(0),
        }
    }

    /// Returns the gatherer of the function.
    pub(super) fn gatherer(&self) -> &Arc<Gatherer> {
        &self.gatherer
    }

    /// Returns the batch that is to be sent.
    pub(super) fn batch(&self) -> Option<&Arc<GatheredBatch>> {
        self.batch.as_ref()
    }

    /// Returns true if this batch is to be sent.
    pub(super) fn sends(&self, batch: &Arc<GatheredBatch>) -> bool {
        self.batch().is_some_and(|sent| Arc::ptr_eq(sent, batch))
    }

    /// Takes the requests out if the batch leaves now; otherwise it waits for further calls ([`GatheredBatch::send_if_at_rest`]).
    pub(super) fn send_if_at_rest(&self, now_ns: u64, of_flow: &Waker) -> Option<SentCalls> {
        self.batch.as_ref().and_then(|batch| self.gatherer.send_if_at_rest(batch, now_ns, of_flow))
    }

    /// Sends the batch in its turn, and then all that queue.
    pub(super) async fn run(mut self) {
        if let Some(batch) = self.batch.clone() {
            let because = || if batch.is_full() { BatchDeparture::Full } else { BatchDeparture::NothingMore };
            self.send_in_turn(&batch, because).await;
            self.batch = self.gatherer.next();
            self.send_queue().await;
        }
    }

    /// Sends the batch, whose requests these are, in place. Returns the time at which it was answered, or what the sender has left
    /// to do, if the batch was not answered at once, or others queue.
    pub(super) fn run_in_place(mut self, mut sent: SentCalls) -> Result<u64, RestOfSender> {
        let (mut left, mut ended_ns) = (None, sent.sent_ns);
        let values = std::mem::take(&mut sent.requests.values);
        if let Some(batch) = self.batch.take().filter(|_| !values.is_empty()) {
            let spare = self.spare(&values);
            match self.call_at_once(&batch, values, sent.flows.account()) {
                FirstCall::Answered(BatchAnswers { answers, failed_as_a_whole })
                    if !failed_as_a_whole || spare.is_empty() =>
                {
                    ended_ns = self.end(&batch, &sent, Some(answers), BatchDeparture::InPlace);
                }
                first => {
                    // It is refused if the task does not begin.
                    self.batch = Some(Arc::clone(&batch));
                    left = Some((batch, sent, spare, first));
                }
            }
        }
        if left.is_none() {
            self.batch = self.gatherer.next();
        }
        if self.batch.is_none() { Ok(ended_ns) } else { Err(Box::pin(self.run_left(left))) }
    }

    /// Answers a batch that was sent in place, if there is one, and sends all that queue.
    async fn run_left(mut self, left: Option<RestOfBatch>) {
        if let Some((batch, sent, spare, first)) = left {
            let answers = self.answers((&batch, &sent), spare, first).await;
            self.end(&batch, &sent, answers, BatchDeparture::InPlace);
            self.batch = self.gatherer.next();
        }
        self.send_queue().await;
    }

    /// Sends the batch that has queued for the sender, and then all others that do.
    async fn send_queue(&mut self) {
        while let Some(batch) = self.batch.clone() {
            self.send_in_turn(&batch, || BatchDeparture::EarlierAnswered).await;
            self.batch = self.gatherer.next();
        }
    }

    /// Sends a batch in its turn: because of this, unless it has waited for further calls.
    async fn send_in_turn(&self, batch: &Arc<GatheredBatch>, otherwise: impl FnOnce() -> BatchDeparture) {
        let due_ns = batch.turn(&*self.gatherer.context.platform).await;
        due_ns.into_iter().for_each(|due_ns| self.gatherer.note_due(due_ns));
        let because = match due_ns {
            Some(_) => BatchDeparture::Due,
            None if batch.has_left_sender() => BatchDeparture::OtherBatch,
            None => otherwise(),
        };
        self.send(batch, because).await;
    }

    /// Sends a batch, and passes its calls their answers. Nothing is sent if all calls have left.
    async fn send(&self, batch: &Arc<GatheredBatch>, because: BatchDeparture) {
        self.gatherer.close(batch);
        let mut sent = batch.send(self.gatherer.context.platform.now_ns());
        let values = std::mem::take(&mut sent.requests.values);
        if !values.is_empty() {
            let spare = self.spare(&values);
            let answers = self.answers((batch, &sent), spare, FirstCall::Ahead(values)).await;
            self.end(batch, &sent, answers, because);
        }
    }

    /// Returns copies of the requests if they are tried again in parts should they fail as a whole.
    fn spare(&self, values: &[Value]) -> Vec<Value> {
        self.polls.store(0, Ordering::Relaxed);
        if self.gatherer.splits() && values.len() > 1 { values.to_vec() } else { Vec::new() }
    }

    /// Passes the calls of a batch their answers, unless all have left; returns the time.
    fn end(
        &self,
        batch: &GatheredBatch,
        sent: &SentCalls,
        answers: Option<Vec<Outcome>>,
        because: BatchDeparture,
    ) -> u64 {
        let now_ns = self.gatherer.context.platform.now_ns();
        let took_ns = now_ns.saturating_sub(sent.sent_ns);
        if let Some(answers) = answers {
            self.gatherer.note_answers(took_ns, self.polls.load(Ordering::Relaxed) == 1);
            let (bytes, last_seen) = (self.bytes.swap(0, Ordering::Relaxed), self.last_seen.swap(0, Ordering::Relaxed));
            let name = &self.gatherer.function.name;
            let fault = || fault(Failure::function(format!("`{name}` returned too few answers")));
            batch.answer(&sent.requests, answers, AnswersCost { bytes, last_seen }, fault);
        }
        self.gatherer.record(sent, batch.began_ns, took_ns, because);
        now_ns
    }

    /// Returns the answers of a batch; `None` if all calls have left.
    async fn answers(
        &self,
        (batch, sent): (&GatheredBatch, &SentCalls),
        spare: Vec<Value>,
        first: FirstCall,
    ) -> Option<Vec<Outcome>> {
        let account = sent.flows.account();
        let BatchAnswers { mut answers, failed_as_a_whole } = self.call(batch, first, account).await?;
        if failed_as_a_whole && lacks_memory(&answers) {
            if sent.flows.are_several() && !spare.is_empty() {
                self.answer_each_flow(batch, (&spare, sent.flows.each(&sent.requests)), &mut answers).await?;
            }
            return Some(answers);
        }
        let mut failed = if failed_as_a_whole { 0..spare.len() } else { 0..0 };
        while failed.len() > 1 {
            let middle = failed.start + failed.len() / 2;
            let halves = [failed.start..middle, middle..failed.end];
            let mut failures = Vec::new();
            for half in halves {
                let again = self.call(batch, FirstCall::Ahead(spare[half.clone()].to_vec()), account).await?;
                for (place, answer) in half.clone().zip(again.answers) {
                    answers[place] = answer;
                }
                failures.extend(again.failed_as_a_whole.then_some(half));
            }
            failed = if failures.len() == 1 { failures.remove(0) } else { 0..0 };
        }
        Some(answers)
    }

    /// Calls the function for the requests of each flow alone, and stores the answers; `None` if all calls have left.
    async fn answer_each_flow(
        &self,
        batch: &GatheredBatch,
        (spare, flows): (&[Value], Vec<FlowRequests>),
        answers: &mut [Outcome],
    ) -> Option<()> {
        for FlowRequests { account, positions } in flows {
            let values = positions.iter().map(|position| spare[*position].clone()).collect();
            let own = self.call(batch, FirstCall::Ahead(values), account).await?;
            for (position, answer) in positions.into_iter().zip(own.answers) {
                answers[position] = answer;
            }
        }
        Some(())
    }

    /// Calls the function once, or goes on with the call; `None` if all calls have left, which cancels it.
    async fn call(&self, batch: &GatheredBatch, first: FirstCall, account: CarriedAccount) -> Option<BatchAnswers> {
        let (mut pending, mut held) = match first {
            FirstCall::Answered(answers) => return Some(answers),
            FirstCall::Pending(pending) => (pending, Vec::new()),
            FirstCall::Locking(values, locks) => {
                let held = self.locked(batch, locks).await?;
                (self.begin(batch, values, account), held)
            }
            FirstCall::Ahead(values) if self.gatherer.function.borrowed.locks.is_empty() => {
                (self.begin(batch, values, account), Vec::new())
            }
            FirstCall::Ahead(values) => {
                let held = self.locked(batch, self.locks()).await?;
                (self.begin(batch, values, account), held)
            }
        };
        poll_fn(|task| {
            if batch.is_abandoned(task) {
                return Poll::Ready(None);
            }
            let polled = self.poll(&mut pending, task).map(Some);
            held.clear();
            polled
        })
        .await
    }

    /// Calls the function once, without waiting for locks that others hold, and polls it.
    fn call_at_once(&self, batch: &GatheredBatch, values: Vec<Value>, account: CarriedAccount) -> FirstCall {
        let mut task = Context::from_waker(Waker::noop());
        let held = if self.gatherer.function.borrowed.locks.is_empty() {
            Vec::new()
        } else {
            let mut locks = self.locks();
            match locks.poll(&mut task) {
                Poll::Ready(held) => held,
                Poll::Pending => return FirstCall::Locking(values, locks),
            }
        };
        let mut pending = self.begin(batch, values, account);
        let polled = self.poll(&mut pending, &mut task);
        drop(held);
        match polled {
            Poll::Ready(answers) => FirstCall::Answered(answers),
            Poll::Pending => FirstCall::Pending(pending),
        }
    }

    /// Calls the function.
    fn begin(&self, batch: &GatheredBatch, values: Vec<Value>, mut account: CarriedAccount) -> PolledCall {
        let Gatherer { function, context, .. } = &*self.gatherer;
        let (count, borrowed) = (values.len(), &function.borrowed);
        let begin = || match borrowed.values.is_empty() {
            true => (function.code)(values, batch.common(), &context.environment),
            false => (function.code)(values, &[borrowed.handles(), batch.common()].concat(), &context.environment),
        };
        let pending = match self.charged(&mut account, || catch_unwind(AssertUnwindSafe(begin))) {
            Ok(begun) => begun,
            Err(panic) => Err(panicked(&function.name, &*panic)),
        };
        PolledCall { pending, count, account }
    }

    /// Polls a call of the function.
    fn poll(&self, call: &mut PolledCall, task: &mut Context<'_>) -> Poll<BatchAnswers> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let PolledCall { pending, account, .. } = call;
        let failure = match pending {
            Err(failure) => failure.clone(),
            Ok(pending) => {
                let poll = || catch_unwind(AssertUnwindSafe(|| pending.as_mut().poll(task)));
                match self.charged(account, poll) {
                    Ok(polled) => return polled,
                    Err(panic) => panicked(&self.gatherer.function.name, &*panic),
                }
            }
        };
        let answers = vec![Outcome::Fault(failure); call.count];
        Poll::Ready(BatchAnswers { answers, failed_as_a_whole: false })
    }

    /// Returns the locks of the shared values that the function borrows, to be acquired: none of one of which it sees a snapshot.
    fn locks(&self) -> LockAcquisition {
        let BorrowedValues { locks, sees_snapshot, .. } = &self.gatherer.function.borrowed;
        let needed = locks.iter().filter(|(lock, _)| !(*sees_snapshot && lock.snapshots().is_some()));
        LockAcquisition::new(needed.map(|(lock, mode)| (LockHandle::Whole(Arc::clone(lock)), *mode)))
    }

    /// Waits for the locks; `None` if all calls have left.
    async fn locked(&self, batch: &GatheredBatch, mut locks: LockAcquisition) -> Option<Vec<HeldLock>> {
        poll_fn(|task| match batch.is_abandoned(task) {
            true => Poll::Ready(None),
            false => locks.poll(task).map(Some),
        })
        .await
    }

    /// Runs a part of the function on the account of its flows, and notes what it has allocated and the commits that it has seen.
    fn charged<R>(&self, account: &mut CarriedAccount, run: impl FnOnce() -> R) -> R {
        let mut seen = SeenCommits::default();
        let entered = seen.enter();
        let (result, bytes) = account.run(run);
        account.grow(bytes);
        drop(entered);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.last_seen.fetch_max(seen.last, Ordering::Relaxed);
        result
    }
}

impl Drop for BatchSender {
    fn drop(&mut self) {
        while let Some(batch) = self.batch.take() {
            self.gatherer.close(&batch);
            batch.refuse(|| fault(Failure::new(FailureKind::Cancelled, "the program stops")));
            self.batch = self.gatherer.next();
        }
    }
}

/// Returns whether the calls of a batch have failed because their flows may hold no more.
fn lacks_memory(answers: &[Outcome]) -> bool {
    let lacks = |answer: &Outcome| matches!(answer, Outcome::Fault(failure) if failure.kind == FailureKind::Memory);
    answers.iter().any(lacks)
}

fn fault(failure: Failure) -> Outcome {
    Outcome::Fault(Box::new(failure))
}
