//! Rounds and independent calls of one flow on all cores, beside the same with rayon and on one core, in one run; and a task of
//! two stages under several plans, beside its slowest stage.
//!
//! ```sh
//! cargo run --release -p bench-parallel            # options: --rounds 20, --case "a million"
//! ```
//!
//! `--case` runs only cases whose names begin so. Each round runs a case with every contender in turn; a ratio is taken between figures of the same round. Results are
//! written to `target/bench-parallel.json`.

use std::time::Instant;

use bench_harness::{BenchResult, LoadOptions, median, results, taken};
use serde_json::{Map, Value as Json, json};

use cases::{CASES, ParallelCase};
use program::BenchProgram;

mod beside;
mod cases;
mod map_task;
mod program;
mod two_states;

/// The contenders, the first of which is the peer of the others.
const CONTENDERS: [&str; 4] = ["rayon", "weir", "weir, parallel = \"off\"", "one thread"];

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "--serve"
    {
        return beside::serve(rest);
    }
    let beginning = taken(&mut arguments, "--case").unwrap_or_default();
    let options = LoadOptions::read(&arguments)?;
    let (on, off) = (BenchProgram::start("auto")?, BenchProgram::start("off")?);
    let mut all = Map::new();
    for case in CASES.iter().filter(|case| case.name.starts_with(&beginning)) {
        all.insert(case.name.into(), measured(case, (&on, &off), options.rounds)?);
    }
    map_task::measure(&beginning, options.rounds, &mut all)?;
    two_states::measure(&beginning, options.rounds, &mut all)?;
    beside::measure(&beginning, options.rounds, &mut all)?;
    results::publish("bench-parallel", &Json::Object(all))
}

/// Measures a case, prints the medians, and returns all figures.
#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
fn measured(case: &ParallelCase, (on, off): (&BenchProgram, &BenchProgram), rounds: usize) -> BenchResult<Json> {
    let mut times: [Vec<f64>; 4] = Default::default();
    // The first round warms up.
    for round in 0..=rounds {
        let measured = [
            milliseconds(|| Ok(case.with_rayon()))?,
            milliseconds(|| on.run(case))?,
            milliseconds(|| off.run(case))?,
            milliseconds(|| Ok(case.on_one_thread()))?,
        ];
        let kept = times.iter_mut().zip(measured).filter(|_| round > 0);
        kept.for_each(|(times, time)| times.push(time));
    }
    let mut figures = Map::new();
    println!("{}", case.name);
    for (name, times_of) in CONTENDERS.iter().zip(&times) {
        let ratio = median(times_of.iter().zip(&times[0]).map(|(time, peer)| time / peer).collect());
        println!("  {name:<26} {:>9.3} ms, {ratio:.2} of rayon", median(times_of.clone()));
        figures.insert((*name).into(), json!({ "ms": times_of, "to_rayon": ratio }));
    }
    Ok(Json::Object(figures))
}

/// Measures a run, and rests for an eighth of its time: under `chrt -f` Linux stops a thread that has computed for 950 ms of a
/// second (`sched_rt_runtime_us`) for the other 50, which would double the time of the same contender in each round.
fn milliseconds(run: impl FnOnce() -> BenchResult<i64>) -> BenchResult<f64> {
    let begin = Instant::now();
    std::hint::black_box(run()?);
    let took = begin.elapsed();
    std::thread::park_timeout(took / 8);
    Ok(took.as_secs_f64() * 1e3)
}
