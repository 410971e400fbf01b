//! Requests that compute, at rates below and above what the server can answer, under each engine: goodput, latencies, memory
//! and the time until all is as before.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bench_harness::{
    BenchResult, Load, LoadOptions, OpenSample, Schedule, ServerProcess, Workload, free_port, median, results,
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

/// The goals: answers in time at three times the peak relative to the peak, the 99th percentile of their latencies and the
/// memory relative to those at 0.8 times, and the seconds until all is as it was before.
const GOALS: [(&str, Goal); 4] = [
    ("goodput", Goal::AtLeast(0.9)),
    ("p99", Goal::LessThan(2.0)),
    ("memory", Goal::LessThan(1.5)),
    ("normal after", Goal::LessThan(1.0)),
];
/// The time at the beginning of a load that is not measured: until a queue counts as standing, and what it held is worked off.
const TRANSIENT: Duration = Duration::from_secs(1);

/// A goal for a figure.
#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    LessThan(f64),
}

impl Goal {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Goal::AtLeast(least) => figure >= least,
            Goal::LessThan(most) => figure < most,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Goal::AtLeast(least) => write!(f, "at least {least}"),
            Goal::LessThan(most) => write!(f, "below {most}"),
        }
    }
}

/// The measurements of one engine in one round.
struct OverloadSample {
    peak_per_second: f64,
    below: OpenSample,
    above: OpenSample,
    after: OpenSample,
}

impl OverloadSample {
    /// Returns the figures that have goals, in the order of [`GOALS`].
    fn figures(&self) -> [f64; 4] {
        [
            self.above.in_time_per_second / self.peak_per_second,
            self.above.p99_ns as f64 / self.below.p99_ns.max(1) as f64,
            self.above.memory as f64 / self.below.memory.max(1) as f64,
            self.after.normal_after.as_secs_f64(),
        ]
    }
}

/// Measures each engine at its peak, below it, above it, and below it again, and reports the medians of the rounds.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    println!(
        "overload: requests that compute, open loop, deadline {} ms; medians of {} rounds\n",
        DEADLINE.as_millis(),
        options.rounds
    );
    let [goodput, p99, memory, normal] = GOALS.map(|(name, _)| name);
    println!(
        "{:<10} {:>8} {:>11} {:>11} {:>12} {:>10} {:>6}   {goodput:<14} {p99:<14} {memory:<14} {normal:<14}",
        "engine", "peak/s", "p99 0.8x", "p99 3x", "refused 0.8x", "refused 3x", "lost",
    );
    let load = Load::new(CONNECTIONS)?;
    let mut samples: Vec<Vec<OverloadSample>> = ENGINES.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.rounds.max(1) {
        for (engine, samples) in ENGINES.iter().zip(&mut samples) {
            samples.push(measure(&load, engine, folder, &options)?);
        }
    }
    let rows: Vec<_> = ENGINES.iter().zip(&samples).map(|(engine, samples)| row(engine, samples)).collect();
    println!();
    for (name, goal) in GOALS {
        println!("{name}: {goal}");
    }
    results::publish("bench-web-overload", &rows.into())
}

/// Measures an engine in one round, in a process of its own.
fn measure(load: &Load, engine: &str, folder: &Path, options: &LoadOptions) -> BenchResult<OverloadSample> {
    let server = start(engine, folder)?;
    let work = Workload::kept(Arc::new(|_, path: &mut String| path.push_str("/work")));
    let peak_per_second = load.run(&server, options.seconds, 0, &work)?.requests_per_second;
    let at = |rate: f64, normally_late: f64| {
        let seconds = 3.0 * options.seconds + TRANSIENT.as_secs_f64();
        let (path, transient, deadline) = ("/work", TRANSIENT, DEADLINE);
        let schedule = Schedule { path, rate: rate * peak_per_second, seconds, transient, deadline, normally_late };
        load.run_open(&server, schedule)
    };
    let below = at(RATES[0], 0.0)?;
    let (above, after) = (at(RATES[1], 0.0)?, at(RATES[2], below.refused + below.lost)?);
    Ok(OverloadSample { peak_per_second, below, above, after })
}

/// Prints the medians of the rounds of an engine, and returns them and the figures of each round.
fn row(engine: &str, samples: &[OverloadSample]) -> serde_json::Value {
    let of = |figure: &dyn Fn(&OverloadSample) -> f64| median(samples.iter().map(figure).collect());
    let ms = |ns: u64| ns as f64 / 1e6;
    let rounds: Vec<_> = samples.iter().map(OverloadSample::figures).collect();
    let figures: [f64; 4] = std::array::from_fn(|index| median(rounds.iter().map(|round| round[index]).collect()));
    let peak = of(&|sample| sample.peak_per_second);
    let (p99_below, p99_above) = (of(&|sample| ms(sample.below.p99_ns)), of(&|sample| ms(sample.above.p99_ns)));
    let (below, above) = (of(&|sample| sample.below.refused), of(&|sample| sample.above.refused));
    let (after, lost) = (of(&|sample| sample.after.refused), of(&|sample| sample.above.lost));
    print!("{engine:<10} {peak:>8.0} {p99_below:>9.1}ms {p99_above:>9.1}ms {below:>12.3} {above:>10.2} {lost:>6.2}");
    let met: Vec<bool> = GOALS.iter().zip(figures).map(|((_, goal), figure)| goal.is_met(figure)).collect();
    for (figure, met) in figures.iter().zip(&met) {
        print!("   {figure:<6.2} {:<5}", if *met { "pass" } else { "fail" });
    }
    println!();
    json!({
        "engine": engine, "peak_per_second": peak, "p99_below_ms": p99_below, "p99_above_ms": p99_above,
        "refused_below": below, "refused_after": after, "refused": above, "lost": lost,
        "goodput_relative_to_peak": figures[0], "p99_relative_to_below": figures[1],
        "memory_relative_to_below": figures[2], "normal_after_seconds": figures[3], "goals_met": met, "rounds": rounds,
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
