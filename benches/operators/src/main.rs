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
//! | `timely` | timely-dataflow, one worker |
//! | `onetbb-…` | oneTBB's pipeline and flow graph, where `libtbb-dev` and `g++` are installed |
//!
//! ```sh
//! cargo run --release -p bench-operators -- [--seconds 2] [--only pipeline|parallel|mixed]
//! ```
//!
//! It prints a table, and writes `target/bench-operators.json` and the elastic engine's levels over time as
//! `target/bench-operators-elastic-….svg`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

mod chart;
mod family;
mod measure;
mod onetbb;
mod paper;
mod scheduled;
mod timely_peer;

use std::fs;
use std::time::Duration;

use family::{Case, Family};
use measure::Row;

/// A benchmark's errors are for the person who runs it.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What the command line says.
struct Options {
    seconds: f64,
    only: Option<Family>,
}

fn main() -> Outcome<()> {
    let options = options()?;
    let span = Duration::from_secs_f64(options.seconds);
    println!("{}", Row::HEADING);
    let mut rows = Vec::new();
    for case in Case::all().filter(|case| options.only.is_none_or(|only| only == case.family)) {
        let of_case = run_case(case, span)?;
        judge(&of_case);
        rows.extend(of_case);
    }
    let json: Vec<_> = rows.iter().map(Row::json).collect();
    fs::write("target/bench-operators.json", serde_json::to_string_pretty(&json)?)?;
    println!("written to target/bench-operators.json");
    Ok(())
}

fn options() -> Outcome<Options> {
    let mut options = Options { seconds: 2.0, only: None };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--seconds" => options.seconds = value.parse()?,
            [name, value] if name == "--only" => options.only = Some(Family::named(value)?),
            other => return Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
        }
    }
    Ok(options)
}

fn run_case(case: Case, span: Duration) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        println!("{row}");
        rows.push(row);
    };
    add(scheduled::manual(case, span));
    for threads in 1..=processors() {
        add(scheduled::fixed(case, threads, span)?);
    }
    add(scheduled::dedicated(case, span)?);
    add(scheduled::elastic(case, processors(), span)?);
    add(paper::run(case, processors(), span));
    if case.family == Family::Pipeline {
        add(timely_peer::run(case, span)?);
    }
    onetbb::run(case, span)?.into_iter().for_each(add);
    Ok(rows)
}

/// Says how elastic stands to the best of the others that Weir has.
fn judge(rows: &[Row]) {
    let weir = |row: &&Row| ["manual", "dedicated", "static"].iter().any(|name| row.model.starts_with(name));
    let best = rows.iter().filter(weir).max_by(|a, b| a.throughput.total_cmp(&b.throughput));
    let elastic = rows.iter().find(|row| row.model == "elastic");
    if let (Some(best), Some(elastic)) = (best, elastic) {
        println!("  elastic has {:.2} of the best, which is {}\n", elastic.throughput / best.throughput, best.model);
    }
}

/// How many threads may run at once.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
