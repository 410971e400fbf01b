//! Memory of idle connections, which have sent one request and stay open.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bench_harness::{BenchResult, ServerProcess, results};
use serde_json::json;

use crate::servers;

/// The time between two new connections.
const APART: Duration = Duration::from_millis(1);
/// The least time for which connections are idle before memory is measured: servers release buffers once per second.
const IDLE: Duration = Duration::from_secs(1);
/// The time after which memory that still changes is taken as it is.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// The servers that are compared.
const SERVERS: &[&str] = &["hyper", "nginx", "http-event", "raw-event"];

/// Opens connections to each server, and prints its memory before and after.
pub(crate) fn run(folder: &Path, connections: usize) -> BenchResult<()> {
    bench_harness::more_files()?;
    println!("idle: {connections} connections that have asked once\n");
    println!("{:<12} {:>12} {:>12} {:>18}", "server", "before MB", "with MB", "bytes a connection");
    let mut rows = Vec::new();
    for server in servers::start(SERVERS, folder)? {
        let before = server.memory();
        let begin = Instant::now();
        let open = (0..connections as u32).map(|at| {
            wait_until(begin + APART * at);
            ask_once(&server)
        });
        let open = open.collect::<BenchResult<Vec<_>>>()?;
        let with = settled(&server);
        let each = with.saturating_sub(before) / connections as u64;
        println!("{:<12} {:>12.1} {:>12.1} {each:>18}", server.name, megabytes(before), megabytes(with));
        rows.push(
            json!({ "server": server.name, "connections": connections, "bytes_before": before, "bytes_with": with }),
        );
        drop(open);
    }
    println!();
    results::publish("bench-web-idle", &rows.into())
}

/// Returns the memory of a server with idle connections, once it does not change any more.
fn settled(server: &ServerProcess) -> u64 {
    let begin = Instant::now();
    let mut before = 0;
    loop {
        wait_until(Instant::now() + IDLE);
        let now = server.memory();
        if now == before || begin.elapsed() > IDLE_MAX {
            return now;
        }
        before = now;
    }
}

fn wait_until(due: Instant) {
    while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

fn ask_once(server: &ServerProcess) -> BenchResult<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
    stream.write_all(b"GET /1.html HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    if !answer[..length].starts_with(b"HTTP/1.1 200") {
        return Err(format!("{} did not answer with a page", server.name).into());
    }
    Ok(stream)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
