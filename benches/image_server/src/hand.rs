//! The peer: the same image server, written by hand on hyper, with Weir's codec and cache.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bench_harness::{BenchResult, by_hand};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use weir_library::image::{self, Cache};

/// State that all requests share.
struct PeerState {
    cache: Mutex<Cache>,
    images: PathBuf,
}

/// Serves the pictures in `folder/images` until the process is killed, with limits if `limited`.
pub(crate) fn serve(port: u16, capacity: u64, folder: &Path, limited: bool) -> BenchResult<()> {
    let state =
        Arc::new(PeerState { cache: Mutex::new(image::cache(weir::Size(capacity))), images: folder.join("images") });
    let answer = move |request| answer(state.clone(), request);
    if limited { by_hand::serve_within_limits(port, answer) } else { by_hand::serve(port, answer) }
}

async fn answer(state: Arc<PeerState>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, kind, body) = match thumbnail(&state, &request).await {
        Ok(jpeg) => (StatusCode::OK, "image/jpeg", jpeg),
        Err((status, message)) => (status, "text/plain; charset=utf-8", Bytes::from(message)),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

async fn thumbnail(state: &PeerState, request: &Request<Incoming>) -> Result<Bytes, (StatusCode, String)> {
    let name = request.uri().path().trim_start_matches('/');
    let scale = scale(request.uri().query())?;
    let key = format!("{name}/{scale}");
    let hit = state.cache.lock().expect("nobody panics while holding it").get(&key);
    if let Some(hit) = hit {
        return Ok(hit);
    }
    if name.contains(['/', '.']) {
        return Err((StatusCode::NOT_FOUND, "no such image".into()));
    }
    let file = tokio::fs::read(state.images.join(format!("{name}.ppm"))).await;
    let file = file.map_err(|_| (StatusCode::NOT_FOUND, "no such image".to_string()))?;
    let jpeg = compress(file, scale).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    state.cache.lock().expect("nobody panics while holding it").put(&key, jpeg.clone());
    Ok(jpeg)
}

fn scale(query: Option<&str>) -> Result<i64, (StatusCode, String)> {
    let Some(value) = query.and_then(|query| query.strip_prefix("scale=")) else { return Ok(8) };
    let scale = value.parse().ok().filter(|scale| (1..=8).contains(scale));
    scale.ok_or_else(|| (StatusCode::BAD_REQUEST, "scale must be 1 to 8".into()))
}

fn compress(file: Vec<u8>, scale: i64) -> BenchResult<Bytes> {
    let ppm = image::decode(Bytes::from(file))?;
    let small = image::scale(&ppm, scale)?;
    Ok(image::to_jpeg(&small, 85)?)
}
