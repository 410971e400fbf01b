//! A running program: what all its flows share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;
use weir_host::Environment;
use weir_trace::{Detail, EventKind, FlowKey, Histogram, Recorder};

use crate::platform::Platform;
use crate::prepare::PreparedFlow;
use crate::resources::Resources;
use crate::step::Body;
use crate::striped::StripedCounter;

/// Where functions run that hold their thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingPlacement {
    /// On the flow's own thread, which nobody else waits for.
    InPlace,
    /// On a thread of the blocking pool.
    Elsewhere,
}

/// How many flows of one route there have been. What changes with each flow has lines of cache of its own: flows begin on
/// other threads than they end on.
#[derive(Default)]
pub(crate) struct RouteCounters {
    /// Begun; the number of the next one.
    pub begun: CachePadded<AtomicU64>,
    /// Ended with an answer.
    pub ended: StripedCounter,
    /// Ended with a failure.
    pub failed: AtomicU64,
    /// Given up before their end.
    pub given_up: AtomicU64,
    /// How long those took that were watched.
    pub took: Histogram,
    /// Whether somebody waits until all are through; set before it is looked whether they are.
    awaited: AtomicBool,
    /// Told of each flow that ends while somebody waits.
    through: Notify,
}

impl RouteCounters {
    /// Counts a flow that is through in one of the numbers of those that are.
    ///
    /// Who waits sets the flag and then looks at the numbers, and this does it the other way round, each in the one order
    /// of all such steps: so that one of them sees the other.
    pub(crate) fn count(&self, through: &AtomicU64) {
        through.fetch_add(1, Ordering::SeqCst);
        self.tell();
    }

    /// The same for one that has ended with an answer.
    pub(crate) fn count_ended(&self) {
        self.ended.add();
        self.tell();
    }

    fn tell(&self) {
        if self.awaited.load(Ordering::SeqCst) {
            self.through.notify_waiters();
        }
    }

    /// Waits until every flow that has begun is through. Nobody begins one any more.
    pub(crate) async fn all_through(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            // Made before the numbers are looked at, so that who ends between that and the wait is not missed.
            let ended = self.through.notified();
            let others = [&self.failed, &self.given_up].map(|number| number.load(Ordering::SeqCst));
            if self.ended.sum() + others.iter().sum::<u64>() == self.begun.load(Ordering::SeqCst) {
                return;
            }
            ended.await;
        }
    }
}

/// One entry point of a running program.
pub(crate) struct EntryInstance {
    /// Its flows, one for each route.
    pub flows: Vec<(PreparedFlow, RouteCounters)>,
    /// Whether somebody waits for the answers of its flows; a stream waits for room instead of being refused.
    pub answers: bool,
    /// Whether its last flow is that of the end of its elements.
    pub has_end: bool,
    /// On how many event loops its source has ended.
    pub loops_ended: AtomicUsize,
}

/// A running program.
pub(crate) struct ProgramInstance {
    /// What flows meet in.
    pub resources: Resources,
    /// What makes the shared values that each session has, by their indices; nothing for the others.
    pub own: Vec<Option<Body>>,
    /// Where flows begin.
    pub entries: Vec<EntryInstance>,
    /// What the embedder gave.
    pub environment: Environment,
    /// Where functions run that hold their thread.
    pub blocking: BlockingPlacement,
    /// Where everything that happens is recorded.
    pub recorder: Recorder,
    /// The machine below.
    pub platform: Arc<dyn Platform>,
}

impl ProgramInstance {
    /// The prepared flow of a key.
    pub(crate) fn flow(&self, key: FlowKey) -> &PreparedFlow {
        &self.entries[key.entry as usize].flows[key.route as usize].0
    }

    /// The key of the next flow of a route.
    pub(crate) fn next_key(&self, entry: u32, route: u32) -> FlowKey {
        let counters = &self.entries[entry as usize].flows[route as usize].1;
        FlowKey { entry, route, sequence: counters.begun.fetch_add(1, Ordering::Relaxed) }
    }

    /// The tally of a flow's route.
    pub(crate) fn counters(&self, key: FlowKey) -> &RouteCounters {
        &self.entries[key.entry as usize].flows[key.route as usize].1
    }

    /// What the flows of each route are doing.
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

    /// How many flows have ended, with an answer or a failure.
    pub(crate) fn completed_flows(&self) -> u64 {
        let all_counters = self.entries.iter().flat_map(|entry| &entry.flows);
        all_counters.map(|(_, counters)| counters.ended.sum() + counters.failed.load(Ordering::Relaxed)).sum()
    }

    /// Records what happened, where somebody wants it.
    #[inline]
    pub(crate) fn record(&self, detail: Detail, what: impl FnOnce() -> EventKind) {
        if self.recorder.wants(detail) {
            self.recorder.record(self.platform.now_ns(), what());
        }
    }
}

/// What a frame needs to know of its surroundings while it runs.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// The program.
    pub instance: &'a ProgramInstance,
    /// The flow.
    pub key: FlowKey,
    /// Whether every node is recorded.
    pub records_nodes: bool,
    /// What the flow may do to the thread that runs it.
    pub permission: BlockingPermission,
}

/// What a flow may do to the thread that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingPermission {
    /// Whatever its engine allows: the thread goes on with it when it has waited.
    Allowed,
    /// Nothing: another thread goes on with it. It stops before what holds a thread and before a lock that is not free, and
    /// has no lock while it waits, because nobody can say when it goes on.
    Denied,
}
