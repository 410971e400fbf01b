//! Header fields of HTTP/2 requests in the form that they have in HTTP/1.1, so that routes read them alike.

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderValue};
use hyper::{Request, Version};

/// Converts the header fields of a request, if it is one of HTTP/2: its authority is its `Host` (RFC 9113, section 8.3.1),
/// and its cookies, which clients send in several fields, are one field (section 8.2.3).
pub(super) fn normalize<B>(request: &mut Request<B>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let authority = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let fields = request.headers_mut();
    if let Some(authority) = authority.filter(|_| !fields.contains_key(HOST)) {
        fields.insert(HOST, authority);
    }
    join_cookies(fields);
}

fn join_cookies(fields: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        fields.insert(COOKIE, joined);
    }
}

/// Returns what is wrong with the authority of a request, if it is one of HTTP/2 (RFC 9113, section 8.3.1). Requests of
/// HTTP/1 are validated before hyper parses them.
pub(super) fn wrong_authority<B>(request: &Request<B>) -> Option<&'static str> {
    let (Version::HTTP_2, Some(authority)) = (request.version(), request.uri().authority()) else { return None };
    let mut hosts = request.headers().get_all(HOST).iter();
    if authority.as_str().contains('@') {
        return Some("`:authority` contains user information");
    }
    let differs = hosts.any(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()));
    differs.then_some("`host` and `:authority` differ")
}
