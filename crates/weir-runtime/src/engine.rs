//! Engines: who drives the flows.
//!
//! Sources run on event loops, and every flow begins there. An engine decides which thread goes on with it; what a flow
//! does is the same under each. There are two sorts: those that run each flow as one piece, and those that cut it into
//! sections with queues between them, which differ only in how many threads serve which sections ([`ThreadingModel`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_ir::graph::Program;
use weir_ir::plan::{EngineFact, Plan};
use weir_scheduler::{ThreadControl, ThreadPool};
use weir_trace::EventKind;

use crate::admission::AdmissionLimiter;
use crate::flow::NewFlow;
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::platform::Platform;

mod answer;
mod brevity;
mod dedicated;
mod elastic;
mod event;
mod job;
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
mod wakeup_batching;

/// How often the numbers of threads are looked at.
const PERIOD: Duration = Duration::from_millis(100);

pub use partition::EngineSection;

/// Every engine there is.
pub const ENGINES: &[EngineRow] =
    &[event::ROW, pool::ROW, thread_per_flow::ROW, manual::ROW, staged::ROW, dedicated::ROW, elastic::ROW];

/// What a section is called that flows are in from beginning to end.
const WHOLE: &str = "flows";

/// How the numbers of threads are found of engines that have sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadCountPolicy {
    /// As each engine says.
    #[default]
    AsPlanned,
    /// Each crew's is drawn anew in every period, between one and as many as it may have. For tests: the answers must be the
    /// same.
    Random {
        /// Where the numbers begin.
        seed: u64,
        /// How long a period is.
        period: Duration,
    },
}

/// What is known of one engine.
pub struct EngineRow {
    /// Its name, as plans and the command line say it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// On how many event loops sources run, for a number of threads.
    pub(crate) loops: fn(usize) -> usize,
    /// Where functions run that hold their thread.
    pub(crate) blocking: BlockingPlacement,
    /// How it drives flows.
    pub(crate) drive: Drive,
}

/// How an engine drives flows.
pub(crate) enum Drive {
    /// Each as one piece.
    Flows(fn(EngineSetup<'_>) -> io::Result<Arc<dyn Engine>>),
    /// EngineSection by section.
    Sections(ThreadingModel),
}

/// How threads serve sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadingModel {
    /// How it cuts what no pattern names.
    pub granularity: Granularity,
    /// Whether its sections share their threads.
    pub shares_threads: bool,
    /// How the number of threads is found, from how many there may be and the length of the queue.
    pub control: fn(usize, usize) -> ThreadControl,
}

impl ThreadCountPolicy {
    /// The least time between two changes of a number.
    pub(crate) fn period(self) -> Duration {
        match self {
            ThreadCountPolicy::AsPlanned => PERIOD,
            ThreadCountPolicy::Random { period, .. } => period,
        }
    }

    /// Changes how crews find theirs, where it is not as planned.
    pub(crate) fn apply(self, crews: &mut [ThreadPool]) {
        let ThreadCountPolicy::Random { seed, .. } = self else { return };
        for (crew, seed) in crews.iter_mut().zip(seed..) {
            crew.control = ThreadControl::Random { like: Box::new(crew.control.clone()), seed };
        }
    }
}

/// How an engine cuts what no pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Granularity {
    /// Not at all.
    Whole,
    /// Before and after each call that has a private state: the others gain nothing from a queue, for different flows run
    /// through them side by side.
    States,
    /// Before each call.
    Calls,
}

/// What an engine is started with.
pub(crate) struct EngineSetup<'a> {
    /// The engine's name.
    pub engine: &'static str,
    /// How many threads.
    pub threads: usize,
    /// How this number is found of crews.
    pub thread_counts: ThreadCountPolicy,
    /// How many flows may wait: in its queue, or for something.
    pub flows_max: usize,
    /// Where threads come from.
    pub platform: &'a Arc<dyn Platform>,
    /// The first event loop's runtime, which drives what flows wait for elsewhere.
    pub handle: &'a Handle,
    /// The program as it is prepared.
    pub instance: &'a Arc<ProgramInstance>,
    /// The program.
    pub program: &'a Program,
    /// What is said of its sections.
    pub plan: &'a Plan,
}

/// A program under its plan, as an engine finds it.
pub(crate) struct PlannedProgram<'a> {
    /// The engine's name.
    pub engine: &'static str,
    /// How many threads.
    pub threads: usize,
    /// The program as it is prepared.
    pub instance: &'a ProgramInstance,
    /// The program.
    pub program: &'a Program,
    /// What is said of its sections.
    pub plan: &'a Plan,
}

impl<'a> EngineSetup<'a> {
    fn planned(&self) -> PlannedProgram<'a> {
        let EngineSetup { engine, threads, instance, program, plan, .. } = *self;
        PlannedProgram { engine, threads, instance, program, plan }
    }
}

/// An engine that runs.
pub(crate) trait Engine: Send + Sync {
    /// Begins a flow of this route of this entry point, or is full.
    fn begin(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun;

    /// The same for a flow whose answer nobody wants: it may be said to be through as soon as the engine has it.
    fn give(&self, entry: usize, route: usize, new_flow: &mut NewFlow<'_>) -> Begun {
        self.begin(entry, route, new_flow)
    }

    /// What an event loop does for it beside the sources, for as long as the program runs.
    fn background(&self) -> LocalFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until one more flow may begin.
    fn room(&self) -> LocalFuture<()>;

    /// Waits until no flow is left.
    fn drained(&self) -> LocalFuture<()>;

    /// What its sections are doing.
    fn sections(&self, instance: &ProgramInstance) -> Vec<EventKind>;

    /// Ends its threads. No flow is left.
    fn close(&self);

    /// Leaves its threads to the end of the process: some are held by calls that did not end in time.
    fn abandon(&self) {}
}

/// What an engine is doing whose flows are one section each.
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
        passed: instance.through(),
    }]
}

/// The engine of this name.
#[must_use]
pub fn engine(name: &str) -> Option<&'static EngineRow> {
    ENGINES.iter().find(|row| row.name == name)
}

/// What plans need to know of the engines: for [`Plan::check`].
#[must_use]
pub fn engine_facts() -> Vec<EngineFact<'static>> {
    let fact = |row: &EngineRow| EngineFact { name: row.name, has_sections: row.has_sections() };
    ENGINES.iter().map(fact).collect()
}

impl EngineRow {
    /// Whether it runs sections by themselves; otherwise each flow is one section.
    #[must_use]
    pub fn has_sections(&self) -> bool {
        matches!(self.drive, Drive::Sections(_))
    }

    /// The sections that it makes of a program; none where it runs each flow as one piece.
    pub(crate) fn sections(&self, planned: &PlannedProgram<'_>) -> Vec<EngineSection> {
        match self.drive {
            Drive::Flows(_) => Vec::new(),
            Drive::Sections(threading) => partition::partition(threading, planned).0,
        }
    }

    /// Starts the engine.
    pub(crate) fn start(&self, setup: EngineSetup<'_>) -> io::Result<Arc<dyn Engine>> {
        match self.drive {
            Drive::Flows(start) => start(setup),
            Drive::Sections(threading) => sections::start_sections(threading, setup),
        }
    }
}

impl std::fmt::Debug for EngineRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
