//! The servers: Swerve in both styles, as children of this program, and apache2.
#![expect(clippy::print_stdout, reason = "what is skipped is said")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bench_harness::{Outcome, Server, free_port};
use swerve::{Settings, Style};

/// Where Debian's package puts the server and its modules.
const APACHE: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

/// All servers, on `folder/files`.
pub(crate) fn start(folder: &Path) -> Outcome<Vec<Server>> {
    let mut servers = Vec::new();
    for name in ["sync", "async"] {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", name, &port.to_string()]).arg(folder.join("files"));
        servers.push(Server::start(name, &mut command, port)?);
    }
    servers.extend(apache(folder)?);
    Ok(servers)
}

/// apache2 with its event module, as one process of its own in `folder`; `None` where it is not installed.
fn apache(folder: &Path) -> Outcome<Option<Server>> {
    if !Path::new(APACHE).exists() || !Path::new(MODULES).join("mod_mpm_event.so").exists() {
        println!("apache2 skipped: install it to compare with it");
        return Ok(None);
    }
    let port = free_port()?;
    let file = folder.join("apache2.conf");
    fs::write(&file, configuration(port, folder))?;
    let mut command = Command::new(APACHE);
    // One process in the foreground, so that nothing outlives this program.
    command.args(["-X", "-f"]).arg(&file);
    Server::start("apache2", &mut command, port).map(Some)
}

fn configuration(port: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "ServerRoot {folder}\nServerName localhost\nPidFile {folder}/apache2.pid\nDefaultRuntimeDir {folder}\n\
         Mutex file:{folder}\nErrorLog {folder}/error.log\nLoadModule mpm_event_module {MODULES}/mod_mpm_event.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\nUser www-data\nGroup www-data\n\
         Listen 127.0.0.1:{port}\nServerLimit 1\nThreadsPerChild 64\nMaxRequestWorkers 64\nMaxKeepAliveRequests 0\n\
         EnableSendfile on\nDocumentRoot {folder}/files\n<Directory {folder}/files>\nRequire all granted\n</Directory>\n"
    )
}

/// What a child process does: `STYLE PORT FOLDER`.
pub(crate) fn child(arguments: &[String]) -> Outcome<()> {
    let [style, port, folder] = arguments else { return Err("STYLE PORT FOLDER expected".into()) };
    let style = if style == "sync" { Style::Synchronous } else { Style::Asynchronous };
    let _server = swerve::Server::start(&Settings {
        root: folder.into(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)),
        style,
        connections: 64,
        readers: 8,
        time_limit: Duration::from_secs(10),
    })?;
    // Until it is killed.
    loop {
        std::thread::park();
    }
}
