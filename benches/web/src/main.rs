//! Weir's web servers against nginx, apache2, Jetty 9, Go's `net/http` and a server written by hand on hyper, in turns, in
//! one run.
//!
//! | case | load |
//! |---|---|
//! | `small` | thesis on Ohua, §2.5: 10,000 files of 512 bytes, uniformly at random, on connections that are kept |
//! | `specweb` | Flux §4.2: files in the manner of SPECweb99, five requests a connection |
//! | `alone` | the small files with a connection for each request: the section mappings of the thesis's §2.5 |
//! | `idle` | the memory of connections that have asked once and stay |
//!
//! Every server has one core, the load has another. The peer that ratios are taken to is the server written by hand on
//! hyper, which reads the file for each request and is bare; `hyper-limits` is the same with the limits that Weir keeps; `nginx+cache` keeps open files (`open_file_cache`) and believes for a minute
//! that they are unchanged; Weir keeps the bytes, and asks each time whether the file is unchanged. `reads-event` keeps none,
//! and does the same work as the server by hand.
//! `http-ENGINE` is `examples/web_server/over_http.weir`, `raw-ENGINE` is `main.weir` on raw sockets, `map-PLAN` is
//! `pipeline.weir` with a plan of `mappings/`. What is not installed is visibly skipped.
//!
//! ```sh
//! cargo run --release -p bench-web -- [--case small] [--servers hyper,nginx+cache,http-event] [--rounds 10] [--seconds 1]
//!     [--connections 32] [--idle 10000]
//! ```
//!
//! It prints a table for each case and writes `bench-web-CASE.json` into the target directory.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod hand;
mod idle;
mod servers;
mod workload;

use std::fs;
use std::path::Path;
use std::time::Duration;

use bench_harness::{Options, Outcome, Report, measure, taken};
use workload::{ALONE, Case, SMALL, SPECWEB};

fn main() -> Outcome<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let only = taken(&mut arguments, "--case");
    let chosen = taken(&mut arguments, "--servers");
    let idle = taken(&mut arguments, "--idle").map_or(Ok(10_000), |count| count.parse())?;
    let options = Options::read(&arguments)?;
    let wants = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for (case, servers) in [(SMALL, servers::KEEPING), (SPECWEB, servers::KEEPING), (ALONE, servers::ALONE)] {
        if wants(case.name) {
            let servers = chosen.as_ref().map_or_else(|| servers.to_vec(), |chosen| chosen.split(',').collect());
            run(&case, &servers, options)?;
        }
    }
    if wants("idle") { in_folder(&SMALL, |folder| idle::run(folder, idle)) } else { Ok(()) }
}

fn run(case: &Case, servers: &[&str], options: Options) -> Outcome<()> {
    println!("{}", case.name);
    in_folder(case, |folder| {
        let servers = servers::start(servers, folder)?;
        wait_until_old(folder)?;
        let report = Report {
            cases: vec![measure(case.name, &servers, options, &(case.workload)())?.also_to(servers::LIMITED)],
        };
        report.publish(&format!("bench-web-{}", case.name))
    })
}

/// Waits until the files have lain for a while, as they have where servers run: Weir believes no file to be unchanged that
/// is young.
fn wait_until_old(folder: &Path) -> Outcome<()> {
    const AGE: Duration = Duration::from_secs(6);
    let age = fs::metadata(folder.join("pages"))?.modified()?.elapsed()?;
    std::thread::sleep(AGE.saturating_sub(age));
    Ok(())
}

/// Does something in a folder with the files of a case.
fn in_folder(case: &Case, action: impl FnOnce(&Path) -> Outcome<()>) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("weir-bench-web-{}-{}", case.name, std::process::id()));
    (case.write)(&folder.join("pages"))?;
    let done = action(&folder);
    fs::remove_dir_all(&folder)?;
    done
}
