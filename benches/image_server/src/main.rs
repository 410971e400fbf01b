//! Weir's image server under both engines against one written by hand on hyper, in turns, in one run.
//!
//! The load is that of Flux §5.1: five images in eight sizes, uniformly at random. Hits and misses are measured apart:
//! for hits every size has been asked for before; for misses the caches are given no room. Servers are child processes on
//! one core, the load is on another; each round asks every server in turn, and ratios are taken within a round.
//!
//! `hand` is bare: it answers, and has no limit but hyper's for the time of a head. `hand-limits` is the same server with the
//! limits that Weir keeps where nothing is said (`harness/src/by_hand.rs` lists them), as one puts them before the internet.
//!
//! ```sh
//! cargo run --release -p bench-image-server -- [--case hits] [--rounds 20] [--seconds 1] [--connections 16]
//! ```
//!
//! It prints a table and writes `bench-image-server.json` into the target directory.

mod hand;
mod pictures;
mod servers;

use std::path::Path;
use std::sync::Arc;

use bench_harness::{Case, Load, Options, Outcome, Report, Request, Server, Workload, measure, taken};

/// The cases, with the capacity of the caches.
const CASES: [(&str, &str); 2] = [("hits", "64mb"), ("misses", "0kb")];

fn main() -> Outcome<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let only = taken(&mut arguments, "--case");
    let options = Options::read(&arguments)?;
    let folder = std::env::temp_dir().join(format!("weir-bench-image-server-{}", std::process::id()));
    pictures::write(&folder)?;
    let wanted = CASES.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let cases = wanted.map(|(name, capacity)| case(name, capacity, options, &folder)).collect::<Outcome<_>>();
    std::fs::remove_dir_all(&folder)?;
    Report { cases: cases? }.publish("bench-image-server")
}

fn case(name: &str, capacity: &str, options: Options, folder: &Path) -> Outcome<Case> {
    let servers = servers::start(capacity, folder)?;
    same_answers(&Load::new(options.connections)?, &servers)?;
    let request: Request = Arc::new(|random, path| {
        let image = pictures::NAMES[random as usize % pictures::NAMES.len()];
        let scale = (random >> 32) % 8 + 1;
        path.push_str(&pictures::path(image, scale));
    });
    Ok(measure(name, &servers, options, &Workload::kept(request))?.also_to(servers::LIMITED))
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
