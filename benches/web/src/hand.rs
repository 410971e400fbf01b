//! The peer: a server of small files, written by hand on hyper.

use std::path::Path;
use std::sync::Arc;

use bench_harness::{BenchResult, by_hand};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

/// Serves the files in `folder/pages` until the process is killed, with limits if `limited`.
pub(crate) fn serve(port: u16, folder: &Path, limited: bool) -> BenchResult<()> {
    let pages = Arc::new(folder.join("pages"));
    let answer = move |request: Request<Incoming>| std::future::ready(answer(&pages, request.uri().path()));
    if limited { by_hand::serve_within_limits(port, answer) } else { by_hand::serve(port, answer) }
}

/// Reads the file on the event loop: asking another thread would take longer than reading a small file.
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
