//! Protection against requests that pages of other sites make with the cookies of this one.
//!
//! Browsers say from where a request comes: in `Sec-Fetch-Site`, or, older ones, in `Origin`. A client that says neither
//! is not a browser, and has no cookies of somebody else. Neither field has two values: a request with two is refused, because
//! another program on its way may have read the other one.

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Uri};

/// The field by which browsers say from where a request comes.
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns `true` if these fields say from which page a request comes.
pub(super) fn names_page(headers: &HeaderMap) -> bool {
    headers.contains_key(&SEC_FETCH_SITE) || headers.contains_key(ORIGIN)
}

/// Returns `true` if a page of another origin made this request, and it may change something. Links and images of other
/// sites lead to `GET`s, which must not.
pub(super) fn is_cross_site_write(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    let (site, origin) = (headers.get(&SEC_FETCH_SITE), headers.get(ORIGIN));
    // Most programs that are no browsers send neither.
    if site.is_none() && origin.is_none() {
        return false;
    }
    let are_several = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
    if are_several(&SEC_FETCH_SITE) || are_several(&ORIGIN) {
        return true;
    }
    if let Some(site) = site {
        return !matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let Some(origin) = origin else { return false };
    let host = headers.get(HOST).map(|host| host.as_bytes());
    let host = host.or(uri.authority().map(|authority| authority.as_str().as_bytes()));
    let origin = origin.to_str().unwrap_or_default();
    let of_origin = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    !matches!((of_origin, host), (Some(origin), Some(host)) if origin.as_bytes().eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(method: &str, fields: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let is_refused = is_cross_site_write(&method.parse().unwrap(), &Uri::from_static("/"), &headers);
        assert!(!is_refused || names_page(&headers), "{fields:?}");
        is_refused
    }

    #[test]
    fn pages_of_other_origins_may_not_write() {
        for method in ["POST", "PUT", "PATCH", "DELETE", "ANYTHING"] {
            for site in ["cross-site", "same-site", "", "unknown"] {
                assert!(is_refused(method, &[("host", "a"), ("sec-fetch-site", site)]), "{method} {site}");
            }
            for origin in ["https://b", "https://a:8443", "https://b.a", "null", "", "file://", "https://a/", "a"] {
                assert!(is_refused(method, &[("host", "a"), ("origin", origin)]), "{method} {origin}");
            }
        }
    }

    #[test]
    fn fields_with_two_values_are_refused() {
        assert!(is_refused("POST", &[("host", "a"), ("origin", "https://a"), ("origin", "https://b")]));
        assert!(is_refused("POST", &[("host", "a"), ("origin", "https://a"), ("origin", "https://a")]));
        let site = ("sec-fetch-site", "same-origin");
        assert!(is_refused("POST", &[("host", "a"), site, ("sec-fetch-site", "cross-site")]));
        assert!(is_refused("POST", &[("host", "a"), site, ("origin", "https://a"), ("origin", "https://b")]));
    }

    #[test]
    fn pages_of_the_service_and_other_programs_may() {
        for site in ["same-origin", "none"] {
            assert!(!is_refused("POST", &[("host", "a"), ("sec-fetch-site", site), ("origin", "https://b")]));
        }
        assert!(!is_refused("POST", &[("host", "a")]));
        assert!(!is_refused("POST", &[("host", "a:8080"), ("origin", "http://A:8080")]));
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(!is_refused(method, &[("host", "a"), ("sec-fetch-site", "cross-site"), ("origin", "https://b")]));
        }
        let of_http2 = Uri::from_static("https://a.example/");
        let headers = HeaderMap::from_iter([(ORIGIN, "https://a.example".parse().unwrap())]);
        assert!(!is_cross_site_write(&Method::POST, &of_http2, &headers));
    }
}
