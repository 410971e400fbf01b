//! Engines: who drives the flows.
//!
//! Sources run on event loops, and every flow begins there. An engine decides which thread goes on with it; what a flow
//! does is the same under each. There are two sorts: those that run each flow as one piece, and those that cut it into
//! sections with queues between them, which differ only in how many threads serve which sections ([`Threading`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_ir::graph::Program;
use weir_ir::plan::{EngineFact, Plan};
use weir_scheduler::{ThreadControl, ThreadPool};
use weir_trace::EventKind;

use crate::crowd::Crowd;
use crate::flow::Beginning;
use crate::live::{Blocking, Live};
use crate::machine::Machine;

mod answer;
mod cut;
mod dedicated;
mod elastic;
mod event;
mod exchange;
mod given;
mod job;
mod layout;
mod manual;
#[cfg(test)]
mod model;
mod pace;
mod parking;
mod pool;
mod sections;
mod staged;
mod stretches;
mod sync;
mod thread_per_flow;

/// How often the numbers of threads are looked at.
const PERIOD: Duration = Duration::from_millis(100);

pub use cut::Section;

/// Every engine there is.
pub const ENGINES: &[EngineRow] =
    &[event::ROW, pool::ROW, thread_per_flow::ROW, manual::ROW, staged::ROW, dedicated::ROW, elastic::ROW];

/// What a section is called that flows are in from beginning to end.
const WHOLE: &str = "flows";

/// How the numbers of threads are found of engines that have sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steering {
    /// As each engine says.
    #[default]
    Planned,
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
    pub(crate) blocking: Blocking,
    /// How it drives flows.
    pub(crate) drive: Drive,
}

/// How an engine drives flows.
pub(crate) enum Drive {
    /// Each as one piece.
    Flows(fn(Setup<'_>) -> io::Result<Arc<dyn Engine>>),
    /// Section by section.
    Sections(Threading),
}

/// How threads serve sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threading {
    /// How it cuts what no pattern names.
    pub grain: Grain,
    /// Whether its sections share their threads.
    pub shares_threads: bool,
    /// How the number of threads is found, from how many there may be and the length of the queue.
    pub control: fn(usize, usize) -> ThreadControl,
}

impl Steering {
    /// The least time between two changes of a number.
    pub(crate) fn period(self) -> Duration {
        match self {
            Steering::Planned => PERIOD,
            Steering::Random { period, .. } => period,
        }
    }

    /// Changes how crews find theirs, where it is not as planned.
    pub(crate) fn apply(self, crews: &mut [ThreadPool]) {
        let Steering::Random { seed, .. } = self else { return };
        for (crew, seed) in crews.iter_mut().zip(seed..) {
            crew.control = ThreadControl::Random { like: Box::new(crew.control.clone()), seed };
        }
    }
}

/// How an engine cuts what no pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Not at all.
    Whole,
    /// Before and after each call that has a private state: the others gain nothing from a queue, for different flows run
    /// through them side by side.
    States,
    /// Before each call.
    Calls,
}

/// What an engine is started with.
pub(crate) struct Setup<'a> {
    /// The engine's name.
    pub engine: &'static str,
    /// How many threads.
    pub threads: usize,
    /// How this number is found of crews.
    pub steering: Steering,
    /// How many flows may wait: in its queue, or for something.
    pub flows_max: usize,
    /// Where threads come from.
    pub machine: &'a Arc<dyn Machine>,
    /// The first event loop's runtime, which drives what flows wait for elsewhere.
    pub handle: &'a Handle,
    /// The program as it is prepared.
    pub live: &'a Arc<Live>,
    /// The program.
    pub program: &'a Program,
    /// What is said of its sections.
    pub plan: &'a Plan,
}

/// A program under its plan, as an engine finds it.
pub(crate) struct Planned<'a> {
    /// The engine's name.
    pub engine: &'static str,
    /// How many threads.
    pub threads: usize,
    /// The program as it is prepared.
    pub live: &'a Live,
    /// The program.
    pub program: &'a Program,
    /// What is said of its sections.
    pub plan: &'a Plan,
}

impl<'a> Setup<'a> {
    fn planned(&self) -> Planned<'a> {
        let Setup { engine, threads, live, program, plan, .. } = *self;
        Planned { engine, threads, live, program, plan }
    }
}

/// An engine that runs.
pub(crate) trait Engine: Send + Sync {
    /// Begins a flow of this route of this entry point, or is full.
    fn begin(&self, entry: usize, route: usize, beginning: &mut Beginning<'_>) -> Begun;

    /// The same for a flow whose answer nobody wants: it may be said to be through as soon as the engine has it.
    fn give(&self, entry: usize, route: usize, beginning: &mut Beginning<'_>) -> Begun {
        self.begin(entry, route, beginning)
    }

    /// What an event loop does for it beside the sources, for as long as the program runs.
    fn tended(&self) -> LocalFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until one more flow may begin.
    fn room(&self) -> LocalFuture<()>;

    /// Waits until no flow is left.
    fn drained(&self) -> LocalFuture<()>;

    /// What its sections are doing.
    fn sections(&self, live: &Live) -> Vec<EventKind>;

    /// Ends its threads. No flow is left.
    fn close(&self);

    /// Leaves its threads to the end of the process: some are held by calls that did not end in time.
    fn abandon(&self) {}
}

/// What an engine is doing whose flows are one section each.
pub(crate) fn whole(engine: &'static str, threads: usize, waiting: &Crowd, live: &Live) -> Vec<EventKind> {
    let (waiting, waiting_max) = waiting.extent();
    vec![EventKind::Section {
        section: WHOLE.into(),
        engine,
        pool: engine.into(),
        threads: threads as u64,
        threads_max: threads as u64,
        waiting,
        waiting_max,
        passed: live.through(),
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
    pub(crate) fn sections(&self, planned: &Planned<'_>) -> Vec<Section> {
        match self.drive {
            Drive::Flows(_) => Vec::new(),
            Drive::Sections(threading) => cut::cut(threading, planned).0,
        }
    }

    /// Starts the engine.
    pub(crate) fn start(&self, setup: Setup<'_>) -> io::Result<Arc<dyn Engine>> {
        match self.drive {
            Drive::Flows(start) => start(setup),
            Drive::Sections(threading) => sections::start(threading, setup),
        }
    }
}

impl std::fmt::Debug for EngineRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
