//! The graph families of the Streams paper (PLDI 2017, §5) under every way of giving them threads, in one run.
//!
//! A thousand operators: a pure pipeline, a pure data-parallel split, and ten wide by a hundred deep; each operator spends
//! a number of floating-point operations on a 64-byte tuple. A source puts tuples in as fast as it is let, and what the
//! sink counts in a while is the throughput.
//!
//! | model | is |
//! |---|---|
//! | `manual` | one section: the operators are calls on the source's thread |
//! | `dedicated` | a thread for every operator |
//! | `static-n` | n threads for all operators |
//! | `elastic` | as many threads as trust and trend find |
//! | `paper-n` | the paper's algorithm taken plainly, n threads: see `paper.rs` |
//! | `flows-…` | Weir's runtime, the operators as calls in its flows: see `framed.rs` |
//! | `timely` | timely-dataflow, one worker |
//! | `onetbb-…` | oneTBB's pipeline and flow graph, where `libtbb-dev` and `g++` are installed |
//!
//! ```sh
//! cargo run --release -p bench-operators -- [--seconds 2] [--rounds 1] [--only pipeline|parallel|mixed] [--cost 100]
//!     [--models manual,static,elastic]
//! cargo run --release -p bench-operators -- --hops 21
//! cargo run --release -p bench-operators -- --levels 60 [--only …] [--cost …]
//! cargo run --release -p bench-operators -- --idle 4
//! ```
//!
//! `--models` names the beginnings of those that are run. In every round all models take turns, and a model's row is the
//! median of its rounds; the elastic engine's ratio to the best of the others is the median of the rounds' ratios. It
//! prints a table, and writes `bench-operators.json` and the elastic engine's thread counts over time, as
//! `bench-operators-elastic-….svg`, into the target directory.
//!
//! Others are measured instead: `--hops` a hop between two sections on two cores, as the median of so many rounds;
//! `--levels` how the elastic engine's level moves in so many periods; `--idle` what engines cost that have nothing to do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

mod chart;
mod family;
mod framed;
mod hop;
mod idle;
mod levels;
mod measure;
mod onetbb;
mod paper;
mod scheduled;
mod timely_peer;

use std::time::Duration;

use bench_harness::results;
use family::{Case, Family};
use measure::Row;
use serde_json::{Value, json};

/// A benchmark's errors are for the person who runs it.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Options of the command line.
struct Options {
    seconds: f64,
    rounds: usize,
    only: Option<Family>,
    cost: Option<u32>,
    models: Vec<String>,
    measure: Measure,
}

/// The measurements that can be selected.
enum Measure {
    /// Every model in every case.
    Models,
    /// Hops between two sections, in so many rounds.
    Hops(usize),
    /// The idle cost of the engines, over this many seconds.
    Idle(f64),
    /// The thread counts over this many periods.
    Levels(u32),
}

impl Options {
    fn read() -> Outcome<Options> {
        let models = vec![String::new()];
        let mut options = Options { seconds: 2.0, rounds: 1, only: None, cost: None, models, measure: Measure::Models };
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--rounds" => options.rounds = value.parse()?,
                [name, value] if name == "--only" => options.only = Some(Family::named(value)?),
                [name, value] if name == "--hops" => options.measure = Measure::Hops(value.parse()?),
                [name, value] if name == "--idle" => options.measure = Measure::Idle(value.parse()?),
                [name, value] if name == "--levels" => options.measure = Measure::Levels(value.parse()?),
                [name, value] if name == "--cost" => options.cost = Some(value.parse()?),
                [name, value] if name == "--models" => options.models = value.split(',').map(str::to_owned).collect(),
                other => return Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
            }
        }
        Ok(options)
    }

    fn cases(&self) -> impl Iterator<Item = Case> {
        Case::all().filter(|case| {
            self.only.is_none_or(|only| only == case.family) && self.cost.is_none_or(|cost| cost == case.cost)
        })
    }

    fn wants(&self, model: &str) -> bool {
        self.models.iter().any(|wanted| model.starts_with(wanted.as_str()))
    }
}

fn main() -> Outcome<()> {
    let options = Options::read()?;
    match options.measure {
        Measure::Models => write("", &models(&options)?.into()),
        Measure::Hops(rounds) => write("-hops", &hop::run(rounds)?),
        Measure::Idle(seconds) => write("-idle", &idle::run(Duration::from_secs_f64(seconds))?.into()),
        Measure::Levels(periods) => {
            println!("{}", levels::HEADING);
            let rows = options.cases().map(|case| levels::run(case, periods)).collect::<Outcome<Vec<_>>>()?;
            write("-levels", &rows.into())
        }
    }
}

/// Writes what was measured.
fn write(what: &str, json: &Value) -> Outcome<()> {
    results::publish(&format!("bench-operators{what}"), json)
}

/// Measures all models in all cases.
fn models(options: &Options) -> Outcome<Vec<Value>> {
    println!("{}", Row::HEADING);
    let mut cases = Vec::new();
    for case in options.cases() {
        let rounds = (0..options.rounds).map(|_| run_case(case, options)).collect::<Outcome<Vec<_>>>()?;
        let rows = medians(&rounds);
        rows.iter().for_each(|row| println!("{row}"));
        let ratios: Vec<_> = [("elastic", OTHERS), ("flows-elastic", OTHERS_OF_FLOWS)]
            .into_iter()
            .filter_map(|(elastic, others)| judge(&rounds, elastic, others))
            .collect();
        println!();
        cases.push(json!({
            "family": case.family.name(), "cost": case.cost, "rounds": options.rounds,
            "models": rows.iter().map(Row::json).collect::<Vec<_>>(), "ratios": ratios,
        }));
    }
    Ok(cases)
}

fn run_case(case: Case, options: &Options) -> Outcome<Vec<Row>> {
    let span = Duration::from_secs_f64(options.seconds);
    let mut rows = Vec::new();
    let mut run = |model: &str, measure: &mut dyn FnMut() -> Outcome<Row>| -> Outcome<()> {
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

/// The models that elastic is compared with: all others of Weir's scheduler.
const OTHERS: &[&str] = &["manual", "dedicated", "static"];
/// The same of Weir's runtime.
const OTHERS_OF_FLOWS: &[&str] = &["flows-event", "flows-manual", "flows-dedicated"];

/// For each model, the median of its rounds by throughput.
fn medians(rounds: &[Vec<Row>]) -> Vec<Row> {
    let models = rounds.first().map_or(0, Vec::len);
    let median = |model: usize| {
        let mut rows: Vec<&Row> = rounds.iter().filter_map(|rows| rows.get(model)).collect();
        rows.sort_by(|a, b| a.throughput.total_cmp(&b.throughput));
        rows[rows.len() / 2].clone()
    };
    (0..models).map(median).collect()
}

/// Says how elastic stands to the best of the others, as the median of the rounds' ratios.
fn judge(rounds: &[Vec<Row>], elastic: &str, others: &[&str]) -> Option<Value> {
    let ratio = |rows: &Vec<Row>| {
        let other = |row: &&Row| others.iter().any(|name| row.model.starts_with(name));
        let best = rows.iter().filter(other).max_by(|a, b| a.throughput.total_cmp(&b.throughput))?;
        let own = rows.iter().find(|row| row.model == elastic)?;
        Some((own.throughput / best.throughput, best.model.clone()))
    };
    let mut ratios: Vec<(f64, String)> = rounds.iter().filter_map(ratio).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, best) = ratios.get(ratios.len() / 2)?;
    let (least, most) = (ratios.first()?.0, ratios.last()?.0);
    println!("  {elastic} has {ratio:.2} ({least:.2} to {most:.2}) of the best, which is {best}");
    Some(json!({ "model": elastic, "best": best, "ratio": ratio, "least": least, "most": most }))
}

/// The maximal number of threads.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
