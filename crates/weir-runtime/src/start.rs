//! The start of a program.
//!
//! 1. The plan is checked, the program is prepared, and the arguments of its sources are evaluated and checked. Nothing outside
//!    of the process is changed or occupied so far ([`CheckedStart`]).
//! 2. The shared values are created, the sources are opened and the engine starts. Everything that can fail at the start fails
//!    here at the latest.
//! 3. The event loops run: see `running.rs`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use weir_host::memory::{self, MemoryLimits};
use weir_host::{Failure, FailureKind, Library, Loops, Resource, Text, Type, Value};
use weir_ir::graph::{Graph, Node, NodeKind, Operand, Program};
use weir_ir::plan::{Located, Plan, PlanProblem};
use weir_ir::program::Entry;
use weir_trace::{FlowKey, Recorder};

use crate::admission::AdmissionLimiter;
use crate::batching::GathererContext;
use crate::blocking_pool::BlockingPool;
use crate::engine::{
    ENGINES, EngineRow, EngineSection, PlannedProgram, QUEUE_DEFAULT, ThreadCountPolicy, engine, engine_facts,
};
use crate::flow_section::FlowSection;
use crate::flow_sessions::FlowSessions;
use crate::fork_account::FlowForks;
use crate::frame::{Finished, Frame};
use crate::helpers::{ForkPolicy, Helpers};
use crate::instance::{EntryInstance, Env, ProgramInstance, RouteCounters};
use crate::lock::SessionLimits;
use crate::platform::{Platform, SystemPlatform};
use crate::prepare::{Preparation, PrepareError, REGION_SIZE_MAX, STRIP_MAX, source_of};
use crate::resources::Resources;
use crate::running::RunningProgram;
use crate::step::Body;
use crate::units::{Advanced, SliceLength, Units};
pub use calling_thread::run_on_calling_thread;
pub use checked_start::CheckedStart;
pub use described::{independent_parts, loops, queued_calls, regions};

mod calling_thread;
mod checked_start;
mod described;

/// The options that a program is run with.
pub struct Options {
    /// The plan: the decisions about a program that are architecture and not logic. It takes precedence over these
    /// options.
    pub plan: Plan,
    /// The engine.
    pub engine: &'static EngineRow,
    /// The number of threads; `None` for as many as there are cores.
    pub threads: Option<usize>,
    /// The maximum number of flows that may wait at a time; further ones are refused.
    pub flows_max: usize,
    /// The policy by which engines with sections find their thread counts.
    pub thread_counts: ThreadCountPolicy,
    /// Limits on the values of sessions that no flow uses.
    pub sessions: SessionLimits,
    /// The time that a program has, once it is told to stop, to complete what it has begun.
    pub drain_within: Duration,
    /// The bytes of memory that a flow may hold; `None` for 256 MiB, or a quarter of the program's memory if that is less.
    pub memory_per_flow: Option<u64>,
    /// The bytes of memory that the program may hold; `None` for any number. The limits apply to the whole process.
    pub memory_max: Option<u64>,
    /// The length of the slices by which flows that compute take turns.
    pub slice: SliceLength,
    /// The rule by which flows use several cores.
    pub forks: ForkPolicy,
    /// The size from which on a region ends and another one begins, about its number of values. For tests: no size may
    /// change an answer.
    pub region_size_max: usize,
    /// The largest number of elements of a strip: of those of a long list that a `for` reads before a `fold` goes over their rows. For
    /// tests: no length may change an answer.
    pub strip_max: usize,
    /// The recorder of the trace.
    pub recorder: Recorder,
    /// The platform that supplies clock, threads and random numbers.
    pub platform: Arc<dyn Platform>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            plan: Plan::default(),
            engine: &ENGINES[0],
            threads: None,
            flows_max: 10_000,
            thread_counts: ThreadCountPolicy::AsPlanned,
            sessions: SessionLimits::default(),
            drain_within: Duration::from_secs(30),
            memory_per_flow: None,
            memory_max: None,
            slice: SliceLength::default(),
            forks: ForkPolicy::AsPlanned,
            region_size_max: REGION_SIZE_MAX,
            strip_max: STRIP_MAX,
            recorder: Recorder::off(),
            platform: Arc::new(SystemPlatform::new()),
        }
    }
}

/// The type of the shared values that are tables.
const TABLE: &str = "tables.Table";
/// The function that opens one.
const OPEN: &str = "tables.open";

/// The reason why a program did not start.
#[derive(Debug)]
pub enum StartError {
    /// The program does not match the library.
    Prepare(PrepareError),
    /// The plan does not fit the program.
    Plan(Vec<PlanProblem>),
    /// A shared value could not be created.
    Shared(StartFailure),
    /// A table could not be opened.
    Table(StartFailure),
    /// A source's arguments could not be evaluated, or it could not be opened.
    Source(StartFailure),
    /// The system provides no thread or event loop, or the program needs more threads than the runtime starts.
    System(io::Error),
}

/// The failure of a body that runs when the program starts.
#[derive(Debug)]
pub struct StartFailure {
    /// The name of the shared value or of the entry point.
    pub name: Text,
    /// The path of the node that failed in the graph of the body; empty if the body did not fail.
    pub path: String,
    /// The failure.
    pub failure: Failure,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Prepare(error) => error.fmt(f),
            StartError::Plan(problems) => {
                let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
                write!(f, "the plan does not fit: {}", messages.join("; "))
            }
            StartError::Shared(of) => write!(f, "the shared value `{}` cannot be created: {}", of.name, of.failure),
            StartError::Table(of) if of.failure.kind == FailureKind::Memory => write!(
                f,
                "the table `{}` cannot be opened: its rows do not fit into the memory in which they are converted: {}; give this start more \
                 with `--memory`; a migration that is not `batched` needs less as `migrate … batched`",
                of.name, of.failure
            ),
            StartError::Table(of) => write!(f, "the table `{}` cannot be opened: {}", of.name, of.failure),
            StartError::Source(of) => write!(f, "`{}` cannot start: {}", of.name, of.failure),
            // An error with a message of its own is a limit of the runtime.
            StartError::System(error) if error.get_ref().is_some() => error.fmt(f),
            StartError::System(error) => write!(f, "the system refuses: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<PrepareError> for StartError {
    fn from(error: PrepareError) -> Self {
        StartError::Prepare(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        StartError::System(error)
    }
}

/// Starts a program.
///
/// # Errors
/// Fails if the program does not fit the library, a shared value or source cannot be created, or the system refuses.
pub fn start(program: &Program, library: &Library, options: Options) -> Result<RunningProgram, StartError> {
    CheckedStart::check(program, library, options)?.start()
}

/// Returns the sections that the engine of these options would make of a program, without starting it; none if the
/// engine runs each flow as one piece.
///
/// # Errors
/// Fails if the program does not fit the library, or the plan does not fit the program.
pub fn sections(program: &Program, library: &Library, options: &Options) -> Result<Vec<EngineSection>, StartError> {
    let settings = Settings::resolve(program, options)?;
    let (prepared, _) = prepare(program, library, options, &settings)?;
    Ok(settings.row.sections(&settings.planned(program, &options.plan, &prepared.instance)))
}

/// Returns what batches are sent with.
fn gathering(library: &Library, options: &Options) -> GathererContext {
    GathererContext {
        environment: library.environment.clone(),
        recorder: options.recorder.clone(),
        platform: Arc::clone(&options.platform),
    }
}

/// The settings that a program runs with, resolved from plan, options and defaults.
struct Settings {
    row: &'static EngineRow,
    threads: usize,
    /// The capacity of a section's queue, unless the section sets its own.
    queue: usize,
    flows_max: usize,
    sessions: SessionLimits,
    drain_within: Duration,
    memory: MemoryLimits,
    /// The number of forks that run at a time.
    helpers: usize,
}

impl Settings {
    /// Resolves every setting that has more than one origin: the plan takes precedence over the options, and both over
    /// a default. A plan with sections needs an engine that has sections: `manual`, unless plan or options name one.
    fn resolve(program: &Program, options: &Options) -> Result<Settings, StartError> {
        let plan = &options.plan;
        let problems = plan.check(program, &engine_facts());
        if !problems.is_empty() {
            return Err(StartError::Plan(problems));
        }
        let named = plan.engine.as_ref().and_then(|name| engine(&name.value));
        let needs_sections = !plan.sections.is_empty() && !options.engine.has_sections();
        let default = engine("manual").filter(|_| needs_sections).unwrap_or(options.engine);
        let row = named.unwrap_or(default);
        Ok(Settings {
            row,
            helpers: if row.may_fork() { value(&plan.parallel).unwrap_or_default().helpers(cores()) } else { 0 },
            threads: value(&plan.threads).or(options.threads).unwrap_or_else(cores).max(1),
            queue: value(&plan.queue_length_max).unwrap_or(QUEUE_DEFAULT),
            flows_max: value(&plan.flows_max).unwrap_or(options.flows_max),
            sessions: SessionLimits {
                sessions: value(&plan.sessions_max).unwrap_or(options.sessions.sessions),
                idle: value(&plan.session_idle_timeout).unwrap_or(options.sessions.idle),
            },
            drain_within: value(&plan.drain_timeout).unwrap_or(options.drain_within),
            memory: memory_limits(value(&plan.memory_per_flow).or(options.memory_per_flow), options.memory_max),
        })
    }

    fn planned<'a>(
        &self,
        program: &'a Program,
        plan: &'a Plan,
        instance: &'a Arc<ProgramInstance>,
    ) -> PlannedProgram<'a> {
        PlannedProgram { engine: self.row.name, threads: self.threads, queue: self.queue, instance, program, plan }
    }
}

fn memory_limits(flow: Option<u64>, program: Option<u64>) -> MemoryLimits {
    let program = program.unwrap_or(u64::MAX);
    MemoryLimits { flow: flow.unwrap_or((program / 4).min(MemoryLimits::FLOW_BYTES_MAX)), program }
}

fn value<T: Copy>(planned: &Option<Located<T>>) -> Option<T> {
    planned.as_ref().map(|located| located.value)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The number of calls that block a thread at a time. Chosen by judgement: they wait for disks and peers more than they
/// compute, and each holds a thread with its stack.
const BLOCKING_CALLS_MAX: usize = 64;

/// Returns the number of calls that compute for long at a time. Chosen by judgement: the system shares the cores among four
/// for each, so that a short call does not wait for the end of a long one, and more would only hold more memory at a time.
fn long_calls_max() -> usize {
    (4 * cores()).max(8)
}

/// A prepared program, with the bodies that compute its shared values.
struct PreparedProgram {
    instance: Arc<ProgramInstance>,
    /// In the order of the program; `None` for values that are declared `per session`.
    shared: Vec<Option<Body>>,
}

fn prepare(
    program: &Program,
    library: &Library,
    options: &Options,
    settings: &Settings,
) -> Result<(PreparedProgram, Vec<Body>), PrepareError> {
    let mut resources = Resources::of(program, &library.environment, settings.sessions, &options.platform);
    let mut preparation = Preparation::new(program, library, &mut resources, gathering(library, options))
        .with_region_size_max(options.region_size_max)
        .with_strip_max(options.strip_max);
    if settings.row.has_sections() {
        preparation = preparation.cut_by(&options.plan);
    }
    let shared = program.shared.iter().map(|shared| preparation.initial(&shared.init, &shared.name));
    let shared = shared.collect::<Result<Vec<_>, _>>()?;
    let (own, shared): (Vec<_>, Vec<_>) = program
        .shared
        .iter()
        .zip(shared)
        .map(|(shared, body)| if shared.per_session { (Some(body), None) } else { (None, Some(body)) })
        .unzip();
    let arguments = program.entries.iter().map(|entry| preparation.initial(&entry.arguments, &entry.name));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let mut entries = Vec::new();
    for index in 0..program.entries.len() {
        // A source that does not exist is reported when it is opened.
        let source = source_of(library, program, index).map_or(Loops::One, |source| source.loops());
        entries.push(prepare_entry(&mut preparation, &program.entries[index], source, options, settings)?);
    }
    let instance = Arc::new_cyclic(|this| ProgramInstance {
        this: this.clone(),
        helpers: Helpers::new(
            settings.helpers,
            options.forks,
            (cores(), settings.row.forks_in_sections()),
            &options.platform,
        ),
        resources,
        own,
        entries,
        environment: library.environment.clone(),
        slice: options.slice,
        blocking: settings.row.blocking,
        blocking_calls: BlockingPool::new("blocking", BLOCKING_CALLS_MAX, &options.platform),
        long_calls: BlockingPool::new("call", long_calls_max(), &options.platform),
        first_loop: OnceLock::new(),
        section_calls: OnceLock::new(),
        recorder: options.recorder.clone(),
        platform: Arc::clone(&options.platform),
    });
    Ok((PreparedProgram { instance, shared }, arguments))
}

/// Prepares an entry point whose source runs on these event loops.
fn prepare_entry(
    preparation: &mut Preparation<'_>,
    entry: &Entry<Graph>,
    source: Loops,
    options: &Options,
    settings: &Settings,
) -> Result<EntryInstance, PrepareError> {
    let loops = settings.row.entry_loops(source, || is_cut(&options.plan, entry));
    let flows = entry.flows.iter().map(|flow| Ok((preparation.flow(flow, entry.ordered)?, RouteCounters::default())));
    Ok(EntryInstance {
        flows: flows.collect::<Result<_, PrepareError>>()?,
        answers: entry.flows.iter().any(|flow| flow.route.is_some()),
        loops,
        call_budget: settings.row.blocking_in(loops).call_budget(options.slice),
        has_end: entry.end().is_some(),
        loops_ended: AtomicUsize::new(0),
        computing: AdmissionLimiter::new(settings.threads.max(cores())),
    })
}

/// Returns true if a section of the plan names a node of this entry point.
fn is_cut(plan: &Plan, entry: &Entry<Graph>) -> bool {
    let mut is_cut = false;
    for flow in &entry.flows {
        flow.body.each_node(&mut |node| is_cut |= plan.section_of_node(&flow.name, node).is_some());
    }
    is_cut
}

fn make_shared(program: &Program, prepared: &PreparedProgram, handle: &Handle) -> Result<(), StartError> {
    check_tables(program, prepared)?;
    for ((body, shared), place) in prepared.shared.iter().zip(&program.shared).zip(&prepared.instance.resources.shared)
    {
        let Some(body) = body else { continue };
        let made = run_once(body, &shared.name, &prepared.instance, handle);
        let is_table = shared.ty == Type::named(TABLE);
        let made = made.map_err(if is_table { StartError::Table } else { StartError::Shared })?;
        if let Some(store) = made.snapshots()
            && let Some(locks) = prepared.instance.resources.locks.get(&Resource::Shared(shared.name.clone()))
        {
            locks.whole.note_snapshots(store);
        }
        *place.write() = made;
    }
    complete_tables(program, prepared)?;
    for gatherer in prepared.instance.resources.gatherers.values() {
        gatherer.borrowed().handles();
    }
    Ok(())
}

/// Checks all tables together, before one changes.
fn check_tables(program: &Program, prepared: &PreparedProgram) -> Result<(), StartError> {
    let opened = program.shared.iter().filter_map(|shared| opening(&shared.init));
    let described: Vec<Value> = opened.map(|(_, described)| described.clone()).collect();
    let checked = prepared.instance.environment.check_start(&described);
    checked.map_err(|(table, failure)| table_failed(program, &table, failure))
}

/// Makes the changes of all tables together.
fn complete_tables(program: &Program, prepared: &PreparedProgram) -> Result<(), StartError> {
    let completed = prepared.instance.environment.complete_start();
    completed.map_err(|(table, failure)| table_failed(program, &table, failure))
}

/// Returns the failure of a start because of a table of the database.
fn table_failed(program: &Program, table: &Text, failure: Failure) -> StartError {
    // The description of a table begins with its name.
    let is_of = |described: &Value| matches!(described, Value::Record(parts) if parts.first() == Some(&Value::Text(table.clone())));
    let opened = program.shared.iter().find_map(|shared| {
        let (path, _) = opening(&shared.init).filter(|(_, described)| is_of(described))?;
        Some((shared.name.clone(), path.to_owned()))
    });
    let (name, path) = opened.unwrap_or_else(|| (table.clone(), String::new()));
    StartError::Table(StartFailure { name, path, failure })
}

/// Returns the path of the call that opens a table in the body, and the description of the table, if it has one.
fn opening(init: &Graph) -> Option<(&str, &Value)> {
    let is_call = |node: &&Node| matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == OPEN);
    let node = init.nodes.iter().find(is_call)?;
    let Operand::Constant(at) = node.inputs.first()? else { return None };
    Some((&node.name, init.constants.get(*at as usize)?))
}

/// Runs a body that belongs to no flow. It is compared with the limit of the program's memory only.
fn run_once(body: &Body, name: &Text, instance: &ProgramInstance, handle: &Handle) -> Result<Value, StartFailure> {
    let mut frame = Frame::take(body, true);
    let entered = memory::enter_program();
    let failed = |path, failure| StartFailure { name: name.clone(), path, failure };
    let finished = handle.block_on(poll_fn(|context| advance_once(&mut frame, body, instance, context)));
    drop(entered);
    Frame::give_back(frame);
    match finished {
        Finished::Value(value) => Ok(value),
        Finished::SegmentEnd => Err(failed(String::new(), Failure::function("it stopped on its way"))),
        Finished::Ended(ended) => {
            let path = ended.path(body);
            ended.how.map_err(|failure| failed(path, *failure))
        }
    }
}

/// Advances a body that belongs to no flow, slice by slice.
fn advance_once(
    frame: &mut Frame,
    body: &Body,
    instance: &ProgramInstance,
    context: &mut Context<'_>,
) -> Poll<Finished> {
    loop {
        let units = Units::slice(instance.slice);
        let (forks, section, sessions) = (FlowForks::default(), FlowSection::default(), FlowSessions::default());
        let env = Env {
            instance,
            forks: &forks,
            section: &section,
            sessions: &sessions,
            call_budget: instance.blocking.call_budget(instance.slice),
            key: FlowKey { entry: 0, route: 0, sequence: 0 },
            records_nodes: false,
            blocking: instance.blocking,
            units: &units,
            given_up: None,
        };
        let advanced = frame.advance(body, env, None, context);
        instance.at_rest();
        match advanced {
            Advanced::Ready(finished) => return Poll::Ready(finished),
            Advanced::Waits => return Poll::Pending,
            Advanced::Yields => {}
        }
        if let Err(failure) = memory::check() {
            return Poll::Ready(Finished::Ended(frame.exit_where_stopped(body, failure)));
        }
    }
}
