//! The cost of a round of a loop, beside CPython and V8 if they are installed.
//!
//! `cargo bench -p weir-runtime --bench regions` prints nanoseconds for each round: medians of runs in which all rows
//! take turns.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::Command;
use std::time::Instant;

use test_support::flows::{Feed, options};
use weir_host::{Library, Value};
use weir_runtime::{RunningProgram, start};

/// Rounds of a loop in one flow.
const ROUNDS: i64 = 1_000_000;
/// Flows of each row.
const FLOWS: usize = 15;

/// A program: its name, its body in the expression IR with the parameter `%0`, and the same in Python and JavaScript.
struct Row {
    name: &'static str,
    body: &'static str,
    python: &'static str,
    javascript: &'static str,
}

const ROWS: [Row; 3] = [
    Row {
        name: "fold step: s + n * 3 % 7",
        body: "%1: Int = fold %0 from 0 as %2: Int, %3: Int\n  %4: Int = multiply(%3, 3)\n  %5: Int = remainder(%4, 7)\n  \
               %6: Int = add(%2, %5)\n  yield %6\nyield %1",
        python: "for x in ns: s = s + x * 3 % 7",
        javascript: "for (const x of ns) s = s + x * 3 % 7",
    },
    Row {
        name: "loop round: i + 1 until i >= n",
        body: "%9: Int = length(%0)\n%1: Int = loop 0 at most 9000000000 as %2: Int\n  %3: Int = add(%2, 1)\n  \
               %4: Bool = greater_or_equal(%3, %9)\n  %5: (Int, Bool) = record(%3, %4)\n  yield %5\nyield %1",
        python: "while s < n: s += 1",
        javascript: "while (s < n) s += 1",
    },
    Row {
        name: "for: n * 3",
        body: "%1: List(Int) = for %2: Int in %0\n  %3: Int = multiply(%2, 3)\n  yield %3\n%4: Int = length(%1)\nyield %4",
        python: "s = len([x * 3 for x in ns])",
        javascript: "s = ns.map(x => x * 3).length",
    },
];

fn main() {
    let list = Value::list((0..ROUNDS).map(Value::Int).collect());
    let mut flows: Vec<(Feed, RunningProgram)> = ROWS.iter().map(|row| program(row.body)).collect();
    let mut figures = vec![Vec::new(); ROWS.len()];
    for _ in 0..FLOWS {
        for ((feed, _), figures) in flows.iter().zip(&mut figures) {
            let begin = Instant::now();
            feed.run(vec![list.clone()]).expect("the flow ends with an answer");
            figures.push(begin.elapsed().as_nanos() as f64 / ROUNDS as f64);
        }
    }
    println!("{:<36}{:>10}{:>10}{:>10}", "nanoseconds", "weir", "python3", "node");
    for (row, mut figures) in ROWS.iter().zip(figures) {
        figures.sort_by(f64::total_cmp);
        let (python, node) = (of_python(row.python), of_node(row.javascript));
        println!("{:<36}{:>10.1}{python:>10.1}{node:>10.2}", row.name, figures[figures.len() / 2]);
    }
    for (feed, running) in flows.drain(..) {
        drop(feed);
        running.wait().expect("the program ends");
    }
}

fn program(body: &str) -> (Feed, RunningProgram) {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: List(Int)) -> Int\n{body}"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (mut library, feed) = (Library::default(), Feed::new());
    feed.put(&mut library, "test", "feed");
    let graph = weir_ir::lower(&program, &library);
    let running = start(&graph, &library, options("event", 1)).expect("the program starts");
    (feed, running)
}

/// Returns the nanoseconds of a round in CPython; NaN if it is not installed.
fn of_python(statement: &str) -> f64 {
    let script = format!(
        "import time\nns = list(range({ROUNDS}))\ndef run(ns):\n    n = len(ns)\n    s = 0\n    {statement}\n    return s\n\
         figures = []\nfor _ in range(7):\n    begin = time.perf_counter_ns()\n    run(ns)\n    \
         figures.append(time.perf_counter_ns() - begin)\nprint(sorted(figures)[3] / {ROUNDS})"
    );
    printed(Command::new("python3").args(["-c", &script]))
}

/// Returns the nanoseconds of a round in V8; NaN if Node is not installed.
fn of_node(statement: &str) -> f64 {
    let script = format!(
        "const ns = Array.from({{length: {ROUNDS}}}, (_, i) => i);\nfunction run(ns) {{ const n = ns.length; let s = 0; {statement}; return s }}\n\
         const figures = [];\nfor (let i = 0; i < 15; i++) {{ const begin = process.hrtime.bigint(); run(ns); figures.push(Number(process.hrtime.bigint() - begin)) }}\n\
         console.log(figures.sort((a, b) => a - b)[7] / {ROUNDS})"
    );
    printed(Command::new("node").args(["-e", &script]))
}

fn printed(command: &mut Command) -> f64 {
    let output = command.output().ok();
    output.and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok()).unwrap_or(f64::NAN)
}
