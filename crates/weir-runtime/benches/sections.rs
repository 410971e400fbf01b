//! The cost of sections: a pipeline of calls that do almost nothing, divided in different ways.
//!
//! The figures are CPU nanoseconds for each flow and call, of all threads together, and wall-clock time beside them. If
//! a queue stands before every call, a flow is moved as often as it has calls.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use test_support::flows::gates::{immediate, int, library};
use test_support::flows::options;
use test_support::flows::stream::Numbers;
use weir_host::{Outcome, Passing, Type, Value};
use weir_ir::plan::Plan;
use weir_runtime::{Options, start};

const FLOWS: i64 = 100_000;
const CALLS: i64 = 100;
/// The length of a clock tick, the unit of CPU time in `/proc`.
const TICK_NS: f64 = 10_000_000.0;

/// Returns the CPU time of this process, or 0 if the system does not tell it.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() * TICK_NS
}

/// Returns the plan of the Streams paper: each operator has a port.
fn queue_before_each_call() -> Plan {
    let section =
        |call| format!("[[section]]\nname = \"s{call}\"\nnodes = [\"s{call}\"]\nengine = \"elastic\"\nreplicas = 1\n");
    Plan::parse(&(0..CALLS).map(section).collect::<String>()).0
}

fn main() {
    let mut body = String::new();
    for call in 0..CALLS {
        body.push_str(&format!("    %{}: Int = call a.step at s{call} (%{call})\n", call + 1));
    }
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}    yield %{CALLS}\n"
    );
    println!("{:<24}{:>8}{:>12}{:>12}", "engine", "threads", "CPU ns", "wall ns");
    let cases = [
        ("event", 1, false),
        ("manual", 1, false),
        ("pool", 1, false),
        ("elastic", 1, false),
        ("elastic", 2, false),
        ("elastic", 1, true),
        ("elastic", 2, true),
        ("dedicated", 1, false),
    ];
    for (name, threads, queues) in cases {
        let step = immediate("a.step", &[("x", Type::Int, Passing::Value)], |call| {
            Outcome::Value(Value::Int(black_box(int(call, 0)) + 1))
        });
        let mut library = library([step]);
        let numbers = Numbers::new(FLOWS);
        numbers.put(&mut library);
        let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}"));
        let graph = weir_ir::lower(&program, &library);
        let (begin, cpu) = (Instant::now(), cpu_ns());
        let plan = if queues { queue_before_each_call() } else { Plan::default() };
        let options = Options { plan, ..options(name, threads) };
        start(&graph, &library, options).expect("it starts").wait().expect("it ends");
        let hops = (FLOWS * CALLS) as f64;
        println!(
            "{:<24}{threads:>8}{:>12.1}{:>12.1}",
            if queues { format!("{name}, queues") } else { name.to_owned() },
            (cpu_ns() - cpu) / hops,
            begin.elapsed().as_nanos() as f64 / hops
        );
    }
}
