//! The program instance: the state that all flows of a running program share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crossbeam_utils::CachePadded;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use weir_host::{Environment, UnitBudget};
use weir_trace::{Detail, EventKind, FlowKey, Histogram, Recorder};

use crate::admission::AdmissionLimiter;
use crate::batching::{self, at_rest};
use crate::blocking_pool::{BlockingPool, PoolJob};
use crate::flow_section::{CallQueue, CallSection, FlowSection};
use crate::flow_sessions::FlowSessions;
use crate::fork_account::FlowForks;
use crate::helpers::Helpers;
use crate::overload::{PassedQueues, ThreadQueue};
use crate::platform::Platform;
use crate::prepare::PreparedFlow;
use crate::resources::Resources;
use crate::step::Body;
use crate::striped::StripedCounter;
use crate::units::{SliceLength, Units};

/// The threads on which functions run that block their thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingPlacement {
    /// The flow's own thread, which no other flow needs; the same thread continues the flow after a wait.
    InPlace,
    /// A thread of the blocking pool.
    Elsewhere,
    /// None yet: another thread will continue the flow. It stops before functions that block their thread and before
    /// locks that are not free, and holds no lock while it waits, because the time at which it continues is unknown.
    Later,
}

/// The threads that run a call for a flow that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallThreads {
    /// The threads of calls that block.
    Blocking,
    /// The threads of calls that compute for long.
    Long,
    /// The threads of a section of the plan.
    Section(CallSection),
    /// The threads of a section, for a call that blocks; those of calls that block, if the section shares its threads.
    BlockingIn(CallSection),
}

/// A call that a thread of a section runs.
pub(crate) struct SectionCall {
    /// The flow.
    pub flow: FlowKey,
    /// The section.
    pub section: CallSection,
    /// True if it blocks the thread.
    pub blocks: bool,
    /// The work of the thread.
    pub job: PoolJob,
}

/// Puts a call into the queue of its section; returns the job if the section has no threads for it.
pub(crate) type RunSectionCall = dyn Fn(SectionCall) -> Option<PoolJob> + Send + Sync;

/// The number of slices that a call may take on a thread that has nothing but flows to run. Chosen by judgement: a stage of
/// a plan does its work on its own threads, and a time limit holds to some milliseconds.
const SLICES_IN_PLACE: u64 = 25;

impl BlockingPlacement {
    /// Returns the units that a call may take on the thread of its flow.
    pub(crate) fn call_budget(self, slice: SliceLength) -> UnitBudget {
        let slices = if self == BlockingPlacement::Elsewhere { 1 } else { SLICES_IN_PLACE };
        UnitBudget::of(slices * u64::from(slice.quantum) * u64::from(slice.quanta))
    }
}

/// Counters of the flows of one route. Counters that change with every flow have cache lines of their own, because
/// flows begin on other threads than they end on.
#[derive(Default)]
pub(crate) struct RouteCounters {
    /// Flows that have begun; also the sequence number of the next one.
    pub begun: CachePadded<AtomicU64>,
    /// Flows that have ended with an answer.
    pub ended: StripedCounter,
    /// Flows that have ended with a failure.
    pub failed: AtomicU64,
    /// Flows that were cancelled before their end.
    pub given_up: AtomicU64,
    /// The queues that flows pass.
    pub queues: PassedQueues,
    /// The durations of watched flows.
    pub took: Histogram,
    /// True if the last flow that began on an event loop waited for something. A hint: whoever begins the next flow may leave
    /// that to the task that awaits the answer, which would otherwise have to poll the flow a second time.
    pub waits: AtomicBool,
    /// Set by a task that waits until all flows have ended, before it reads the counters.
    awaited: AtomicBool,
    /// Notified of each flow that ends while a task waits.
    through: Notify,
}

impl RouteCounters {
    /// Notes whether a flow waited for something.
    pub(crate) fn note_waits(&self, waits: bool) {
        if self.waits.load(Ordering::Relaxed) != waits {
            self.waits.store(waits, Ordering::Relaxed);
        }
    }

    /// Counts a flow that has ended in one of the counters of ended flows, and notifies the waiting task.
    ///
    /// A waiting task sets `awaited` and then reads the counters; a flow writes a counter and then reads `awaited`
    /// (Dekker's pattern). All four accesses are `SeqCst`, so that at least one of the two sees the other.
    pub(crate) fn count(&self, through: &AtomicU64) {
        through.fetch_add(1, Ordering::SeqCst);
        self.tell();
    }

    /// Counts a flow that has ended with an answer, and notifies the waiting task.
    pub(crate) fn count_ended(&self) {
        self.ended.add();
        self.tell();
    }

    fn tell(&self) {
        if self.awaited.load(Ordering::SeqCst) {
            self.through.notify_waiters();
        }
    }

    /// Waits until every flow that has begun has ended. No flow begins any more.
    pub(crate) async fn all_through(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            // Created before the counters are read, so that no flow is missed that ends between the reads and the wait.
            let ended = self.through.notified();
            let others = [&self.failed, &self.given_up].map(|number| number.load(Ordering::SeqCst));
            if self.ended.sum() + others.iter().sum::<u64>() == self.begun.load(Ordering::SeqCst) {
                return;
            }
            ended.await;
        }
    }
}

/// The event loops on which the source of an entry point runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryLoops {
    /// All of them. Its flows run there as one piece, under an engine of several loops.
    Each,
    /// One of them, any.
    One,
    /// The first, because the engine divides its flows into sections.
    First,
}

/// An entry point of a running program.
pub(crate) struct EntryInstance {
    /// The prepared flow of each route, with its counters.
    pub flows: Vec<(PreparedFlow, RouteCounters)>,
    /// True if answers of the flows are awaited; a stream waits for room instead of being refused.
    pub answers: bool,
    /// The event loops on which the source runs.
    pub loops: EntryLoops,
    /// The units that a call may take on the thread of its flow.
    pub call_budget: UnitBudget,
    /// True if the last flow is the `at end` flow.
    pub has_end: bool,
    /// The number of event loops on which the source has ended.
    pub loops_ended: AtomicUsize,
    /// Limits the flows that have yielded and wait for their turn to go on, which a stream does not exceed by
    /// beginning further flows: those would only share the processors, and hold memory meanwhile.
    pub computing: Arc<AdmissionLimiter>,
}

/// A program instance.
pub(crate) struct ProgramInstance {
    /// The resources that flows share.
    pub resources: Resources,
    /// The bodies that compute the shared values declared `per session`, by the values' indices; `None` for the other
    /// values.
    pub own: Vec<Option<Body>>,
    /// The entry points.
    pub entries: Vec<EntryInstance>,
    /// The environment that the embedder supplies.
    pub environment: Environment,
    /// The length of slices.
    pub slice: SliceLength,
    /// The threads on which functions run that block their thread.
    pub blocking: BlockingPlacement,
    /// The threads of calls that block.
    pub blocking_calls: BlockingPool,
    /// The threads of calls that compute for longer than the thread of their flow may.
    pub long_calls: BlockingPool,
    /// The threads that run parts of flows on idle cores.
    pub helpers: Helpers,
    /// This instance, for those threads.
    pub this: Weak<ProgramInstance>,
    /// The event loop inside whose runtime these calls run; set when the program starts.
    pub first_loop: OnceLock<Handle>,
    /// Runs calls on threads of the plan's sections; set by an engine that has sections.
    pub section_calls: OnceLock<Box<RunSectionCall>>,
    /// The recorder of the trace.
    pub recorder: Recorder,
    /// The platform that supplies clock, threads and random numbers.
    pub platform: Arc<dyn Platform>,
}

impl ProgramInstance {
    /// Runs a call of this flow on these threads.
    pub(crate) fn run_call<R: Send + 'static>(
        &self,
        key: FlowKey,
        threads: CallThreads,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (section, blocks) = match threads {
            CallThreads::Blocking => return self.run_blocking(key, ThreadQueue::BlockingCalls, job),
            CallThreads::Long => return self.run_blocking(key, ThreadQueue::LongCalls, job),
            CallThreads::Section(section) => (section, false),
            CallThreads::BlockingIn(section) => (section, true),
        };
        let (done, result) = oneshot::channel();
        let run = move || {
            // The flow may have been cancelled before a thread had time for the call.
            if !done.is_closed() {
                _ = done.send(job());
            }
        };
        let call = SectionCall { flow: key, section, blocks, job: Box::new(run) };
        match self.section_calls.get().and_then(|run| run(call)) {
            // Its order is that of this thread.
            Some(job) if section.queue != CallQueue::Any => job(),
            Some(job) => _ = self.run_blocking(key, ThreadQueue::BlockingCalls, job),
            None => {}
        }
        result
    }

    /// Runs a call of this flow on a thread of the pool behind this queue.
    pub(crate) fn run_blocking<R: Send + 'static>(
        &self,
        key: FlowKey,
        queue: ThreadQueue,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        // The initial values of shared values belong to no flow.
        if let Some((_, counters)) =
            self.entries.get(key.entry as usize).and_then(|of| of.flows.get(key.route as usize))
        {
            counters.queues.note_passed(queue);
        }
        let pool = if queue == ThreadQueue::LongCalls { &self.long_calls } else { &self.blocking_calls };
        pool.run(self.first_loop.get_or_init(Handle::current), job)
    }

    /// Returns true if calls of this route wait too long for a thread to begin another flow of it.
    #[inline]
    pub(crate) fn are_calls_overloaded(&self, entry: usize, route: usize) -> bool {
        let queues = &self.entries[entry].flows[route].1.queues;
        let is_overloaded = |queue, pool: &BlockingPool| queues.includes(queue) && pool.is_overloaded();
        queues.has_any()
            && (is_overloaded(ThreadQueue::LongCalls, &self.long_calls)
                || is_overloaded(ThreadQueue::BlockingCalls, &self.blocking_calls))
    }

    /// Returns the prepared flow of a key.
    pub(crate) fn flow(&self, key: FlowKey) -> &PreparedFlow {
        &self.entries[key.entry as usize].flows[key.route as usize].0
    }

    /// Returns the key of the next flow of a route, and counts the flow as begun.
    pub(crate) fn next_key(&self, entry: u32, route: u32) -> FlowKey {
        let counters = &self.entries[entry as usize].flows[route as usize].1;
        FlowKey { entry, route, sequence: counters.begun.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the counters of a flow's route.
    pub(crate) fn counters(&self, key: FlowKey) -> &RouteCounters {
        &self.entries[key.entry as usize].flows[key.route as usize].1
    }

    /// Returns a trace event for each route.
    pub(crate) fn routes(&self) -> Vec<EventKind> {
        let entries = (0..).zip(&self.entries);
        let route = |(entry, (flow, counters)): (u32, &(PreparedFlow, RouteCounters))| EventKind::Route {
            entry,
            route: Arc::clone(&flow.name),
            begun: counters.begun.load(Ordering::Relaxed),
            ended: counters.ended.sum(),
            failed: counters.failed.load(Ordering::Relaxed),
            given_up: counters.given_up.load(Ordering::Relaxed),
            took: counters.took.durations(),
        };
        entries.flat_map(|(entry, value)| value.flows.iter().map(move |flow| (entry, flow))).map(route).collect()
    }

    /// Returns a trace event for each batched function.
    pub(crate) fn batches(&self) -> Vec<EventKind> {
        self.resources.gatherers.values().map(|gatherer| gatherer.state()).collect()
    }

    /// Returns true if calls of some function are gathered.
    #[inline]
    pub(crate) fn gathers(&self) -> bool {
        batching::IS_COMPILED && !self.resources.gatherers.is_empty()
    }

    /// Tells the batches that the flow of this thread has joined that it has come to rest.
    #[inline]
    pub(crate) fn at_rest(&self) {
        if self.gathers() {
            at_rest();
        }
    }

    /// Returns the number of flows of these entry points that have ended, with an answer or a failure.
    pub(crate) fn completed_flows(&self, includes: impl Fn(&EntryInstance) -> bool) -> u64 {
        let all_counters = self.entries.iter().filter(|entry| includes(entry)).flat_map(|entry| &entry.flows);
        all_counters.map(|(_, counters)| counters.ended.sum() + counters.failed.load(Ordering::Relaxed)).sum()
    }

    /// Returns true if a flow seems to be in progress.
    pub(crate) fn has_flows(&self) -> bool {
        let in_progress = |counters: &RouteCounters| {
            let others = [&counters.failed, &counters.given_up].map(|number| number.load(Ordering::Relaxed));
            counters.begun.load(Ordering::Relaxed) > counters.ended.sum() + others.iter().sum::<u64>()
        };
        self.entries.iter().flat_map(|entry| &entry.flows).any(|(_, counters)| in_progress(counters))
    }

    /// Records an event, if some reader of the trace wants it.
    #[inline]
    pub(crate) fn record(&self, detail: Detail, what: impl FnOnce() -> EventKind) {
        if self.recorder.wants(detail) {
            self.recorder.record(self.platform.now_ns(), what());
        }
    }
}

/// The environment of a frame while it runs.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// The program.
    pub instance: &'a ProgramInstance,
    /// The key of the flow.
    pub key: FlowKey,
    /// True if every node is recorded.
    pub records_nodes: bool,
    /// The threads on which functions run that block their thread.
    pub blocking: BlockingPlacement,
    /// The units that the flow may still spend in its slice.
    pub units: &'a Units,
    /// The account of the flow's forks.
    pub forks: &'a FlowForks,
    /// The section in which the flow runs.
    pub section: &'a FlowSection,
    /// The sessions that the flow uses.
    pub sessions: &'a FlowSessions,
    /// The units that a call may take on the thread of its flow; a longer one runs on a thread that may block.
    pub call_budget: UnitBudget,
    /// Set if the frame, or one around it, is to be given up once it is in no atomic step: the number of atomic steps
    /// around that frame. No further atomic step begins in it.
    pub given_up: Option<usize>,
}
