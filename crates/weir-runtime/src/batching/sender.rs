//! Senders: tasks that send one batch after the other.
//!
//! If a batch fails as a whole and its function may be executed twice, the sender tries the two halves. If one of them
//! succeeds, it goes on with the halves of the other, so that a request which spoils the batch fails alone after
//! some 2 log₂ n calls. If both fail, the sender gives up, because the store may be down: each call has the failure
//! of the last batch that it was part of.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use weir_host::{BatchAnswers, Failure, FailureKind, Outcome, SeenCommits, Value, memory};
use weir_trace::BatchDeparture;

use super::Gatherer;
use super::batch::GatheredBatch;
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

/// The record of a batch that was sent.
pub(super) struct SentBatch {
    pub began_ns: u64,
    pub sent_ns: u64,
    pub took_ns: u64,
    pub calls: usize,
    pub requests: usize,
    pub because: BatchDeparture,
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

    /// Returns true if the batch leaves now; otherwise it waits for further calls. See [`GatheredBatch::leaves`].
    pub(super) fn leaves(&self, now_ns: u64, of_flow: &Waker) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.leaves(now_ns, of_flow))
    }

    /// Sends the batch in its turn, and then all that queue.
    pub(super) async fn run(mut self) {
        if let Some(batch) = self.batch.clone() {
            let because = || if batch.is_full() { BatchDeparture::Full } else { BatchDeparture::NothingMore };
            self.send_in_turn(&batch, because).await;
            self.send_queue().await;
        }
    }

    /// Sends the batch, which may leave now, and then all that queue.
    pub(super) async fn run_in_place(mut self) {
        if let Some(batch) = self.batch.clone() {
            self.send(&batch, BatchDeparture::InPlace).await;
            self.send_queue().await;
        }
    }

    /// Sends the batches that queue for the sender.
    async fn send_queue(&mut self) {
        loop {
            self.batch = self.gatherer.next();
            let Some(batch) = self.batch.clone() else { return };
            self.send_in_turn(&batch, || BatchDeparture::EarlierAnswered).await;
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
        let sent_ns = self.gatherer.context.platform.now_ns();
        let (mut sent, calls) = batch.send(sent_ns);
        let values = std::mem::take(&mut sent.values);
        if values.is_empty() {
            return;
        }
        let (began_ns, requests) = (batch.began_ns, values.len());
        self.polls.store(0, Ordering::Relaxed);
        let answers = self.answers(batch, values).await;
        let took_ns = self.gatherer.context.platform.now_ns().saturating_sub(sent_ns);
        if let Some(answers) = answers {
            self.gatherer.note_answers(took_ns, self.polls.load(Ordering::Relaxed) == 1);
            batch.note_cost(self.bytes.swap(0, Ordering::Relaxed), self.last_seen.swap(0, Ordering::Relaxed));
            let path = &self.gatherer.function.path;
            let fault = || fault(Failure::function(format!("`{path}` returned too few answers")));
            batch.answer(&sent, answers, fault);
        }
        self.gatherer.record(&SentBatch { began_ns, sent_ns, took_ns, calls, requests, because });
    }

    /// Returns the answers of these requests; `None` if all calls have left.
    async fn answers(&self, batch: &GatheredBatch, values: Vec<Value>) -> Option<Vec<Outcome>> {
        let spare = if self.gatherer.splits() && values.len() > 1 { values.clone() } else { Vec::new() };
        let BatchAnswers { mut answers, failed_as_a_whole } = self.call(batch, values).await?;
        let mut failed = if failed_as_a_whole { 0..spare.len() } else { 0..0 };
        while failed.len() > 1 {
            let middle = failed.start + failed.len() / 2;
            let halves = [failed.start..middle, middle..failed.end];
            let mut failures = Vec::new();
            for half in halves {
                let again = self.call(batch, spare[half.clone()].to_vec()).await?;
                for (place, answer) in half.clone().zip(again.answers) {
                    answers[place] = answer;
                }
                failures.extend(again.failed_as_a_whole.then_some(half));
            }
            failed = if failures.len() == 1 { failures.remove(0) } else { 0..0 };
        }
        Some(answers)
    }

    /// Calls the function once; `None` if all calls have left, which cancels it.
    async fn call(&self, batch: &GatheredBatch, values: Vec<Value>) -> Option<BatchAnswers> {
        let Gatherer { function, context, .. } = &*self.gatherer;
        let count = values.len();
        let faults = |failure: Box<Failure>| {
            Some(BatchAnswers { answers: vec![Outcome::Fault(failure); count], failed_as_a_whole: false })
        };
        let borrowed = &function.borrowed;
        let mut held = match borrowed.locks.is_empty() {
            true => Vec::new(),
            false => self.locks(batch).await?,
        };
        let begin = || match borrowed.values.is_empty() {
            true => (function.code)(values, batch.common(), &context.environment),
            false => (function.code)(values, &[borrowed.handles(), batch.common()].concat(), &context.environment),
        };
        let mut pending = match self.measured(|| catch_unwind(AssertUnwindSafe(begin))) {
            Ok(Ok(pending)) => pending,
            Ok(Err(failure)) => return faults(failure),
            Err(panic) => return faults(panicked(&function.path, &*panic)),
        };
        poll_fn(|task| {
            if batch.is_abandoned(task) {
                return Poll::Ready(None);
            }
            self.polls.fetch_add(1, Ordering::Relaxed);
            let polled = self.measured(|| catch_unwind(AssertUnwindSafe(|| pending.as_mut().poll(task))));
            held.clear();
            match polled {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(answers)) => Poll::Ready(Some(answers)),
                Err(panic) => Poll::Ready(faults(panicked(&function.path, &*panic))),
            }
        })
        .await
    }

    /// Takes the locks of the shared values that the function borrows; `None` if all calls have left.
    async fn locks(&self, batch: &GatheredBatch) -> Option<Vec<HeldLock>> {
        let locks = &self.gatherer.function.borrowed.locks;
        let mut locks =
            LockAcquisition::new(locks.iter().map(|(lock, mode)| (LockHandle::Whole(Arc::clone(lock)), *mode)));
        poll_fn(|task| match batch.is_abandoned(task) {
            true => Poll::Ready(None),
            false => locks.poll(task).map(Some),
        })
        .await
    }

    /// Runs a part of the function, and notes what it has allocated and the commits that it has seen.
    fn measured<R>(&self, run: impl FnOnce() -> R) -> R {
        let mut seen = SeenCommits::default();
        let entered = seen.enter();
        let (result, bytes) = memory::measured(run);
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

fn fault(failure: Failure) -> Outcome {
    Outcome::Fault(Box::new(failure))
}
