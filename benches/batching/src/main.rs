//! Random level graphs as programs in Weir: the calls of their sources and the time that they take, on a virtual clock,
//! beside models of other policies and lower bounds.
//!
//!     cargo run --release -p bench-batching -- [--graphs 1000] [--levels 20]
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

mod level_graph;
mod policy;
mod virtual_run;

use bench_harness::results::publish;
use bench_harness::{BenchResult, taken};
use serde_json::{Value, json};

use level_graph::LevelGraph;
use policy::{Policy, simulate};

/// The latencies of the sources.
const SETS: [(&str, &[u64]); 5] = [
    ("one source", &[5]),
    ("a fast and a slow source", &[300, 1_000]),
    ("two sources", &[3, 10]),
    ("four sources", &[2, 3, 5, 11]),
    ("eight sources", &[2, 3, 5, 11, 2, 3, 5, 11]),
];

const POLICIES: [(&str, Policy); 3] =
    [("model: eager", Policy::Eager), ("model: rounds", Policy::Rounds), ("model: slack", Policy::Slack)];

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut number = |name: &str, default: usize| -> BenchResult<usize> {
        taken(&mut arguments, name).map_or(Ok(default), |text| Ok(text.parse()?))
    };
    let (graphs, levels) = (number("--graphs", 1_000)?, number("--levels", 20)?);
    let mut results = Vec::new();
    for (name, latencies) in SETS {
        results.push(measured(name, latencies, graphs, levels)?);
    }
    publish("bench-batching", &Value::Array(results))
}

/// Runs and simulates all graphs over sources of these latencies.
fn measured(name: &str, latencies: &[u64], graphs: usize, levels: usize) -> BenchResult<Value> {
    let (mut sequential, mut weir, mut bounds, mut exact) = ((0, 0), (0, 0), (0, 0), 0);
    let mut models = [(0, 0); POLICIES.len()];
    for level in 1..=levels {
        for index in 0..graphs {
            let mut seed = (level * 1_000_003 + index) as u64;
            let graph = LevelGraph::random(level, latencies.len(), &mut seed);
            let cost = |source: Option<usize>| source.map_or(0, |source| latencies[source]);
            let asks = graph.0.iter().filter(|node| node.source.is_some());
            sequential = add(sequential, (graph.0.iter().map(|node| cost(node.source)).sum(), asks.count() as u64));
            let run = virtual_run::run(&graph.program(), latencies)?;
            let bound = (graph.longest(|node| cost(node.source)), graph.calls_min(latencies.len()));
            exact += usize::from(run.1 == bound.1);
            (weir, bounds) = (add(weir, run), add(bounds, bound));
            for (sum, (_, policy)) in models.iter_mut().zip(POLICIES) {
                *sum = add(*sum, simulate(&graph, latencies, policy));
            }
        }
    }
    let count = graphs * levels;
    println!("{name} {latencies:?}: {count} graphs; as few calls as the bound on {exact}");
    let mut rows = vec![("sequential", sequential), ("Weir", weir)];
    rows.extend(POLICIES.iter().zip(models).map(|((name, _), sum)| (*name, sum)));
    rows.push(("lower bounds", bounds));
    for (row, (time, calls)) in &rows {
        println!("  {row:15} {calls:9} calls {time:12} time");
    }
    let rows: Vec<Value> =
        rows.iter().map(|(row, (time, calls))| json!({ "row": row, "calls": calls, "time": time })).collect();
    Ok(json!({ "sources": name, "latencies": latencies, "graphs": count, "calls_minimal": exact, "rows": rows }))
}

fn add(sum: (u64, u64), one: (u64, u64)) -> (u64, u64) {
    (sum.0 + one.0, sum.1 + one.1)
}
