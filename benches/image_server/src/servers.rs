//! The servers of the benchmark, which this program runs as children of its own.

use std::path::Path;
use std::process::Command;

use bench_harness::{Outcome, Server, free_port};

use crate::hand;

/// Weir's image server, with the cache's capacity and the port to be filled in.
const PROGRAM: &str = include_str!("../../../examples/image_server/main.weir");
/// The name of the peer.
const HAND: &str = "hand";
/// The name of the same peer within the limits that Weir keeps.
pub(crate) const LIMITED: &str = "hand-limits";

/// All servers, the peer first, with caches of this capacity, on the pictures in `folder`.
pub(crate) fn start(capacity: &str, folder: &Path) -> Outcome<Vec<Server>> {
    [HAND, LIMITED, "event", "pool"].iter().map(|kind| start_one(kind, capacity, folder)).collect()
}

fn start_one(kind: &str, capacity: &str, folder: &Path) -> Outcome<Server> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", kind, capacity, &port.to_string()]).arg(folder);
    Server::start(kind, &mut command, port)
}

/// Runs the server of a child process: `KIND CAPACITY PORT FOLDER`.
pub(crate) fn child(arguments: &[String]) -> Outcome<()> {
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
