//! The engine `pool`: a fixed number of threads take flows from one FIFO work queue.
//!
//! Flux (USENIX 2006, §3.2.1). One event loop runs the sources. A flow occupies its thread until it ends, even while it
//! waits; the queue is bounded, and refuses flows beyond its bound.
//!
//! A queue and two thread switches cost more than most flows do before they wait: a cache hit of the image server, of 2
//! µs, took 1.74 times the processor time of a hand-written server. Unlike in Flux, therefore:
//!
//! 1. A thread that takes a new flow first advances it for as long as it neither blocks the thread nor delays other
//!    flows ([`ActiveFlow::advance_without_blocking`]). If the queue is empty, that may be the event loop.
//! 2. If the flow has not ended by then, it continues on a thread of the pool.
//! 3. The event loop does this only for routes whose flows have a brief beginning, as measured on the threads
//!    ([`BrevityPredictor`]): everything that takes long, by waiting or by computing, is left to the pool. Elements of
//!    a stream always go to the threads, because they need no answer, and several can run at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_trace::EventKind;

use super::answer::{Answer, run};
use super::brevity::BrevityPredictor;
use super::{Drive, Engine, EngineRow, EngineSetup, whole_flow_section};
use crate::admission::{AdmissionLimiter, Permit};
use crate::flow::{ActiveFlow, NewFlow};
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::platform::Platform;
use crate::prepare::PreparedFlow;
use crate::step::Action;

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

struct PoolEngine {
    platform: Arc<dyn Platform>,
    queue: Arc<FlowQueue>,
    queued: Arc<AdmissionLimiter>,
    /// Counts all flows, and all awaited answers.
    flows: Arc<AdmissionLimiter>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct FlowQueue {
    jobs: Mutex<FlowQueueState>,
    arrived: Condvar,
    /// The length of the queue, written under its lock. A hint that is read without it, relaxed: only the event loop
    /// adds flows, so it can only miss that threads have taken some.
    waiting: AtomicUsize,
    /// For each entry and route, a prediction of whether its flows have a brief beginning; `None` if they never begin
    /// on the event loop.
    predictors: Vec<Vec<Option<BrevityPredictor>>>,
}

#[derive(Default)]
struct FlowQueueState {
    waiting: VecDeque<QueuedFlow>,
    closed: bool,
}

/// A flow in the queue.
struct QueuedFlow {
    flow: ActiveFlow,
    begun: bool,
    answer: Arc<Answer>,
    queued: Permit,
    permit: Permit,
}

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

/// Begins a flow, and records the time that it took.
fn measured<T>(predictor: &BrevityPredictor, brief_ns: u64, platform: &dyn Platform, begin: impl FnOnce() -> T) -> T {
    let began_ns = platform.now_ns();
    let made = begin();
    predictor.record(platform.now_ns().saturating_sub(began_ns), brief_ns);
    made
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
            predictors: predictors.collect(),
        });
        let mut threads = Vec::new();
        for index in 0..setup.planned.threads {
            let (queue, platform, handle) = (Arc::clone(&queue), Arc::clone(setup.platform), setup.handle.clone());
            let name = format!("weir pool {index}");
            threads.push(setup.platform.thread(&name, Box::new(move || work(&queue, &*platform, &handle)))?);
        }
        let (platform, threads) = (Arc::clone(setup.platform), Mutex::new(threads));
        Ok(PoolEngine {
            platform,
            queue,
            queued: AdmissionLimiter::new(setup.flows_max),
            flows: AdmissionLimiter::new(usize::MAX),
            threads,
        })
    }
}

impl Engine for PoolEngine {
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        if !self.queued.has_room() {
            return Begun::Full;
        }
        let predictor = self.queue.predictors[entry][route]
            .as_ref()
            .filter(|predictor| predictor.is_brief() && self.queue.is_empty());
        let flow = match predictor
            .map(|predictor| measured(predictor, BRIEF_NS, &*self.platform, || new_flow.run_without_blocking()))
        {
            Some(Ok(answer)) => return Begun::Done(answer),
            Some(Err(flow)) => flow,
            None => new_flow.flow(),
        };
        let begun = predictor.is_some();
        let answer = Arc::<Answer>::default();
        let (queued, permit) = (self.queued.acquire(), self.flows.acquire());
        self.queue.add(QueuedFlow { flow, begun, answer: Arc::clone(&answer), queued, permit });
        answer.pending(self.flows.acquire())
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.queued).wait_for_room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).wait_until_empty())
    }

    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind> {
        whole_flow_section(ROW.name, self.threads.lock().len(), &self.queued, instance)
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

/// Runs flows on a thread of the pool until the engine closes.
fn work(queue: &FlowQueue, platform: &dyn Platform, handle: &Handle) {
    let _inside = handle.enter();
    while let Some(QueuedFlow { mut flow, begun, answer, queued, permit }) = queue.next() {
        drop(queued);
        let key = flow.key();
        let predictor = queue.predictors[key.entry as usize][key.route as usize].as_ref();
        let predictor = predictor.filter(|_| !begun && !answer.is_given_up());
        match predictor
            .and_then(|predictor| measured(predictor, BRIEF_ON_THREAD_NS, platform, || flow.advance_without_blocking()))
        {
            Some(given) => answer.put(given),
            None => run(flow, &answer, handle),
        }
        drop(permit);
    }
}

impl FlowQueue {
    /// Returns true if no flow is queued; to be called on the event loop, the only thread that adds flows.
    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn add(&self, job: QueuedFlow) {
        let mut jobs = self.jobs.lock();
        jobs.waiting.push_back(job);
        self.waiting.store(jobs.waiting.len(), Ordering::Relaxed);
        drop(jobs);
        self.arrived.notify_one();
    }

    fn next(&self) -> Option<QueuedFlow> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                self.waiting.store(jobs.waiting.len(), Ordering::Relaxed);
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            self.arrived.wait(&mut jobs);
        }
    }
}
