//! The servers of the benchmark, child processes of this program.

use std::path::Path;
use std::process::Command;

use bench_harness::{BenchResult, ServerProcess, free_port};

use crate::hand;

/// Weir's image server. The capacity of its cache and its port are replaced.
const PROGRAM: &str = include_str!("../../../examples/image_server/main.weir");
/// The name of the peer.
const HAND: &str = "hand";
/// The name of the peer with the limits that Weir keeps.
pub(crate) const LIMITED: &str = "hand-limits";

/// Starts all servers, the peer first, with caches of this capacity, on the pictures in `folder`.
pub(crate) fn start(capacity: &str, folder: &Path) -> BenchResult<Vec<ServerProcess>> {
    [HAND, LIMITED, "event", "pool"].iter().map(|kind| start_one(kind, capacity, folder)).collect()
}

fn start_one(kind: &str, capacity: &str, folder: &Path) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", kind, capacity, &port.to_string()]).arg(folder);
    ServerProcess::start(kind, &mut command, port)
}

/// Runs a child process: `KIND CAPACITY PORT FOLDER`.
pub(crate) fn child(arguments: &[String]) -> BenchResult<()> {
    let [kind, capacity, port, folder] = arguments else { return Err("KIND CAPACITY PORT FOLDER expected".into()) };
    let folder = Path::new(folder);
    if kind == HAND || kind == LIMITED {
        let capacity = if capacity == "64mb" { 64 << 20 } else { 0 };
        return hand::serve(port.parse()?, capacity, folder, kind == LIMITED);
    }
    let program = PROGRAM.replace("64mb", capacity).replace("8080", port);
    let file = folder.join(format!("{kind}-{capacity}.weir"));
    std::fs::write(&file, program)?;
    let (file, root) = (file.to_string_lossy(), folder.to_string_lossy());
    let exit = weir::cli().run_from(["weir", "run", &file, "--engine", kind, "--threads", "1", "--root", &root]);
    if exit.code() == 0 { Ok(()) } else { Err(format!("weir ended with exit code {}", exit.code()).into()) }
}
