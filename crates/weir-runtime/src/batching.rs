//! Batching: calls of one function, of all flows, are gathered, and one call of Rust answers them ("The frame" in
//! `ARCHITECTURE.md`, section 5).
//!
//! A call of a batched function has two phases. It is *placed* when it joins a batch, and *answered* when the batch is.
//! Later calls of the same function depend on the first phase only (`prepare/order.rs`).
//!
//! 1. A call joins the batch that gathers calls of its function with the same other arguments ([`Gatherer::join`]). Equal
//!    requests of a function that does not write are sent once. A batch that has `at_most` requests gathers no more.
//! 2. The first call of a batch begins a *sender*, a task of an event loop, unless as many of them are under way as
//!    batches of the function may be in flight. Otherwise the batch queues for a sender. So batches grow by themselves
//!    under load, and nothing waits without load.
//!    A flow that is alone sends its batches itself, if their functions answer at once, and needs no sender ([`in_place`]).
//! 3. The sender waits until nothing that can run now could still join ([`GatheredBatch::turn`]): until each task that was
//!    ready has had its turn, and the flows that have joined on other threads have come to rest, which is when they wait,
//!    yield or end ([`rest`]). No timer is involved. A batch that is full leaves at once.
//! 4. The sender calls the function, passes each call its answer, and takes the batch that has queued longest.
//!
//! A call that is cancelled leaves its batch: its request is not sent if no other call has made it too, and a batch that
//! all calls have left is cancelled. If a batch fails as a whole, so does each of its calls; only if the function may
//! be executed twice, the sender tries halves first ([`sender`]).
//!
//! Batches of a function that writes leave one after the other, in the order in which its calls have joined.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use weir_host::{BatchCode, Environment, Mode, Shared, Value, World};
use weir_trace::{BatchDeparture, Detail, EventKind, Histogram, Recorder};

use crate::lock::FairRwLock;
use crate::platform::Platform;
use batch::GatheredBatch;
pub(crate) use batch::{Answers, BatchIdentity, Member, MemberProgress};
use batch_state::{BatchState, JoiningFlow, SentCalls};
pub(crate) use call_slack::CallSlack;
pub(crate) use forecast::Forecast;
pub(crate) use in_place::{BatchesInPlace, FlowsInBatches, has_only_prompt_batches, pass_to_senders};
use latency::{EstimatedLatency, LatencyEstimate, Promptness};
pub(crate) use progress::{ALIKE_MAX, FlowProgress, NO_GROUP, StepCertainty, StepProgress};
pub(crate) use rest::{KeptClaims, at_rest, end_slice, has_joined, is_awaited, resume};
use sender::BatchSender;
pub(crate) use slack::{LatencyGraph, LatencyStep, ReturnStep, StepLatency};

mod batch;
mod batch_flows;
mod batch_state;
mod call_slack;
mod forecast;
mod in_place;
mod latency;
mod later_calls;
mod member;
#[cfg(test)]
mod model;
mod moment;
mod progress;
mod requests;
mod rest;
mod sender;
mod slack;
mod sync;

/// True unless Weir is compiled with `--cfg without_batching`, which shows what batching costs programs that make no batched call
/// (`benches/batching/README.md`).
pub(crate) const IS_COMPILED: bool = cfg!(not(without_batching));

/// The largest number of calls for which a new batch has room before they join. Chosen by judgement: a few kilobytes.
const EXPECTED_MAX: usize = 64;

/// The context in which batches are sent.
#[derive(Clone)]
pub(crate) struct GathererContext {
    pub environment: Environment,
    pub recorder: Recorder,
    pub platform: Arc<dyn Platform>,
}

/// The properties of a function that decide how its calls are gathered.
pub(crate) struct BatchedFunction {
    /// The name of its batches, in messages and in the trace.
    pub name: Arc<str>,
    pub code: Arc<BatchCode>,
    pub limits: weir_host::Batch,
    /// The effect on the outside world.
    pub world: World,
    /// True if executing a call twice has the same effect as once.
    pub idempotent: bool,
    /// True if a request can be copied.
    pub copies_requests: bool,
    /// True if an answer can be copied.
    pub copies_answers: bool,
    /// The shared values that it borrows.
    pub borrowed: BorrowedValues,
}

/// The shared values that the calls of a gatherer borrow. A batch has their handles, and takes their locks when it is sent, until the
/// function has been polled for the first time: so the calls need no locks before.
#[derive(Default)]
pub(crate) struct BorrowedValues {
    pub values: Vec<Shared>,
    pub locks: Box<[(Arc<FairRwLock>, Mode)]>,
    /// True if the function sees a snapshot of the values that have some, and takes no lock of these.
    pub sees_snapshot: bool,
    /// The handles of the values, as soon as these are created.
    pub handles: OnceLock<Box<[Value]>>,
}

impl BorrowedValues {
    /// Returns the handles. The values are not locked by then: they are asked for when the program starts.
    pub(crate) fn handles(&self) -> &[Value] {
        self.handles.get_or_init(|| self.values.iter().map(|value| value.read().handle()).collect())
    }
}

/// Gathers the calls of one function.
pub(crate) struct Gatherer {
    function: BatchedFunction,
    context: GathererContext,
    /// Hashes requests, so that equal ones are found.
    hasher: FixedState,
    batches: Mutex<Batches>,
    counters: BatchCounters,
    /// The calls of the batch that was sent last, or [`EXPECTED_MAX`]: a new batch has room for as many.
    expected: AtomicUsize,
    /// The same for its members.
    expected_members: AtomicUsize,
    /// The time between sending a batch and its answers.
    latency: LatencyEstimate,
    /// The time by which a batch leaves after the moment at which it was due, because of timers and threads.
    lateness: LatencyEstimate,
    /// Tells whether the function answers at once.
    prompt: Promptness,
}

/// The batches of a function that have not been sent.
#[derive(Default)]
struct Batches {
    /// The batches that calls can join; they differ in the arguments that are not gathered.
    open: Vec<Arc<GatheredBatch>>,
    /// The batches that wait for a sender.
    queue: std::collections::VecDeque<Arc<GatheredBatch>>,
    /// The number of senders.
    senders: usize,
}

/// Counters of the calls of a function.
#[derive(Default)]
struct BatchCounters {
    /// The number of batches for each [`BatchDeparture`].
    batches: [AtomicU64; BatchDeparture::ALL.len()],
    calls: AtomicU64,
    requests: AtomicU64,
    waited: Histogram,
    took: Histogram,
}

impl Gatherer {
    pub(crate) fn new(function: BatchedFunction, context: GathererContext) -> Gatherer {
        let hasher = FixedState::with_seed(context.platform.random());
        Gatherer {
            function,
            context,
            hasher,
            batches: Mutex::default(),
            counters: BatchCounters::default(),
            expected: AtomicUsize::new(0),
            expected_members: AtomicUsize::new(0),
            latency: LatencyEstimate::default(),
            lateness: LatencyEstimate::default(),
            prompt: Promptness::default(),
        }
    }

    /// Returns the shared values that the function borrows.
    pub(crate) fn borrowed(&self) -> &BorrowedValues {
        &self.function.borrowed
    }

    /// Returns the index of the argument that is gathered.
    pub(crate) fn gathered(&self) -> usize {
        self.function.limits.gathered
    }

    /// Returns the estimated latency of a batch; `None` before it is known.
    pub(crate) fn latency(&self) -> Option<EstimatedLatency> {
        self.latency.get()
    }

    /// Returns the time by which a batch is sent after the moment at which it was due.
    pub(crate) fn lateness_ns(&self) -> u64 {
        self.lateness.get().map_or(0, |lateness| lateness.high_ns)
    }

    /// Notes that a batch had its answers after this time; `at_once` if the function was polled only once for them.
    fn note_answers(&self, took_ns: u64, at_once: bool) {
        self.latency.observe(took_ns);
        self.prompt.note(at_once, took_ns);
    }

    /// Notes that a batch leaves now because it was due at this time.
    fn note_due(&self, due_ns: u64) {
        self.lateness.observe(self.context.platform.now_ns().saturating_sub(due_ns));
    }

    /// Returns the number of calls that are worth having under way at a time.
    pub(crate) fn worthwhile(&self) -> usize {
        self.function.limits.at_most.saturating_mul(self.in_flight())
    }

    fn in_flight(&self) -> usize {
        if self.writes() { 1 } else { self.function.limits.in_flight }
    }

    pub(crate) fn writes(&self) -> bool {
        self.function.world == World::Writes
    }

    /// True if equal requests are sent once.
    fn merges(&self) -> bool {
        !self.writes() && self.function.copies_requests && self.function.copies_answers
    }

    /// True if a batch that has failed as a whole is tried in parts.
    fn splits(&self) -> bool {
        (!self.writes() || self.function.idempotent) && self.function.copies_requests
    }

    /// Places a call, with the argument that is gathered and the others. The flow is woken when it is answered.
    pub(crate) fn join(self: &Arc<Self>, gathered: Value, common: &[Value], waker: &Waker) -> Member {
        self.join_one_batch(&mut std::iter::once(gathered), common, Some(waker))
    }

    /// Places calls that differ in the argument that is gathered only, in this order. Those that get into one batch become one
    /// member of it. If there is a waker, the flow is woken when they are answered; otherwise it has to poll them.
    pub(crate) fn join_all(
        self: &Arc<Self>,
        mut gathered: impl ExactSizeIterator<Item = Value>,
        common: &[Value],
        waker: Option<&Waker>,
        mut joined: impl FnMut(Member),
    ) {
        while gathered.len() > 0 {
            joined(self.join_one_batch(&mut gathered, common, waker));
        }
    }

    /// Places calls, of which there is at least one, in the batch that gathers those with these arguments, until it is full.
    fn join_one_batch(
        self: &Arc<Self>,
        gathered: &mut impl ExactSizeIterator<Item = Value>,
        common: &[Value],
        waker: Option<&Waker>,
    ) -> Member {
        let at_most = self.function.limits.at_most;
        let mut batches = self.batches.lock();
        if let Some(index) = batches.open.iter().position(|batch| batch.common() == common) {
            let batch = Arc::clone(&batches.open[index]);
            let number = rest::number_in(&batch);
            let flow = JoiningFlow { waker, has_claim: number.is_some(), number };
            let joined = GatheredBatch::join(&batch, gathered, at_most, flow);
            if joined.is_full {
                batches.open.swap_remove(index);
            }
            drop(batches);
            rest::joined(&batch, joined.is_awaited, joined.flow);
            return joined.member;
        }
        let begins = batches.takes_sender(self.in_flight());
        // The flow has the sender itself then, and needs no claim.
        let is_local = begins && self.prompt.is_prompt();
        let mut state = self.state_of_new(gathered.len());
        let joined = state.join(gathered, at_most, JoiningFlow { waker, has_claim: is_local, number: None });
        let (flow, is_full, is_awaited) = (joined.flow, joined.is_full, joined.is_awaited);
        let batch = Arc::new(GatheredBatch::new(common.into(), state, self.context.platform.now_ns()));
        let member = Member::of(&batch, joined);
        batches.add(&batch, self.writes(), is_full, begins);
        drop(batches);
        rest::joined(&batch, is_awaited, flow);
        if begins {
            let sender = BatchSender::new(Arc::clone(self), batch);
            if is_local { in_place::begin(sender) } else { in_place::start_at_once(sender) }
        }
        member
    }

    /// Returns the state of a batch that begins with so many calls, with room for as many as the last one had.
    fn state_of_new(&self, first: usize) -> BatchState {
        let merges = self.merges().then(|| self.hasher.clone());
        let expected = first.max(self.expected.load(Ordering::Relaxed)).min(self.function.limits.at_most);
        BatchState::new(merges, expected, self.expected_members.load(Ordering::Relaxed))
    }

    /// Closes a batch: no call joins it any more.
    fn close(&self, batch: &Arc<GatheredBatch>) {
        self.batches.lock().close(batch);
    }

    /// Sends a batch if it leaves now ([`GatheredBatch::send_if_at_rest`]): no call joins it any more then.
    fn send_if_at_rest(&self, batch: &Arc<GatheredBatch>, now_ns: u64, of_flow: &Waker) -> Option<SentCalls> {
        let mut batches = self.batches.lock();
        let sent = batch.send_if_at_rest(now_ns, of_flow)?;
        batches.close(batch);
        Some(sent)
    }

    /// Returns the batch that a sender takes next; `None` if none queues, and the sender ends.
    fn next(&self) -> Option<Arc<GatheredBatch>> {
        let mut batches = self.batches.lock();
        let next = batches.queue.pop_front();
        batches.senders -= usize::from(next.is_none());
        next
    }

    /// Counts and records a batch that was answered.
    fn record(&self, sent: &SentCalls, began_ns: u64, took_ns: u64, sent_because: BatchDeparture) {
        let (calls, requests) = (sent.calls as u64, sent.requests.count as u64);
        let waited_ns = sent.sent_ns.saturating_sub(began_ns);
        let counters = &self.counters;
        counters.batches[sent_because as usize].fetch_add(1, Ordering::Relaxed);
        counters.calls.fetch_add(calls, Ordering::Relaxed);
        self.expected.store(sent.calls.min(EXPECTED_MAX), Ordering::Relaxed);
        self.expected_members.store(sent.members.min(EXPECTED_MAX), Ordering::Relaxed);
        counters.requests.fetch_add(requests, Ordering::Relaxed);
        counters.waited.add(waited_ns);
        counters.took.add(took_ns);
        if self.context.recorder.wants(Detail::Flows) {
            let function = Arc::clone(&self.function.name);
            self.context.recorder.record(
                self.context.platform.now_ns(),
                EventKind::BatchAnswered { function, calls, requests, waited_ns, took_ns, sent_because },
            );
        }
    }

    /// Returns a trace event with what has become of the calls so far.
    pub(crate) fn state(&self) -> EventKind {
        let batches = self.batches.lock();
        let (in_flight, queued) = (batches.senders as u64, batches.queue.len() as u64);
        drop(batches);
        let count = |because| (because, self.counters.batches[because as usize].load(Ordering::Relaxed));
        EventKind::Batches {
            function: Arc::clone(&self.function.name),
            sent_because: BatchDeparture::ALL.map(count),
            calls: self.counters.calls.load(Ordering::Relaxed),
            requests: self.counters.requests.load(Ordering::Relaxed),
            in_flight,
            in_flight_max: self.in_flight() as u64,
            queued,
            waited: self.counters.waited.durations(),
            took: self.counters.took.durations(),
        }
    }
}

impl Batches {
    /// Returns true if a further batch gets a sender of its own, and notes that.
    fn takes_sender(&mut self, in_flight: usize) -> bool {
        let takes = self.senders < in_flight;
        self.senders += usize::from(takes);
        takes
    }

    /// Adds a batch, which calls can join unless it is full. It queues unless it has a sender. If order counts, no call joins an
    /// earlier batch any more.
    fn add(&mut self, batch: &Arc<GatheredBatch>, keeps_order: bool, is_full: bool, has_sender: bool) {
        if keeps_order {
            self.open.clear();
        }
        if !has_sender {
            self.open.iter().for_each(|earlier| earlier.leave_sender());
            self.queue.push_back(Arc::clone(batch));
        }
        if !is_full {
            self.open.push(Arc::clone(batch));
        }
    }

    fn close(&mut self, batch: &Arc<GatheredBatch>) {
        if let Some(index) = self.open.iter().position(|open| Arc::ptr_eq(open, batch)) {
            self.open.swap_remove(index);
        }
    }
}
