//! Peers: nginx, apache2 and Jetty, each with one core and the files of one folder. A peer that is not installed is
//! visibly skipped.
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{BenchResult, ServerProcess, free_port};

/// The paths of Debian's packages.
const APACHE: &str = "/usr/sbin/apache2";
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";
const JETTY_HOME: &str = "/usr/share/jetty9";

/// Starts nginx with one worker; with `cached` it keeps files open (`open_file_cache`). Its own files are in `own`.
///
/// # Errors
/// Fails if it does not start.
pub fn nginx(name: &str, cached: bool, files: &Path, own: &Path) -> BenchResult<Option<ServerProcess>> {
    if Command::new("nginx").arg("-v").output().is_err() {
        return Ok(skipped(name, "nginx"));
    }
    let port = free_port()?;
    fs::create_dir_all(own)?;
    fs::write(own.join("nginx.conf"), nginx_configuration(port, cached, files))?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(own).args(["-c", "nginx.conf", "-e", "stderr"]);
    ServerProcess::start(name, &mut command, port).map(Some)
}

fn nginx_configuration(port: u16, cached: bool, files: &Path) -> String {
    let cache = if cached { "open_file_cache max=20000 inactive=60s; open_file_cache_valid 60s;" } else { "" };
    format!(
        "daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 40000; pid nginx.pid;
         events {{ worker_connections 20000; }}
         http {{
           access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type text/html; {cache}
           server {{ listen 127.0.0.1:{port}; root {}; }}
         }}",
        files.display()
    )
}

/// Starts apache2 with its event module, as one process of `threads` threads. Its own files are in `own`.
///
/// # Errors
/// Fails if it does not start.
pub fn apache(name: &str, threads: u32, files: &Path, own: &Path) -> BenchResult<Option<ServerProcess>> {
    if !Path::new(APACHE).exists() || !Path::new(APACHE_MODULES).join("mod_mpm_event.so").exists() {
        return Ok(skipped(name, "apache2"));
    }
    let port = free_port()?;
    fs::create_dir_all(own)?;
    let file = own.join("apache2.conf");
    fs::write(&file, apache_configuration(port, threads, files, own))?;
    let mut command = Command::new(APACHE);
    // One process in the foreground, so that no process outlives this program.
    command.args(["-X", "-f"]).arg(&file);
    ServerProcess::start(name, &mut command, port).map(Some)
}

fn apache_configuration(port: u16, threads: u32, files: &Path, own: &Path) -> String {
    let (files, own) = (files.display(), own.display());
    format!(
        "ServerRoot {own}\nServerName localhost\nPidFile {own}/apache2.pid\nDefaultRuntimeDir {own}\nMutex file:{own}\n\
         ErrorLog {own}/error.log\nLoadModule mpm_event_module {APACHE_MODULES}/mod_mpm_event.so\n\
         LoadModule authz_core_module {APACHE_MODULES}/mod_authz_core.so\nUser www-data\nGroup www-data\n\
         Listen 127.0.0.1:{port}\nServerLimit 1\nThreadsPerChild {threads}\nMaxRequestWorkers {threads}\n\
         MaxKeepAliveRequests 0\nEnableSendfile on\nDocumentRoot {files}\n<Directory {files}>\nRequire all granted\n\
         </Directory>\n"
    )
}

/// Starts Jetty 9 with its resource handler only. Its own files are in `own`.
///
/// # Errors
/// Fails if it does not start.
pub fn jetty(name: &str, files: &Path, own: &Path) -> BenchResult<Option<ServerProcess>> {
    let start = Path::new(JETTY_HOME).join("start.jar");
    if !start.exists() || Command::new("java").arg("-version").output().is_err() {
        return Ok(skipped(name, "jetty9"));
    }
    let port = free_port()?;
    fs::create_dir_all(own.join("webapps"))?;
    fs::write(own.join("webapps/files.xml"), jetty_context(files))?;
    let mut command = Command::new("java");
    command.arg(format!("-Djetty.home={JETTY_HOME}")).arg(format!("-Djetty.base={}", own.display()));
    command.arg("-jar").arg(start).arg("--module=http,deploy");
    command.args([format!("jetty.http.port={port}"), "jetty.http.host=127.0.0.1".into()]);
    ServerProcess::start(name, &mut command, port).map(Some)
}

fn jetty_context(files: &Path) -> String {
    format!(
        r#"<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "http://www.eclipse.org/jetty/configure_9_3.dtd">
<Configure class="org.eclipse.jetty.server.handler.ContextHandler">
  <Set name="contextPath">/</Set>
  <Set name="resourceBase">{}</Set>
  <Set name="handler"><New class="org.eclipse.jetty.server.handler.ResourceHandler"/></Set>
</Configure>
"#,
        files.display()
    )
}

fn skipped(name: &str, package: &str) -> Option<ServerProcess> {
    eprintln!("{name} skipped: install {package} to compare with it");
    None
}
