//! Swerve in its three styles (lock-step, read-ahead alone, asynchronous events) beside apache2's event module: under
//! httperf at rising rates, and under clients that read slowly.
//!
//! ```sh
//! cargo run --release -p bench-swerve -- [--seconds 3] [--rates 500,1000,2000,4000,8000]
//! ```
//!
//! The first table is the measurement of *Composable Asynchronous Events*, §6: a rate of requests is offered, each on a
//! connection of its own, for a small and for a medium file; httperf says how many were answered, and how late. The second
//! is what the paper names as the trouble of the lock-step between file and network: clients that take their time. The
//! third is what it says of simple buffers: a timeout stands behind the chunks that were read ahead. `--rates ,` leaves the
//! first out.
//!
//! Servers are child processes on one core and the load is on another. It prints tables and writes
//! `bench-swerve.json` in the target directory; what is not installed is skipped and named.
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod httperf;
mod servers;
mod slow;

use std::path::Path;
use std::time::Duration;

use bench_harness::{BenchResult, ServerProcess, results};
use serde_json::{Value, json};

/// A small and a medium file: name and bytes.
const FILES: [(&str, usize); 2] = [("small", 1_000), ("medium", 50_000)];
/// The file that slow clients request: as long as Swerve's read-ahead at most.
const SLOW_FILE: (&str, usize) = ("slow", 1024 * 1024);
/// The file of a request that takes too long, and its time limit.
const LONG_FILE: (&str, usize) = ("long", 32 * 1024 * 1024);
const SHORT_LIMIT: Duration = Duration::from_millis(500);
/// Slow clients at a time: as many as Swerve has threads for connections.
const SLOW_CLIENTS: usize = servers::CONNECTIONS;

/// Options of the command line.
struct SwerveOptions {
    /// Duration of each rate.
    seconds: f64,
    /// Requests offered per second.
    rates: Vec<u32>,
}

impl SwerveOptions {
    fn read(arguments: &[String]) -> BenchResult<Self> {
        let mut options = SwerveOptions { seconds: 3.0, rates: vec![500, 1000, 2000, 4000, 8000] };
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--rates" => {
                    options.rates =
                        value.split(',').filter(|rate| !rate.is_empty()).map(str::parse).collect::<Result<_, _>>()?;
                }
                other => return Err(format!("unknown: {}", other.join(" ")).into()),
            }
        }
        Ok(options)
    }
}

fn main() -> BenchResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let options = SwerveOptions::read(&arguments)?;
    let folder = std::env::temp_dir().join(format!("weir-bench-swerve-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("files"))?;
    let measured = measure(&options, &folder);
    std::fs::remove_dir_all(&folder)?;
    results::publish("bench-swerve", &measured?)
}

fn measure(options: &SwerveOptions, folder: &Path) -> BenchResult<Value> {
    for (name, bytes) in FILES.iter().chain([&SLOW_FILE, &LONG_FILE]) {
        std::fs::write(folder.join("files").join(name), vec![b'x'; *bytes])?;
    }
    let servers = servers::start(folder)?;
    bench_harness::pin(1);
    let (rising, slow) = (rising(options, &servers)?, slow_clients(options, &servers)?);
    drop(servers);
    Ok(json!({ "httperf": rising, "slow_clients": slow, "timeouts": timeouts(folder)? }))
}

/// Every rate for every file against every server, the servers in turns.
fn rising(options: &SwerveOptions, servers: &[ServerProcess]) -> BenchResult<Vec<Value>> {
    if !httperf::is_installed() {
        println!("httperf skipped: install it to measure at rising rates");
        return Ok(Vec::new());
    }
    println!(
        "{:<7} {:>8}  {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}  errors, of them never asked",
        "file", "offered", "server", "replied", "mean ms", "p50 ms", "p99 ms", "cpu us"
    );
    let mut rows = Vec::new();
    for file in FILES {
        for rate in &options.rates {
            for server in servers {
                match one_rate(file, *rate, options.seconds, server) {
                    Ok(row) => rows.push(row),
                    Err(error) => println!("{:<7} {rate:>8}  {:<8} {error}", file.0, server.name),
                }
            }
        }
    }
    Ok(rows)
}

/// One rate for one file against one server.
fn one_rate((file, bytes): (&str, usize), rate: u32, seconds: f64, server: &ServerProcess) -> BenchResult<Value> {
    let before = server.cpu_time();
    let httperf::Met { replies, replies_per_second, mean_ms, median_ms, slowest_hundredth_ms: p99_ms, errors, unasked } =
        httperf::run(server.port, file, rate, seconds)?;
    let taken = server.cpu_time().saturating_sub(before);
    let cpu_us = taken.as_secs_f64() * 1e6 / replies.max(1.0);
    println!(
        "{file:<7} {rate:>8}  {:<8} {replies_per_second:>9.0} {mean_ms:>9.2} {median_ms:>9.2} {p99_ms:>9.2} {cpu_us:>9.0}  {errors} {unasked}",
        server.name
    );
    Ok(json!({
        "file_bytes": bytes, "offered_per_second": rate, "server": server.name,
        "replies_per_second": replies_per_second, "mean_ms": mean_ms, "p50_ms": median_ms, "p99_ms": p99_ms,
        "processor_us_per_reply": cpu_us, "errors": errors, "never_asked": unasked,
    }))
}

/// As many clients as there are threads for connections, each of which reads a piece and then waits.
fn slow_clients(options: &SwerveOptions, servers: &[ServerProcess]) -> BenchResult<Vec<Value>> {
    let (file, bytes) = SLOW_FILE;
    println!(
        "\n{SLOW_CLIENTS} clients that take {} KiB every {:?}, files of {} KiB",
        slow::PIECE_BYTES / 1024,
        slow::PAUSE,
        bytes / 1024
    );
    let mut rows = Vec::new();
    for server in servers {
        let seconds = Duration::from_secs_f64(options.seconds);
        let answers = slow::answers_per_second(server.port, file, SLOW_CLIENTS, seconds)?;
        println!("{:<8} {answers:>9.0} files per second", server.name);
        rows.push(json!({ "server": server.name, "files_per_second": answers }));
    }
    Ok(rows)
}

/// Bytes that a slow client still receives after its time limit has expired.
fn timeouts(folder: &Path) -> BenchResult<Vec<Value>> {
    println!(
        "\na client that takes too long: bytes after its time limit of {SHORT_LIMIT:?}, the system's buffers included"
    );
    let mut rows = Vec::new();
    for server in servers::start_styles(folder, SHORT_LIMIT)? {
        let bytes = slow::bytes_after(server.port, LONG_FILE.0, SHORT_LIMIT)?;
        println!("{:<8} {bytes:>9} bytes", server.name);
        rows.push(json!({ "server": server.name, "bytes": bytes }));
    }
    Ok(rows)
}
