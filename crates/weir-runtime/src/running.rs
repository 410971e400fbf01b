//! A running program: its event loops, its sources, and its end.
//!
//! 1. Every event loop runs its sources until their input ends or the program stops.
//! 2. When a source and all flows of its elements have ended, the `at end` flow of its entry point runs.
//! 3. An event loop ends when its sources have ended and no flow is left, or when the drain timeout expires; the first loop, which
//!    drives the I/O of calls on other threads, when the sources of all loops have ended. A source that fails stops the program.
//! 4. Finally the environment is closed, which flushes all buffered output.
//!
//! The program ends even if something does not: an event loop that a host function holds up past the drain timeout is
//! left behind after [`OVERDUE`], and so is a close of the environment that takes longer than [`CLOSE_MAX`].

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use weir_events::{Event, Signal, choose_biased, from_future_with, until};
use weir_host::{Begun, Failure, Flows, Opened, Progress, Stop};
use weir_ir::program::AT_END;
use weir_trace::{Detail, EventKind};

use crate::engine::Engine;
use crate::entry_flows::EntryFlows;
use crate::event_loop::EventLoop;
use crate::instance::{EntryLoops, ProgramInstance};
use crate::overload::probe_loop;
use crate::platform::Platform;

/// A handle to a running program.
pub struct RunningProgram {
    descriptions: Vec<String>,
    sources: Watcher,
    loops: Vec<JoinHandle<()>>,
    context: Arc<RunContext>,
}

/// The state that the event loops of a running program share with its handle.
struct RunContext {
    instance: Arc<ProgramInstance>,
    engine: Arc<dyn Engine>,
    stop: StopSignal,
    /// Set when an event loop has seen the last flow end. Only the engines `event` and `elastic`, whose threads are their
    /// loops, have several loops.
    drained: AtomicBool,
    drain_within: Duration,
    /// Set when the drain timeout has passed before everything had ended.
    is_out_of_time: AtomicBool,
    /// The number of event loops.
    loop_count: usize,
    /// The number of event loops whose sources have ended; fires `sources_ended` when they are all.
    loops_without_sources: AtomicUsize,
    sources_ended: Signal,
}

/// Reads the progress of the sources of a running program, without keeping them open.
#[derive(Clone)]
pub struct Watcher(Vec<Weak<dyn Opened>>);

impl Watcher {
    /// Returns the progress of each source that still runs and knows the extent of its input, with its description.
    #[must_use]
    pub fn progress(&self) -> Vec<(String, Progress)> {
        let running = self.0.iter().filter_map(Weak::upgrade);
        running.filter_map(|source| Some((source.describe(), source.progress()?))).collect()
    }
}

/// The signal that tells a program to stop.
#[derive(Clone)]
struct StopSignal {
    signal: Signal,
    /// The time at which it was given first.
    since_ns: Arc<OnceLock<u64>>,
    /// The first failure of a source, of an event loop or of what the program cannot do without.
    failure: Arc<Mutex<Option<Failure>>>,
}

impl StopSignal {
    /// Gives the signal. `says` is called before, if this is the first time: the program may have ended behind it.
    fn fire(&self, platform: &dyn Platform, says: impl FnOnce()) {
        if self.since_ns.set(platform.now_ns()).is_ok() {
            says();
        }
        self.signal.fire();
    }
}

/// Stops a running program; a signal handler may keep it.
#[derive(Clone)]
pub struct Stopper(StopSignal, Arc<ProgramInstance>);

impl Stopper {
    /// Tells the program to stop: it begins nothing new, and completes what it has begun.
    pub fn stop(&self) {
        self.0.fire(&*self.1.platform, || self.1.record(Detail::Log, || EventKind::Stopping));
    }

    /// Tells the program to stop because of a failure, with which it ends.
    pub fn fail(&self, failure: Failure) {
        self.0.failure.lock().get_or_insert(failure);
        self.stop();
    }
}

impl RunningProgram {
    /// Returns a description of each source: the address where it listens, or the file that it reads.
    #[must_use]
    pub fn descriptions(&self) -> &[String] {
        &self.descriptions
    }

    /// Returns a watcher of the sources.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        self.sources.clone()
    }

    /// Returns a stopper of the program.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.context.stop.clone(), Arc::clone(&self.context.instance))
    }

    /// Tells the program to stop.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    /// Waits until all sources have ended and no flow is left.
    ///
    /// # Errors
    /// Fails if a source has failed, or if the environment could not be closed, for example because a file could not be
    /// written.
    pub fn wait(self) -> Result<(), Failure> {
        let context = self.context;
        let have_ended = context.join(self.loops);
        if !have_ended {
            context.note_out_of_time();
        }
        // The threads that set it have ended, so the load sees their writes.
        if have_ended && context.drained.load(Ordering::Acquire) {
            context.engine.close();
        } else {
            context.engine.abandon();
        }
        let closed = context.close();
        let failure = context.stop.failure.lock().take();
        failure.map_or(closed, Err)
    }
}

/// The time after the drain timeout at which event loops that have not ended are left behind. Chosen by judgement: a loop
/// that nothing holds up needs milliseconds to cancel its flows.
const OVERDUE: Duration = Duration::from_millis(250);
/// The maximum time that the environment takes to close, if the program has run out of time. Chosen by judgement: outputs
/// buffer little, and with [`OVERDUE`] the process ends within a second of the drain timeout.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// The period in which the state of sections and routes is recorded while a reader of the trace is watching.
const OBSERVATION_PERIOD: Duration = Duration::from_millis(500);

/// The role of an event loop in recording sections and routes; one loop observes for all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observes {
    Yes,
    No,
}

/// Starts the sources on their event loops.
pub(crate) fn run_loops(
    loops: Vec<EventLoop>,
    instance: Arc<ProgramInstance>,
    opened: Vec<Arc<dyn Opened>>,
    engine: Arc<dyn Engine>,
    drain_within: Duration,
) -> RunningProgram {
    let descriptions = opened.iter().map(|source| source.describe()).collect();
    let sources = Watcher(opened.iter().map(Arc::downgrade).collect());
    let context = Arc::new(RunContext {
        instance,
        engine,
        stop: StopSignal { signal: Signal::new(), since_ns: Arc::default(), failure: Arc::default() },
        drained: AtomicBool::new(false),
        drain_within,
        is_out_of_time: AtomicBool::new(false),
        loop_count: loops.len(),
        loops_without_sources: AtomicUsize::new(0),
        sources_ended: Signal::new(),
    });
    let run = |(index, event_loop): (usize, EventLoop)| {
        let here = opened.iter().cloned().zip(0..).filter(|(_, entry)| {
            let entry = *entry as usize;
            match context.instance.entries[entry].loops {
                EntryLoops::Each => true,
                EntryLoops::One => entry % context.loop_count == index,
                EntryLoops::First => index == 0,
            }
        });
        let here: Vec<(Arc<dyn Opened>, u32)> = here.collect();
        let (context, observes) = (Arc::clone(&context), if index == 0 { Observes::Yes } else { Observes::No });
        event_loop.run(Box::new(move || Box::pin(work(here, context, observes))))
    };
    let loops = loops.into_iter().enumerate().map(run).collect();
    RunningProgram { descriptions, sources, loops, context }
}

/// Serves the sources of one event loop until they have ended, or the drain timeout expires.
async fn work(sources: Vec<(Arc<dyn Opened>, u32)>, context: Arc<RunContext>, observes: Observes) {
    let limit = context.out_of_time(Duration::ZERO);
    if until(pin!(serve(sources, Arc::clone(&context), observes)), &limit).await.is_err() {
        context.note_out_of_time();
    }
}

/// Records the state of sections and routes once in every period while a reader of the trace is watching.
async fn observe(context: Arc<RunContext>) {
    loop {
        poll_fn(|task| context.instance.recorder.poll_wants(Detail::Sections, task)).await;
        context.after(OBSERVATION_PERIOD).synchronise().await;
        if context.instance.recorder.wants(Detail::Sections) {
            context.record_sections();
        }
    }
}

async fn serve(sources: Vec<(Arc<dyn Opened>, u32)>, context: Arc<RunContext>, observes: Observes) {
    let observer = (observes == Observes::Yes).then(|| tokio::task::spawn_local(observe(Arc::clone(&context))));
    let probe = tokio::task::spawn_local(probe_loop(Arc::clone(&context.instance.platform)));
    let background = (observes == Observes::Yes).then(|| tokio::task::spawn_local(context.engine.background()));
    let serving: Vec<_> =
        sources.into_iter().map(|(source, entry)| run_source(source, entry, Arc::clone(&context))).collect();
    let running: Vec<_> = serving.into_iter().map(tokio::task::spawn_local).collect();
    for source in running {
        if source.await.is_err() {
            context.fail(Failure::function("a source panicked"));
        }
    }
    if context.loops_without_sources.fetch_add(1, Ordering::Relaxed) + 1 == context.loop_count {
        context.sources_ended.fire();
    }
    // The first loop drives the I/O and timers of calls on other threads, of the flows of all loops.
    if observes == Observes::Yes {
        context.sources_ended.fired().synchronise().await;
    }
    context.engine.drained().await;
    context.drained.store(true, Ordering::Release);
    probe.abort();
    background.into_iter().for_each(|background| background.abort());
    if let Some(observer) = observer {
        observer.abort();
        context.record_sections();
    }
}

async fn run_source(source: Arc<dyn Opened>, entry: u32, context: Arc<RunContext>) {
    let flows = Arc::new(EntryFlows::new(&context.instance, &context.engine, entry));
    let stop = Stop::new(context.stop.signal.fired()).within(context.drain_within);
    let ended = Arc::clone(&source).run(Arc::clone(&flows) as _, stop).await;
    let failure: Option<Arc<str>> = ended.as_ref().err().map(|failure| failure.message.as_str().into());
    context.instance.record(Detail::Log, || EventKind::SourceEnded { entry, failure });
    match ended {
        Ok(()) => context.end(&flows).await,
        Err(failure) => context.fail(failure),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl RunContext {
    /// Returns an event that takes effect after this time.
    fn after(&self, duration: Duration) -> Event<()> {
        let platform = &self.instance.platform;
        platform.at(platform.now_ns().saturating_add(nanoseconds(duration)))
    }

    /// Returns an event that takes effect when the program has been told to stop, and the drain timeout and this time
    /// have passed.
    fn out_of_time(self: &Arc<Self>, overdue: Duration) -> Event<()> {
        let context = Arc::clone(self);
        from_future_with(move || {
            let (stopped, context) = (context.stop.signal.fired().synchronise(), Arc::clone(&context));
            async move {
                stopped.await;
                let platform = &context.instance.platform;
                let since = context.stop.since_ns.get().copied().unwrap_or_default();
                let limit = nanoseconds(context.drain_within.saturating_add(overdue));
                platform.at(since.saturating_add(limit)).synchronise().await;
            }
        })
    }

    /// Records, once, that what still runs is given up.
    fn note_out_of_time(&self) {
        if !self.is_out_of_time.swap(true, Ordering::Relaxed) {
            let (flows, _) = self.engine.in_progress().occupancy();
            self.instance.record(Detail::Log, || EventKind::OutOfTime { flows });
        }
    }

    /// Waits until these event loops have ended; returns false if they are overdue.
    fn join(self: &Arc<Self>, loops: Vec<JoinHandle<()>>) -> bool {
        let joined = Signal::new();
        let (context, ended) = (Arc::clone(self), joined.clone());
        let join = move || {
            for thread in loops {
                if thread.join().is_err() {
                    context.stop.failure.lock().get_or_insert_with(|| Failure::function("an event loop panicked"));
                }
            }
            ended.fire();
        };
        self.within(join, &joined, &self.out_of_time(OVERDUE))
    }

    /// Closes the environment. If the program has run out of time, that may not take long.
    fn close(self: &Arc<Self>) -> Result<(), Failure> {
        let (closed, result) = (Signal::new(), Arc::new(Mutex::new(Ok(()))));
        let (context, ended, place) = (Arc::clone(self), closed.clone(), Arc::clone(&result));
        let close = move || {
            let closed = context.instance.environment.close();
            *place.lock() = closed;
            ended.fire();
        };
        if !self.within(close, &closed, &self.out_of_time(OVERDUE + CLOSE_MAX)) {
            return Err(Failure::function("an output took too long to flush at the end"));
        }
        let mut result = result.lock();
        std::mem::replace(&mut *result, Ok(()))
    }

    /// Runs `work`, which fires `done`, on a thread of its own; returns false if `limit` comes first. Without a thread,
    /// there is no limit.
    fn within(&self, work: impl FnOnce() + Send + 'static, done: &Signal, limit: &Event<()>) -> bool {
        let work = Arc::new(Mutex::new(Some(work)));
        let shared = Arc::clone(&work);
        let run = move || {
            let work = shared.lock().take();
            work.into_iter().for_each(|work| work());
        };
        if self.instance.platform.thread("weir end", Box::new(run.clone())).is_err() {
            run();
        }
        choose_biased([done.fired().wrap(|()| true), limit.wrap(|()| false)]).sync()
    }

    fn record_sections(&self) {
        for what in self
            .engine
            .sections(&self.instance)
            .into_iter()
            .chain(self.instance.routes())
            .chain(self.instance.batches())
        {
            self.instance.record(Detail::Sections, || what);
        }
    }

    /// Records that a source has ended on one of its event loops. On the last of them, the `at end` flow of the entry
    /// point runs when the flows of all elements have ended.
    async fn end(&self, flows: &EntryFlows) {
        let entry = &self.instance.entries[flows.entry as usize];
        let loops = if entry.loops == EntryLoops::Each { self.loop_count } else { 1 };
        if entry.loops_ended.fetch_add(1, Ordering::AcqRel) + 1 < loops || !entry.has_end {
            return;
        }
        entry.flows[0].1.all_through().await;
        loop {
            match flows.begin(AT_END, &mut Vec::new()) {
                Begun::Done(_) => return,
                // Its failure was recorded, like that of any flow.
                Begun::Pending(flow) => return drop(flow.await),
                Begun::Full => flows.room().await,
            }
        }
    }

    /// Records that a source has failed, which stops the program.
    fn fail(&self, failure: Failure) {
        self.stop.failure.lock().get_or_insert(failure);
        self.stop.fire(&*self.instance.platform, || ());
    }
}
