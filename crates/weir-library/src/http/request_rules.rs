//! Rules of HTTP for the host and the header fields of a request that hyper leaves to the server.

use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Version};

/// Returns the rule that a request with these header fields violates, if there is one. The host is named once, or twice in the
/// same way: a proxy in front of the server could have looked at the other one (RFC 9112, section 3.2.2, and RFC 9113, section
/// 8.3.1).
pub(super) fn violation<B>(request: &Request<B>, fields: &HeaderMap) -> Option<&'static str> {
    let is_http2 = request.version() == Version::HTTP_2;
    if is_http2 && fields.values().any(|value| has_outer_blank(value.as_bytes())) {
        return Some("the value of a header field begins or ends with a blank");
    }
    let authority = request.uri().authority()?.as_str();
    if authority.contains('@') {
        return Some(if is_http2 {
            "`:authority` contains user information"
        } else {
            "the URL contains user information"
        });
    }
    let differs = fields.get_all(HOST).iter().any(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()));
    differs.then_some(if is_http2 {
        "`host` and `:authority` differ"
    } else {
        "`Host` differs from the host of the URL"
    })
}

/// Returns `true` if a value begins or ends with a blank or a tab, which HTTP/2 forbids (RFC 9113, section 8.2.1) and HTTP/1.1
/// does not count as a part of the value.
fn has_outer_blank(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.first()) || is_blank(value.last())
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn violated(version: Version, url: &str, fields: &[(&'static str, &'static str)]) -> Option<&'static str> {
        let fields =
            fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let request = Request::get(url).version(version).body(()).unwrap();
        violation(&request, &fields.collect())
    }

    #[test]
    fn a_request_names_one_host() {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            assert_eq!(violated(version, "http://a:80/x", &[("host", "A:80")]), None);
            assert_eq!(violated(version, "http://a/x", &[]), None);
            for (url, host) in
                [("http://a/", "b"), ("http://a/", "a:80"), ("http://a:80/", "a"), ("http://a@b/", "a@b")]
            {
                assert!(violated(version, url, &[("host", host)]).is_some(), "{url} {host}");
            }
        }
        assert_eq!(violated(Version::HTTP_11, "/x", &[("host", "a")]), None);
    }

    #[test]
    fn blanks_around_values_are_refused_over_http_2() {
        for value in [" a", "a ", "\ta", "a\t", " "] {
            assert!(violated(Version::HTTP_2, "http://a/", &[("x", value)]).is_some(), "{value:?}");
        }
        assert_eq!(violated(Version::HTTP_2, "http://a/", &[("x", "a b"), ("y", "")]), None);
    }
}
