//! The engine `pool`: a fixed number of threads take flows from one FIFO work queue.
//!
//! Flux (USENIX 2006, §3.2.1). One event loop runs the sources. A flow occupies its thread until it ends, even while it
//! waits, except (`threadless_wait`) while it waits for the peer of a connection, for a lock or turn that another flow has,
//! or for a call that takes long: clients that are slow to send a request, flows that wait for one that is queued, and large
//! inputs would otherwise hold all threads. The flows in progress are bounded, those in the queue and those that wait included. A
//! flow whose slice is over goes back into the queue; new flows and these are taken in turn. A thread whose flow waits goes on
//! with flows that have run before, because one of them may have what others wait for (`held_thread`).
//!
//! A queue and two thread switches cost more than most flows do before they wait: a cache hit of the image server, of 2
//! µs, took 1.74 times the processor time of a hand-written server. Unlike in Flux, therefore:
//!
//! 1. A thread that takes a new flow first advances it for as long as it neither blocks the thread nor delays other
//!    flows ([`ActiveFlow::advance_without_blocking`]). If no new flow is queued, that may be the event loop, also while
//!    flows that have yielded are queued: a small request would wait for several of their slices.
//! 2. If the flow has not ended by then, it continues on a thread of the pool; but one that the event loop has begun, and
//!    that waits for peers only, continues there when it is woken (`loop_wait`).
//! 3. The event loop does this only for routes whose flows have a brief beginning, as measured on the threads
//!    ([`BrevityPredictor`]): everything that takes long, by waiting or by computing, is left to the pool. Elements of
//!    a stream always go to the threads, because they need no answer, and several can run at a time.

mod held_thread;
mod loop_wait;
mod processor_turn;
mod threadless_wait;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_trace::EventKind;

use super::answer::Answer;
use super::brevity::BrevityPredictor;
use super::{Drive, Engine, EngineRow, EngineSetup, whole_flow_section};
use crate::admission::{AdmissionLimiter, Permit};
use crate::flow::{ActiveFlow, NewFlow, NextPlace};
use crate::helpers::CoreUse;
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::overload::{FlowDelays, MultilevelQueue};
use crate::platform::Platform;
use crate::prepare::PreparedFlow;
use crate::step::Action;
use crate::units::{Advanced, Units};
use held_thread::{HeldThread, SleepingThreads};
use processor_turn::{LoopFlows, ProcessorTurn};

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "pool",
    doc: "a pool of threads; flows queue, first in, first out",
    loops: |_| 1,
    blocking: BlockingPlacement::InPlace,
    drive: Drive::Flows(|setup| Ok(Arc::new(PoolEngine::start(setup)?))),
};

/// The limit below which the beginning of a flow is brief: about the time that the event loop needs to pass a flow to a
/// thread and to receive its answer.
const BRIEF_NS: u64 = 10_000;
/// The same limit on a thread of the pool. Chosen by judgement: twice as long, because such a thread has just been
/// scheduled and has a cold cache.
const BRIEF_ON_THREAD_NS: u64 = 2 * BRIEF_NS;

/// The factor of these limits up to which the time of a beginning counts while flows are queued. Measured beside 16 flows that
/// compute: without it, a few beginnings that the system had interrupted for milliseconds sent the thousands after them to
/// threads, half of the time.
const OVERRUN_MAX: u64 = 4;

/// The factor of both limits for a flow that waits for peers: a thread would have to be passed its beginning, what it does
/// with the answer of its peer, and its own answer.
const PASSES_OF_WAITING: u64 = 3;

struct PoolEngine {
    platform: Arc<dyn Platform>,
    queue: Arc<FlowQueue>,
    /// Limits the flows in progress.
    in_progress: Arc<AdmissionLimiter>,
    instance: Arc<ProgramInstance>,
    /// Counts all flows, and all awaited answers.
    flows: Arc<AdmissionLimiter>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct FlowQueue {
    jobs: Mutex<FlowQueueState>,
    arrived: Condvar,
    /// The length of the queue, written under its lock. A hint that is read without it, relaxed: a reader that misses a
    /// flow lets another one run for a slice before it.
    waiting: AtomicUsize,
    /// The number of new flows in the queue: a hint that is written and read like its length.
    waiting_new: AtomicUsize,
    /// The flows that the event loop has begun.
    loop_flows: LoopFlows,
    /// The delays of the queue.
    delays: FlowDelays,
    platform: Arc<dyn Platform>,
    cores: Arc<CoreUse>,
    /// For each entry and route, a prediction of whether its flows have a brief beginning; `None` if they never begin
    /// on the event loop.
    predictors: Vec<Vec<Option<BrevityPredictor>>>,
}

#[derive(Default)]
struct FlowQueueState {
    /// The flows that have not run yet.
    new: VecDeque<QueuedFlow>,
    /// The flows that have run before: they have yielded, have waited without a thread, or were begun by the event loop.
    begun: MultilevelQueue<QueuedFlow>,
    /// True if the last flow came from `begun`, or would have.
    takes_begun: bool,
    /// The number of threads that wait for a flow and hold none.
    idle: usize,
    /// The threads that sleep while flows hold them.
    sleeping: SleepingThreads,
    closed: bool,
}

/// A flow in the queue.
struct QueuedFlow {
    held: HeldFlow,
    begun: bool,
}

/// A flow with the answer that an event loop awaits.
struct HeldFlow {
    flow: ActiveFlow,
    answer: Arc<Answer>,
    #[expect(dead_code, reason = "held, and left when dropped")]
    permits: FlowPermits,
}

/// The permits of a flow: as one of those in progress, whose number has a limit, and as one of all flows and awaited answers.
type FlowPermits = (Permit, Permit);

/// Returns a predictor for the beginnings of a route; `None` if its flows never begin on the event loop.
fn predictor_of(flow: &PreparedFlow, answers: bool) -> Option<BrevityPredictor> {
    // Flows with such steps wait in a queue of their own, where a flow without a thread would delay others.
    let queues = flow.body.has(&|action| match action {
        Action::Acquire(_) | Action::Timed(_) => true,
        Action::Call(call) => call.ticket_gate.is_some(),
        _ => false,
    });
    (answers && !queues).then(BrevityPredictor::new)
}

impl PoolEngine {
    fn start(setup: &EngineSetup<'_>) -> std::io::Result<PoolEngine> {
        let predictors = setup.planned.instance.entries.iter().map(|entry| {
            let flows = entry.flows.iter();
            flows.map(|(flow, _)| predictor_of(flow, entry.answers)).collect()
        });
        let queue = Arc::new(FlowQueue {
            jobs: Mutex::default(),
            arrived: Condvar::new(),
            waiting: AtomicUsize::new(0),
            waiting_new: AtomicUsize::new(0),
            loop_flows: LoopFlows::default(),
            delays: FlowDelays::new(),
            platform: Arc::clone(setup.platform),
            cores: Arc::clone(&setup.planned.instance.helpers.cores),
            predictors: predictors.collect(),
        });
        let mut threads = Vec::new();
        let count = setup.planned.threads;
        for index in 0..count {
            let (queue, handle) = (Arc::clone(&queue), setup.handle.clone());
            let name = format!("weir pool {index}");
            threads.push(setup.platform.thread(&name, Box::new(move || work(&queue, &handle, index, count)))?);
        }
        let (platform, threads) = (Arc::clone(setup.platform), Mutex::new(threads));
        let instance = Arc::clone(setup.planned.instance);
        let in_progress = AdmissionLimiter::new(setup.flows_max);
        Ok(PoolEngine { platform, queue, in_progress, instance, flows: AdmissionLimiter::new(usize::MAX), threads })
    }
}

impl Engine for PoolEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        if !self.in_progress.has_room() {
            return Begun::Full;
        }
        let predictor = self.queue.predictors[entry][route]
            .as_ref()
            .filter(|predictor| predictor.is_brief() && self.queue.has_no_new());
        if predictor.is_some() {
            self.queue.loop_flows.count();
        }
        let counters = &self.instance.entries[entry].flows[route].1;
        if predictor.is_some() && counters.waits.load(Ordering::Relaxed) {
            return self.waiting_on_loop(new_flow.flow(), true);
        }
        let waits = |begun: &Result<_, (ActiveFlow, NextPlace)>| matches!(begun, Err((_, NextPlace::WhenWoken)));
        let begin = || new_flow.run_without_blocking();
        let flow = match predictor.map(|predictor| self.queue.measured(predictor, BRIEF_NS, waits, begin)) {
            Some(Ok(answer)) => return Begun::Done(answer),
            Some(Err((flow, NextPlace::WhenWoken))) => {
                counters.note_waits(true);
                return self.waiting_on_loop(flow, false);
            }
            Some(Err((flow, NextPlace::OnThread))) => flow,
            None => new_flow.flow(),
        };
        let begun = predictor.is_some();
        let answer = Arc::<Answer>::default();
        let held = HeldFlow { flow, answer: Arc::clone(&answer), permits: self.permits() };
        self.queue.add(QueuedFlow { held, begun });
        Begun::Pending(Box::pin(answer.pending(self.flows.acquire())))
    }

    fn is_overloaded(&self, entry: usize, route: usize) -> bool {
        self.queue.delays.is_overloaded(&self.instance.entries[entry].flows[route].1.queues, &*self.platform)
    }

    fn in_progress(&self) -> &Arc<AdmissionLimiter> {
        &self.in_progress
    }

    fn room(&self, _entry: usize) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.in_progress).wait_for_room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).wait_until_empty())
    }

    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind> {
        whole_flow_section(ROW.name, self.threads.lock().len(), &self.in_progress, instance)
    }

    fn close(&self) {
        self.queue.jobs.lock().closed = true;
        self.queue.arrived.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A thread of the pool catches every panic of a flow, so there is nothing to pass on.
            let _ = thread.join();
        }
    }
}

impl PoolEngine {
    /// Returns the future of a flow that waits for peers on the event loop; or, if it is new, of one that probably will.
    fn waiting_on_loop(&self, flow: ActiveFlow, is_new: bool) -> Begun {
        loop_wait::begin(&self.queue, flow, is_new, (self.permits(), self.flows.acquire()))
    }

    fn permits(&self) -> FlowPermits {
        (self.in_progress.acquire(), self.flows.acquire())
    }
}

/// Runs flows on the thread of this number until the engine closes.
fn work(queue: &Arc<FlowQueue>, handle: &Handle, number: usize, threads: usize) {
    let _inside = handle.enter();
    let mut turn = ProcessorTurn::new(threads, queue.cores.cores());
    queue.cores.begin();
    while let Some(queued) = queue.next() {
        let Some(waiting) = queue.run(queued, &mut turn) else { continue };
        let Some(waiting) = queue.park_if_possible(waiting) else { continue };
        let mut held = HeldThread::new(number, waiting);
        let poll = |context: &mut Context<'_>| queue.cores.working(|| held.poll(queue, context));
        queue.cores.resting(|| handle.block_on(poll_fn(poll)));
    }
    queue.cores.rest();
}

impl HeldFlow {
    /// Runs the flow with the units of a slice until it ends, waits or yields, unless it was cancelled.
    fn advance(&mut self, units: &Units, context: &mut Context<'_>) -> Advanced<()> {
        let given_up = self.answer.poll_given_up(context);
        if given_up && self.flow.request_give_up() {
            return Advanced::Ready(());
        }
        match self.flow.advance(units, context) {
            Advanced::Waits if given_up && self.flow.request_give_up() => Advanced::Ready(()),
            advanced => advanced.map(|given| self.answer.put(given)),
        }
    }
}

impl FlowQueue {
    /// Returns true if no new flow seems to be queued, so that the next one overtakes none. Flows that have yielded may be: they
    /// compute, and have the threads for that.
    fn has_no_new(&self) -> bool {
        self.waiting_new.load(Ordering::Relaxed) == 0
    }

    /// Begins a flow, and records the time that it took. `waits` tells from the result whether the flow waits for peers.
    fn measured<T>(
        &self,
        predictor: &BrevityPredictor,
        brief_ns: u64,
        waits: impl FnOnce(&T) -> bool,
        begin: impl FnOnce() -> T,
    ) -> T {
        let began_ns = self.platform.now_ns();
        let made = begin();
        let passes = if waits(&made) { PASSES_OF_WAITING } else { 1 };
        self.record(predictor, self.platform.now_ns().saturating_sub(began_ns), passes * brief_ns);
        made
    }

    /// Records the time that the beginning of a flow took; less than `brief_ns` is brief.
    fn record(&self, predictor: &BrevityPredictor, took_ns: u64, brief_ns: u64) {
        // While threads compute, the system interrupts whoever measures, for longer than any such beginning takes.
        let is_certain = self.is_empty();
        predictor.record(if is_certain { took_ns } else { took_ns.min(OVERRUN_MAX * brief_ns) }, brief_ns);
    }

    /// Returns true if no flow seems to be queued.
    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Runs a flow: one slice, or one after the other while no other flow is queued. Returns it if it waits; puts it back
    /// into the queue if it yields.
    fn run(&self, queued: QueuedFlow, turn: &mut ProcessorTurn) -> Option<HeldFlow> {
        let QueuedFlow { mut held, begun } = queued;
        let key = held.flow.key();
        let predictor = self.predictors[key.entry as usize][key.route as usize].as_ref();
        let predictor = predictor.filter(|_| !begun && !held.answer.is_given_up());
        let begin = |predictor| {
            let context = &mut Context::from_waker(Waker::noop());
            let waits = |begun: &Result<_, NextPlace>| *begun == Err(NextPlace::WhenWoken);
            let begin = || held.flow.advance_without_blocking(context);
            self.measured(predictor, BRIEF_ON_THREAD_NS, waits, begin)
        };
        match predictor.map(begin) {
            Some(Ok(given)) => {
                held.answer.put(given);
                return None;
            }
            Some(Err(NextPlace::WhenWoken)) => return Some(held),
            Some(Err(NextPlace::OnThread)) | None => {}
        }
        loop {
            match held.advance(&Units::slice(held.flow.slice()), &mut Context::from_waker(Waker::noop())) {
                Advanced::Ready(()) => return None,
                Advanced::Waits => return Some(held),
                Advanced::Yields if self.is_empty() => self.end_slice(turn),
                Advanced::Yields => {
                    self.put_back(held);
                    self.end_slice(turn);
                    return None;
                }
            }
        }
    }

    /// Yields the processor behind a slice, if the turn of the thread is over.
    fn end_slice(&self, turn: &mut ProcessorTurn) {
        if turn.is_over(&self.loop_flows, || self.platform.now_ns()) {
            std::thread::yield_now();
        }
    }

    /// Puts a flow into the queue: a new one, or one that has waited without a thread.
    fn add(&self, flow: QueuedFlow) {
        self.push(flow, 0);
    }

    /// Puts back a flow that has yielded, on its thread, which takes the next flow from the queue itself.
    fn put_back(&self, held: HeldFlow) {
        self.push(QueuedFlow { held, begun: true }, 1);
    }

    /// Puts a flow into the queue, while so many threads beside the idle ones are about to take one.
    fn push(&self, mut flow: QueuedFlow, taking: usize) {
        let mut jobs = self.jobs.lock();
        self.note_waiting(&mut flow);
        if flow.begun {
            jobs.begun.push(flow.held.flow.turns().level(), flow);
        } else {
            jobs.new.push_back(flow);
        }
        self.note_length(&jobs);
        let is_left = jobs.len() > taking;
        let held_thread = jobs.thread_to_wake(taking);
        drop(jobs);
        if is_left {
            self.arrived.notify_one();
        }
        held_thread.into_iter().for_each(Waker::wake);
    }

    /// Notes that a flow enters its queue.
    fn note_waiting(&self, flow: &mut QueuedFlow) {
        let (_, state) = flow.held.flow.split();
        self.delays.enter(0, state.turns_mut(), &*self.platform);
    }

    /// Notes that a flow leaves its queue to be run.
    fn note_leaving(&self, flow: &QueuedFlow) {
        self.delays.leave(flow.held.flow.turns(), &*self.platform);
    }

    /// Parks a flow that waits, if it waits without a thread; otherwise returns it.
    fn park_if_possible(self: &Arc<Self>, waiting: HeldFlow) -> Option<HeldFlow> {
        if waiting.flow.leaves_thread() { threadless_wait::park(self, waiting) } else { Some(waiting) }
    }

    fn note_length(&self, jobs: &FlowQueueState) {
        self.waiting.store(jobs.len(), Ordering::Relaxed);
        self.waiting_new.store(jobs.new.len(), Ordering::Relaxed);
    }

    fn next(&self) -> Option<QueuedFlow> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.pop() {
                self.note_length(&jobs);
                drop(jobs);
                self.note_leaving(&job);
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            jobs.idle += 1;
            self.cores.resting(|| self.arrived.wait(&mut jobs));
            jobs.idle -= 1;
        }
    }
}

impl FlowQueueState {
    /// Returns the number of flows in the queue.
    fn len(&self) -> usize {
        self.new.len() + self.begun.len()
    }

    /// Takes a new flow and one that has run before in turn, so that neither kind holds up the other.
    fn pop(&mut self) -> Option<QueuedFlow> {
        self.takes_begun = !self.takes_begun;
        if self.takes_begun {
            self.begun.pop().or_else(|| self.new.pop_front())
        } else {
            self.new.pop_front().or_else(|| self.begun.pop())
        }
    }
}
