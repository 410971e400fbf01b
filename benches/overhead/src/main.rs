//! Benchmark of the cost of a flow, a fused node and a passed value beyond a plain Rust call chain.
//!
//! ```sh
//! cargo run --release -p bench-overhead -- [--rounds 21]
//! ```
//!
//! Every case is a child process that runs its loop a number of times. A figure is the difference between a long and a
//! short loop, so that it does not contain the start-up. Nanoseconds are medians of rounds in which all cases take
//! turns; instructions are counted by callgrind if `valgrind` is installed. The program prints a table, and writes
//! `bench-overhead.json` into the target directory.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it measured")]

mod cases;
mod child;

use std::process::Command;

pub(crate) use bench_harness::BenchResult;
use bench_harness::{median, results};
use cases::{NODES, OverheadCase};
use serde_json::json;

/// The numbers of flows in the short and the long loop that are timed.
const TIMED: (u64, u64) = (1_000, 21_000);
/// The numbers of flows in the short and the long loop whose instructions are counted.
const COUNTED: (u64, u64) = (100, 10_100);

/// The cost of one flow of a case.
struct Cost {
    case: OverheadCase,
    nanos: f64,
    instructions: Option<f64>,
}

fn main() -> BenchResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [child, case, count] if child == "--child" => child::run(OverheadCase::named(case)?, count.parse()?),
        [] => measure(21),
        [rounds, count] if rounds == "--rounds" => measure(count.parse()?),
        other => Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
    }
}

fn measure(rounds: usize) -> BenchResult<()> {
    let mut nanos: Vec<Vec<f64>> = OverheadCase::ALL.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (case, nanos) in OverheadCase::ALL.iter().zip(&mut nanos) {
            let (short, long) = (timed(*case, TIMED.0)?, timed(*case, TIMED.1)?);
            nanos.push((long - short) / (TIMED.1 - TIMED.0) as f64);
        }
    }
    let costs = OverheadCase::ALL.iter().zip(nanos).map(|(&case, nanos)| Cost {
        case,
        nanos: median(nanos),
        instructions: instructions(case),
    });
    report(&costs.collect::<Vec<_>>())
}

/// Returns the nanoseconds that a loop of `count` flows takes.
fn timed(case: OverheadCase, count: u64) -> BenchResult<f64> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--child", case.name(), &count.to_string()]).output()?;
    let said = String::from_utf8(output.stdout)?;
    said.trim().parse().map_err(|_| format!("{} printed {said:?}", case.name()).into())
}

/// Returns the instructions of one flow, if valgrind is installed.
fn instructions(case: OverheadCase) -> Option<f64> {
    let (short, long) = (counted(case, COUNTED.0)?, counted(case, COUNTED.1)?);
    Some((long - short) / (COUNTED.1 - COUNTED.0) as f64)
}

fn counted(case: OverheadCase, count: u64) -> Option<f64> {
    let own = std::env::current_exe().ok()?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own);
    let output = command.args(["--child", case.name(), &count.to_string()]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = said.lines().find_map(|line| line.split_once("Collected : "))?.1.trim().parse().ok();
    if collected.is_none() {
        eprintln!("valgrind said {said}");
    }
    collected
}

fn report(costs: &[Cost]) -> BenchResult<()> {
    let nodes = NODES as f64;
    let of = |case: OverheadCase| costs.iter().find(|cost| cost.case == case).expect("every case was measured");
    let per = |figure: &dyn Fn(&Cost) -> f64| {
        let [flow, one, four, plain_one, plain_four, rounds, rounds_off, calls, calls_off] =
            OverheadCase::ALL.map(|case| figure(of(case)));
        let node = (one - flow) / nodes - plain_one / nodes;
        let value = ((four - one) - (plain_four - plain_one)) / nodes / 3.0;
        [
            ("flow", flow),
            ("fused node, beyond its function", node),
            ("value passed, beyond a plain call's", value),
            ("five rounds", rounds),
            ("five rounds, `parallel = \"off\"`", rounds_off),
            ("five calls in a loop", calls),
            ("five calls in a loop, `parallel = \"off\"`", calls_off),
        ]
    };
    let nanos = per(&|cost| cost.nanos);
    let instructions = per(&|cost| cost.instructions.unwrap_or(f64::NAN));
    println!("{:<38} {:>10} {:>14}", "", "ns", "instructions");
    let mut rows = Vec::new();
    for ((name, nanos), (_, instructions)) in nanos.into_iter().zip(instructions) {
        println!("{name:<38} {nanos:>10.1} {instructions:>14.1}");
        rows.push(json!({ "what": name, "nanoseconds": nanos, "instructions": instructions }));
    }
    results::publish("bench-overhead", &rows.into())
}
