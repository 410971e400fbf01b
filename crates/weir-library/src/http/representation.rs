//! Representations of a resource: files with their media types, and answers that depend on the request's header (RFC 9110):
//! unchanged content, ranges, and compression.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue,
    IF_NONE_MATCH, IF_RANGE, RANGE, VARY,
};
use ring::digest;

use super::response::{Response, media_type};
use crate::files::{FileError, Root, read};

/// Lengths of answers that are compressed: shorter ones gain nothing, and longer ones would hold up other requests.
const COMPRESSED_BYTES: std::ops::RangeInclusive<usize> = 1024..=256 * 1024;

/// The properties of an answer that the header of the request decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiation {
    /// The answer may be compressed.
    pub(super) compressed: bool,
    /// The answer has an `ETag`, and parts of it may be requested.
    pub(super) ranges: bool,
}

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

fn visible(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("visible ASCII may stand in a field")
}

impl Response {
    /// Returns the representation that the header of a request asks for.
    pub(super) fn negotiated(mut self, request: &HeaderMap) -> Response {
        if self.code() != StatusCode::OK {
            return self;
        }
        let Negotiation { compressed, ranges } = std::mem::take(&mut self.negotiation);
        let tag = self.field("etag").map(str::to_owned);
        if let (Some(known), Some(tag)) = (request.get(IF_NONE_MATCH), &tag)
            && matches_tag(known, tag)
        {
            return self.with_status(StatusCode::NOT_MODIFIED, Bytes::new());
        }
        if ranges && let Some(range) = request.get(RANGE) {
            let is_same = request.get(IF_RANGE).is_none_or(|wanted| wanted.to_str().ok() == tag.as_deref());
            return if is_same { self.in_range(range) } else { self };
        }
        let response = if ranges { self.with_field(ACCEPT_RANGES, HeaderValue::from_static("bytes")) } else { self };
        if compressed { response.compressed(request, tag.as_deref()) } else { response }
    }

    /// Returns the part that a `Range` asks for. A range that is not understood, or several of them, stand for everything.
    fn in_range(self, range: &HeaderValue) -> Response {
        let length = self.body().len();
        let of_all = |status: StatusCode, shown: String, response: Response, body: Bytes| {
            response.with_status(status, body).with_field(CONTENT_RANGE, visible(shown))
        };
        match range.to_str().ok().and_then(|range| range_of(range, length)) {
            None => self,
            Some(None) => of_all(StatusCode::RANGE_NOT_SATISFIABLE, format!("bytes */{length}"), self, Bytes::new()),
            Some(Some((first, last))) => {
                let part = self.body().slice(first..=last);
                of_all(StatusCode::PARTIAL_CONTENT, format!("bytes {first}-{last}/{length}"), self, part)
            }
        }
    }

    fn compressed(self, request: &HeaderMap, tag: Option<&str>) -> Response {
        let kind = self.field("content-type").unwrap_or_default();
        let gains =
            kind.starts_with("text/") || ["json", "xml", "javascript", "wasm"].iter().any(|text| kind.contains(text));
        if !gains || !COMPRESSED_BYTES.contains(&self.body().len()) || self.field("content-encoding").is_some() {
            return self;
        }
        let response = self.with_field(VARY, HeaderValue::from_static("Accept-Encoding"));
        if !request.get(ACCEPT_ENCODING).is_some_and(accepts_gzip) {
            return response;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(response.body()).and_then(|()| encoder.finish());
        let Ok(gzip) = written else { return response };
        let response = response.with_status(StatusCode::OK, gzip.into());
        let response = response.with_field(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        // Another representation has another tag.
        match tag.and_then(|tag| tag.strip_suffix('"')) {
            Some(tag) => response.with_field(ETAG, visible(format!("{tag}-gzip\""))),
            None => response,
        }
    }
}

/// Returns true if a field like `If-None-Match` names the tag, or that of its compressed representation.
fn matches_tag(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else { return false };
    known
        .split(',')
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == "*" || known == tag || known.strip_suffix("-gzip\"") == tag.strip_suffix('"'))
}

/// Returns the first and the last byte of a range; `Some(None)` if it has none, and `None` for anything else.
fn range_of(range: &str, length: usize) -> Option<Option<(usize, usize)>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.parse::<usize>().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    let (first, last) = match (first.is_empty(), last.is_empty()) {
        (true, true) => return None,
        (true, false) => (length.saturating_sub(number(last)?), length.checked_sub(1)),
        (false, true) => (number(first)?, length.checked_sub(1)),
        (false, false) => (number(first)?, Some(number(last)?.min(length.saturating_sub(1)))),
    };
    Some(last.filter(|last| first <= *last && first < length).map(|last| (first, last)))
}

fn accepts_gzip(field: &HeaderValue) -> bool {
    field.to_str().unwrap_or_default().split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn answer(body: &str, fields: &[(&'static str, &str)]) -> Response {
        let mut request = HeaderMap::new();
        request.extend(fields.iter().map(|(name, value)| {
            (hyper::header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        }));
        let mut response = Response::plain(StatusCode::OK, body.to_owned());
        response.negotiation = Negotiation { compressed: true, ranges: true };
        response.with_field(ETAG, HeaderValue::from_static("\"a\"")).negotiated(&request)
    }

    #[test]
    fn a_client_that_has_the_content_gets_none() {
        for known in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "*", "\"a-gzip\""] {
            let found = answer("text", &[("if-none-match", known)]);
            assert_eq!((found.code().as_u16(), found.body().len()), (304, 0), "{known}");
            assert_eq!(found.field("etag"), Some("\"a\""));
        }
        for known in ["\"b\"", "a", "\"\""] {
            assert_eq!(answer("text", &[("if-none-match", known)]).code(), StatusCode::OK, "{known}");
        }
    }

    #[test]
    fn ranges_are_parts_of_the_content() {
        let cases = [
            ("bytes=0-3", 206, "0123", Some("bytes 0-3/10")),
            ("bytes=8-", 206, "89", Some("bytes 8-9/10")),
            ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
            ("bytes=-30", 206, "0123456789", Some("bytes 0-9/10")),
            ("bytes=5-100", 206, "56789", Some("bytes 5-9/10")),
            ("bytes=10-", 416, "", Some("bytes */10")),
            ("bytes=-0", 416, "", Some("bytes */10")),
            ("bytes=3-1", 416, "", Some("bytes */10")),
            ("bytes=0-1,3-4", 200, "0123456789", None),
            ("bytes=+1-2", 200, "0123456789", None),
            ("bytes=-", 200, "0123456789", None),
            ("lines=1-2", 200, "0123456789", None),
        ];
        for (range, status, body, shown) in cases {
            let found = answer("0123456789", &[("range", range)]);
            assert_eq!((found.code().as_u16(), &found.body()[..]), (status, body.as_bytes()), "{range}");
            assert_eq!(found.field("content-range"), shown, "{range}");
        }
        assert_eq!(answer("", &[("range", "bytes=0-")]).code().as_u16(), 416);
        let changed = answer("0123456789", &[("range", "bytes=0-3"), ("if-range", "\"b\"")]);
        assert_eq!(changed.code(), StatusCode::OK);
    }

    #[test]
    fn texts_are_compressed_for_clients_that_accept_it() {
        let text = "0123456789".repeat(1000);
        let found = answer(&text, &[("accept-encoding", "br, gzip;q=0.8")]);
        assert_eq!(found.field("content-encoding"), Some("gzip"));
        assert_eq!(found.field("etag"), Some("\"a-gzip\""));
        assert_eq!(found.field("vary"), Some("Accept-Encoding"));
        let mut read = String::new();
        flate2::read::GzDecoder::new(&found.body()[..]).read_to_string(&mut read).unwrap();
        assert!(read == text && found.body().len() < 1000);
        for (text, accepted) in [(&*text, "br"), (&text, "gzip;q=0"), ("short", "gzip")] {
            assert_eq!(answer(text, &[("accept-encoding", accepted)]).field("content-encoding"), None);
        }
    }
}
