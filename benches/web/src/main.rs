//! Benchmark of Weir's web servers against nginx, apache2, Jetty 9, Go's `net/http` and a server by hand on hyper, in
//! turns.
//!
//! | case | load |
//! |---|---|
//! | `small` | thesis on Ohua, §2.5: 10,000 files of 512 bytes, uniformly at random, on keep-alive connections |
//! | `specweb` | Flux §4.2: files in the manner of SPECweb99, five requests per connection |
//! | `alone` | the small files with one connection per request: the section mappings of the thesis's §2.5 |
//! | `mappings` | the same section mappings on connections with five requests, beside those with one |
//! | `idle` | the memory of idle connections that have sent one request |
//! | `overload` | requests that compute, by a fixed schedule, below and at three times what the server can answer |
//! | `proxy` | small requests to a proxy before a service that answers each with 512 bytes |
//! | `tls`, `tls-alone` | small answers over TLS 1.3, on keep-alive connections and with one connection per request |
//! | `endless` | small requests beside 16 that compute for ever: latencies, `within`, and the end of the process |
//!
//! Every server has one core, the load generator has another.
//!
//! | server | is |
//! |---|---|
//! | `hyper` | written by hand on hyper, without limits; reads the file for each request; ratios are relative to it |
//! | `hyper-limits` | the same with the limits that Weir keeps |
//! | `nginx+cache` | nginx that keeps files open (`open_file_cache`) and trusts for a minute that they are unchanged |
//! | `http-ENGINE` | `examples/web_server/over_http.weir`; keeps the bytes of files, and checks for each request that they are unchanged |
//! | `reads-ENGINE` | the same, but reads each file for each request, as `hyper` does |
//! | `raw-ENGINE` | `main.weir` on raw sockets |
//! | `proxy-hyper`, `proxy-ENGINE` | a proxy by hand on hyper's client and server, and one of ten lines in Weir; only in the case `proxy` |
//! | `tls-hyper`, `tls-ENGINE` | a server by hand on hyper and tokio-rustls, and a service in Weir; only in the case `tls` |
//! | `map-PLAN`, `kept-PLAN` | `pipeline.weir` and `main.weir` with a plan of `mappings/` |
//!
//! A server that is not installed is visibly skipped.
//!
//! ```sh
//! cargo run --release -p bench-web -- [--case small] [--servers hyper,nginx+cache,http-event] [--rounds 10] [--seconds 1]
//!     [--connections 32] [--idle 10000]
//! ```
//!
//! The program prints a table for each case, and writes `bench-web-CASE.json` into the target directory.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod endless;
mod hand;
mod idle;
mod mappings;
mod overload;
mod proxy;
mod servers;
mod tls;
mod workload;

use std::fs;
use std::path::Path;
use std::time::Duration;

use bench_harness::{BenchResult, LoadOptions, LoadReport, measure, taken};
use workload::{ALONE, SMALL, SPECWEB, WebCase};

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.starts_with(&["--child".into(), "weir".into()]) {
        return servers::weir(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let only = taken(&mut arguments, "--case");
    let chosen = taken(&mut arguments, "--servers");
    let idle = taken(&mut arguments, "--idle").map_or(Ok(10_000), |count| count.parse())?;
    let options = LoadOptions::read(&arguments)?;
    let wants = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for (case, servers) in [(SMALL, servers::KEEPING), (SPECWEB, servers::KEEPING), (ALONE, servers::ALONE)] {
        if wants(case.name) {
            let servers = chosen.as_ref().map_or_else(|| servers.to_vec(), |chosen| chosen.split(',').collect());
            run(&case, &servers, options)?;
        }
    }
    if wants("mappings") {
        in_folder(&SMALL, |folder| mappings::run(folder, options))?;
    }
    if wants("proxy") {
        in_folder(&SMALL, |folder| proxy::run(folder, options))?;
    }
    if wants("tls") {
        in_folder(&SMALL, |folder| tls::run(folder, options))?;
    }
    if wants("endless") {
        in_folder(&SMALL, |folder| endless::run(folder, options))?;
    }
    if wants("overload") {
        in_folder(&SMALL, |folder| overload::run(folder, options))?;
    }
    if wants("idle") { in_folder(&SMALL, |folder| idle::run(folder, idle)) } else { Ok(()) }
}

fn run(case: &WebCase, servers: &[&str], options: LoadOptions) -> BenchResult<()> {
    println!("{}", case.name);
    in_folder(case, |folder| {
        let servers = servers::start(servers, folder)?;
        wait_until_old(folder)?;
        let report = LoadReport {
            cases: vec![measure(case.name, &servers, options, &(case.workload)())?.also_to(servers::LIMITED)],
        };
        report.publish(&format!("bench-web-{}", case.name))
    })
}

/// Waits until the files are old enough: Weir does not trust the modification time of a file that was just written.
fn wait_until_old(folder: &Path) -> BenchResult<()> {
    const AGE: Duration = Duration::from_secs(6);
    let age = fs::metadata(folder.join("pages"))?.modified()?.elapsed()?;
    std::thread::sleep(AGE.saturating_sub(age));
    Ok(())
}

/// Runs an action in a folder with the files of a case.
fn in_folder(case: &WebCase, action: impl FnOnce(&Path) -> BenchResult<()>) -> BenchResult<()> {
    let folder = std::env::temp_dir().join(format!("weir-bench-web-{}-{}", case.name, std::process::id()));
    (case.write)(&folder.join("pages"))?;
    let done = action(&folder);
    fs::remove_dir_all(&folder)?;
    done
}
