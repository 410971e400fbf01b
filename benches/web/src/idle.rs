//! The memory of connections that have asked once and stay. They come a thousand a second.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::Duration;

use bench_harness::{Outcome, Server};
use serde_json::json;

use crate::servers;

/// How many connections are opened in a second.
const A_SECOND: usize = 1_000;
/// How long connections are idle before memory is looked at.
const SETTLED: Duration = Duration::from_secs(3);
/// The servers that are compared.
const SERVERS: &[&str] = &["hyper", "nginx", "http-event", "raw-event"];

/// Opens so many connections to each server, and says what its memory has become.
pub(crate) fn run(folder: &Path, connections: usize) -> Outcome<()> {
    bench_harness::more_files()?;
    println!("idle: {connections} connections that have asked once\n");
    println!("{:<12} {:>12} {:>12} {:>18}", "server", "before MB", "with MB", "bytes a connection");
    let mut rows = Vec::new();
    for server in servers::start(SERVERS, folder)? {
        let before = server.memory();
        let open = (0..connections).map(|at| ask_once(&server, at)).collect::<Outcome<Vec<_>>>()?;
        // What gives up its buffers when nothing comes for a while has done so by then.
        std::thread::sleep(SETTLED);
        let with = server.memory();
        let each = with.saturating_sub(before) / connections as u64;
        println!("{:<12} {:>12.1} {:>12.1} {each:>18}", server.name, megabytes(before), megabytes(with));
        rows.push(
            json!({ "server": server.name, "connections": connections, "bytes_before": before, "bytes_with": with }),
        );
        drop(open);
    }
    fs::write("target/bench-web-idle.json", serde_json::to_string_pretty(&rows)?)?;
    println!("\nwritten to target/bench-web-idle.json");
    Ok(())
}

fn ask_once(server: &Server, at: usize) -> Outcome<TcpStream> {
    if at > 0 && at.is_multiple_of(A_SECOND) {
        std::thread::sleep(Duration::from_secs(1));
    }
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
