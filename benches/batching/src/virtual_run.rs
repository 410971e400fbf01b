//! One execution of a program on a virtual clock: time passes only when nothing can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use parking_lot::Mutex;
use tokio::task::yield_now;
use weir_host::{
    Batch, BatchAnswers, Begun, Failure, Flows, Function, Library, LocalFuture, Opened, Outcome, PendingBatch, Stop,
    Type, Value,
};
use weir_ir::graph::Program;
use weir_runtime::{Options, Platform, ScriptedPlatform, start};
use weir_syntax::{SourceFile, SourceId};

use crate::host::{batched, batched_list, keep, library, once};
use crate::latency::{LatencyOf, SourceCall};

/// The turns that an event loop gets before time passes: more than any chain of wake-ups has.
const TURNS: usize = 12;

/// No limit is reached.
const LIMITS: Batch = Batch { at_most: 1_000, in_flight: 1_000, gathered: 0 };

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

/// Returns the batch of a source, which ends when the clock says so.
fn pending(clock: &Arc<VirtualClock>, source: usize, answers: Vec<Outcome>) -> PendingBatch {
    let earlier = clock.calls.fetch_add(1, Ordering::Relaxed);
    let call = SourceCall { source, flow: clock.flow.load(Ordering::Relaxed), earlier };
    let end_ns = clock.platform.now_ns() + (clock.latency)(call);
    let over = clock.platform.at(end_ns).synchronise();
    Box::pin(async move {
        over.await;
        BatchAnswers { answers, failed_as_a_whole: false }
    })
}

/// Returns the batched functions of a source: `get`, and `list` of as many numbers as are asked for.
fn functions(clock: &Arc<VirtualClock>, source: usize) -> [Function; 2] {
    let (of_get, of_list) = (Arc::clone(clock), Arc::clone(clock));
    let get =
        move |arguments: Vec<Value>| pending(&of_get, source, arguments.into_iter().map(Outcome::Value).collect());
    let list = move |arguments: Vec<Value>, others: &[Value]| {
        let number = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
        let count = others.first().map_or(0, number);
        let of = |first: i64| Value::list((0..count).map(|place| Value::Int(first * 100 + place)).collect::<Vec<_>>());
        pending(&of_list, source, arguments.iter().map(|first| Outcome::Value(of(number(first)))).collect())
    };
    [batched(LIMITS, get), batched_list(LIMITS, list)]
}

/// Runs flows of a program in the expression IR one after the other, over this many sources; returns for each the time that it
/// took, in nanoseconds, and the number of calls.
///
/// # Errors
/// Fails if the program cannot be run.
pub(crate) fn run(program: &str, sources: usize, latency: LatencyOf, flows: usize) -> Result<Vec<(u64, u64)>, String> {
    let names: Vec<String> = (0..sources).map(|source| format!("source{source}")).collect();
    run_graph(&names, latency, flows, |library| {
        let program = weir_ir::parse::expr(program).map_err(|error| error.to_string())?;
        Ok(weir_ir::optimize(&program, library))
    })
}

/// Runs flows of a program in Weir like [`run`]. Each source is a module of its name.
///
/// # Errors
/// Fails if the program cannot be compiled or run.
pub(crate) fn run_text(
    text: &str,
    sources: &[String],
    latency: LatencyOf,
    flows: usize,
) -> Result<Vec<(u64, u64)>, String> {
    run_graph(sources, latency, flows, |library| {
        let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("bench.weir", text), library);
        let messages = || compiled.diagnostics.iter().map(|found| found.message.clone() + "\n").collect::<String>();
        compiled.graph.ok_or_else(|| format!("{}{text}", messages()))
    })
}

fn run_graph(
    sources: &[String],
    latency: LatencyOf,
    flows: usize,
    graph: impl FnOnce(&Library) -> Result<Program, String>,
) -> Result<Vec<(u64, u64)>, String> {
    let clock = Arc::new(VirtualClock {
        platform: Arc::new(ScriptedPlatform::new(1)),
        calls: AtomicU64::new(0),
        flow: AtomicUsize::new(0),
        latency,
    });
    let driver = Arc::new(ClockDriver { clock: Arc::clone(&clock), flows, ended: Mutex::default() });
    let opened = Arc::<ClockDriver>::clone(&driver);
    let of_sources = sources.iter().enumerate();
    let functions =
        of_sources.flat_map(|(index, name)| functions(&clock, index).map(|function| (name.clone(), function)));
    let library = library(Type::Int, once(opened), functions.chain([("sink".to_owned(), keep())]))?;
    let platform = Arc::clone(&clock.platform);
    let options = Options { threads: Some(1), platform, ..Options::default() };
    let running = start(&graph(&library)?, &library, options).map_err(|error| error.to_string())?;
    running.wait().map_err(|failure| failure.to_string())?;
    let ended = std::mem::take(&mut *driver.ended.lock());
    Ok(ended)
}
