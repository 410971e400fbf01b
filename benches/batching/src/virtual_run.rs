//! One execution of a program on a virtual clock: time passes only when nothing can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use parking_lot::Mutex;
use tokio::task::yield_now;
use weir_host::{
    Batch, BatchAnswers, Begun, Effects, Environment, Failure, Flows, Function, FunctionCode, Library, LocalFuture,
    Module, Opened, Outcome, Parameter, Passing, PendingBatch, Route, Settled, Signature, Source, SourceSignature,
    Stop, Type, Value, World,
};
use weir_runtime::{Options, Platform, ScriptedPlatform, start};

use crate::latency::{LatencyOf, SourceCall};

/// The turns that an event loop gets before time passes: more than any chain of wake-ups has.
const TURNS: usize = 12;

/// The clock, and the calls of the sources.
struct VirtualClock {
    platform: Arc<ScriptedPlatform>,
    calls: AtomicU64,
    flow: AtomicUsize,
    latency: LatencyOf,
}

/// A source of flows, one after the other, which drives the clock.
struct ClockDriver {
    clock: Arc<VirtualClock>,
    flows: usize,
    /// For each flow the time that it took, and the number of calls.
    ended: Mutex<Vec<(u64, u64)>>,
}

impl Opened for ClockDriver {
    fn describe(&self) -> String {
        format!("{} flows", self.flows)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            for flow in 0..self.flows {
                self.clock.flow.store(flow, Ordering::Relaxed);
                let before = self.clock.state();
                match flows.begin(0, &mut vec![Value::Int(1)]) {
                    Begun::Pending(answer) => self.drive(answer).await?,
                    Begun::Done(answer) => drop(answer?),
                    Begun::Full => return Err(Failure::function("the program takes no flow")),
                }
                let after = self.clock.state();
                self.ended.lock().push((after.0 - before.0, after.1 - before.1));
            }
            Ok(())
        })
    }
}

impl VirtualClock {
    /// Returns the time, in nanoseconds, and the number of calls.
    fn state(&self) -> (u64, u64) {
        (self.platform.now_ns(), self.calls.load(Ordering::Relaxed))
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
            self.clock.platform.pass_to_next();
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
fn function(clock: &Arc<VirtualClock>, source: usize) -> Function {
    let clock = Arc::clone(clock);
    let code = move |arguments: Vec<Value>, _: &[Value], _: &Environment| {
        let earlier = clock.calls.fetch_add(1, Ordering::Relaxed);
        let call = SourceCall { source, flow: clock.flow.load(Ordering::Relaxed), earlier };
        let end_ns = clock.platform.now_ns() + (clock.latency)(call);
        let over = clock.platform.at(end_ns).synchronise();
        let pending: PendingBatch = Box::pin(async move {
            over.await;
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

/// Runs flows of a program one after the other, over this many sources; returns for each the time that it took,
/// in nanoseconds, and the number of calls.
///
/// # Errors
/// Fails if the program cannot be run.
pub(crate) fn run(program: &str, sources: usize, latency: LatencyOf, flows: usize) -> Result<Vec<(u64, u64)>, String> {
    let clock = Arc::new(VirtualClock {
        platform: Arc::new(ScriptedPlatform::new(1)),
        calls: AtomicU64::new(0),
        flow: AtomicUsize::new(0),
        latency,
    });
    let driver = Arc::new(ClockDriver { clock: Arc::clone(&clock), flows, ended: Mutex::default() });
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
    for index in 0..sources {
        let module = Module::new(&format!("source{index}"), "").function(function(&clock, index));
        library.add(module).map_err(|error| error.to_string())?;
    }
    let program = weir_ir::parse::expr(program).map_err(|error| error.to_string())?;
    let graph = weir_ir::optimize(&program, &library);
    let platform = Arc::clone(&clock.platform);
    let options = Options { threads: Some(1), platform, ..Options::default() };
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    running.wait().map_err(|failure| failure.to_string())?;
    let ended = std::mem::take(&mut *driver.ended.lock());
    Ok(ended)
}
