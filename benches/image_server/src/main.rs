//! Weir's image server under both engines against one written by hand on hyper, in turns, in one run.
//!
//! The load is that of Flux §5.1: five images in eight sizes, uniformly at random. Hits and misses are measured apart:
//! for hits every size has been asked for before; for misses the caches are given no room. Servers are child processes on
//! one core, the load is on another; each round asks every server in turn, and ratios are taken within a round.
//!
//! ```sh
//! cargo run --release -p bench-image-server -- [--rounds 20] [--seconds 1] [--connections 16]
//! ```
//!
//! It prints a table and writes `target/bench-image-server.json`.

mod hand;
mod pictures;
mod servers;

use std::path::Path;
use std::sync::Arc;

use bench_harness::{Case, Load, Options, Outcome, Report, Request, Server, Workload, measure};

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let options = Options::read(&arguments)?;
    let folder = std::env::temp_dir().join(format!("weir-bench-image-server-{}", std::process::id()));
    pictures::write(&folder)?;
    let report = cases(options, &folder);
    std::fs::remove_dir_all(&folder)?;
    report?.publish("bench-image-server")
}

fn cases(options: Options, folder: &Path) -> Outcome<Report> {
    Ok(Report { cases: vec![case("hits", "64mb", options, folder)?, case("misses", "0kb", options, folder)?] })
}

fn case(name: &str, capacity: &str, options: Options, folder: &Path) -> Outcome<Case> {
    let servers = servers::start(capacity, folder)?;
    same_answers(&Load::new(options.connections)?, &servers)?;
    let request: Request = Arc::new(|random, path| {
        let image = pictures::NAMES[random as usize % pictures::NAMES.len()];
        let scale = (random >> 32) % 8 + 1;
        path.push_str(&pictures::path(image, scale));
    });
    measure(name, &servers, options, &Workload::kept(request))
}

/// Asks every server for everything, which also fills the caches, and compares the answers.
fn same_answers(load: &Load, servers: &[Server]) -> Outcome<()> {
    let paths: Vec<String> =
        pictures::NAMES.iter().flat_map(|image| (1..=8).map(|scale| pictures::path(image, scale))).collect();
    let first = load.bodies(&servers[0], &paths)?;
    for server in &servers[1..] {
        if load.bodies(server, &paths)? != first {
            return Err(format!("{} and {} answer differently", servers[0].name, server.name).into());
        }
    }
    Ok(())
}
