//! The case `tls`: small answers over TLS 1.3, from a service in Weir and from a server that is written by hand on hyper and
//! tokio-rustls. On keep-alive connections encryption counts, and with one connection for each request the handshake.
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bench_harness::tls::{client_config, make_certificate, server_config};
use bench_harness::{BenchResult, LoadOptions, LoadReport, ServerProcess, Workload, by_hand, free_port, measure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::servers::run_command;
use crate::workload::SMALL;

/// The servers. The first one is the peer.
const SERVERS: [&str; 3] = ["tls-hyper", "tls-event", "tls-pool"];
/// The length of an answer.
const BYTES: usize = 512;

/// The service in Weir. The words in capitals are replaced.
const PROGRAM: &str = r#"use http

service pages on http(port: PORT, certificate: "certificate.pem", key: "key.pem", connections_max: 20_000) {
  get "/{_name}" (_name: Text) { http.text("TEXT") }
}
"#;

/// Measures the servers side by side.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    if !make_certificate(folder)? {
        eprintln!("tls skipped: install openssl, which makes the certificate");
        return Ok(());
    }
    let servers: Vec<ServerProcess> = SERVERS.iter().map(|name| child(name, folder)).collect::<BenchResult<_>>()?;
    let kept = Workload { tls: Some(Arc::new(client_config(folder)?)), ..(SMALL.workload)() };
    let alone = Workload { requests_per_connection: 1, ..kept.clone() };
    let cases = [("tls", &kept), ("tls-alone", &alone)];
    let cases = cases.map(|(name, workload)| measure(name, &servers, options, workload));
    LoadReport { cases: cases.into_iter().collect::<BenchResult<_>>()? }.publish("bench-web-tls")
}

fn child(name: &str, folder: &Path) -> BenchResult<ServerProcess> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", name, &port.to_string()]).arg(folder);
    ServerProcess::start(name, &mut command, port)
}

/// Runs the child process of this name.
pub(crate) fn serve(name: &str, port: u16, folder: &Path) -> BenchResult<()> {
    let text = "x".repeat(BYTES);
    let engine = match name.strip_prefix("tls-") {
        Some("hyper") => {
            let text = Bytes::from(text);
            let answer = move |_| std::future::ready(response(text.clone()));
            return by_hand::serve_tls(port, server_config(folder)?, answer);
        }
        engine => engine.ok_or("no server with TLS")?,
    };
    let file = folder.join(format!("{name}.weir"));
    fs::write(&file, PROGRAM.replace("PORT", &port.to_string()).replace("TEXT", &text))?;
    let threads = if engine == "pool" { "64" } else { "1" };
    run_command(&["weir", "run", &file.to_string_lossy(), "--engine", engine, "--threads", threads])
}

fn response(text: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
