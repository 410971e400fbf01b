//! The program in Weir: a flow runs the rounds or calls of a case.

use test_support::flows::{Feed, options};
use weir::{Library, Value};
use weir_ir::graph::Program;
use weir_ir::plan::Plan;
use weir_runtime::{Options, RunningProgram};
use weir_syntax::{SourceFile, Sources, Style, render};

use crate::BenchResult;
use crate::cases::{ParallelCase, Results};

/// A flow for each run of a case. The rounds and steps of a case are one number, because a flow has one input; it is negative
/// if the results are added up.
const PROGRAM: &str = "\
use bench, list

for number in bench.flows(0) {
  let rounds = number / 1000000000
  let steps = number % 1000000000
  if rounds < 0 {
    let numbers = list.numbers(0, 0 - rounds)?
    let total = fold sum = 0 for n in numbers { sum + bench.small(n) % 7 }
    bench.take([total])
  } else if rounds == 0 {
    let first = bench.work(1, steps)
    let second = bench.work(2, steps)
    bench.take([first, second])
  } else if steps > 0 {
    let numbers = list.numbers(0, rounds)?
    let results = for n in numbers { bench.work(n, steps) }
    bench.take(results)
  } else {
    let numbers = list.numbers(0, rounds)?
    let results = for n in numbers { bench.small(n) }
    bench.take(results)
  }
}
";

/// A flow for each run of a case whose results are added up or collected by key. Its input has a sign as above: negative if they
/// are added up.
const BY_KEY: &str = "\
use bench, list

for number in bench.flows(0) {
  if number < 0 {
    let numbers = list.numbers(0, 0 - number)?
    let sums = fold m = [:] for n in numbers { m.with(n % 1000, (m[n % 1000] else { 0 }) + n) }
    bench.take([sums.length()])
  } else {
    let numbers = list.numbers(0, number)?
    let groups = fold m = [:] for n in numbers { m.with(n % 1000, (m[n % 1000] else { [] }) + [n]) }
    bench.take([groups.length()])
  }
}
";

/// The factor of the rounds in the input of a flow.
const ROUNDS_AT: i64 = 1_000_000_000;

mod functions {
    //! The functions that the program calls.

    weir::library! {
        /// The benchmark's own functions.
        pub(super) bench: work, small, take, map_task::read, Packer::pack, Output::write, map_task::close
    }

    use crate::map_task::functions::{self as map_task, Output, Packer};

    /// Computes for this many steps, of which a unit has two.
    #[weir::function(pure, units = super::units(steps))]
    pub(super) fn work(seed: i64, steps: i64) -> i64 {
        crate::cases::work(seed, steps)
    }

    /// Computes for about 100 ns.
    #[weir::function(pure)]
    pub(super) fn small(seed: i64) -> i64 {
        crate::cases::small(seed)
    }

    /// Takes the results.
    #[weir::function]
    pub(super) fn take(results: Vec<i64>) {
        std::hint::black_box(results);
    }
}

/// Returns the units of this many steps: one for two of them.
fn units(steps: &Value) -> u64 {
    if let Value::Int(steps) = steps { steps.unsigned_abs() / 2 } else { 0 }
}

/// The programs, which run.
pub(crate) struct BenchProgram {
    rounds: Started,
    by_key: Started,
}

/// A program that runs.
pub(crate) struct Started {
    feed: Feed,
    #[expect(dead_code, reason = "held while flows run")]
    running: RunningProgram,
}

impl BenchProgram {
    /// Starts the programs on all cores, with this value of the plan's key `parallel`.
    pub(crate) fn start(parallel: &str) -> BenchResult<BenchProgram> {
        let plan = format!("engine = \"event\"\nparallel = \"{parallel}\"\n");
        Ok(BenchProgram { rounds: Started::new(PROGRAM, &plan)?, by_key: Started::new(BY_KEY, &plan)? })
    }

    /// Runs the rounds or calls of a case in a flow; returns the number of rounds.
    pub(crate) fn run(&self, case: &ParallelCase) -> BenchResult<i64> {
        let (program, input) = match case.results {
            Results::Kept => (&self.rounds, case.rounds * ROUNDS_AT + case.steps),
            Results::Summed => (&self.rounds, -case.rounds * ROUNDS_AT),
            Results::SummedByKey => (&self.by_key, -case.rounds),
            Results::Grouped => (&self.by_key, case.rounds),
        };
        program.run(input)?;
        Ok(case.rounds)
    }
}

impl Started {
    /// Starts a program under this plan.
    pub(crate) fn new(text: &str, plan: &str) -> BenchResult<Started> {
        let feed = Feed::new();
        let (graph, library, plan) = compiled(text, plan, Some(&feed))?;
        let options = Options { plan, threads: None, ..options("event", 1) };
        let running = weir_runtime::start(&graph, &library, options)?;
        Ok(Started { feed, running })
    }

    /// Runs a flow with this input.
    pub(crate) fn run(&self, input: i64) -> BenchResult<()> {
        self.feed.run(vec![Value::Int(input)]).map_err(|failure| failure.message.to_string())?;
        Ok(())
    }
}

/// Compiles a program and its plan; its flows may come from this feed.
pub(crate) fn compiled(text: &str, plan: &str, feed: Option<&Feed>) -> BenchResult<(Program, Library, Plan)> {
    let mut library = weir_library::library();
    library.modules.insert("bench".into(), functions::bench());
    feed.into_iter().for_each(|feed| feed.put(&mut library, "bench", "flows"));
    let mut sources = Sources::new();
    let file = SourceFile::new("parallel.weir".to_owned(), text);
    let compiled = weir_compile::compile(sources.add(file.clone()), &file, &library);
    let said = compiled.diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, Style::Plain));
    let said: String = said.collect();
    let graph = compiled.graph.ok_or(said)?;
    let (plan, problems) = Plan::parse(plan);
    if !problems.is_empty() {
        return Err(format!("{problems:?}").into());
    }
    Ok((graph, library, plan))
}
