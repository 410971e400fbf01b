//! Responses with files, and compressed ones.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, ETAG, LOCATION};
use percent_encoding::utf8_percent_encode;
use ring::digest;

use super::max_age::whole_seconds;
use super::representation::{Negotiation, visible};
use super::response::{Response, media_type};
use crate::client::RESERVED;
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
/// whether the file is unchanged, or use it for `max_age` without asking. A cache that several clients share does not keep it,
/// because it could be for one of them only; for a file that is for everybody, `http.with_header("Cache-Control", "public,
/// max-age=3600")` says so. With the name of an `index`, such as `index.html`, a
/// path that ends with `/` stands for the file of this name in a folder. The path of a folder without the `/` is answered with a
/// redirect to its last part and `/`, so that relative links in the page lead into the folder.
///
/// # Errors
/// Fails if the file cannot be opened or read.
#[weir::function(reads)]
pub async fn file(
    #[environment] root: &Root,
    path: &str,
    #[default(Duration::ZERO)] max_age: Duration,
    #[default("")] index: &str,
) -> Result<Response, FileError> {
    if index.is_empty() {
        return Ok(with_file(path, read(root, path).await?, max_age));
    }
    if path.is_empty() || path.ends_with('/') {
        let path = format!("{path}{index}");
        return Ok(with_file(&path, read(root, &path).await?, max_age));
    }
    match read(root, path).await {
        Err(no_file @ FileError::NotAFile(_)) => match read(root, &format!("{path}/{index}")).await {
            Ok(_) => Ok(to_folder(path)),
            Err(_) => Err(no_file),
        },
        found => Ok(with_file(path, found?, max_age)),
    }
}

/// Creates a redirect from the path of a folder to the same with a `/` at its end.
fn to_folder(path: &str) -> Response {
    let name = path.rsplit('/').next().unwrap_or_default();
    let location = format!("{}/", utf8_percent_encode(name, RESERVED));
    let mut response = Response::of_status(StatusCode::SEE_OTHER).with_field(LOCATION, visible(location));
    response.negotiation.to_folder = true;
    response
}

fn with_file(path: &str, bytes: Bytes, max_age: Duration) -> Response {
    let tag = data_encoding::BASE64URL_NOPAD.encode(&digest::digest(&digest::SHA256, &bytes).as_ref()[..16]);
    let kept = match whole_seconds(max_age) {
        0 => "no-cache".to_owned(),
        seconds => format!("private, max-age={seconds}"),
    };
    let mut response = Response::new(StatusCode::OK, Some(media_type(media_type_of(path))), bytes);
    response.negotiation = Negotiation { compressed: true, ranges: true, to_folder: false };
    response.with_field(ETAG, visible(format!("\"{tag}\""))).with_field(CACHE_CONTROL, visible(kept))
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
