//! Responses with files, and compressed ones.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, ETAG};
use ring::digest;

use super::representation::{Negotiation, visible};
use super::response::{Response, media_type};
use crate::files::{FileError, Root, read};

/// Media types by the ends of file names.
const MEDIA_TYPES: [(&str, &str); 28] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("zip", "application/zip"),
];

/// Creates a response with a file below the program's root. Its media type follows from the end of the name. A client that
/// has the file already gets 304 (`ETag`), ranges of it can be requested, and texts are compressed. Clients ask each time
/// whether the file is unchanged, or use it for `max_age` without asking.
///
/// # Errors
/// Fails if the file cannot be opened or read.
#[weir::function(reads)]
pub async fn file(
    #[environment] root: &Root,
    path: &str,
    #[default(Duration::ZERO)] max_age: Duration,
) -> Result<Response, FileError> {
    let bytes = read(root, path).await?;
    let tag = data_encoding::BASE64URL_NOPAD.encode(&digest::digest(&digest::SHA256, &bytes).as_ref()[..16]);
    let kept = match max_age.as_secs() {
        0 => "no-cache".to_owned(),
        seconds => format!("public, max-age={seconds}"),
    };
    let mut response = Response::new(StatusCode::OK, Some(media_type(media_type_of(path))), bytes);
    response.negotiation = Negotiation { compressed: true, ranges: true };
    Ok(response.with_field(ETAG, visible(format!("\"{tag}\""))).with_field(CACHE_CONTROL, visible(kept)))
}

/// Returns the response compressed with gzip, if the client accepts it and it is a text of 1 KiB to 256 KiB. If a page
/// contains both a secret and what its visitor has typed, others can find out the secret from its compressed length: leave
/// such pages as they are.
#[weir::function(pure)]
pub fn compressed(mut response: Response) -> Response {
    response.negotiation.compressed = true;
    response
}

fn media_type_of(path: &str) -> &'static str {
    let end = path.rsplit('/').next().unwrap_or_default().rsplit_once('.').map_or("", |(_, end)| end);
    let known = MEDIA_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(end));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}
