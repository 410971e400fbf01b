//! The servers: children of this program, and nginx.
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::Command;

use bench_harness::{Outcome, Server, free_port};

use crate::hand;

/// Weir's servers: a name, the program, the engine.
const WEIR: [(&str, &str, &str); 4] = [
    ("http-event", include_str!("../../../examples/web_server/over_http.weir"), "event"),
    ("http-pool", include_str!("../../../examples/web_server/over_http.weir"), "pool"),
    ("raw-event", include_str!("../../../examples/web_server/main.weir"), "event"),
    ("raw-elastic", include_str!("../../../examples/web_server/main.weir"), "elastic"),
];

/// All servers, the peer first, on the files in `folder/pages`.
pub(crate) fn start(folder: &Path) -> Outcome<Vec<Server>> {
    let mut servers = vec![own("hyper", folder)?];
    for (name, cached) in [("nginx", false), ("nginx+cache", true)] {
        servers.extend(nginx(name, cached, folder)?);
    }
    for (name, _, _) in WEIR {
        servers.push(own(name, folder)?);
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
    let Some((_, program, engine)) = WEIR.iter().find(|(other, _, _)| other == name) else {
        return hand::serve(port.parse()?, folder);
    };
    // A connection of the benchmark asks more often than the example's bound.
    let program = program.replace("8081", port).replace("at most 1_000", "at most 1_000_000_000");
    let file = folder.join(format!("{name}.weir"));
    fs::write(&file, program)?;
    let (file, root) = (file.to_string_lossy(), folder.to_string_lossy());
    let exit = weir::cli().run_from(["weir", "run", &file, "--engine", engine, "--threads", "1", "--root", &root]);
    if exit.code() == 0 { Ok(()) } else { Err(format!("weir ended with exit code {}", exit.code()).into()) }
}
