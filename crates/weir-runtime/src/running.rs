//! A program that runs: its event loops and its end.
//!
//! Every event loop runs its sources until they end, on their own or told to stop, and then until no flow is left. A
//! source that fails stops the program; of one that ends, what the program does at its end is done when the flows of all its
//! elements are through. Last, the environment is closed: what was written is flushed.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use weir_events::{Event, Signal, after, from_future_with, until};
use weir_host::{Begun, Failure, Flows, LocalFuture, Loops, Opened, Progress, Stop, Value};
use weir_ir::program::AT_END;
use weir_trace::{Detail, EventKind};

use crate::engine::Engine;
use crate::event_loop::EventLoop;
use crate::flow::NewFlow;
use crate::instance::ProgramInstance;

/// A program that runs.
pub struct RunningProgram {
    descriptions: Vec<String>,
    sources: Watcher,
    loops: Vec<JoinHandle<()>>,
    engine: Arc<dyn Engine>,
    stop: Signal,
    failure: Arc<Mutex<Option<Failure>>>,
    /// Whether the last flow was seen to end. Only `event`, whose threads are its loops, has more than one loop to say so.
    drained: Arc<AtomicBool>,
    instance: Arc<ProgramInstance>,
}

/// Looks at the sources of a program that runs, and keeps none of them open.
#[derive(Clone)]
pub struct Watcher(Vec<Weak<dyn Opened>>);

impl Watcher {
    /// How far each source is that still runs and knows the extent of its input, with what it reads.
    #[must_use]
    pub fn progress(&self) -> Vec<(String, Progress)> {
        let running = self.0.iter().filter_map(Weak::upgrade);
        running.filter_map(|source| Some((source.describe(), source.progress()?))).collect()
    }
}

/// Tells a program to stop; may be kept by a signal handler.
#[derive(Clone)]
pub struct Stopper(Signal, Arc<ProgramInstance>);

impl Stopper {
    /// Tells the program to stop: it takes in nothing new, and ends what it has begun.
    pub fn stop(&self) {
        if self.0.fire() {
            self.1.record(Detail::Log, || EventKind::Stopping);
        }
    }
}

impl RunningProgram {
    /// Where each source listens or what it reads.
    #[must_use]
    pub fn descriptions(&self) -> &[String] {
        &self.descriptions
    }

    /// What looks at its sources.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        self.sources.clone()
    }

    /// What tells the program to stop.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone(), Arc::clone(&self.instance))
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
        match self.drained.load(Ordering::Acquire) {
            true => self.engine.close(),
            false => self.engine.abandon(),
        }
        let closed = self.instance.environment.close();
        self.failure.lock().take().map_or(closed, Err)
    }
}

/// How often is recorded what sections and routes are doing.
const PERIOD: Duration = Duration::from_millis(500);

/// Whether a loop observes for all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observes {
    Yes,
    No,
}

/// What every event loop needs.
#[derive(Clone)]
struct RunContext {
    instance: Arc<ProgramInstance>,
    engine: Arc<dyn Engine>,
    stop: Signal,
    failure: Arc<Mutex<Option<Failure>>>,
    /// Whether the last flow was seen to end. Only `event`, whose threads are its loops, has more than one loop to say so.
    drained: Arc<AtomicBool>,
    drain_within: Duration,
    /// How many event loops there are.
    loops: usize,
}

/// Gives every event loop its work.
pub(crate) fn run_loops(
    loops: Vec<EventLoop>,
    instance: Arc<ProgramInstance>,
    opened: Vec<Arc<dyn Opened>>,
    engine: Arc<dyn Engine>,
    drain_within: Duration,
) -> RunningProgram {
    let (stop, failure) = (Signal::new(), Arc::default());
    let descriptions = opened.iter().map(|source| source.describe()).collect();
    let sources = Watcher(opened.iter().map(Arc::downgrade).collect());
    let drained = Arc::<AtomicBool>::default();
    let run = RunContext {
        drained: Arc::clone(&drained),
        instance: Arc::clone(&instance),
        engine: Arc::clone(&engine),
        stop: stop.clone(),
        failure: Arc::clone(&failure),
        drain_within,
        loops: loops.len(),
    };
    let count = loops.len();
    let run = |(index, event_loop): (usize, EventLoop)| {
        let here = opened.iter().cloned().zip(0..).filter(|(source, entry)| match source.loops() {
            Loops::Each => true,
            Loops::One => *entry as usize % count == index,
        });
        let here: Vec<(Arc<dyn Opened>, u32)> = here.collect();
        let (run, observes) = (run.clone(), if index == 0 { Observes::Yes } else { Observes::No });
        event_loop.run(Box::new(move || Box::pin(work(here, run, observes))))
    };
    let loops = loops.into_iter().enumerate().map(run).collect();
    RunningProgram { descriptions, sources, loops, engine, stop, failure, drained, instance }
}

/// What each event loop does.
async fn work(sources: Vec<(Arc<dyn Opened>, u32)>, run: RunContext, observes: Observes) {
    let limit = out_of_time(run.stop.fired(), run.drain_within);
    _ = until(pin!(serve(sources, run, observes)), &limit).await;
}

/// Records once in a period what sections and routes are doing, while somebody wants to know. Else it waits for that.
async fn observe(run: RunContext) {
    loop {
        poll_fn(|context| run.instance.recorder.poll_wants(Detail::Sections, context)).await;
        tokio::time::sleep(PERIOD).await;
        if run.instance.recorder.wants(Detail::Sections) {
            run.record_sections();
        }
    }
}

async fn serve(sources: Vec<(Arc<dyn Opened>, u32)>, run: RunContext, observes: Observes) {
    let observer = (observes == Observes::Yes).then(|| tokio::task::spawn_local(observe(run.clone())));
    let background = (observes == Observes::Yes).then(|| tokio::task::spawn_local(run.engine.background()));
    let serving: Vec<_> = sources.into_iter().map(|(source, entry)| run_source(source, entry, run.clone())).collect();
    let running: Vec<_> = serving.into_iter().map(tokio::task::spawn_local).collect();
    for source in running {
        if source.await.is_err() {
            run.fail(Failure::function("a source panicked"));
        }
    }
    run.engine.drained().await;
    run.drained.store(true, Ordering::Release);
    background.into_iter().for_each(|background| background.abort());
    if let Some(observer) = observer {
        observer.abort();
        run.record_sections();
    }
}

async fn run_source(source: Arc<dyn Opened>, entry: u32, run: RunContext) {
    let flows = Arc::new(EntryFlows { instance: Arc::clone(&run.instance), engine: Arc::clone(&run.engine), entry });
    let ended = Arc::clone(&source).run(Arc::clone(&flows) as _, Stop::new(run.stop.fired())).await;
    let failure: Option<Arc<str>> = ended.as_ref().err().map(|failure| failure.message.as_str().into());
    run.instance.record(Detail::Log, || EventKind::SourceEnded { entry, failure });
    match ended {
        Ok(()) => run.end(&flows, source.loops()).await,
        Err(failure) => run.fail(failure),
    }
}

impl RunContext {
    fn record_sections(&self) {
        for what in self.engine.sections(&self.instance).into_iter().chain(self.instance.routes()) {
            self.instance.record(Detail::Sections, || what);
        }
    }

    /// A source has ended on a loop, on its own or because the program stops. On the last one, what happens at its end does
    /// when the flows of all its elements are through.
    async fn end(&self, flows: &EntryFlows, loops: Loops) {
        let entry = &self.instance.entries[flows.entry as usize];
        let loops = if loops == Loops::Each { self.loops } else { 1 };
        if entry.loops_ended.fetch_add(1, Ordering::AcqRel) + 1 < loops || !entry.has_end {
            return;
        }
        entry.flows[0].1.all_through().await;
        loop {
            match flows.begin(AT_END, &mut Vec::new()) {
                Begun::Done(_) => return,
                // Its failure was recorded, as that of any flow.
                Begun::Pending(flow) => return drop(flow.await),
                Begun::Full => flows.room().await,
            }
        }
    }

    /// A source has failed: the program ends.
    fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
        self.stop.fire();
    }
}

/// Takes effect when the time is up that flows have once the program stops.
fn out_of_time(stopped: Event<()>, drain_within: Duration) -> Event<()> {
    from_future_with(move || {
        let stopped = stopped.synchronise();
        async move {
            stopped.await;
            after(drain_within).await;
        }
    })
}

/// Where one source begins its flows.
struct EntryFlows {
    instance: Arc<ProgramInstance>,
    engine: Arc<dyn Engine>,
    entry: u32,
}

impl Flows for EntryFlows {
    fn begin(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        let mut new_flow = NewFlow::new(&self.instance, self.entry, route as u32, inputs);
        let begun = self.engine.begin(self.entry as usize, route, &mut new_flow);
        self.see_refused(&begun);
        begun
    }

    fn begin_detached(&self, route: usize, inputs: &mut Vec<Value>) -> Begun {
        let mut new_flow = NewFlow::new(&self.instance, self.entry, route as u32, inputs);
        let begun = self.engine.give(self.entry as usize, route, &mut new_flow);
        self.see_refused(&begun);
        begun
    }

    fn room(&self) -> LocalFuture<()> {
        self.engine.room()
    }
}

impl EntryFlows {
    /// Records that a flow was refused, where it was.
    fn see_refused(&self, begun: &Begun) {
        if matches!(begun, Begun::Full) && self.instance.entries[self.entry as usize].answers {
            self.instance.record(Detail::Log, || EventKind::Refused { entry: self.entry });
        }
    }
}
