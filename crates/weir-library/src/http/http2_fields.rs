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
