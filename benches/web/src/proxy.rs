//! The case `proxy`: a proxy of ten lines in Weir against one that is written by hand on hyper, before the same service.
//!
//! The service answers each request with the same 512 bytes, so that it costs little beside the proxies.

use std::fs;
use std::path::Path;
use std::process::Command;

use bench_harness::{BenchResult, LoadOptions, LoadReport, ServerProcess, by_hand, free_port, measure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::servers::run_command;
use crate::workload::SMALL;

/// The name of the service behind the proxies.
const SERVICE: &str = "proxy-service";
/// The proxies. The first one is the peer.
const PROXIES: [&str; 3] = ["proxy-hyper", "proxy-event", "proxy-pool"];

/// The proxy in Weir. The words in capitals are replaced by ports.
const PROGRAM: &str = r#"use client, http

service proxy on http(port: PORT, connections_max: 20_000) {
  get "/{name}" (name: Text) {
    let found = client.get("http://127.0.0.1:SERVICE/{client.encode(name)}", private: true)?
    http.ok(found.body(), type: found.header("Content-Type") else { "text/plain" })
  }
}
"#;

/// Measures the proxies side by side.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    let service = free_port()?;
    let _running = child(SERVICE, service, folder)?;
    fs::write(folder.join("service"), service.to_string())?;
    let proxies: Vec<ServerProcess> =
        PROXIES.iter().map(|name| child(name, free_port()?, folder)).collect::<BenchResult<_>>()?;
    LoadReport { cases: vec![measure("proxy", &proxies, options, &(SMALL.workload)())?] }.publish("bench-web-proxy")
}

fn child(name: &str, port: u16, folder: &Path) -> BenchResult<ServerProcess> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", name, &port.to_string()]).arg(folder);
    ServerProcess::start(name, &mut command, port)
}

/// Runs the child process of this name.
pub(crate) fn serve(name: &str, port: u16, folder: &Path) -> BenchResult<()> {
    if name == SERVICE {
        return by_hand::serve(port, |_| std::future::ready(response(Bytes::from_static(&[b'x'; 512]))));
    }
    let service: u16 = fs::read_to_string(folder.join("service"))?.parse()?;
    match name.strip_prefix("proxy-") {
        Some("hyper") => by_hand(port, service),
        Some(engine) => in_weir(engine, port, (service, folder)),
        None => Err(format!("{name} is no proxy").into()),
    }
}

fn in_weir(engine: &str, port: u16, (service, folder): (u16, &Path)) -> BenchResult<()> {
    let file = folder.join(format!("proxy-{engine}.weir"));
    fs::write(&file, PROGRAM.replace("PORT", &port.to_string()).replace("SERVICE", &service.to_string()))?;
    let threads = if engine == "pool" { "64" } else { "1" };
    run_command(&["weir", "run", &file.to_string_lossy(), "--engine", engine, "--threads", threads])
}

/// The peer: it passes the path on, and the status, the type and the body back.
fn by_hand(port: u16, service: u16) -> BenchResult<()> {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    by_hand::serve(port, move |request| {
        let client = client.clone();
        async move { forwarded(&client, service, request).await.unwrap_or_else(failed) }
    })
}

async fn forwarded(
    client: &Client<HttpConnector, Full<Bytes>>,
    service: u16,
    request: Request<Incoming>,
) -> Option<Response<Full<Bytes>>> {
    let mut forwarded = Request::new(Full::default());
    *forwarded.uri_mut() = Uri::try_from(format!("http://127.0.0.1:{service}{}", request.uri().path())).ok()?;
    let (head, body) = client.request(forwarded).await.ok()?.into_parts();
    let mut answer = Response::new(Full::new(body.collect().await.ok()?.to_bytes()));
    *answer.status_mut() = head.status;
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        answer.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    Some(answer)
}

fn response(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn failed() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
