//! Benchmark of Weir's image server under both engines against a server by hand on hyper, in turns.
//!
//! The load is that of Flux §5.1: five images in eight sizes, uniformly at random. Hits and misses are separate cases:
//! for hits, every size has been requested before; for misses, the caches have no room. Servers are child processes on
//! one core, the load generator has another. Each round measures every server in turn, and ratios are taken within a
//! round.
//!
//! `hand` has no limits but hyper's for the time of a head. `hand-limits` is the same server with the limits that Weir
//! keeps by default (`harness/src/by_hand.rs` lists them), as a server on the internet needs them.
//!
//! ```sh
//! cargo run --release -p bench-image-server -- [--case hits] [--rounds 20] [--seconds 1] [--connections 16]
//! ```
//!
//! The program prints a table, and writes `bench-image-server.json` into the target directory.

mod hand;
mod pictures;
mod servers;

use std::path::Path;
use std::sync::Arc;

use bench_harness::{
    BenchResult, Load, LoadCase, LoadOptions, LoadReport, RequestWriter, ServerProcess, Workload, measure, taken,
};

/// The cases and the capacities of their caches.
const CASES: [(&str, &str); 2] = [("hits", "64mb"), ("misses", "0kb")];

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let only = taken(&mut arguments, "--case");
    let options = LoadOptions::read(&arguments)?;
    let folder = std::env::temp_dir().join(format!("weir-bench-image-server-{}", std::process::id()));
    pictures::write(&folder)?;
    let wanted = CASES.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let cases = wanted.map(|(name, capacity)| case(name, capacity, options, &folder)).collect::<BenchResult<_>>();
    std::fs::remove_dir_all(&folder)?;
    LoadReport { cases: cases? }.publish("bench-image-server")
}

fn case(name: &str, capacity: &str, options: LoadOptions, folder: &Path) -> BenchResult<LoadCase> {
    let servers = servers::start(capacity, folder)?;
    same_answers(&Load::new(options.connections)?, &servers)?;
    let request: RequestWriter = Arc::new(|random, path| {
        let image = pictures::NAMES[random as usize % pictures::NAMES.len()];
        let scale = (random >> 32) % 8 + 1;
        path.push_str(&pictures::path(image, scale));
    });
    Ok(measure(name, &servers, options, &Workload::kept(request))?.also_to(servers::LIMITED))
}

/// Requests everything from every server, which also fills the caches, and compares the answers.
fn same_answers(load: &Load, servers: &[ServerProcess]) -> BenchResult<()> {
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
