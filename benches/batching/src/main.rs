//! Random level graphs as programs in Weir: the calls of their sources and the time that they take, on a virtual clock,
//! beside models of other policies and lower bounds; and batches under load on a real clock.
//!
//!     cargo run --release -p bench-batching -- [--graphs 1000] [--levels 20] [--case NAME]
//!
//! The cases are `element`, `saturation`, `modules`, `pages` and `databases`, and for tools that count instructions `requests`: as
//! many as `--requests` of each client, of Weir or, with `--by-hand 1`, of the batcher that is written by hand;
//! and, with `--page NAME`, as many of this page over SQLite. With `plain` it makes as many requests of a program without batched
//! calls, with `--waits 1` of one that waits.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

mod database_pages;
mod databases;
mod dataloader;
mod host;
mod latency;
mod level_graph;
mod modular;
mod optimum;
mod pages;
mod policy;
mod saturation;
mod virtual_run;

use bench_harness::results::publish;
use bench_harness::{BenchResult, taken};
use serde_json::{Value, json};

use latency::{LatencyOf, UNIT_NS, doubled, doubled_from, fixed, log_normal};
use level_graph::LevelGraph;
use modular::{ModularGraph, Modules};
use pages::{PAGES, Page};
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

/// The flows of a graph before those that are measured, from which the latencies of the sources are learned.
const LEARNING: usize = 5;

/// The standard deviation of the logarithm of random latencies.
const SIGMA: f64 = 0.2;

/// The flows of each graph that are measured under random latencies.
const RANDOM_FLOWS: usize = 20;

/// The flows of each graph after a change of a latency before the one that is measured.
const RELEARNING: usize = 20;

/// A time in nanoseconds, and a number of calls.
type Cost = (u64, u64);

/// The graphs that are run.
#[derive(Clone, Copy)]
struct Graphs {
    per_level: usize,
    levels: usize,
}

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut number = |name: &str, default: usize| -> BenchResult<usize> {
        taken(&mut arguments, name).map_or(Ok(default), |text| Ok(text.parse()?))
    };
    let graphs = Graphs { per_level: number("--graphs", 1_000)?, levels: number("--levels", 20)? };
    let (requests, by_hand) = (number("--requests", 100)?, number("--by-hand", 0)? == 1);
    let waits = number("--waits", 0)? == 1;
    let page = taken(&mut arguments, "--page");
    match taken(&mut arguments, "--case").as_deref() {
        None => {}
        Some("element") => return publish("bench-batching-element", &saturation::element()?),
        Some("plain") => return publish("bench-batching-plain", &saturation::plain(waits, requests)?),
        Some("saturation") => return publish("bench-batching-saturation", &Value::Array(saturation::saturation()?)),
        Some("requests") => {
            let made = match &page {
                Some(page) => database_pages::requests(page, by_hand, requests)?,
                None => saturation::requests(by_hand, requests)?,
            };
            return publish("bench-batching-requests", &made);
        }
        Some("modules") => return publish("bench-batching-modules", &Value::Array(modular(graphs)?)),
        Some("databases") => {
            return publish("bench-batching-databases", &Value::Array(database_pages::database_pages()?));
        }
        Some("pages") => return publish("bench-batching-pages", &Value::Array(pages()?)),
        Some(other) => {
            let cases = "`element`, `saturation`, `modules`, `pages`, `databases`, `plain` and `requests`";
            return Err(format!("there is no case `{other}`: {cases} are").into());
        }
    }
    let mut results = Vec::new();
    for (name, latencies) in SETS {
        results.push(exact(name, latencies, graphs)?);
    }
    let four = SETS[3].1;
    results.extend([small(four, graphs)?, random(four, graphs)?, changed(four, graphs)?]);
    for (name, latencies) in [SETS[0], SETS[3]] {
        results.push(peer(name, latencies, graphs)?);
    }
    results.extend(modular(graphs)?);
    results.extend(pages()?);
    results.extend(database_pages::database_pages()?);
    results.extend(saturation::saturation()?);
    results.push(saturation::element()?);
    publish("bench-batching", &Value::Array(results))
}

impl Graphs {
    /// Calls a function for each graph, with its seed.
    fn each(self, sources: usize, mut run: impl FnMut(&LevelGraph, u64) -> BenchResult<()>) -> BenchResult<usize> {
        for level in 1..=self.levels {
            for index in 0..self.per_level {
                let mut seed = (level * 1_000_003 + index) as u64;
                let first = seed;
                run(&LevelGraph::random(level, sources, &mut seed), first)?;
            }
        }
        Ok(self.levels * self.per_level)
    }
}

/// Returns the costs of this many flows, one after the other, after those that learn.
fn weir(graph: &LevelGraph, sources: usize, latency: LatencyOf, flows: usize) -> BenchResult<Vec<Cost>> {
    let mut costs = virtual_run::run(&graph.program(), sources, latency, LEARNING + flows)?;
    costs.drain(..LEARNING.min(costs.len()));
    if costs.len() == flows { Ok(costs) } else { Err("a flow did not end".into()) }
}

/// Fixed latencies: runs and simulates all graphs over sources of these latencies.
fn exact(name: &str, latencies: &[u64], graphs: Graphs) -> BenchResult<Value> {
    let (mut sequential, mut measured, mut bounds, mut minimal) = ((0, 0), (0, 0), (0, 0), 0);
    let mut models = [(0, 0); POLICIES.len()];
    let count = graphs.each(latencies.len(), |graph, _| {
        let cost = |source: Option<usize>| source.map_or(0, |source| latencies[source] * UNIT_NS);
        let asks = graph.0.iter().filter(|node| node.source.is_some());
        sequential = add(sequential, (graph.0.iter().map(|node| cost(node.source)).sum(), asks.count() as u64));
        let run = weir(graph, latencies.len(), fixed(latencies), 1)?[0];
        let bound = (graph.longest(|node| cost(node.source)), graph.calls_min(latencies.len()));
        minimal += usize::from(run.1 == bound.1);
        (measured, bounds) = (add(measured, run), add(bounds, bound));
        for (sum, (_, policy)) in models.iter_mut().zip(POLICIES) {
            *sum = add(*sum, simulate(graph, latencies, &fixed(latencies), (0, 0), policy));
        }
        Ok(())
    })?;
    println!("{name} {latencies:?}: {count} graphs; as few calls as the bound on {minimal}");
    let mut rows = vec![("sequential", sequential), ("Weir", measured)];
    rows.extend(POLICIES.iter().zip(models).map(|((name, _), sum)| (*name, sum)));
    rows.push(("lower bounds", bounds));
    for (row, (time, calls)) in &rows {
        println!("  {row:15} {calls:9} calls {:12} time", time / UNIT_NS);
    }
    let closed = gap_closed(models[0].1, measured.1, bounds.1);
    println!("  of the calls between eager and the bound, {closed:.2} are saved");
    let rows: Vec<Value> =
        rows.iter().map(|(row, (time, calls))| json!({ "row": row, "calls": calls, "time_ns": time })).collect();
    Ok(
        json!({ "sources": name, "latencies": latencies, "graphs": count, "calls_minimal": minimal, "gap_closed": closed, "rows": rows }),
    )
}

/// Graphs with functions and maps: the calls relative to those of the flattened graph. The `fn`s are in the text.
fn modular(graphs: Graphs) -> BenchResult<Vec<Value>> {
    let mut results = Vec::new();
    for (name, latencies) in [SETS[0], SETS[3]] {
        for modules in [Modules::Functions, Modules::Maps, Modules::Both] {
            results.push(modular_over(name, latencies, modules, graphs)?);
        }
    }
    Ok(results)
}

fn modular_over(name: &str, latencies: &[u64], modules: Modules, graphs: Graphs) -> BenchResult<Value> {
    let sources: Vec<String> = (0..latencies.len()).map(|source| format!("source{source}")).collect();
    let (mut sequential, mut measured, mut bounds, mut minimal, mut count) = (0, (0, 0), (0, 0), 0, 0);
    let mut models = [(0, 0); POLICIES.len()];
    graphs.each(latencies.len(), |_, first| {
        let mut seed = first;
        let levels = 1 + count / graphs.per_level;
        count += 1;
        let graph = ModularGraph::random(levels, latencies.len(), modules, &mut seed);
        let flat = graph.flattened();
        let mut costs =
            virtual_run::run_text(&graph.program(latencies.len()), &sources, fixed(latencies), LEARNING + 1)?;
        let run = costs.pop().filter(|_| costs.len() == LEARNING).ok_or("a flow did not end")?;
        let cost = |node: &level_graph::LevelNode| node.source.map_or(0, |source| latencies[source] * UNIT_NS);
        let bound = (flat.longest(cost), flat.calls_min(latencies.len()));
        sequential += flat.0.iter().filter(|node| node.source.is_some()).count();
        minimal += usize::from(run.1 <= bound.1);
        (measured, bounds) = (add(measured, run), add(bounds, bound));
        for (sum, (_, policy)) in models.iter_mut().zip(POLICIES) {
            *sum = add(*sum, simulate(&flat, latencies, &fixed(latencies), (0, 0), policy));
        }
        Ok(())
    })?;
    println!("{modules:?} at 40 %, {name} {latencies:?}: {count} graphs; as few calls as the bound on {minimal}");
    println!("  sequential      {sequential:9} calls");
    println!("  Weir            {:9} calls {:12} time", measured.1, measured.0 / UNIT_NS);
    for ((name, _), (time, calls)) in POLICIES.iter().zip(models) {
        println!("  {name:15} {calls:9} calls {:12} time, of the flattened graph", time / UNIT_NS);
    }
    println!("  lower bounds    {:9} calls {:12} time", bounds.1, bounds.0 / UNIT_NS);
    Ok(json!({ "modules": format!("{modules:?}"), "sources": name, "graphs": count, "calls_minimal": minimal,
        "sequential": sequential, "calls": measured.1, "time_ns": measured.0, "calls_bound": bounds.1,
        "time_bound_ns": bounds.0 }))
}

/// The pages, beside models of other policies and a hand-optimised version, which takes the time of the critical path.
fn pages() -> BenchResult<Vec<Value>> {
    PAGES.iter().map(page).collect()
}

fn page(page: &Page) -> BenchResult<Value> {
    let (latencies, graph) = (page.latencies(), page.graph());
    let mut costs = virtual_run::run_text(&page.program(), &page.sources(), fixed(&latencies), LEARNING + 1)?;
    let run = costs.pop().ok_or("the flow did not end")?;
    let ms = |time: u64| time as f64 / UNIT_NS as f64;
    let critical = graph.longest(|node| node.source.map_or(0, |source| latencies[source] * UNIT_NS));
    println!("{}: {} calls in the text; by hand {} rounds", page.name, page.calls(), page.by_hand.0);
    println!("  one after the other     {:4} calls {:7.1} ms", page.calls(), page.sequential_ms());
    println!("  Weir                    {:4} calls {:7.1} ms", run.1, ms(run.0));
    let mut rows = vec![json!({ "row": "Weir", "calls": run.1, "time_ns": run.0 })];
    for (name, policy) in POLICIES.into_iter().chain([("model: delay of 1 ms", Policy::Delay(UNIT_NS))]) {
        let (time, calls) = simulate(&graph, &latencies, &fixed(&latencies), (0, 0), policy);
        println!("  {name:23} {calls:4} calls {:7.1} ms", ms(time));
        rows.push(json!({ "row": name, "calls": calls, "time_ns": time }));
    }
    let by_hand = page.by_hand.1;
    println!("  by hand                 {by_hand:4} calls {:7.1} ms", ms(critical));
    rows.push(json!({ "row": "by hand", "calls": by_hand, "time_ns": critical }));
    Ok(json!({ "page": page.name, "calls_in_text": page.calls(), "rows": rows }))
}

/// The largest number of graphs of each level that npm's `dataloader` runs, on a real clock.
const PEER_GRAPHS: usize = 5;

/// The calls of npm's `dataloader` and of Weir on the same graphs.
fn peer(name: &str, latencies: &[u64], graphs: Graphs) -> BenchResult<Value> {
    let graphs = Graphs { per_level: graphs.per_level.min(PEER_GRAPHS), ..graphs };
    let (mut measured, mut all) = (0, Vec::new());
    graphs.each(latencies.len(), |graph, _| {
        measured += weir(graph, latencies.len(), fixed(latencies), 1)?[0].1;
        all.push(LevelGraph(graph.0.clone()));
        Ok(())
    })?;
    let calls = match dataloader::calls(&all, latencies) {
        Ok(calls) => calls.into_iter().sum::<u64>(),
        Err(error) => {
            println!("SKIPPED: npm's dataloader over {name}: {error}");
            return Ok(json!({ "dataloader": name, "skipped": error.to_string() }));
        }
    };
    println!("{name} {latencies:?}, {} graphs: npm's dataloader makes {calls} calls, Weir {measured}", all.len());
    Ok(json!({ "dataloader": name, "graphs": all.len(), "calls": calls, "weir_calls": measured }))
}

/// Graphs of few calls: the calls relative to the exact optimum at the latency of the critical path.
fn small(latencies: &[u64], graphs: Graphs) -> BenchResult<Value> {
    let (mut measured, mut optimal, mut count) = (0, 0, 0);
    graphs.each(latencies.len(), |graph, _| {
        let Some(least) = optimum::calls_min(graph, latencies) else { return Ok(()) };
        measured += weir(graph, latencies.len(), fixed(latencies), 1)?[0].1;
        (optimal, count) = (optimal + least, count + 1);
        Ok(())
    })?;
    let relative = ratio(measured, optimal);
    println!(
        "graphs of at most {} calls {latencies:?}: {count}; calls {measured}, {relative:.3} of the optimum",
        optimum::CALLS_MAX
    );
    Ok(json!({ "small graphs": count, "calls": measured, "optimum": optimal, "relative": relative }))
}

/// Random latencies: time and calls relative to eager sending.
fn random(latencies: &[u64], graphs: Graphs) -> BenchResult<Value> {
    let (mut measured, mut eager, mut bound) = ((0, 0), (0, 0), 0);
    let count = graphs.each(latencies.len(), |graph, seed| {
        let latency = log_normal(latencies, SIGMA, seed);
        let runs = weir(graph, latencies.len(), latency.clone(), RANDOM_FLOWS)?;
        measured = runs.into_iter().fold(measured, add);
        let mut earlier = 0;
        for flow in 0..RANDOM_FLOWS {
            let cost = simulate(graph, latencies, &latency, (flow, earlier), Policy::Eager);
            (eager, earlier) = (add(eager, cost), earlier + cost.1);
        }
        bound += graph.calls_min(latencies.len()) * RANDOM_FLOWS as u64;
        Ok(())
    })?;
    let (time, closed) = (ratio(measured.0, eager.0), gap_closed(eager.1, measured.1, bound));
    println!(
        "log-normal latencies around {latencies:?}, sigma {SIGMA}: {count} graphs; time {time:.3} of eager sending; of the \
         calls between eager and the bound, {closed:.2} are saved"
    );
    Ok(json!({ "sigma": SIGMA, "graphs": count, "time_relative": time, "gap_closed": closed }))
}

/// The latency of the slowest source doubles: the time relative to the critical path, some flows later.
fn changed(latencies: &[u64], graphs: Graphs) -> BenchResult<Value> {
    let after = doubled(latencies);
    let (mut at_once, mut later, mut critical) = (0, 0, 0);
    let count = graphs.each(latencies.len(), |graph, _| {
        let latency = doubled_from(latencies, 2 * LEARNING);
        let runs = weir(graph, latencies.len(), latency, LEARNING + RELEARNING + 1)?;
        at_once += runs[LEARNING].0;
        later += runs[LEARNING + RELEARNING].0;
        critical += graph.longest(|node| node.source.map_or(0, |source| after[source] * UNIT_NS));
        Ok(())
    })?;
    let (at_once, later) = (ratio(at_once, critical), ratio(later, critical));
    println!(
        "the slowest of {latencies:?} becomes twice as slow: {count} graphs; time {at_once:.3} of the critical path at once, \
         {later:.3} after {RELEARNING} flows"
    );
    Ok(json!({ "graphs": count, "time_at_once": at_once, "time_later": later, "flows": RELEARNING }))
}

fn gap_closed(eager: u64, measured: u64, bound: u64) -> f64 {
    if eager == bound { 1.0 } else { (eager as f64 - measured as f64) / (eager as f64 - bound as f64) }
}

fn ratio(one: u64, other: u64) -> f64 {
    if other == 0 { 1.0 } else { one as f64 / other as f64 }
}

fn add(sum: Cost, one: Cost) -> Cost {
    (sum.0 + one.0, sum.1 + one.1)
}

#[cfg(test)]
mod tests {
    use super::{LEARNING, PAGES, UNIT_NS, fixed, virtual_run};

    #[test]
    fn pages_take_the_calls_and_the_time_of_their_hand_optimised_versions() {
        for page in &PAGES {
            let latencies = page.latencies();
            let costs = virtual_run::run_text(&page.program(), &page.sources(), fixed(&latencies), LEARNING + 1);
            let found = costs.unwrap().pop().unwrap();
            let critical = page.graph().longest(|node| node.source.map_or(0, |source| latencies[source] * UNIT_NS));
            assert_eq!(found, (critical, page.by_hand.1), "{}", page.name);
        }
    }

    #[test]
    fn the_timeline_takes_the_calls_of_its_hand_optimised_version_before_any_latency_is_known() {
        let page = PAGES.iter().find(|page| page.name == "social timeline").unwrap();
        let costs = virtual_run::run_text(&page.program(), &page.sources(), fixed(&page.latencies()), 1);
        assert_eq!(costs.unwrap().pop().unwrap().1, page.by_hand.1);
    }
}
