//! Problem details (RFC 9457): errors as JSON, for clients that prefer it.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::Serialize;

/// The media type of problem details.
const PROBLEM: &str = "application/problem+json";

/// The members of problem details. Without a `type`, it is `about:blank`, and the title is the status in words.
#[derive(Serialize)]
struct ProblemDetails<'a> {
    title: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

/// Returns the body of an error response with this text. A text that is only the status in words is no detail.
pub(super) fn body(status: StatusCode, detail: &str) -> Bytes {
    let title = status.canonical_reason().unwrap_or_default();
    let detail = if detail == title { "" } else { detail };
    let details = ProblemDetails { title, status: status.as_u16(), detail };
    serde_json::to_vec(&details).expect("texts and numbers can be written as JSON").into()
}

/// Returns the media type of problem details.
pub(super) fn media_type() -> HeaderValue {
    HeaderValue::from_static(PROBLEM)
}

/// Returns `true` if the client names a kind of JSON among the media types that it accepts, and does not ask for a page.
pub(super) fn is_preferred(request: &HeaderMap) -> bool {
    let accepted = request.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<&str> = accepted
        .flat_map(|line| line.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .collect();
    let is_json = |range: &&str| range.eq_ignore_ascii_case("application/json") || range.ends_with("+json");
    ranges.iter().any(is_json) && !ranges.contains(&"text/html")
}
