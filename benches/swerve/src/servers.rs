//! The servers: Swerve in its three styles, as children of this program, and apache2.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bench_harness::{BenchResult, ServerProcess, free_port, peers};
use swerve::{Settings, Style};

/// Threads of each server for connections, and of Swerve for files.
pub(crate) const CONNECTIONS: usize = 128;
const READERS: usize = 8;

/// Time limit of a request.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// All servers, on `folder/files`.
pub(crate) fn start(folder: &Path) -> BenchResult<Vec<ServerProcess>> {
    let mut servers = start_styles(folder, TIME_LIMIT)?;
    servers.extend(peers::apache("apache2", 64, &folder.join("files"), &folder.join("apache2"))?);
    Ok(servers)
}

/// Swerve in its styles, on `folder/files`.
pub(crate) fn start_styles(folder: &Path, time_limit: Duration) -> BenchResult<Vec<ServerProcess>> {
    let start = |name| {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", name, &port.to_string(), &time_limit.as_millis().to_string()]);
        ServerProcess::start(name, command.arg(folder.join("files")), port)
    };
    ["sync", "ahead", "async"].into_iter().map(start).collect()
}

/// Runs the server of a child process: `STYLE PORT MILLISECONDS FOLDER`.
pub(crate) fn child(arguments: &[String]) -> BenchResult<()> {
    let [style, port, time_limit, folder] = arguments else {
        return Err("STYLE PORT MILLISECONDS FOLDER expected".into());
    };
    let style = match style.as_str() {
        "sync" => Style::Synchronous,
        "ahead" => Style::ReadAhead,
        _ => Style::Asynchronous,
    };
    let _server = swerve::Server::start(&Settings {
        root: folder.into(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)),
        style,
        connections: CONNECTIONS,
        readers: READERS,
        time_limit: Duration::from_millis(time_limit.parse()?),
    })?;
    // Until it is killed.
    loop {
        std::thread::park();
    }
}
