//! Small requests of a service beside requests whose rounds run on several cores: their latencies, and what a saturated service
//! answers, with and without `parallel = "off"`, and the latencies without such requests.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bench_harness::{BenchResult, Load, Schedule, ServerProcess, Workload, free_port, median};
use serde_json::{Map, Value as Json, json};
use test_support::flows::options;
use weir_runtime::Options;

use crate::program::compiled;

/// A small request computes for some microseconds, a large one for some 20 ms.
const PROGRAM: &str = "\
use bench, http, list

service beside on http(port: PORT) {
  get \"/small\" { http.text(\"{bench.work(1, 2000)}\") }
  get \"/large\" {
    let numbers = list.numbers(0, 10000)?
    let results = for n in numbers { bench.work(n, 2000) }
    http.text(\"{results.length()}\")
  }
}
";

/// The name of the case.
const CASE: &str = "small requests beside large ones";
/// The small requests per second where the service is not saturated.
const RATE: f64 = 2_000.0;
/// The connections that saturate the service.
const CONNECTIONS: usize = 16;
/// The number of requests of which one is large where the service is saturated.
const MIX: u64 = 1_000;
/// The duration of each measurement in seconds.
const SECONDS: f64 = 2.0;
/// The time at the beginning of a measurement that does not count.
const TRANSIENT: Duration = Duration::from_millis(200);
/// The time after which an answer is too late.
const DEADLINE: Duration = Duration::from_secs(1);

/// A server of this program, as a child process: the arguments behind the program's name.
pub(crate) fn serve(arguments: &[String]) -> BenchResult<()> {
    let [engine, parallel, port] = arguments else { return Err("the engine, the rule of forks and the port".into()) };
    let plan = format!("engine = {engine:?}\nparallel = {parallel:?}\n");
    let (graph, library, plan) = compiled(&PROGRAM.replace("PORT", port), &plan, None)?;
    let options = Options { plan, ..options(engine, 2) };
    weir_runtime::start(&graph, &library, options)?.wait().map_err(|failure| failure.message.to_string())?;
    Ok(())
}

fn start(engine: &str, parallel: &str) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--serve", engine, parallel, &port.to_string()]);
    ServerProcess::start_on_two_cores(parallel, &mut command, port)
}

/// Runs something while large requests follow one another on a connection; returns their number per second, too.
fn beside_large<R>(server: &ServerProcess, run: impl FnOnce() -> BenchResult<R>) -> BenchResult<(R, f64)> {
    let (over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut answers = BufReader::new(stream.try_clone().ok()?);
            while !over.load(Ordering::Relaxed) {
                stream.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
                // The body, `10000`, follows the empty line.
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    answers.read_line(&mut line).ok().filter(|length| *length > 0)?;
                }
                std::io::Read::read_exact(&mut answers, &mut [0; 5]).ok()?;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Some(())
        });
        let result = run();
        over.store(true, Ordering::Relaxed);
        Ok((result?, answered.load(Ordering::Relaxed) as f64 / SECONDS))
    })
}

/// The figures of one server in one round.
#[derive(Clone, Copy)]
struct BesideSample {
    /// The 99th percentile of the latencies of small requests without large ones, and beside them, in milliseconds.
    alone_p99: f64,
    beside_p99: f64,
    /// Large requests per second meanwhile.
    large: f64,
    /// Requests per second that saturate the service, of which one in [`MIX`] is large, and the 99th percentile of their
    /// latencies in milliseconds.
    saturated: f64,
    saturated_p99: f64,
    /// The processor time of the service for each of them, in microseconds.
    saturated_cpu: f64,
}

fn sample(server: &ServerProcess, round: usize) -> BenchResult<BesideSample> {
    // The load generator pins its thread.
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let load = Load::new(CONNECTIONS).map_err(|error| error.to_string())?;
            measure_with(&load, server, round as u64).map_err(|error| error.to_string())
        });
        Ok(thread.join().map_err(|_| "the load generator has panicked")??)
    })
}

fn measure_with(load: &Load, server: &ServerProcess, seed: u64) -> BenchResult<BesideSample> {
    let schedule = Schedule {
        path: "/small",
        rate: RATE,
        seconds: SECONDS,
        transient: TRANSIENT,
        deadline: DEADLINE,
        normally_late: 0.0,
    };
    let alone = load.run_open(server, schedule)?;
    let (beside, large) = beside_large(server, || load.run_open(server, schedule))?;
    let mixed = |random: u64, path: &mut String| {
        path.push_str(if random.is_multiple_of(MIX) { "/large" } else { "/small" });
    };
    let saturated = load.run(server, SECONDS, seed, &Workload::kept(Arc::new(mixed)))?;
    Ok(BesideSample {
        alone_p99: alone.p99_ns as f64 / 1e6,
        beside_p99: beside.p99_ns as f64 / 1e6,
        large,
        saturated: saturated.requests_per_second,
        saturated_p99: saturated.p99_ns as f64 / 1e6,
        saturated_cpu: saturated.cpu_ns / 1e3,
    })
}

/// Measures the case, if its name begins so, and adds its figures to `all`.
pub(crate) fn measure(beginning: &str, rounds: usize, all: &mut Map<String, Json>) -> BenchResult<()> {
    if !CASE.starts_with(beginning) {
        return Ok(());
    }
    let servers = [start("event", "auto")?, start("event", "off")?];
    let mut samples: [Vec<BesideSample>; 2] = Default::default();
    for round in 0..rounds {
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            samples[at].push(sample(&servers[at], round)?);
        }
    }
    println!("{CASE}");
    let mut figures = Map::new();
    let mut row = |name: &str, figure: &dyn Fn(BesideSample) -> f64| {
        let [on, off] =
            samples.each_ref().map(|samples| samples.iter().map(|sample| figure(*sample)).collect::<Vec<_>>());
        let ratio = median(on.iter().zip(&off).map(|(on, off)| on / off).collect());
        println!("  {name:<44} {:>9.3}, off {:>9.3}, ratio {ratio:.3}", median(on.clone()), median(off.clone()));
        figures.insert(name.into(), json!({ "auto": on, "off": off, "ratio": ratio }));
    };
    row("p99 without large requests, ms", &|sample| sample.alone_p99);
    row("p99 beside large requests, ms", &|sample| sample.beside_p99);
    row("p99 beside, relative to without", &|sample| sample.beside_p99 / sample.alone_p99);
    row("large requests per second", &|sample| sample.large);
    row("requests per second, saturated", &|sample| sample.saturated);
    row("p99, saturated, ms", &|sample| sample.saturated_p99);
    row("processor time, saturated, us per request", &|sample| sample.saturated_cpu);
    all.insert(CASE.into(), Json::Object(figures));
    Ok(())
}
