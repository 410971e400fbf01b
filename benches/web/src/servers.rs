//! The servers: children of this program, and nginx.
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::Command;

use bench_harness::{Outcome, Server, free_port};

use crate::hand;

/// One of Weir's servers.
struct Weir {
    name: &'static str,
    program: &'static str,
    runs: Runs,
}

/// What it runs on.
enum Runs {
    Engine(&'static str),
    /// A plan's text.
    Plan(&'static str),
}

const OVER_HTTP: &str = include_str!("../../../examples/web_server/over_http.weir");
const RAW: &str = include_str!("../../../examples/web_server/main.weir");
const PIPELINE: &str = include_str!("../../../examples/web_server/pipeline.weir");

/// Those that keep their connections.
const KEEPING: [Weir; 4] = [
    weir("http-event", OVER_HTTP, Runs::Engine("event")),
    weir("http-pool", OVER_HTTP, Runs::Engine("pool")),
    weir("raw-event", RAW, Runs::Engine("event")),
    weir("raw-elastic", RAW, Runs::Engine("elastic")),
];

macro_rules! mapping {
    ($name:literal) => {
        weir(
            $name,
            PIPELINE,
            Runs::Plan(include_str!(concat!("../../../examples/web_server/mappings/", $name, ".plan.toml"))),
        )
    };
}

/// Those for one request a connection: engines, and the section mappings of the thesis.
const PIPELINES: [Weir; 9] = [
    weir("pipeline-event", PIPELINE, Runs::Engine("event")),
    weir("pipeline-pool", PIPELINE, Runs::Engine("pool")),
    weir("pipeline-elastic", PIPELINE, Runs::Engine("elastic")),
    mapping!("acpt-req"),
    mapping!("1-io-op-sec"),
    mapping!("op-sec"),
    mapping!("sgl-rd-rp"),
    mapping!("sgl-rd-rp-x2"),
    mapping!("sgl-rd-rp-x4"),
];

const fn weir(name: &'static str, program: &'static str, runs: Runs) -> Weir {
    Weir { name, program, runs }
}

/// All servers that keep their connections, the peer first, on the files in `folder/pages`.
pub(crate) fn keeping(folder: &Path) -> Outcome<Vec<Server>> {
    start(&KEEPING, folder)
}

/// All servers for one request a connection, the peer first.
pub(crate) fn pipelines(folder: &Path) -> Outcome<Vec<Server>> {
    start(&PIPELINES, folder)
}

fn start(weirs: &[Weir], folder: &Path) -> Outcome<Vec<Server>> {
    let mut servers = vec![own("hyper", folder)?];
    for (name, cached) in [("nginx", false), ("nginx+cache", true)] {
        servers.extend(nginx(name, cached, folder)?);
    }
    for weir in weirs {
        servers.push(own(weir.name, folder)?);
    }
    Ok(servers)
}

fn own(name: &str, folder: &Path) -> Outcome<Server> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", name, &port.to_string()]).arg(folder);
    Server::start(name, &mut command, port)
}

fn nginx(name: &str, cached: bool, folder: &Path) -> Outcome<Option<Server>> {
    if Command::new("nginx").arg("-v").output().is_err() {
        eprintln!("{name} skipped: install nginx to measure it");
        return Ok(None);
    }
    let port = free_port()?;
    let own = folder.join(name);
    fs::create_dir_all(&own)?;
    fs::write(own.join("nginx.conf"), configuration(port, cached, folder))?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&own).args(["-c", "nginx.conf", "-e", "stderr"]);
    Server::start(name, &mut command, port).map(Some)
}

fn configuration(port: u16, cached: bool, folder: &Path) -> String {
    let cache = if cached { "open_file_cache max=20000 inactive=60s; open_file_cache_valid 60s;" } else { "" };
    let pages = folder.join("pages");
    format!(
        "daemon off; master_process off; worker_processes 1; pid nginx.pid;
         events {{ worker_connections 1024; }}
         http {{
           access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type text/html; {cache}
           server {{ listen 127.0.0.1:{port}; root {}; }}
         }}",
        pages.display()
    )
}

/// What a child process does: `NAME PORT FOLDER`.
pub(crate) fn child(arguments: &[String]) -> Outcome<()> {
    let [name, port, folder] = arguments else { return Err("NAME PORT FOLDER expected".into()) };
    let folder = Path::new(folder);
    let Some(server) = KEEPING.iter().chain(&PIPELINES).find(|weir| weir.name == name) else {
        return hand::serve(port.parse()?, folder);
    };
    // A connection of the benchmark asks more often than the example's bound.
    let program = server.program.replace("8081", port).replace("at most 1_000", "at most 1_000_000_000");
    let (file, plan) = (folder.join(format!("{name}.weir")), folder.join(format!("{name}.plan")));
    fs::write(&file, program)?;
    let (file, root, plan_path) = (file.to_string_lossy(), folder.to_string_lossy(), plan.to_string_lossy());
    let runs = match server.runs {
        Runs::Engine(engine) => ["--engine", engine, "--threads", "1"].to_vec(),
        Runs::Plan(text) => {
            fs::write(&plan, text)?;
            ["--plan", &plan_path].to_vec()
        }
    };
    let exit = weir::cli().run_from([&["weir", "run", &file, "--root", &root], &runs[..]].concat());
    if exit.code() == 0 { Ok(()) } else { Err(format!("weir ended with exit code {}", exit.code()).into()) }
}
