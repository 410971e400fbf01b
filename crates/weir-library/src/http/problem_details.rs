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
    let ranges: Vec<&str> = accepted.flat_map(|line| line.split(',')).filter_map(accepted_range).collect();
    let is_json = |range: &&str| range.eq_ignore_ascii_case("application/json") || range.ends_with("+json");
    ranges.iter().any(is_json) && !ranges.contains(&"text/html")
}

/// Returns the media range of an element of `Accept`; `None` if its weight is 0, which excludes it.
fn accepted_range(element: &str) -> Option<&str> {
    let mut parts = element.split(';').map(str::trim);
    let range = parts.next()?;
    let mut weights = parts.filter_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('=')?.parse::<f32>().ok());
    weights.all(|weight| weight > 0.0).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_of_weight_0_is_not_accepted() {
        for (accept, expected) in [
            ("application/json", true),
            ("application/json;q=0.5, text/html;q=0", true),
            ("application/json; q=0", false),
            ("application/json, text/html", false),
            ("text/html;q=0", false),
            ("application/problem+json;charset=x;Q=0.000", false),
        ] {
            let request = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(is_preferred(&request), expected, "{accept}");
        }
    }
}
