//! A source whose flows a test begins one by one, and helpers that start programs with it.

pub mod batches;
pub mod gates;
#[cfg(feature = "random-cases")]
pub mod random_cases;
pub mod random_clock;
pub mod stream;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::sync::{mpsc, oneshot};
use weir_events::until;
use weir_host::{
    Begun, Environment, Failure, FailureKind, Flows, Function, Library, LocalFuture, Loops, Module, Opened, Parameter,
    Passing, Route, Source, SourceSignature, Stop, Type, Value,
};
use weir_ir::expr::Program;
use weir_runtime::{Options, RunningProgram, engine, start};

use gates::library;

/// Time limit for each answer that a test waits for: so many periods, because a machine that stands still for long loses one
/// of them only. A program of a thousand waits takes seconds on a machine that has too much else to do.
const PERIODS: usize = 120;
const PERIOD: std::time::Duration = std::time::Duration::from_millis(500);

/// The result of a flow.
pub type Answer = Result<Value, Failure>;

/// A request of the test to begin one flow.
struct Ask {
    entry: usize,
    inputs: Vec<Value>,
    answer: oneshot::Sender<Answer>,
}

/// The test's handle to the source.
pub struct Feed {
    asks: mpsc::UnboundedSender<Ask>,
    opened: Arc<Fed>,
    loops: Loops,
}

/// The opened source: begins a flow for each request of the handle.
pub struct Fed {
    asks: parking_lot::Mutex<Option<mpsc::UnboundedReceiver<Ask>>>,
    /// Number of flows that the program refused.
    pub refused: AtomicUsize,
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl Feed {
    /// Creates a handle and its source.
    pub fn new() -> Feed {
        let (asks, receiver) = mpsc::unbounded_channel();
        let opened = Arc::new(Fed { asks: parking_lot::Mutex::new(Some(receiver)), refused: AtomicUsize::new(0) });
        Feed { asks, opened, loops: Loops::One }
    }

    /// Creates a handle and a source that runs on every event loop, like that of a service; the first loop begins all flows.
    pub fn on_each_loop() -> Feed {
        Feed { loops: Loops::Each, ..Feed::new() }
    }

    /// Adds the source to the library as `module.name`.
    pub fn put(&self, library: &mut Library, module: &str, name: &str) {
        let signature = SourceSignature {
            module: module.into(),
            name: name.into(),
            doc: "Flows that a test begins.".into(),
            parameters: vec![Parameter { name: "first".into(), ty: Type::Int, passing: Passing::Value, default: None }],
            element: Some(Type::Int),
            answer: None,
            ordered: true,
        };
        let source = Handle(Arc::clone(&self.opened), self.loops);
        let modules = &mut library.modules;
        let found = modules.shift_remove(module).unwrap_or_else(|| Module::new(module, ""));
        modules.insert(module.into(), found.source(signature, Arc::new(source)));
    }

    /// Begins a flow at an entry point; dropping the receiver cancels it.
    pub fn begin_at(&self, entry: usize, inputs: Vec<Value>) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        assert!(self.asks.send(Ask { entry, inputs, answer }).is_ok(), "the source runs");
        receiver
    }

    /// Begins a flow at the first entry point.
    pub fn begin(&self, inputs: Vec<Value>) -> oneshot::Receiver<Answer> {
        self.begin_at(0, inputs)
    }

    /// Runs a flow and returns its answer.
    pub fn run(&self, inputs: Vec<Value>) -> Answer {
        self.begin(inputs).blocking_recv().expect("the flow is answered")
    }

    /// Returns the answers of these flows in order; `None` where an answer does not come in time.
    pub fn answers(&self, flows: Vec<oneshot::Receiver<Answer>>) -> Vec<Option<Answer>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let answer = |mut flow: oneshot::Receiver<Answer>| async move {
            for _ in 0..PERIODS {
                if let Ok(answered) = tokio::time::timeout(PERIOD, &mut flow).await {
                    return answered.ok();
                }
            }
            None
        };
        flows.into_iter().map(|flow| runtime.block_on(answer(flow))).collect()
    }

    /// Returns how many flows the program refused.
    pub fn refused(&self) -> usize {
        self.opened.refused.load(Ordering::SeqCst)
    }
}

struct Handle(Arc<Fed>, Loops);

impl Source for Handle {
    fn open(
        &self,
        _arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Opened>)
    }

    fn loops(&self) -> Loops {
        self.1
    }
}

impl Opened for Fed {
    fn describe(&self) -> String {
        "a test".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let asks = self.asks.lock().take();
            let Some(mut asks) = asks else { return Ok(()) };
            let stopped = stop.stopped();
            while let Ok(Some(mut ask)) = until(pin!(asks.recv()), &stopped).await {
                match flows.begin(ask.entry, &mut ask.inputs) {
                    Begun::Done(answer) => _ = ask.answer.send(answer),
                    Begun::Pending(answer) => _ = tokio::task::spawn_local(answer_or_drop(answer, ask.answer)),
                    Begun::Full => {
                        self.refused.fetch_add(1, Ordering::SeqCst);
                        _ = ask.answer.send(Err(Failure::new(FailureKind::Limit, "full")));
                    }
                }
            }
            Ok(())
        })
    }
}

/// Awaits the answer, and cancels the flow when its receiver has been dropped.
async fn answer_or_drop(mut answer: LocalFuture<Answer>, mut asker: oneshot::Sender<Answer>) {
    let answered = std::future::poll_fn(|context| match answer.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => asker.poll_closed(context).map(|()| None),
    });
    if let Some(answer) = answered.await {
        _ = asker.send(answer);
    }
}

/// Returns the options for an engine with this number of threads.
pub fn options(name: &str, threads: usize) -> Options {
    Options { engine: engine(name).expect("an engine of this name"), threads: Some(threads), ..Options::default() }
}

/// Lowers a program in the expression IR to a graph and starts it.
pub fn start_expr(program: &Program, library: &Library, options: Options) -> RunningProgram {
    start(&weir_ir::lower(program, library), library, options).expect("the program starts")
}

/// Returns a program of one flow that takes an `Int` and is begun by a [`Feed`] at `test.feed`. `shared`, the
/// declarations of its shared values, and `body` are in the text of the expression IR.
///
/// # Panics
/// Panics if the program has a mistake.
pub fn one_flow(shared: &str, body: &str) -> Program {
    let body: String = body.trim().lines().map(|line| format!("    {}\n", line.trim_end())).collect();
    let text = format!(
        "{shared}entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}"
    );
    weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Starts the program of [`one_flow`], which may call these functions.
///
/// # Panics
/// Panics if the program has a mistake.
pub fn started(
    functions: impl IntoIterator<Item = Function>,
    shared: &str,
    body: &str,
    options: Options,
) -> (Feed, RunningProgram) {
    started_with(Feed::new(), functions, shared, body, options)
}

/// Starts the program of [`one_flow`] with this source.
///
/// # Panics
/// Panics if the program has a mistake.
pub fn started_with(
    feed: Feed,
    functions: impl IntoIterator<Item = Function>,
    shared: &str,
    body: &str,
    options: Options,
) -> (Feed, RunningProgram) {
    let mut library = library(functions);
    feed.put(&mut library, "test", "feed");
    let running = start_expr(&one_flow(shared, body), &library, options);
    (feed, running)
}
