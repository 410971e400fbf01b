//! One execution of a program on a virtual clock: time passes only when nothing can run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use weir_host::{
    Batch, BatchAnswers, Begun, Effects, Environment, Failure, Flows, Function, FunctionCode, Library, LocalFuture,
    Module, Opened, Outcome, Parameter, Passing, PendingBatch, Route, Settled, Signature, Source, SourceSignature,
    Stop, Type, Value, World,
};
use weir_runtime::{Options, start};

/// The turns that an event loop gets before time passes: more than any chain of wake-ups has.
const TURNS: usize = 12;

/// The clock, and the calls of the sources.
#[derive(Default)]
struct VirtualClock {
    now: u64,
    calls: u64,
    due: BTreeMap<(u64, u64), oneshot::Sender<()>>,
}

impl VirtualClock {
    /// Begins a call that takes this long.
    fn begin(&mut self, latency: u64) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.calls += 1;
        self.due.insert((self.now + latency, self.calls), sender);
        receiver
    }

    /// Lets the time pass until the next calls end.
    fn pass(&mut self) {
        let Some(((next, _), _)) = self.due.first_key_value() else { return };
        self.now = *next;
        let later = self.due.split_off(&(self.now + 1, 0));
        let due = std::mem::replace(&mut self.due, later);
        due.into_values().for_each(|sender| _ = sender.send(()));
    }
}

/// A source of one flow, which drives the clock.
struct ClockDriver {
    clock: Arc<Mutex<VirtualClock>>,
    /// The time at which the flow ended, and the number of calls.
    end: Mutex<Option<(u64, u64)>>,
}

impl Opened for ClockDriver {
    fn describe(&self) -> String {
        "one flow".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            match flows.begin(0, &mut vec![Value::Int(1)]) {
                Begun::Pending(answer) => self.drive(answer).await?,
                Begun::Done(answer) => drop(answer?),
                Begun::Full => return Err(Failure::function("the program takes no flow")),
            }
            let clock = self.clock.lock();
            *self.end.lock() = Some((clock.now, clock.calls));
            Ok(())
        })
    }
}

impl ClockDriver {
    async fn drive(&self, mut answer: LocalFuture<Result<Value, Failure>>) -> Result<(), Failure> {
        loop {
            for _ in 0..TURNS {
                let polled = std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
                if let Poll::Ready(answer) = polled {
                    return answer.map(drop);
                }
                yield_now().await;
            }
            self.clock.lock().pass();
        }
    }
}

struct DriverSource(Arc<ClockDriver>);

impl Source for DriverSource {
    fn open(
        &self,
        _arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Opened>)
    }
}

fn parameter(name: &str) -> Parameter {
    Parameter { name: name.into(), ty: Type::Int, passing: Passing::Value, default: None }
}

/// Returns the batched function of a source.
fn function(clock: &Arc<Mutex<VirtualClock>>, latency: u64) -> Function {
    let clock = Arc::clone(clock);
    let code = move |arguments: Vec<Value>, _: &[Value], _: &Environment| {
        let over = clock.lock().begin(latency);
        let pending: PendingBatch = Box::pin(async move {
            _ = over.await;
            let answers = arguments.into_iter().map(Outcome::Value).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        });
        Ok(pending)
    };
    let alone = FunctionCode::Waiting(Arc::new(|call| {
        let outcome = Outcome::Value(call.value(0));
        Ok(Box::pin(async { Settled { outcome, restored: Vec::new() } }))
    }));
    let signature = Signature {
        module: "".into(),
        name: "get".into(),
        doc: "".into(),
        parameters: vec![parameter("x")],
        result: Type::Int,
        failure: None,
        effects: Effects { world: World::Reads, waits: true, ..Effects::default() },
        state: None,
        batch: Some(Batch { at_most: 1_000, in_flight: 1_000, gathered: 0 }),
    };
    Function { signature, code: alone, words: None, batch: Some(Arc::new(code)), types: Vec::new(), location: None }
}

/// Runs a program once over sources of these latencies; returns the time that it took, and the number of calls.
///
/// # Errors
/// Fails if the program cannot be run.
pub(crate) fn run(program: &str, latencies: &[u64]) -> Result<(u64, u64), String> {
    let clock = Arc::<Mutex<VirtualClock>>::default();
    let driver = Arc::new(ClockDriver { clock: Arc::clone(&clock), end: Mutex::new(None) });
    let mut library = Library::default();
    let signature = SourceSignature {
        module: "test".into(),
        name: "feed".into(),
        doc: "".into(),
        parameters: vec![parameter("first")],
        element: Some(Type::Int),
        answer: None,
        ordered: true,
    };
    let feed = Module::new("test", "").source(signature, Arc::new(DriverSource(Arc::clone(&driver))));
    library.add(feed).map_err(|error| error.to_string())?;
    for (index, latency) in latencies.iter().enumerate() {
        let module = Module::new(&format!("source{index}"), "").function(function(&clock, *latency));
        library.add(module).map_err(|error| error.to_string())?;
    }
    let program = weir_ir::parse::expr(program).map_err(|error| error.to_string())?;
    let graph = weir_ir::optimize(&program, &library);
    let options = Options { threads: Some(1), ..Options::default() };
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    running.wait().map_err(|failure| failure.to_string())?;
    let end = *driver.end.lock();
    end.ok_or_else(|| "the flow did not end".to_owned())
}
