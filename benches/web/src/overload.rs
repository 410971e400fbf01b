//! Requests that compute, at rates below and above what the server can answer, under each engine: goodput, latencies, memory
//! and the time until all is as before.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bench_harness::{
    BenchResult, Load, LoadOptions, OpenSample, Schedule, ServerProcess, Workload, free_port, results,
};
use serde_json::json;

/// The number of connections whose closed loop finds the peak: enough to keep the server busy, and no more.
const CONNECTIONS: usize = 4;
/// The time in which an answer is of use.
const DEADLINE: Duration = Duration::from_secs(1);
/// The rates before, during and after the overload, relative to the peak.
const RATES: [f64; 3] = [0.8, 3.0, 0.8];
/// The engines that are compared.
const ENGINES: &[&str] = &["event", "pool", "staged", "elastic"];

/// A request that costs some milliseconds, which is more than a hundred times a refusal.
const PROGRAM: &str = r#"use http

service overload on http(port: 8081) {
  get "/work" {
    let rounds = loop i = 0 { i + 1 } until i >= 300_000 at most 1_000_000
    http.text("{rounds}")
  }
}
"#;

/// Measures each engine at its peak, below it, above it, and below it again.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    println!("overload: requests that compute, open loop, deadline {} ms\n", DEADLINE.as_millis());
    println!(
        "{:<10} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>12}",
        "engine", "peak/s", "p99 0.8x", "p99 3x", "goodput", "refused", "lost", "memory", "normal after"
    );
    let load = Load::new(CONNECTIONS)?;
    let mut rows = Vec::new();
    for engine in ENGINES {
        let server = start(engine, folder)?;
        let work = Workload::kept(Arc::new(|_, path: &mut String| path.push_str("/work")));
        let peak = load.run(&server, options.seconds, 0, &work)?.requests_per_second;
        let at = |rate: f64| {
            let schedule =
                Schedule { path: "/work", rate: rate * peak, seconds: 3.0 * options.seconds, deadline: DEADLINE };
            load.run_open(&server, schedule)
        };
        let [below, above, after] = [at(RATES[0])?, at(RATES[1])?, at(RATES[2])?];
        rows.push(row(engine, peak, &below, &above, &after));
    }
    println!();
    results::publish("bench-web-overload", &rows.into())
}

/// Prints a row, and returns it.
fn row(engine: &str, peak: f64, below: &OpenSample, above: &OpenSample, after: &OpenSample) -> serde_json::Value {
    let ms = |ns: u64| ns as f64 / 1e6;
    let goodput = above.in_time_per_second / peak;
    let memory = above.memory as f64 / below.memory.max(1) as f64;
    let normal = after.all_in_time_after.as_secs_f64();
    println!(
        "{engine:<10} {peak:>8.0} {:>8.1}ms {:>8.1}ms {goodput:>8.2} {:>8.2} {:>8.2} {memory:>8.2} {normal:>11.2}s",
        ms(below.p99_ns),
        ms(above.p99_ns),
        above.refused,
        above.lost
    );
    json!({
        "engine": engine, "peak_per_second": peak, "p99_below_ms": ms(below.p99_ns), "p99_above_ms": ms(above.p99_ns),
        "goodput_relative_to_peak": goodput, "refused": above.refused, "lost": above.lost,
        "memory_relative_to_below": memory, "normal_after_seconds": normal,
    })
}

fn start(engine: &str, folder: &Path) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let file = folder.join(format!("overload-{engine}.weir"));
    fs::write(&file, PROGRAM.replace("8081", &port.to_string()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", "weir", "run"]).arg(&file).args(["--engine", engine, "--threads", "1"]);
    ServerProcess::start(engine, &mut command, port)
}
