//! Representations of a resource, as the header of a request asks for them (RFC 9110): unchanged content, ranges, and
//! compression.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE, VARY,
};
use hyper::{Response, StatusCode};

/// Lengths of answers that are compressed: shorter ones gain nothing, and longer ones would hold up other requests.
const COMPRESSED_BYTES: std::ops::RangeInclusive<usize> = 1024..=256 * 1024;

/// The properties of an answer that the header of the request decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Negotiation {
    /// The answer may be compressed.
    pub(super) compressed: bool,
    /// The answer has an `ETag`, and parts of it may be requested.
    pub(super) ranges: bool,
    /// The answer leads from the path of a folder to the same with a `/`, as the request has written it.
    pub(super) to_folder: bool,
}

/// Returns the representation that the header of a request asks for. Ranges are defined for `GET` only (RFC 9110, section 14.2):
/// a `HEAD` request gets the header of the whole.
pub(super) fn negotiated(
    mut response: Response<Bytes>,
    to_head: bool,
    request: &HeaderMap,
    Negotiation { compressed, ranges, .. }: Negotiation,
) -> Response<Bytes> {
    if response.status() != StatusCode::OK {
        return response;
    }
    let is_compressible = compressed && is_compressible(&response);
    if is_compressible {
        // Also without content or in part: which representation it is, depends on the field all the same.
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    let range = request.get(RANGE).filter(|_| ranges && !to_head);
    let in_gzip = is_compressible && range.is_none() && accepts_gzip(request);
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    let tag = tag.map(|tag| if in_gzip { tag_of_gzip(tag) } else { tag.to_owned() });
    // A response has no modification date, so that the fields which name one are ignored (RFC 9110, section 13.1.4).
    if let Some(tag) = &tag
        && !tags(request, IF_MATCH).is_none_or(|wanted| wanted.into_iter().any(|wanted| is_tag(wanted, tag)))
    {
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().insert(ETAG, visible(tag.clone()));
        return with_status(response, StatusCode::PRECONDITION_FAILED, Bytes::new());
    }
    if let Some(tag) = &tag
        && tags(request, IF_NONE_MATCH).is_some_and(|known| known.into_iter().any(|known| is_weakly_tag(known, tag)))
    {
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().insert(ETAG, visible(tag.clone()));
        return with_status(response, StatusCode::NOT_MODIFIED, Bytes::new());
    }
    if let Some(range) = range {
        let is_same = request.get(IF_RANGE).is_none_or(|wanted| wanted.to_str().ok() == tag.as_deref());
        return if is_same { in_range(response, range) } else { response };
    }
    if ranges {
        response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    }
    if in_gzip { compressed_in_gzip(response, tag) } else { response }
}

fn with_status(mut response: Response<Bytes>, status: StatusCode, body: Bytes) -> Response<Bytes> {
    *response.status_mut() = status;
    *response.body_mut() = body;
    response
}

/// Returns the part that a `Range` asks for. A range that is not understood, or several of them, stand for everything.
fn in_range(mut response: Response<Bytes>, range: &HeaderValue) -> Response<Bytes> {
    let length = response.body().len();
    let (status, shown, part) = match range.to_str().ok().and_then(|range| range_of(range, length)) {
        None => return response,
        Some(None) => (StatusCode::RANGE_NOT_SATISFIABLE, format!("bytes */{length}"), Bytes::new()),
        Some(Some((first, last))) => {
            let part = response.body().slice(first..=last);
            (StatusCode::PARTIAL_CONTENT, format!("bytes {first}-{last}/{length}"), part)
        }
    };
    response.headers_mut().insert(CONTENT_RANGE, visible(shown));
    with_status(response, status, part)
}

/// Returns `true` if the response gains something by compression.
fn is_compressible(response: &Response<Bytes>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_text =
        kind.starts_with("text/") || ["json", "xml", "javascript", "wasm"].iter().any(|text| kind.contains(text));
    let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
    is_text && !is_encoded && COMPRESSED_BYTES.contains(&response.body().len())
}

/// Returns the tag of the compressed representation: another representation has another tag.
fn tag_of_gzip(tag: &str) -> String {
    tag.strip_suffix('"').map_or_else(|| tag.to_owned(), |begin| format!("{begin}-gzip\""))
}

/// Returns the response compressed, with this tag.
fn compressed_in_gzip(mut response: Response<Bytes>, tag: Option<String>) -> Response<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(response.body()).and_then(|()| encoder.finish());
    let Ok(gzip) = written else { return response };
    let fields = response.headers_mut();
    fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    tag.into_iter().for_each(|tag| _ = fields.insert(ETAG, visible(tag)));
    with_status(response, StatusCode::OK, gzip.into())
}

/// Converts a text of visible ASCII.
pub(super) fn visible(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("visible ASCII may stand in a field")
}

/// Returns the tags in the fields of this name, which are one list; `None` if there is no such field.
fn tags(request: &HeaderMap, name: HeaderName) -> Option<Vec<&str>> {
    let mut fields = request.get_all(name).iter().peekable();
    fields.peek()?;
    Some(fields.flat_map(|field| field.to_str().unwrap_or_default().split(',')).map(str::trim).collect())
}

/// Returns `true` if a tag of a request is that of the representation, byte for byte (RFC 9110, section 8.8.3.2).
fn is_tag(wanted: &str, tag: &str) -> bool {
    wanted == "*" || (wanted == tag && !tag.starts_with("W/"))
}

/// Returns `true` if a tag of a request is that of an equivalent representation.
fn is_weakly_tag(known: &str, tag: &str) -> bool {
    known == "*" || known.trim_start_matches("W/") == tag.trim_start_matches("W/")
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

/// Returns `true` if the client accepts gzip and does not exclude it: its fields are one list (RFC 9110, section 5.3).
fn accepts_gzip(request: &HeaderMap) -> bool {
    let fields = request.get_all(ACCEPT_ENCODING).iter();
    let codings = fields.flat_map(|field| field.to_str().unwrap_or_default().split(','));
    let mut accepted = codings.filter_map(accepted_as_gzip).peekable();
    accepted.peek().is_some() && accepted.all(|accepted| accepted)
}

/// Returns whether an element of `Accept-Encoding` accepts gzip or excludes it by the weight 0; `None` for other codings.
fn accepted_as_gzip(coding: &str) -> Option<bool> {
    let mut parts = coding.split(';').map(str::trim);
    parts.next().filter(|name| name.eq_ignore_ascii_case("gzip"))?;
    let weights = parts.filter_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('=')?.parse::<f32>().ok());
    Some(weights.into_iter().all(|weight| weight > 0.0))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn answer(body: &str, fields: &[(&'static str, &str)]) -> Response<Bytes> {
        answer_to(false, body, fields)
    }

    fn answer_to(to_head: bool, body: &str, fields: &[(&'static str, &str)]) -> Response<Bytes> {
        let mut request = HeaderMap::new();
        for (name, value) in fields {
            request.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let response = Response::builder().header(ETAG, "\"a\"").header(CONTENT_TYPE, "text/plain");
        let response = response.body(Bytes::from(body.to_owned())).unwrap();
        negotiated(response, to_head, &request, Negotiation { compressed: true, ranges: true, to_folder: false })
    }

    fn field<'r>(response: &'r Response<Bytes>, name: &str) -> Option<&'r str> {
        response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    #[test]
    fn a_client_that_has_the_content_gets_none() {
        for known in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "*"] {
            let found = answer("text", &[("if-none-match", known)]);
            assert_eq!((found.status().as_u16(), found.body().len()), (304, 0), "{known}");
            assert_eq!(field(&found, "etag"), Some("\"a\""));
        }
        for known in ["\"b\"", "a", "\"\"", "\"a-gzip\""] {
            assert_eq!(answer("text", &[("if-none-match", known)]).status(), StatusCode::OK, "{known}");
        }
    }

    #[test]
    fn a_client_that_wants_another_content_gets_none() {
        let gzip = ("accept-encoding", "gzip");
        for (fields, status) in [
            (&[("if-match", "\"a\"")][..], 200),
            (&[("if-match", "*")], 200),
            (&[("if-match", "\"b\""), ("if-match", "\"c\", \"a\"")], 200),
            (&[("if-match", "\"b\"")], 412),
            (&[("if-match", "W/\"a\"")], 412),
            (&[("if-match", "")], 412),
            (&[("if-match", "\"b\""), ("range", "bytes=0-3")], 412),
            (&[("if-match", "\"a\""), ("range", "bytes=0-3")], 206),
            (&[("if-match", "\"b\""), ("if-none-match", "\"a\"")], 412),
            (&[("if-match", "\"a\""), gzip], 412),
            (&[("if-match", "\"a-gzip\""), gzip], 200),
            // A date of which nothing is known is ignored.
            (&[("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT")], 200),
        ] {
            let found = answer(&"0123456789".repeat(200), fields);
            assert_eq!(found.status().as_u16(), status, "{fields:?}");
            assert!(status != 412 || found.body().is_empty(), "{fields:?}");
        }
    }

    #[test]
    fn a_request_for_the_header_gets_that_of_the_whole() {
        for range in ["bytes=0-3", "bytes=10-"] {
            let found = answer_to(true, "0123456789", &[("range", range)]);
            assert_eq!((found.status().as_u16(), found.body().len()), (200, 10), "{range}");
            assert_eq!((field(&found, "accept-ranges"), field(&found, "content-range")), (Some("bytes"), None));
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
            assert_eq!((found.status().as_u16(), &found.body()[..]), (status, body.as_bytes()), "{range}");
            assert_eq!(field(&found, "content-range"), shown, "{range}");
        }
        assert_eq!(answer("", &[("range", "bytes=0-")]).status().as_u16(), 416);
        let changed = answer("0123456789", &[("range", "bytes=0-3"), ("if-range", "\"b\"")]);
        assert_eq!(changed.status(), StatusCode::OK);
    }

    #[test]
    fn answers_without_content_and_in_part_name_what_they_depend_on() {
        let text = "0123456789".repeat(200);
        for (fields, status, tag) in [
            (&[("if-none-match", "\"a\"")][..], 304, "\"a\""),
            (&[("if-none-match", "\"a-gzip\""), ("accept-encoding", "gzip")], 304, "\"a-gzip\""),
            (&[("if-none-match", "\"a-gzip\"")], 200, "\"a\""),
            (&[("range", "bytes=0-3"), ("accept-encoding", "gzip")], 206, "\"a\""),
            (&[("range", "bytes=0-3"), ("if-range", "\"b\"")], 200, "\"a\""),
        ] {
            let found = answer(&text, fields);
            assert_eq!((found.status().as_u16(), field(&found, "etag")), (status, Some(tag)), "{fields:?}");
            assert_eq!(field(&found, "vary"), Some("Accept-Encoding"), "{fields:?}");
        }
        assert_eq!(field(&answer("short", &[("if-none-match", "\"a\"")]), "vary"), None);
    }

    #[test]
    fn texts_are_compressed_for_clients_that_accept_it() {
        let text = "0123456789".repeat(1000);
        let found = answer(&text, &[("accept-encoding", "br, gzip;q=0.8")]);
        assert_eq!(field(&found, "content-encoding"), Some("gzip"));
        assert_eq!(field(&found, "etag"), Some("\"a-gzip\""));
        assert_eq!(field(&found, "vary"), Some("Accept-Encoding"));
        let mut read = String::new();
        flate2::read::GzDecoder::new(&found.body()[..]).read_to_string(&mut read).unwrap();
        assert!(read == text && found.body().len() < 1000);
        for (text, accepted) in [(&*text, "br"), (&text, "gzip;q=0"), (&text, "GZIP; Q=0.000"), ("short", "gzip")] {
            assert_eq!(field(&answer(text, &[("accept-encoding", accepted)]), "content-encoding"), None, "{accepted}");
        }
        for (second, encoding) in
            [("gzip", Some("gzip")), ("gzip;q=0", None), ("gzip;Q=0.1", Some("gzip")), ("br", None)]
        {
            let found = answer(&text, &[("accept-encoding", "br"), ("accept-encoding", second)]);
            assert_eq!(field(&found, "content-encoding"), encoding, "{second}");
        }
        let excluded = answer(&text, &[("accept-encoding", "gzip"), ("accept-encoding", "gzip;q=0")]);
        assert_eq!(field(&excluded, "content-encoding"), None);
    }
}
