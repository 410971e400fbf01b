//! The servers of the benchmark: child processes of this program, and peers.
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::Command;

use bench_harness::{BenchResult, ServerProcess, free_port, peers};

use crate::{hand, proxy, tls};

/// The name of the peer with the limits that Weir keeps.
pub(crate) const LIMITED: &str = "hyper-limits";
/// The servers for keep-alive connections. The first one is the peer.
pub(crate) const KEEPING: &[&str] = &[
    "hyper",
    LIMITED,
    "nginx",
    "nginx+cache",
    "apache2",
    "jetty9",
    "go",
    "http-event",
    "reads-event",
    "http-pool",
    "http-thread-per-flow",
    "http-staged",
    "http-manual",
    "http-dedicated",
    "http-elastic",
    "raw-event",
    "raw-elastic",
];

/// The servers for one connection per request. The first one is the peer.
pub(crate) const ALONE: &[&str] = &[
    "hyper",
    "nginx",
    "http-event",
    "map-event",
    "map-acpt-req",
    "map-1-io-op-sec",
    "map-op-sec",
    "map-sgl-rd-rp",
    "map-sgl-rd-rp-x2",
    "map-sgl-rd-rp-x4",
];

/// The section mappings of the thesis.
pub(crate) const MAPPINGS: [(&str, &str); 6] = [
    ("acpt-req", include_str!("../../../examples/web_server/mappings/acpt-req.plan.toml")),
    ("1-io-op-sec", include_str!("../../../examples/web_server/mappings/1-io-op-sec.plan.toml")),
    ("op-sec", include_str!("../../../examples/web_server/mappings/op-sec.plan.toml")),
    ("sgl-rd-rp", include_str!("../../../examples/web_server/mappings/sgl-rd-rp.plan.toml")),
    ("sgl-rd-rp-x2", include_str!("../../../examples/web_server/mappings/sgl-rd-rp-x2.plan.toml")),
    ("sgl-rd-rp-x4", include_str!("../../../examples/web_server/mappings/sgl-rd-rp-x4.plan.toml")),
];

/// Starts these servers, as far as they are installed, on the files in `folder/pages`.
pub(crate) fn start(names: &[&str], folder: &Path) -> BenchResult<Vec<ServerProcess>> {
    let mut servers = Vec::new();
    for name in names {
        servers.extend(start_one(name, folder)?);
    }
    Ok(servers)
}

fn start_one(name: &str, folder: &Path) -> BenchResult<Option<ServerProcess>> {
    let (files, own) = (folder.join("pages"), folder.join(name));
    match name {
        "nginx" | "nginx+cache" => peers::nginx(name, name.ends_with("+cache"), &files, &own),
        "apache2" => peers::apache(name, 64, &files, &own),
        "jetty9" => peers::jetty(name, &files, &own),
        "go" => go(&files, &own),
        _ => child_server(name, folder).map(Some),
    }
}

fn child_server(name: &str, folder: &Path) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", name, &port.to_string()]).arg(folder);
    ServerProcess::start(name, &mut command, port)
}

/// Starts Go's file server, which is compiled if `go` is installed.
fn go(files: &Path, own: &Path) -> BenchResult<Option<ServerProcess>> {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("go skipped: install Go to compare with it");
        return Ok(None);
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/go");
    let built = Command::new("go").current_dir(source).args(["build", "-o"]).arg(own).arg(".").output()?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into());
    }
    let port = free_port()?;
    let mut command = Command::new(own);
    command.arg(port.to_string()).arg(files);
    ServerProcess::start("go", &mut command, port).map(Some)
}

/// Runs a child process: `NAME PORT FOLDER`.
pub(crate) fn child(arguments: &[String]) -> BenchResult<()> {
    let [name, port, folder] = arguments else { return Err("NAME PORT FOLDER expected".into()) };
    let folder = Path::new(folder);
    if name.starts_with("proxy-") {
        return proxy::serve(name, port.parse()?, folder);
    }
    if name.starts_with("tls-") {
        return tls::serve(name, port.parse()?, folder);
    }
    let (program, kind) = match name.split_once('-') {
        Some(("http" | "reads", engine)) => (include_str!("../../../examples/web_server/over_http.weir"), engine),
        Some(("raw" | "kept", kind)) => (include_str!("../../../examples/web_server/main.weir"), kind),
        Some(("map", mapping)) => (include_str!("../../../examples/web_server/pipeline.weir"), mapping),
        _ => return hand::serve(port.parse()?, folder, name == LIMITED),
    };
    // The benchmark sends more requests per connection, and opens more connections, than the example allows.
    let program = program.replace("on http(port: 8081)", "on http(port: 8081, connections_max: 20_000)");
    let program = program.replace("8081", port);
    let program = program.replace("at most 1_000", "at most 1_000_000_000");
    let file = folder.join(format!("{name}.weir"));
    fs::write(&file, program)?;
    // Like the peer by hand, it reads each file for each request.
    let kept: &[&str] = if name.starts_with("reads") { &["--files-kept", "0"] } else { &[] };
    run_weir(&file, folder, &mapping_of(kind, folder)?, kept)
}

/// Returns the options that map the program to threads: an engine or a section mapping.
fn mapping_of(kind: &str, folder: &Path) -> BenchResult<[String; 2]> {
    let Some((_, plan)) = MAPPINGS.iter().find(|(mapping, _)| *mapping == kind) else {
        return Ok(["--engine".into(), kind.into()]);
    };
    let file = folder.join(format!("{kind}.plan.toml"));
    fs::write(&file, plan)?;
    Ok(["--plan".into(), file.to_string_lossy().into()])
}

fn run_weir(file: &Path, root: &Path, mapping: &[String; 2], kept: &[&str]) -> BenchResult<()> {
    let (file, root) = (file.to_string_lossy(), root.to_string_lossy());
    let [option, value] = mapping;
    let mut arguments = vec!["weir", "run", &file, "--root", &root, option, value];
    if option == "--engine" {
        // A flow of these engines holds its thread for as long as its client lets it wait.
        let threads = if matches!(value.as_str(), "pool" | "thread-per-flow") { "64" } else { "1" };
        arguments.extend(["--threads", threads]);
    }
    arguments.extend(kept);
    run_command(&arguments)
}

/// Runs the command with these arguments: `weir run …`.
pub(crate) fn weir(arguments: &[String]) -> BenchResult<()> {
    run_command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs the command with these arguments.
pub(crate) fn run_command(arguments: &[&str]) -> BenchResult<()> {
    let exit = weir::cli().run_from(arguments.iter().copied());
    if exit.code() == 0 { Ok(()) } else { Err(format!("weir ended with exit code {}", exit.code()).into()) }
}
