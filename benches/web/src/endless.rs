//! Small requests beside requests that compute for ever, under each engine: latencies, time limits and the end.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_harness::{BenchResult, Load, LoadOptions, LoadSample, ServerProcess, Workload, free_port, results};
use serde_json::json;

/// The number of requests that compute for ever.
const ENDLESS: usize = 16;
/// The number of requests whose computation has a limit of 50 ms.
const LIMITED: usize = 20;
/// The engines that are compared.
const ENGINES: &[&str] = &["event", "pool", "staged", "elastic", "manual"];

/// The drain timeout of the plan is one second.
const PLAN: &str = "drain_timeout = \"1s\"\n";
const PROGRAM: &str = r#"use http

fn rounds() -> Int {
  loop i = 0 { i + 1 } until i < 0 at most 1_000_000_000
}

service endless on http(port: 8081, answer_timeout: 1h) {
  get "/hit" { http.text("hit") }
  get "/endless" {
    let i = loop i = 0 { i + rounds() } until i < 0 at most 1_000_000_000
    http.text("{i}")
  }
  get "/limited" {
    let i = rounds() within 50ms else { -1 }
    http.text("{i}")
  }
}
"#;

/// Measures each engine, alone and beside the requests that compute for ever.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    println!(
        "endless: hits of {} clients beside {ENDLESS} requests that compute for ever, on two threads; milliseconds\n",
        options.connections
    );
    println!(
        "{:<10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "engine", "alone p99", "p50", "p99", "hits/s", "50 ms limit", "end (1 s)"
    );
    let load = Load::new(options.connections)?;
    let mut rows = Vec::new();
    for engine in ENGINES {
        let server = start(engine, folder)?;
        let alone = hits(&load, &server, options)?;
        let endless = (0..ENDLESS).map(|_| ask(&server, "/endless")).collect::<BenchResult<Vec<_>>>()?;
        let beside = hits(&load, &server, options)?;
        let limited = (0..LIMITED).map(|_| limited(&server)).collect::<BenchResult<Vec<_>>>()?;
        let limited = limited.into_iter().max().unwrap_or_default();
        let end = server.terminate()?;
        drop(endless);
        let row = [ms(alone.p99_ns), ms(beside.p50_ns), ms(beside.p99_ns)];
        let (limited, end) = (1_000.0 * limited.as_secs_f64(), 1_000.0 * end.as_secs_f64());
        let rate = beside.requests_per_second;
        println!(
            "{engine:<10} {:>10.2} {:>10.2} {:>10.2} {rate:>10.0} {limited:>12.1} {end:>12.0}",
            row[0], row[1], row[2]
        );
        rows.push(json!({
            "engine": engine, "connections": options.connections, "alone_p99_ms": row[0], "p50_ms": row[1], "p99_ms": row[2], "requests_per_second": rate,
            "limit_of_50_ms_max_ms": limited, "end_after_1_s_ms": end,
        }));
    }
    println!();
    results::publish("bench-web-endless", &rows.into())
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn start(engine: &str, folder: &Path) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let (file, plan) = (folder.join(format!("endless-{engine}.weir")), folder.join("endless.plan.toml"));
    fs::write(&file, PROGRAM.replace("8081", &port.to_string()))?;
    fs::write(&plan, PLAN)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", "weir", "run"]).arg(&file).arg("--plan").arg(&plan);
    command.args(["--engine", engine, "--threads", "2"]);
    ServerProcess::start_on_two_cores(engine, &mut command, port)
}

fn hits(load: &Load, server: &ServerProcess, options: LoadOptions) -> BenchResult<LoadSample> {
    let hit = Workload::kept(Arc::new(|_, path: &mut String| path.push_str("/hit")));
    load.run(server, options.seconds, 0, &hit)
}

/// Sends a request, and does not wait for its answer.
fn ask(server: &ServerProcess, path: &str) -> BenchResult<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
    Ok(stream)
}

/// Returns the time until the answer to a request whose computation has a limit of 50 ms.
fn limited(server: &ServerProcess) -> BenchResult<Duration> {
    let begin = Instant::now();
    let mut stream = ask(server, "/limited")?;
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer)?;
    if !answer[..length].starts_with(b"HTTP/1.1 200") {
        return Err("a request with a limit was not answered".into());
    }
    Ok(begin.elapsed())
}
