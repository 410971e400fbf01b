//! Engines: strategies by which threads execute flows.
//!
//! Sources run on event loops, and every flow begins there. An engine decides which thread continues with a flow; the
//! behaviour of the flow is the same under every engine. There are two kinds: `event`, `pool` and `thread-per-flow` run
//! each flow as one piece; `manual`, `staged`, `dedicated` and `elastic` divide it into sections with queues between
//! them, and differ only in how threads serve the sections ([`ThreadingModel`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture, Loops};
use weir_ir::graph::Program;
use weir_ir::plan::{EngineFact, Granularity, Plan};
use weir_scheduler::{ThreadControl, ThreadPool};
use weir_trace::EventKind;

use crate::admission::AdmissionLimiter;
use crate::flow::NewFlow;
use crate::instance::{BlockingPlacement, EntryLoops, ProgramInstance};
use crate::platform::Platform;

mod answer;
mod brevity;
mod dedicated;
mod elastic;
mod event;
mod job;
mod loop_turns;
mod manual;
#[cfg(test)]
mod model;
mod parking;
mod partition;
mod placement;
mod pool;
mod sections;
mod segment_runner;
mod staged;
mod submission_buffer;
mod sync;
mod thread_per_flow;
mod vector_code;
mod vectors;
mod wakeup_batching;

/// The period in which thread counts are adjusted. Chosen by judgement: longer periods measure throughput more exactly,
/// shorter ones follow a changing load sooner.
const PERIOD: Duration = Duration::from_millis(100);

pub use partition::EngineSection;
pub(crate) use partition::QUEUE_DEFAULT;

/// All engines; the first is the default.
pub const ENGINES: &[EngineRow] =
    &[event::ROW, pool::ROW, thread_per_flow::ROW, manual::ROW, staged::ROW, dedicated::ROW, elastic::ROW];

/// The name of the only section of an engine that runs flows as one piece.
const WHOLE: &str = "flows";

/// The policy by which thread pools of engines with sections find their thread counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadCountPolicy {
    /// Each engine's own control.
    #[default]
    AsPlanned,
    /// A count between one and the most that the pool may have, drawn anew in every period. For tests: no count may
    /// change an answer.
    Random {
        /// The seed of the first pool; every further pool takes the next number.
        seed: u64,
        /// The length of a period.
        period: Duration,
    },
}

/// A row of the table of engines.
pub struct EngineRow {
    /// The name of the engine in plans and on the command line.
    pub name: &'static str,
    /// A description in one sentence.
    pub doc: &'static str,
    /// The number of event loops that sources run on, for a number of threads.
    pub(crate) loops: fn(usize) -> usize,
    /// The threads on which functions run that block their thread.
    pub(crate) blocking: BlockingPlacement,
    /// The unit in which the engine executes flows.
    pub(crate) drive: Drive,
}

/// The unit in which an engine executes flows.
pub(crate) enum Drive {
    /// Runs each flow as one piece.
    Flows(fn(&EngineSetup<'_>) -> io::Result<Arc<dyn Engine>>),
    /// Runs each flow section by section.
    Sections(ThreadingModel),
}

/// A threading model: the way in which threads serve sections (Streams, PLDI 2017, §2.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadingModel {
    /// The granularity of the nodes that no pattern of the plan names.
    pub granularity: Granularity,
    /// True if one thread pool serves all sections of the engine.
    pub shares_threads: bool,
    /// True if the flows of a source that runs on every event loop stay there, as one piece, unless a plan cuts them.
    pub keeps_on_loops: bool,
    /// Returns the control of the thread count, for the most threads that are allowed and the capacity of the queue.
    pub control: fn(usize, usize) -> ThreadControl,
}

impl ThreadCountPolicy {
    /// Returns the least time between two changes of a thread count.
    pub(crate) fn period(self) -> Duration {
        match self {
            ThreadCountPolicy::AsPlanned => PERIOD,
            ThreadCountPolicy::Random { period, .. } => period,
        }
    }

    /// Replaces the controls of thread pools, unless each engine's own applies.
    pub(crate) fn apply(self, pools: &mut [ThreadPool]) {
        let ThreadCountPolicy::Random { seed, .. } = self else { return };
        for (pool, seed) in pools.iter_mut().zip(seed..) {
            pool.control = ThreadControl::Random { like: Box::new(pool.control.clone()), seed };
        }
    }
}

/// The arguments that an engine is started with.
pub(crate) struct EngineSetup<'a> {
    /// The program under its plan.
    pub planned: PlannedProgram<'a>,
    /// The policy by which thread pools find their thread counts.
    pub thread_counts: ThreadCountPolicy,
    /// The maximum number of flows that may wait, in a queue or for something else.
    pub flows_max: usize,
    /// The platform that supplies threads and the time.
    pub platform: &'a Arc<dyn Platform>,
    /// The runtime of the first event loop, which drives the timers and sockets that flows wait for on other threads.
    pub handle: &'a Handle,
}

/// A program under its plan, with the settings that apply to all of its sections.
pub(crate) struct PlannedProgram<'a> {
    /// The name of the engine.
    pub engine: &'static str,
    /// The number of threads.
    pub threads: usize,
    /// The capacity of a section's queue, unless the section sets its own.
    pub queue: usize,
    /// The prepared program.
    pub instance: &'a Arc<ProgramInstance>,
    /// The program as a graph.
    pub program: &'a Program,
    /// The plan, which has further settings for individual sections.
    pub plan: &'a Plan,
}

/// A running engine.
pub(crate) trait Engine: Send + Sync {
    /// Begins a flow of this route of this entry point, or refuses it if the engine is full.
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun;

    /// Begins a detached flow, whose answer is not awaited: it may be reported as done as soon as the engine has
    /// accepted it.
    fn begin_detached(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin(entry, route, new_flow)
    }

    /// Returns true if flows of this route wait too long for a thread of the engine to begin another one.
    fn is_overloaded(&self, _entry: usize, _route: usize) -> bool {
        false
    }

    /// Returns the work that the first event loop does for the engine, for as long as the program runs.
    fn background(&self) -> LocalFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the limiter of the flows in progress.
    fn in_progress(&self) -> &Arc<AdmissionLimiter>;

    /// Waits until one more flow of this entry point may begin.
    fn room(&self, entry: usize) -> LocalFuture<()>;

    /// Waits until no flow is left.
    fn drained(&self) -> LocalFuture<()>;

    /// Returns a trace event for each section.
    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind>;

    /// Ends the engine's threads. No flow is left.
    fn close(&self);

    /// Leaves the engine's threads to the end of the process, because some are held by calls that did not end in time.
    fn abandon(&self) {}
}

/// Returns the trace event of an engine that runs flows as one piece.
pub(crate) fn whole_flow_section(
    engine: &'static str,
    threads: usize,
    waiting: &AdmissionLimiter,
    instance: &ProgramInstance,
) -> Vec<EventKind> {
    let (waiting, waiting_max) = waiting.occupancy();
    vec![EventKind::Section {
        section: WHOLE.into(),
        engine,
        pool: engine.into(),
        threads: threads as u64,
        threads_max: threads as u64,
        waiting,
        waiting_max,
        passed: instance.completed_flows(|_| true),
    }]
}

/// Returns the engine of this name.
#[must_use]
pub fn engine(name: &str) -> Option<&'static EngineRow> {
    ENGINES.iter().find(|row| row.name == name)
}

/// Returns the facts about engines that [`Plan::check`] needs.
#[must_use]
pub fn engine_facts() -> Vec<EngineFact<'static>> {
    let fact = |row: &EngineRow| EngineFact { name: row.name, has_sections: row.has_sections() };
    ENGINES.iter().map(fact).collect()
}

impl EngineRow {
    /// Returns true if the engine divides flows into sections.
    #[must_use]
    pub fn has_sections(&self) -> bool {
        matches!(self.drive, Drive::Sections(_))
    }

    /// Returns true if helpers may run parts of flows on idle cores: under every engine but the one whose sections have one
    /// thread each.
    #[must_use]
    pub fn may_fork(&self) -> bool {
        match &self.drive {
            Drive::Flows(_) => true,
            Drive::Sections(threading) => (threading.control)(2, QUEUE_DEFAULT).threads_max() > 1,
        }
    }

    /// Returns true if each section has threads of its own, which flows that fork do not exceed.
    pub(crate) fn forks_in_sections(&self) -> bool {
        matches!(&self.drive, Drive::Sections(threading) if !threading.shares_threads)
    }

    /// Returns the event loops on which the source of an entry point runs, and which thus have its flows; `is_cut` tells whether
    /// the plan divides them.
    pub(crate) fn entry_loops(&self, source: Loops, is_cut: impl FnOnce() -> bool) -> EntryLoops {
        match (&self.drive, source) {
            (Drive::Sections(threading), _) if !threading.keeps_on_loops => EntryLoops::First,
            (Drive::Sections(_), Loops::One) => EntryLoops::First,
            (Drive::Sections(_), Loops::Each) if is_cut() => EntryLoops::First,
            (_, Loops::Each) => EntryLoops::Each,
            (Drive::Flows(_), Loops::One) => EntryLoops::One,
        }
    }

    /// Returns the threads on which functions run that block the thread of a flow, or hold it for long. The threads of sections
    /// have nothing else to do.
    pub(crate) fn blocking_in(&self, loops: EntryLoops) -> BlockingPlacement {
        if loops == EntryLoops::First { BlockingPlacement::InPlace } else { self.blocking }
    }

    /// Returns the number of event loops for a number of threads.
    pub(crate) fn loop_count(&self, threads: usize, instance: &ProgramInstance) -> usize {
        let all_on_first = instance.entries.iter().all(|entry| entry.loops == EntryLoops::First);
        if self.has_sections() && all_on_first { 1 } else { (self.loops)(threads).max(1) }
    }

    /// Returns the sections that the engine makes of a program; none if it runs each flow as one piece.
    pub(crate) fn sections(&self, planned: &PlannedProgram<'_>) -> Vec<EngineSection> {
        match self.drive {
            Drive::Flows(_) => Vec::new(),
            Drive::Sections(threading) => partition::partition(threading, planned).sections,
        }
    }

    /// Starts the engine.
    pub(crate) fn start(&self, setup: &EngineSetup<'_>) -> io::Result<Arc<dyn Engine>> {
        match self.drive {
            Drive::Flows(start) => start(setup),
            Drive::Sections(threading) if threading.keeps_on_loops => elastic::start(threading, setup),
            Drive::Sections(threading) => {
                Ok(sections::start_sections(threading, setup, AdmissionLimiter::new(setup.flows_max))?)
            }
        }
    }
}

impl std::fmt::Debug for EngineRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
