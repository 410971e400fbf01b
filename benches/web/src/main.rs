//! Weir's web servers on small files against nginx and a server written by hand on hyper, in turns, in one run.
//!
//! The load is that of the thesis on Ohua (§2.5): 10,000 files of 512 bytes, chosen uniformly at random. Every server has
//! one core, the load has another. The peer that ratios are taken to is the server written by hand on hyper, which reads
//! the file for each request, as all of them do; `nginx+cache` keeps open files (`open_file_cache`).
//!
//! | server | is |
//! |---|---|
//! | `hyper` | hyper by hand, the file read on the event loop |
//! | `nginx`, `nginx+cache` | one worker; visibly skipped where nginx is not installed |
//! | `http-ENGINE` | `examples/web_server/over_http.weir` |
//! | `raw-ENGINE` | `examples/web_server/main.weir`, on raw sockets |
//! | `pipeline-ENGINE` | `examples/web_server/pipeline.weir`, for one request a connection |
//! | `acpt-req` and others | the same under the section mappings in `examples/web_server/mappings` (Figures 2.16 and 2.20) |
//!
//! The last two are measured in a case of their own, `closing`, in which every client opens a connection for each request.
//!
//! ```sh
//! cargo run --release -p bench-web -- [--rounds 10] [--seconds 1] [--connections 32]
//! ```
//!
//! It prints a table and writes `target/bench-web.json`.

mod hand;
mod servers;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bench_harness::{Kept, Options, Outcome, Report, Request, measure};

/// How many files there are.
const FILES: u64 = 10_000;
/// How long each is, in bytes.
const FILE_BYTES: usize = 512;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let options = Options::read(&arguments)?;
    let folder = std::env::temp_dir().join(format!("weir-bench-web-{}", std::process::id()));
    write_files(&folder.join("pages"))?;
    let report = run(options, &folder);
    fs::remove_dir_all(&folder)?;
    report?.publish("bench-web")
}

fn write_files(folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    for number in 0..FILES {
        let text = format!("{number:08} ").repeat(FILE_BYTES);
        fs::write(folder.join(format!("{number}.html")), &text[..FILE_BYTES])?;
    }
    Ok(())
}

fn run(options: Options, folder: &Path) -> Outcome<Report> {
    let request: Request = Arc::new(|random, path| {
        use std::fmt::Write;
        // Writing to a `String` cannot fail.
        _ = write!(path, "/{}.html", random % FILES);
    });
    let kept = measure("512 bytes", &servers::keeping(folder)?, options, &request)?;
    let one = Options { kept: Kept::ForOne, ..options };
    let pipelines = measure("closing", &servers::pipelines(folder)?, one, &request)?;
    Ok(Report { cases: vec![kept, pipelines] })
}
