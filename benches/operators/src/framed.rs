//! The graph families as programs of flows, under the engines of Weir's runtime.
//!
//! A flow is a tuple, an operator is a call of a host function. A split has no counterpart, because Weir runs different
//! flows in parallel: *parallel* is a program of one call, *mixed* one of a hundred consecutive calls. *Cut* means that
//! a plan makes every call a section, as in the paper; otherwise each engine cuts as it does without a plan.
//!
//! Throughput is the work done, and not what arrives at the sink: tuples are counted at every fiftieth operator, too. A thousand
//! queues of 64 tuples take longer to fill than a measurement lasts; while they do, or while the system runs the last operators
//! more often than the first ones, the two differ by a third in either direction.

use std::cell::Cell;
use std::fmt::Write;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use weir::{
    Begun, Environment, Failure, Flows, Library, LocalFuture, Opened, Parameter, Passing, Route, Source,
    SourceSignature, Stop, Type, Value,
};
use weir_ir::plan::Plan;
use weir_runtime::{Options, RunningProgram, start};

use crate::family::{GraphCase, spin};
use crate::measure::{Meter, ModelRow};
use crate::{BenchResult, processors};

/// The cost of an operator. One case is measured at a time.
static COST: AtomicU32 = AtomicU32::new(0);
/// The number of tuples that have reached the sink.
static SUNK: AtomicU64 = AtomicU64::new(0);
/// The number of tuples that have passed an operator that counts them.
static PASSED: AtomicU64 = AtomicU64::new(0);
/// The number of operators of which one counts tuples. An atomic addition for each would take longer than the cheapest ones.
const COUNTED: usize = 50;
/// The time for the elastic engine to find its number of threads (20 periods), and for `dedicated` to fill its queues.
const SETTLE: Duration = Duration::from_secs(2);
/// The number of flows that are begun before other tasks of the event loop run.
const TURN: u32 = 64;

/// An operator.
#[weir::function(pure)]
fn work(x: f64) -> f64 {
    spin(x, COST.load(Ordering::Relaxed))
}

/// An operator that counts its tuples. Declared pure, because the program does not see the counter.
#[weir::function(pure)]
fn counted(x: f64) -> f64 {
    PASSED.fetch_add(1, Ordering::Relaxed);
    spin(x, COST.load(Ordering::Relaxed))
}

/// The sink. Declared pure, because the program does not see its counter.
#[weir::function(pure)]
fn sink(x: f64) -> f64 {
    SUNK.fetch_add(1, Ordering::Relaxed);
    black_box(x)
}

weir::library!(operators: work, counted, sink);

/// A configuration of engine and plan.
#[derive(Clone, Copy)]
pub(crate) struct EngineModel {
    pub(crate) name: &'static str,
    engine: &'static str,
    threads: fn() -> usize,
    cut: bool,
}

/// Every configuration that is measured.
pub(crate) const MODELS: [EngineModel; 6] = [
    EngineModel { name: "flows-event", engine: "event", threads: || 1, cut: false },
    EngineModel { name: "flows-manual-1", engine: "manual", threads: || 1, cut: false },
    EngineModel { name: "flows-manual-n", engine: "manual", threads: processors, cut: false },
    EngineModel { name: "flows-dedicated", engine: "dedicated", threads: || 1, cut: false },
    EngineModel { name: "flows-elastic", engine: "elastic", threads: processors, cut: false },
    EngineModel { name: "flows-elastic-cut", engine: "elastic", threads: processors, cut: true },
];

/// Measures the case.
pub(crate) fn run(case: GraphCase, model: EngineModel, span: Duration) -> BenchResult<ModelRow> {
    let engine = weir_runtime::engine(model.engine).ok_or("an engine of this name")?;
    let plan = if model.cut { cut(case) } else { Plan::default() };
    let options = Options { engine, plan, threads: Some((model.threads)()), ..Options::default() };
    let running = begin(case, u32::MAX, options)?;
    let count = || passed(case);
    std::thread::park_timeout(if ["elastic", "dedicated"].contains(&model.engine) { SETTLE } else { span / 2 });
    let meter = Meter::start(count());
    std::thread::park_timeout(span);
    let row = meter.row(case, model.name, count());
    running.stop();
    running.wait().map_err(|failure| failure.to_string())?;
    Ok(row)
}

/// Starts the case's program on `tuples` tuples.
pub(crate) fn begin(case: GraphCase, tuples: u32, options: Options) -> BenchResult<RunningProgram> {
    COST.store(case.cost, Ordering::Relaxed);
    let library = library()?;
    let program = weir_ir::parse::expr(&text(case, tuples)).map_err(|error| error.to_string())?;
    Ok(start(&weir_ir::lower(&program, &library), &library, options).map_err(|error| error.to_string())?)
}

/// Returns the number of tuples whose work is done: the mean of the operators that count, and of the sink.
fn passed(case: GraphCase) -> u64 {
    let counting = (case.family.depth() / COUNTED) as u64;
    (PASSED.load(Ordering::Relaxed) + sunk()) / (counting + 1)
}

/// Returns the number of tuples that have reached the sink.
pub(crate) fn sunk() -> u64 {
    SUNK.load(Ordering::Relaxed)
}

fn text(case: GraphCase, tuples: u32) -> String {
    let mut text = format!(
        "entry tuples from operators.tuples unordered\n  arguments\n    yield ({tuples},)\n  flow tuples (%0 x: Float) -> Float\n"
    );
    let depth = case.family.depth();
    for call in 0..depth {
        let function = if (call + 1).is_multiple_of(COUNTED) { "counted" } else { "work" };
        // Writing to a string never fails.
        _ = writeln!(text, "    %{}: Float = call operators.{function} at o{call} (%{call})", call + 1);
    }
    _ = writeln!(text, "    %{}: Float = call operators.sink at sink (%{depth})\n    yield %{0}", depth + 1);
    text
}

/// Returns the plan that makes every call a section.
fn cut(case: GraphCase) -> Plan {
    let section = |call| format!("[[section]]\nname = \"o{call}\"\nnodes = [\"o{call}\"]\nreplicas = 1\n");
    Plan::parse(&(0..case.family.depth()).map(section).collect::<String>()).0
}

fn library() -> BenchResult<Library> {
    let most = Parameter { name: "most".into(), ty: Type::Int, passing: Passing::Value, default: None };
    let signature = SourceSignature {
        module: "operators".into(),
        name: "tuples".into(),
        doc: "Tuples as fast as it is let.".into(),
        parameters: vec![most],
        element: Some(Type::Float),
        answer: None,
        ordered: false,
    };
    let mut library = Library::default();
    library.add(operators().source(signature, Arc::new(Tuples { most: 0 })))?;
    Ok(library)
}

struct Tuples {
    /// The number of tuples. After them, the source waits until the program is stopped.
    most: u32,
}

impl Source for Tuples {
    fn open(&self, arguments: Vec<Value>, _: Arc<[Route]>, _: &Environment) -> Result<Arc<dyn Opened>, Failure> {
        let Some(Value::Int(most)) = arguments.first() else { return Err(Failure::function("not a number of tuples")) };
        Ok(Arc::new(Tuples { most: u32::try_from(*most).unwrap_or(u32::MAX) }))
    }
}

impl Opened for Tuples {
    fn describe(&self) -> String {
        "tuples".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let (stopped, waits) = (Rc::new(Cell::new(false)), stop.clone());
            let told = Rc::clone(&stopped);
            tokio::task::spawn_local(async move {
                waits.stopped().await;
                told.set(true);
            });
            let mut inputs = Vec::with_capacity(1);
            let mut begun = 0_u32;
            while !stopped.get() {
                if begun == self.most {
                    stop.stopped().await;
                    break;
                }
                inputs.resize(1, Value::Float(f64::from(begun)));
                match flows.begin_detached(0, &mut inputs) {
                    Begun::Done(_) => {}
                    Begun::Pending(answer) => _ = tokio::task::spawn_local(answer),
                    Begun::Full => {
                        flows.room().await;
                        continue;
                    }
                }
                begun = begun.wrapping_add(1);
                if begun.is_multiple_of(TURN) {
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        })
    }
}
