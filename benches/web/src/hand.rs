//! The peer: a server of small files as somebody would write it by hand on hyper.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench_harness::Outcome;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Serves the files in `folder/pages` until the process is killed.
pub(crate) fn serve(port: u16, folder: &Path) -> Outcome<()> {
    let pages = Arc::new(folder.join("pages"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let pages = pages.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: hyper::Request<_>| {
                    let answer = answer(&pages, request.uri().path());
                    async move { Ok::<_, Infallible>(answer) }
                });
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).pipeline_flush(true);
                // A client that goes away is no error of the server's.
                _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// A small file is read faster than another thread is asked to read it.
fn answer(pages: &Path, path: &str) -> Response<Full<Bytes>> {
    let name = path.trim_start_matches('/');
    let file =
        if name.contains(['/', '\\']) || name.starts_with('.') { None } else { std::fs::read(pages.join(name)).ok() };
    let mut response = Response::new(Full::new(Bytes::from(file.clone().unwrap_or_default())));
    if file.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}
