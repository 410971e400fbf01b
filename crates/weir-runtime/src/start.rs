//! Starting a program, and stopping it.
//!
//! 1. The program is prepared, its shared values are made, its sources' arguments evaluated.
//! 2. The engine starts, and the sources are opened: what fails, fails here.
//! 3. Every event loop runs its sources until they end, on their own or told to stop, and then until no flow is left.
//! 4. After the last, the engine's threads end, and the environment is closed: files are flushed.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::LocalSet;
use weir_host::{
    Begun, Failure, Flows, Library, LocalFuture, Loops, Opened, Route, RouteParameter, Stop, Text, TypeDefinition,
    Value,
};
use weir_ir::graph::{Graph, Program};
use weir_ir::program::Flow as IrFlow;
use weir_trace::{Detail, FlowKey, Recorder, What};

use crate::engine::{ENGINES, Engine, EngineRow, Setup};
use crate::flow::Flow;
use crate::frame::{Finished, Frame};
use crate::live::{Env, Live, LiveEntry};
use crate::machine::{Machine, Real};
use crate::prepare::{Preparation, PrepareError, source_of};
use crate::resources::Resources;
use crate::step::Body;

/// How a program is run.
pub struct Options {
    /// The engine.
    pub engine: &'static EngineRow,
    /// How many threads it has; `None` for as many as there are cores.
    pub threads: Option<usize>,
    /// How many flows may wait at a time; a source that has more is told that there is no room.
    pub flows_max: usize,
    /// How long a program that is told to stop has for what it has begun.
    pub drain_within: Duration,
    /// Where everything that happens is recorded.
    pub recorder: Recorder,
    /// The machine below.
    pub machine: Arc<dyn Machine>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            engine: &ENGINES[0],
            threads: None,
            flows_max: 10_000,
            drain_within: Duration::from_secs(30),
            recorder: Recorder::off(),
            machine: Arc::new(Real::new()),
        }
    }
}

/// Why a program did not start.
#[derive(Debug)]
pub enum StartError {
    /// The program and the library do not belong together.
    Prepare(PrepareError),
    /// A shared value could not be made: its name, and why.
    Shared(Text, Failure),
    /// A source's arguments could not be evaluated, or it could not be opened: its name, and why.
    Source(Text, Failure),
    /// The system gives no thread or event loop.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Prepare(error) => error.fmt(f),
            StartError::Shared(name, failure) => write!(f, "shared value `{name}` cannot be made: {failure}"),
            StartError::Source(name, failure) => write!(f, "`{name}` cannot start: {failure}"),
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

/// A program that runs.
pub struct Running {
    descriptions: Vec<String>,
    loops: Vec<JoinHandle<()>>,
    engine: Arc<dyn Engine>,
    stop: watch::Sender<bool>,
    failure: Arc<Mutex<Option<Failure>>>,
    live: Arc<Live>,
}

/// Tells a program to stop; may be kept by a signal handler.
#[derive(Clone)]
pub struct Stopper(watch::Sender<bool>, Arc<Live>);

impl Stopper {
    /// Tells the program to stop: it takes in nothing new, and ends what it has begun.
    pub fn stop(&self) {
        if !self.0.send_replace(true) {
            self.1.record(Detail::Log, || What::Stopping);
        }
    }
}

impl Running {
    /// Where each source listens or what it reads.
    #[must_use]
    pub fn descriptions(&self) -> &[String] {
        &self.descriptions
    }

    /// What tells the program to stop.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone(), Arc::clone(&self.live))
    }

    /// Tells the program to stop.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// Waits until all sources have ended and no flow is left.
    ///
    /// # Errors
    /// Fails where a source has failed, or what the environment holds could not be closed: a file could not be written.
    pub fn wait(mut self) -> Result<(), Failure> {
        for thread in self.loops.drain(..) {
            if thread.join().is_err() {
                self.failure.lock().get_or_insert_with(|| Failure::function("an event loop panicked"));
            }
        }
        self.engine.close();
        let closed = self.live.environment.close();
        self.failure.lock().take().map_or(closed, Err)
    }
}

/// Starts a program.
///
/// # Errors
/// Fails where the program does not fit the library, a shared value or source cannot be made, or the system refuses.
pub fn start(program: &Program, library: &Library, options: Options) -> Result<Running, StartError> {
    let threads = options.threads.unwrap_or_else(cores).max(1);
    let runtimes = (0..(options.engine.loops)(threads).max(1)).map(|_| event_loop()).collect::<io::Result<Vec<_>>>()?;
    let (live, arguments) = prepare(program, library, &options)?;
    let inside = runtimes[0].enter();
    make_shared(program, &live, &runtimes[0])?;
    let opened = open_sources(program, library, &live.live, &arguments, &runtimes[0])?;
    let setup =
        Setup { threads, flows_max: options.flows_max, machine: &*options.machine, handle: runtimes[0].handle() };
    let engine = (options.engine.start)(setup)?;
    drop(inside);
    run_loops(runtimes, live.live, opened, engine, &options)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A program that is prepared, with what makes its shared values.
struct Ready {
    live: Arc<Live>,
    shared: Vec<Body>,
}

fn prepare(program: &Program, library: &Library, options: &Options) -> Result<(Ready, Vec<Body>), PrepareError> {
    let mut resources = Resources::of(program);
    let mut preparation = Preparation::new(program, library, &mut resources);
    let shared = program.shared.iter().map(|shared| preparation.initial(&shared.init, &shared.name));
    let shared = shared.collect::<Result<Vec<_>, _>>()?;
    let arguments = program.entries.iter().map(|entry| preparation.initial(&entry.arguments, &entry.name));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let mut entries = Vec::new();
    for entry in &program.entries {
        let flows = entry.flows.iter().map(|flow| Ok((preparation.flow(flow, entry.ordered)?, AtomicU64::new(0))));
        entries.push(LiveEntry { flows: flows.collect::<Result<_, PrepareError>>()? });
    }
    let live = Arc::new(Live {
        resources,
        entries,
        environment: library.environment.clone(),
        blocking: options.engine.blocking,
        recorder: options.recorder.clone(),
        machine: Arc::clone(&options.machine),
    });
    Ok((Ready { live, shared }, arguments))
}

fn make_shared(program: &Program, ready: &Ready, runtime: &Runtime) -> Result<(), StartError> {
    for ((body, shared), place) in ready.shared.iter().zip(&program.shared).zip(&ready.live.resources.shared) {
        let made = run_once(body, &ready.live, runtime);
        *place.write() = made.map_err(|failure| StartError::Shared(shared.name.clone(), failure))?;
    }
    Ok(())
}

/// Runs a body that belongs to no flow.
fn run_once(body: &Body, live: &Live, runtime: &Runtime) -> Result<Value, Failure> {
    let mut frame = Frame::take(body, true);
    let key = FlowKey { entry: 0, route: 0, sequence: 0 };
    let env = Env { live, key, records_nodes: false };
    let finished = runtime.block_on(poll_fn(|context| frame.advance(body, env, None, context)));
    Frame::give_back(frame);
    match finished {
        Finished::Value(value) => Ok(value),
        Finished::Ended(ended) => ended.how.map_err(|failure| *failure),
    }
}

fn open_sources(
    program: &Program,
    library: &Library,
    live: &Live,
    arguments: &[Body],
    runtime: &Runtime,
) -> Result<Vec<Arc<dyn Opened>>, StartError> {
    let sources = (0..program.entries.len()).map(|entry| source_of(library, program, entry));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let types: Arc<[TypeDefinition]> = program.types.clone().into();
    let mut opened = Vec::new();
    for ((entry, source), body) in program.entries.iter().zip(sources).zip(arguments) {
        let failed = |failure| StartError::Source(entry.name.clone(), failure);
        let arguments = match run_once(body, live, runtime).map_err(failed)? {
            Value::Record(arguments) => arguments.to_vec(),
            _ => Vec::new(),
        };
        let routes = entry.flows.iter().filter_map(|flow| route_of(flow, &types)).collect();
        let source = source.open(arguments, routes, &live.environment).map_err(failed)?;
        let description: Arc<str> = source.describe().into();
        let entry = opened.len() as u32;
        live.record(Detail::Log, || What::SourceOpened { entry, description });
        opened.push(source);
    }
    Ok(opened)
}

fn route_of(flow: &IrFlow<Graph>, types: &Arc<[TypeDefinition]>) -> Option<Route> {
    let route = flow.route.as_ref()?;
    let parameters = route.parameters.iter().zip(&flow.parameters).map(|(parameter, variable)| RouteParameter {
        name: parameter.name.clone(),
        ty: variable.ty.clone(),
        from: parameter.from,
        default: parameter.default.clone(),
    });
    Some(Route {
        method: route.method.clone(),
        pattern: route.pattern.clone(),
        parameters: parameters.collect(),
        types: Arc::clone(types),
    })
}

/// What every event loop needs.
#[derive(Clone)]
struct Shift {
    live: Arc<Live>,
    engine: Arc<dyn Engine>,
    stop: watch::Sender<bool>,
    failure: Arc<Mutex<Option<Failure>>>,
    drain_within: Duration,
}

fn run_loops(
    runtimes: Vec<Runtime>,
    live: Arc<Live>,
    opened: Vec<Arc<dyn Opened>>,
    engine: Arc<dyn Engine>,
    options: &Options,
) -> Result<Running, StartError> {
    let (stop, failure) = (watch::Sender::new(false), Arc::default());
    let descriptions = opened.iter().map(|source| source.describe()).collect();
    let shift = Shift {
        live: Arc::clone(&live),
        engine: Arc::clone(&engine),
        stop: stop.clone(),
        failure: Arc::clone(&failure),
        drain_within: options.drain_within,
    };
    let count = runtimes.len();
    let mut running = Running { descriptions, loops: Vec::new(), engine, stop, failure, live };
    for (index, runtime) in runtimes.into_iter().enumerate() {
        let here = opened.iter().cloned().zip(0..).filter(|(source, entry)| match source.loops() {
            Loops::Each => true,
            Loops::One => *entry as usize % count == index,
        });
        let (here, shift) = (here.collect::<Vec<(Arc<dyn Opened>, u32)>>(), shift.clone());
        let body = Box::new(move || run_loop(runtime, here, shift));
        match options.machine.thread(&format!("weir loop {index}"), body) {
            Ok(thread) => running.loops.push(thread),
            Err(error) => {
                running.stop();
                let _ = running.wait();
                return Err(error.into());
            }
        }
    }
    Ok(running)
}

/// What each event loop's thread does.
fn run_loop(runtime: Runtime, sources: Vec<(Arc<dyn Opened>, u32)>, shift: Shift) {
    let local = LocalSet::new();
    let limit = out_of_time(shift.stop.subscribe(), shift.drain_within);
    // As a task: the set polls what it blocks on at every turn, and this would look for a stop each time.
    let work = local.spawn_local(either(serve(sources, shift), limit));
    // A source that panicked has been reported; there is nothing else that could.
    let _ = local.block_on(&runtime, work);
    drop(local);
    // Jobs that hold a thread of the blocking pool for ever must not hold up the end.
    runtime.shutdown_background();
}

async fn serve(sources: Vec<(Arc<dyn Opened>, u32)>, shift: Shift) {
    let serving: Vec<_> = sources.into_iter().map(|(source, entry)| run_source(source, entry, shift.clone())).collect();
    let running: Vec<_> = serving.into_iter().map(tokio::task::spawn_local).collect();
    for source in running {
        if source.await.is_err() {
            shift.fail(Failure::function("a source panicked"));
        }
    }
    shift.engine.drained().await;
}

async fn run_source(source: Arc<dyn Opened>, entry: u32, shift: Shift) {
    let flows = Arc::new(EntryFlows { live: Arc::clone(&shift.live), engine: Arc::clone(&shift.engine), entry });
    let ended = source.run(flows, stop_of(&shift.stop)).await;
    let failure: Option<Arc<str>> = ended.as_ref().err().map(|failure| failure.message.as_str().into());
    shift.live.record(Detail::Log, || What::SourceEnded { entry, failure });
    if let Err(failure) = ended {
        shift.fail(failure);
    }
}

impl Shift {
    /// A source has failed: the program ends.
    fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
        self.stop.send_replace(true);
    }
}

fn stop_of(stop: &watch::Sender<bool>) -> Stop {
    let stop = stop.clone();
    Stop::new(move || Box::pin(stopped(stop.subscribe())))
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error says that nobody is left who could stop the program, which holds a sender itself while it runs.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn out_of_time(stop: watch::Receiver<bool>, drain_within: Duration) {
    stopped(stop).await;
    tokio::time::sleep(drain_within).await;
}

/// Waits for the first of two.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let both = |context: &mut Context<'_>| {
        if one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    };
    poll_fn(both).await;
}

/// Where one source begins its flows.
struct EntryFlows {
    live: Arc<Live>,
    engine: Arc<dyn Engine>,
    entry: u32,
}

impl Flows for EntryFlows {
    fn begin(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        let begun = self.engine.begin(&mut || Flow::new(&self.live, self.entry, route as u32, std::mem::take(inputs)));
        if matches!(begun, Begun::Full) {
            self.live.record(Detail::Log, || What::Refused { entry: self.entry });
        }
        begun
    }

    fn room(&self) -> LocalFuture<()> {
        self.engine.room()
    }
}
