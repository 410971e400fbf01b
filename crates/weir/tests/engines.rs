//! Differential test: random programs have the same answers, failures and order of effects on each resource under the
//! reference evaluator and under every engine.
//!
//! `WEIR_RANDOM_PROGRAMS` sets the number of programs, `WEIR_RANDOM_FROM` the first seed. A failing program is shrunk
//! until a person can read it.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use weir_host::{
    Begun, Environment, Failure, Flows, Library, LocalFuture, Opened, ParameterFrom, Route, Source, Stop, Value,
};
use weir_ir::generate::{Case, Execution, Recording, check, evaluate};
use weir_ir::program::{FlowRoute, RouteParameter};
use weir_runtime::{ENGINES, EngineRow, Options, RunningProgram, ScriptedPlatform, engine, start};

/// Default number of programs.
const PROGRAMS: u64 = 300;

/// Time limit for a program, which takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the seeds of the programs.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let from = number("WEIR_RANDOM_FROM").unwrap_or(0);
    from..from + number("WEIR_RANDOM_PROGRAMS").unwrap_or(PROGRAMS)
}

type Results = Arc<Mutex<Vec<Result<Value, Failure>>>>;

/// Begins the flows of a case one after the other.
struct OneByOne {
    inputs: Vec<Vec<Value>>,
    results: Results,
}

impl Source for OneByOne {
    fn open(
        &self,
        _arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::new(OneByOne { inputs: self.inputs.clone(), results: Arc::clone(&self.results) }))
    }
}

impl Opened for OneByOne {
    fn describe(&self) -> String {
        "a case".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            for row in &self.inputs {
                let result = result(&*flows, row).await;
                self.results.lock().push(result);
            }
            Ok(())
        })
    }
}

async fn result(flows: &dyn Flows, row: &[Value]) -> Result<Value, Failure> {
    let mut inputs = row.to_vec();
    loop {
        match flows.begin(0, &mut inputs) {
            Begun::Done(result) => return result,
            Begun::Pending(result) => return result.await,
            Begun::Full => flows.room().await,
        }
    }
}

/// Executes a case.
fn execute(case: &Case, options: Options) -> Result<Execution, String> {
    let recording = Recording::new(1);
    let results = Results::default();
    let source = OneByOne { inputs: case.inputs.clone(), results: Arc::clone(&results) };
    let library = with_source(recording.library(), source);
    let program = weir_ir::optimize(&case.program, &library);
    let running = start(&program, &library, options).map_err(|error| error.to_string())?;
    wait(running)?;
    let results = std::mem::take(&mut *results.lock());
    Ok(Execution { results, effects: recording.effects() })
}

/// Waits for the end of the program, with a time limit.
fn wait(running: RunningProgram) -> Result<(), String> {
    let (ended, end) = mpsc::channel();
    let waiting = thread::spawn(move || ended.send(running.wait()));
    match end.recv_timeout(PATIENCE) {
        Ok(result) => {
            waiting.join().expect("the thread has sent its last").expect("this receiver is there");
            result.map_err(|failure| failure.to_string())
        }
        Err(_) => Err("it does not end".into()),
    }
}

/// Returns the library with the case's flows as the source that generated programs name.
fn with_source(mut library: Library, source: OneByOne) -> Library {
    let module = library.modules.get_mut("a").expect("the recording library has the module `a`");
    let named = module.sources.get_mut("elements").expect("generated programs begin at `a.elements`");
    named.1 = Arc::new(source);
    library
}

/// Returns true if the case has the same result under the engine.
fn compare(case: &Case, engine: &'static EngineRow, threads: usize) -> Result<(), String> {
    compare_with(case, Options { engine, threads: Some(threads), ..Options::default() })
}

fn compare_with(case: &Case, options: Options) -> Result<(), String> {
    let (engine, threads) = (options.engine, options.threads);
    let wanted = evaluate(case, 1).map_err(|failure| failure.to_string())?;
    let found = execute(case, options)?;
    if found == wanted {
        return Ok(());
    }
    Err(format!("{} with {threads:?} threads came to\n{found:#?}\ninstead of\n{wanted:#?}", engine.name))
}

fn same_as_the_evaluator(engine: &'static EngineRow, threads: usize) {
    for seed in seeds() {
        check(seed, |case| compare(case, engine, threads));
    }
}

#[test]
fn every_engine_with_one_thread_comes_to_what_the_evaluator_says() {
    ENGINES.iter().for_each(|engine| same_as_the_evaluator(engine, 1));
}

#[test]
fn every_engine_with_several_threads_comes_to_what_the_evaluator_says() {
    ENGINES.iter().for_each(|engine| same_as_the_evaluator(engine, 3));
}

/// The loop of a pool begins short flows itself, as all are here because time does not pass, and its threads continue
/// them.
#[test]
fn flows_that_a_pool_begins_on_its_loop_come_to_what_the_evaluator_says() {
    let pool = engine("pool").expect("there is a pool");
    let answering = |mut case: Case| {
        case.program.entries.iter_mut().flat_map(|entry| &mut entry.flows).for_each(|flow| {
            let name = |index: usize| format!("parameter{index}").as_str().into();
            let parameter = |index| RouteParameter { name: name(index), from: ParameterFrom::Query, default: None };
            let parameters = (0..flow.parameters.len()).map(parameter).collect();
            flow.route = Some(FlowRoute { method: "GET".into(), pattern: "/".into(), parameters });
        });
        case
    };
    for seed in seeds() {
        check(seed, |case| {
            let mut case = answering(case.clone());
            // The first flows begin on the threads.
            case.inputs.extend_from_within(..);
            case.inputs.extend_from_within(..);
            let platform = Arc::new(ScriptedPlatform::new(0));
            compare_with(&case, Options { engine: pool, threads: Some(2), platform, ..Options::default() })
        });
    }
}

/// A body that began during an independent step once kept the locks of that step, and then waited for them itself.
#[test]
fn a_step_in_a_fold_does_not_wait_for_its_own_flow() {
    let text = r#"
shared counter0: count.Counter
  %0: count.Counter = call count.new at count.new (1000)
  yield %0
shared counter1: count.Counter
  %0: count.Counter = call count.new at count.new (1001)
  yield %0
entry test from a.elements ordered
  arguments
    yield (0,)
  flow elements (%0: List(Int)) -> Int
    %1: Int = atomic (write shared counter1)
      %2: Int = call c.block at c.block#1 (0)
      yield 9
    %3: Int = fold %0 from 3 as %4: Int, %5: Int
      %6: Int = atomic (write shared counter0, write shared counter1)
        %7: Int = copy(1)
        yield %7
      yield %6
    yield 0
"#;
    let program = weir_ir::parse::expr(text).expect("the text is a program");
    let case = Case { program, inputs: vec![vec![Value::list(vec![Value::Int(13)])]] };
    for engine in ENGINES {
        assert_eq!(compare(&case, engine, 2), Ok(()));
    }
}
