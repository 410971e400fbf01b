//! Benchmark of the graph families of the Streams paper (PLDI 2017, §5) under every threading model, in one run.
//!
//! Graphs of a thousand operators: a pipeline, a data-parallel split, and a mixture of ten branches with a hundred
//! operators each. Each operator executes a number of floating-point operations on a 64-byte tuple. A source submits
//! tuples as fast as it can, and the throughput is counted at the sink.
//!
//! | model | meaning |
//! |---|---|
//! | `manual` | one section: the operators are calls on the source's thread |
//! | `dedicated` | one thread per operator |
//! | `static-n` | n threads for all operators |
//! | `elastic` | as many threads as the controller finds |
//! | `paper-n` | the paper's algorithm to the letter, n threads: see `paper.rs` |
//! | `flows-…` | Weir's runtime, the operators as calls in its flows: see `framed.rs` |
//! | `timely` | timely-dataflow, one worker |
//! | `onetbb-…` | oneTBB's pipeline and flow graph, if `libtbb-dev` and `g++` are installed |
//!
//! ```sh
//! cargo run --release -p bench-operators -- [--seconds 2] [--rounds 1] [--only pipeline|parallel|mixed] [--cost 100]
//!     [--models manual,static,elastic]
//! cargo run --release -p bench-operators -- --hops 21
//! cargo run --release -p bench-operators -- --levels 60 [--only …] [--cost …]
//! cargo run --release -p bench-operators -- --idle 4
//! ```
//!
//! `--models` lists prefixes of the models to run. In every round all models take turns, and the row of a model is the
//! median of its rounds; the ratio of the elastic engine to the best other model is the median of the ratios of the
//! rounds. How much the machine itself disturbs single rounds is shown by the rounds in which an engine has at least
//! 0.9 of its own median. The program prints a table, and writes `bench-operators.json` and the elastic engine's thread
//! counts over time, as `bench-operators-elastic-….svg`, into the target directory.
//!
//! Three options measure something else: `--hops` a hop between two sections on two cores, as the median of this many
//! rounds; `--levels` the number of threads of the elastic engine over this many periods; `--idle` the processor time
//! of engines without work.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

mod chart;
mod family;
mod framed;
mod hop;
mod idle;
mod measure;
mod onetbb;
mod paper;
mod scheduled;
mod thread_counts;
mod timely_peer;

use std::time::Duration;

pub(crate) use bench_harness::BenchResult;
use bench_harness::results;
use family::{Family, GraphCase};
use measure::ModelRow;
use serde_json::{Value, json};

/// The options of the command line.
struct OperatorOptions {
    seconds: f64,
    rounds: usize,
    only: Option<Family>,
    cost: Option<u32>,
    models: Vec<String>,
    measure: Measurement,
}

/// The kinds of measurements.
enum Measurement {
    /// Every model in every case.
    Models,
    /// Hops between two sections, with the number of rounds.
    Hops(usize),
    /// Idle engines, with the number of seconds.
    Idle(f64),
    /// The number of threads of the elastic engine, with the number of periods.
    ThreadCounts(u32),
}

impl OperatorOptions {
    fn read() -> BenchResult<OperatorOptions> {
        let models = vec![String::new()];
        let mut options =
            OperatorOptions { seconds: 2.0, rounds: 1, only: None, cost: None, models, measure: Measurement::Models };
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--rounds" => options.rounds = value.parse()?,
                [name, value] if name == "--only" => options.only = Some(Family::named(value)?),
                [name, value] if name == "--hops" => options.measure = Measurement::Hops(value.parse()?),
                [name, value] if name == "--idle" => options.measure = Measurement::Idle(value.parse()?),
                [name, value] if name == "--levels" => options.measure = Measurement::ThreadCounts(value.parse()?),
                [name, value] if name == "--cost" => options.cost = Some(value.parse()?),
                [name, value] if name == "--models" => options.models = value.split(',').map(str::to_owned).collect(),
                other => return Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
            }
        }
        Ok(options)
    }

    fn cases(&self) -> impl Iterator<Item = GraphCase> {
        GraphCase::all().filter(|case| {
            self.only.is_none_or(|only| only == case.family) && self.cost.is_none_or(|cost| cost == case.cost)
        })
    }

    fn wants(&self, model: &str) -> bool {
        self.models.iter().any(|wanted| model.starts_with(wanted.as_str()))
    }
}

fn main() -> BenchResult<()> {
    let options = OperatorOptions::read()?;
    match options.measure {
        Measurement::Models => write("", &models(&options)?.into()),
        Measurement::Hops(rounds) => write("-hops", &hop::run(rounds)?),
        Measurement::Idle(seconds) => write("-idle", &idle::run(Duration::from_secs_f64(seconds))?.into()),
        Measurement::ThreadCounts(periods) => {
            println!("{}", thread_counts::HEADING);
            let rows =
                options.cases().map(|case| thread_counts::run(case, periods)).collect::<BenchResult<Vec<_>>>()?;
            write("-levels", &rows.into())
        }
    }
}

/// Writes the results.
fn write(what: &str, json: &Value) -> BenchResult<()> {
    results::publish(&format!("bench-operators{what}"), json)
}

/// Measures all models in all cases.
fn models(options: &OperatorOptions) -> BenchResult<Vec<Value>> {
    println!("{}", ModelRow::HEADING);
    let mut cases = Vec::new();
    for case in options.cases() {
        let rounds = (0..options.rounds).map(|_| run_case(case, options)).collect::<BenchResult<Vec<_>>>()?;
        let rows = medians(&rounds);
        rows.iter().for_each(|row| println!("{row}"));
        let ratios: Vec<_> = [("elastic", OTHERS), ("flows-elastic", OTHERS_OF_FLOWS)]
            .into_iter()
            .filter_map(|(elastic, others)| judge(&rounds, elastic, others))
            .collect();
        println!();
        let models: Vec<Value> = rows.iter().map(|row| with_rounds(row, &rounds)).collect();
        cases.push(json!({
            "family": case.family.name(), "cost": case.cost, "rounds": options.rounds,
            "models": models, "ratios": ratios,
        }));
    }
    Ok(cases)
}

fn run_case(case: GraphCase, options: &OperatorOptions) -> BenchResult<Vec<ModelRow>> {
    let span = Duration::from_secs_f64(options.seconds);
    let mut rows = Vec::new();
    let mut run = |model: &str, measure: &mut dyn FnMut() -> BenchResult<ModelRow>| -> BenchResult<()> {
        if options.wants(model) {
            rows.push(measure()?);
        }
        Ok(())
    };
    run("manual", &mut || Ok(scheduled::manual(case, span)))?;
    for threads in 1..=processors() {
        run(&format!("static-{threads}"), &mut || scheduled::fixed(case, threads, span))?;
    }
    run("dedicated", &mut || scheduled::dedicated(case, span))?;
    run("elastic", &mut || scheduled::elastic(case, processors(), span))?;
    run("paper", &mut || Ok(paper::run(case, processors(), span)))?;
    for model in framed::MODELS {
        run(model.name, &mut || framed::run(case, model, span))?;
    }
    if case.family == Family::Pipeline {
        run("timely", &mut || timely_peer::run(case, span))?;
    }
    if options.wants("onetbb") {
        rows.extend(onetbb::run(case, span)?);
    }
    Ok(rows)
}

/// The prefixes of the models that the elastic one is compared with.
const OTHERS: &[&str] = &["manual", "dedicated", "static"];
/// The prefixes of the models that the elastic one of Weir's runtime is compared with.
const OTHERS_OF_FLOWS: &[&str] = &["flows-event", "flows-manual", "flows-dedicated"];

/// Returns the median round of each model, by throughput.
fn medians(rounds: &[Vec<ModelRow>]) -> Vec<ModelRow> {
    let models = rounds.first().map_or(0, Vec::len);
    let median = |model: usize| {
        let mut rows: Vec<&ModelRow> = rounds.iter().filter_map(|rows| rows.get(model)).collect();
        rows.sort_by(|a, b| a.throughput.total_cmp(&b.throughput));
        rows[rows.len() / 2].clone()
    };
    (0..models).map(median).collect()
}

/// Returns the throughputs of a model, one for each round.
fn throughputs(model: &str, rounds: &[Vec<ModelRow>]) -> Vec<f64> {
    rounds.iter().flatten().filter(|row| row.model == model).map(|row| row.throughput).collect()
}

/// Returns a row with the throughputs of all its rounds.
fn with_rounds(row: &ModelRow, rounds: &[Vec<ModelRow>]) -> Value {
    let mut json = row.json();
    json["tuples_per_second_of_rounds"] = throughputs(&row.model, rounds).into();
    json
}

/// Returns the number of rounds in which a model has at least 0.9 of its own median.
fn steady_rounds(model: &str, rounds: &[Vec<ModelRow>]) -> usize {
    let mut rates = throughputs(model, rounds);
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
    rates.iter().filter(|rate| **rate >= 0.9 * median).count()
}

/// Prints the ratio of the elastic model to the best other one, as the median of the ratios of the rounds.
fn judge(rounds: &[Vec<ModelRow>], elastic: &str, others: &[&str]) -> Option<Value> {
    let ratio = |rows: &Vec<ModelRow>| {
        let other = |row: &&ModelRow| others.iter().any(|name| row.model.starts_with(name));
        let best = rows.iter().filter(other).max_by(|a, b| a.throughput.total_cmp(&b.throughput))?;
        let own = rows.iter().find(|row| row.model == elastic)?;
        Some((own.throughput / best.throughput, best.model.clone()))
    };
    let mut ratios: Vec<(f64, String)> = rounds.iter().filter_map(ratio).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, best) = ratios.get(ratios.len() / 2)?;
    let (least, most) = (ratios.first()?.0, ratios.last()?.0);
    let good = ratios.iter().filter(|(ratio, _)| *ratio >= 0.9).count();
    let all = ratios.len();
    println!(
        "  {elastic} has {ratio:.2} ({least:.2} to {most:.2}) of the best, which is {best}; at least 0.9 in {good} of {all} rounds"
    );
    let (own, peer) = (steady_rounds(elastic, rounds), steady_rounds(best, rounds));
    println!("  at least 0.9 of the own median: {elastic} in {own}, {best} in {peer} of {all} rounds");
    let ratios: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
    Some(json!({ "model": elastic, "best": best, "ratio": ratio, "least": least, "most": most, "rounds": ratios }))
}

/// Returns the number of threads that run at once.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
