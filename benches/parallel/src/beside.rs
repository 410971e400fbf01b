//! Small requests of a service beside requests whose rounds run on several cores: their latencies, and what a saturated service
//! answers, with and without `parallel = "off"`, and the latencies without such requests.
//!
//! Other work on the machine delays small requests by more than what is measured. Under `chrt -f 20` the load generator runs
//! before the servers, which then have priority 10, and both run before everything else.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench_harness::{BenchResult, Load, LoadSample, ServerProcess, Workload, free_port, median, random};
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
/// The clients that send them.
const CLIENTS: u64 = 8;
/// The connections that saturate the service.
const CONNECTIONS: usize = 16;
/// The number of requests of which one is large where the service is saturated.
const MIX: u64 = 1_000;
/// The duration of each measurement in seconds.
const SECONDS: f64 = 2.0;
/// The seconds at the beginning of a measurement that do not count.
const TRANSIENT: f64 = 0.2;

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
    let mut command = Command::new(if is_real_time() { "chrt" } else { "env" });
    command.args(if is_real_time() { &["-f", "10"][..] } else { &[] }).arg(std::env::current_exe()?);
    command.args(["--serve", engine, parallel, &port.to_string()]);
    ServerProcess::start_on_two_cores(parallel, &mut command, port)
}

/// Returns true if this process runs under `chrt -f`: field 41 of its state, behind its name in parentheses, is its policy.
fn is_real_time() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.split_whitespace().nth(38) == Some("1"))
}

/// A connection of a client.
struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Client {
    fn connect(server: &ServerProcess) -> std::io::Result<Client> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
        stream.set_nodelay(true)?;
        Ok(Client { answers: BufReader::new(stream.try_clone()?), stream })
    }

    /// Sends a request and reads its answer.
    fn ask(&mut self, path: &str) -> std::io::Result<()> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let field = line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            length = field.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(length);
        }
        self.answers.read_exact(&mut vec![0; length])
    }

    /// Sends small requests at random times, and returns their latencies from these times on, in milliseconds.
    fn ask_at_random(mut self, client: u64) -> std::io::Result<Vec<f64>> {
        let (begin, mut state, mut at) = (Instant::now(), client, 0.0);
        let mut latencies = Vec::new();
        while at < SECONDS {
            let uniform = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
            at -= (1.0 - uniform).ln() * CLIENTS as f64 / RATE;
            let due = begin + Duration::from_secs_f64(at);
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
            self.ask("/small")?;
            if at > TRANSIENT {
                latencies.push(due.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(latencies)
    }
}

/// Returns the 99th percentile of the latencies of small requests, in milliseconds.
fn p99_of_small(server: &ServerProcess) -> BenchResult<f64> {
    let clients = (0..CLIENTS).map(|_| Client::connect(server)).collect::<Result<Vec<_>, _>>()?;
    let mut latencies = thread::scope(|scope| {
        let threads = (0..).zip(clients).map(|(number, client)| scope.spawn(move || client.ask_at_random(number)));
        let threads: Vec<_> = threads.collect();
        let mut latencies = Vec::new();
        for thread in threads {
            latencies.extend(thread.join().map_err(|_| "a client has panicked")??);
        }
        Ok::<_, Box<dyn std::error::Error>>(latencies)
    })?;
    latencies.sort_by(f64::total_cmp);
    latencies.get(latencies.len() * 99 / 100).copied().ok_or_else(|| "no request was answered".into())
}

/// Runs something while large requests follow one another on a connection; returns their number per second, too.
fn beside_large<R>(server: &ServerProcess, run: impl FnOnce() -> BenchResult<R>) -> BenchResult<(R, f64)> {
    let (over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut client = Client::connect(server)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                client.ask("/large")?;
                answered.fetch_add(1, Ordering::Relaxed);
                // Linux stops threads under `chrt -f` that compute for 950 ms of a second.
                thread::park_timeout(begin.elapsed() / 5);
            }
            Ok::<_, std::io::Error>(())
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
    let alone_p99 = p99_of_small(server)?;
    let (beside_p99, large) = beside_large(server, || p99_of_small(server))?;
    // The load generator pins its thread.
    let saturated = thread::scope(|scope| {
        let thread = scope.spawn(|| saturate(server, round as u64).map_err(|error| error.to_string()));
        thread.join().map_err(|_| "the load generator has panicked")
    })??;
    Ok(BesideSample {
        alone_p99,
        beside_p99,
        large,
        saturated: saturated.requests_per_second,
        saturated_p99: saturated.p99_ns as f64 / 1e6,
        saturated_cpu: saturated.cpu_ns / 1e3,
    })
}

fn saturate(server: &ServerProcess, seed: u64) -> BenchResult<LoadSample> {
    let mixed = |random: u64, path: &mut String| {
        path.push_str(if random.is_multiple_of(MIX) { "/large" } else { "/small" });
    };
    Load::new(CONNECTIONS)?.run(server, SECONDS, seed, &Workload::kept(Arc::new(mixed)))
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
