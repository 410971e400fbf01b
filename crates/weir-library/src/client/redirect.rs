//! Redirects: the request that follows a response (RFC 9110, section 15.4).

use hyper::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderName, LOCATION, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{Method, StatusCode, Uri};
use weir::Failure;

use super::options::Call;
use super::url::{is_same_origin, joined};
use crate::network::Reach;

/// Header fields that a request keeps when it is redirected to another origin. All others may be credentials.
const KEPT_ACROSS_ORIGINS: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

/// Returns the request that follows a response; `None` if it is not a redirect.
///
/// # Errors
/// Fails if the redirect leads from `https` to `http`, or would send a body to another origin.
pub(super) fn following(call: &Call, response: &Parts) -> Result<Option<Call>, Failure> {
    let Some(location) = response.headers.get(LOCATION).filter(|_| is_redirect(response.status)) else {
        return Ok(None);
    };
    let location = location.to_str().map_err(|_| Failure::function("the target of a redirect is not a URL"))?;
    let url = joined(&call.url, location)?;
    let next = with_method(call.clone(), response.status);
    if is_same_origin(&call.url, &url) {
        Ok(Some(Call { url, ..next }))
    } else {
        to_another_origin(next, url).map(Some)
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Turns the request into a `GET` without a body if the status says so, as browsers do.
fn with_method(call: Call, status: StatusCode) -> Call {
    let changes = match status.as_u16() {
        303 => call.method != Method::HEAD,
        301 | 302 => call.method == Method::POST,
        _ => false,
    };
    if !changes {
        return call;
    }
    let mut call = Call { method: Method::GET, body: bytes::Bytes::new(), ..call };
    call.fields.changed().remove(CONTENT_TYPE);
    call
}

/// Directs the request to another origin: without credentials, and to public addresses only, because `private: true`
/// is said of the URL in the program.
fn to_another_origin(mut call: Call, url: Uri) -> Result<Call, Failure> {
    if call.url.scheme_str() == Some("https") && url.scheme_str() == Some("http") {
        return Err(Failure::function("the redirect leads from `https` to `http`"));
    }
    if !call.body.is_empty() {
        return Err(Failure::function("the redirect would send the body to another origin"));
    }
    let fields = call.fields.changed();
    let mut all = std::mem::take(fields);
    for name in KEPT_ACROSS_ORIGINS {
        if let Some(value) = all.remove(&name) {
            fields.insert(name, value);
        }
    }
    Ok(Call { url, reach: Reach::Public, ..call })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir::Size;

    use super::*;
    use crate::client::options::CallOptions;

    fn call(method: Method, url: &str) -> Call {
        let headers =
            [("Authorization", "secret"), ("Cookie", "a=b"), ("X-Api-Key", "secret"), ("Accept", "text/plain")];
        let headers = headers.map(|(name, value)| (name.into(), value.into())).into();
        let (timeout, bytes_max) = (Duration::from_secs(1), Size(1));
        let options = CallOptions { headers, bearer: None, timeout, bytes_max, redirects_max: 5, private: true };
        Call::new(method, url, options).unwrap()
    }

    fn redirected(call: &Call, status: u16, location: &str) -> Result<Option<Call>, Failure> {
        let response = hyper::Response::builder().status(status).header(LOCATION, location).body(()).unwrap();
        following(call, &response.into_parts().0)
    }

    #[test]
    fn credentials_and_private_addresses_stay_with_their_origin() {
        for location in ["https://b.example/", "//b.example/x", "https://a.example:8443/"] {
            let mut next = redirected(&call(Method::GET, "https://a.example/"), 302, location).unwrap().unwrap();
            let names: Vec<&str> = next.fields.get().keys().map(HeaderName::as_str).collect();
            assert_eq!(names, ["accept", "accept-encoding", "user-agent"], "{location}");
            assert_eq!(next.reach, Reach::Public);
        }
        for location in ["/x", "https://a.example:443/", "?y", "https://A.EXAMPLE/"] {
            let mut next = redirected(&call(Method::GET, "https://a.example/"), 302, location).unwrap().unwrap();
            assert_eq!((next.fields.get().len(), next.reach), (6, Reach::Private), "{location}");
        }
    }

    #[test]
    fn a_redirect_never_leaves_https() {
        assert!(redirected(&call(Method::GET, "https://a.example/"), 302, "http://a.example/").is_err());
        assert!(redirected(&call(Method::GET, "http://a.example/"), 302, "https://a.example/").is_ok());
        assert!(redirected(&call(Method::GET, "https://a.example/"), 302, "file:///etc/passwd").is_err());
    }

    #[test]
    fn the_status_decides_about_method_and_body() {
        let post = call(Method::POST, "http://a/").with_body("x".into(), "text/plain").unwrap();
        for (status, method, body) in
            [(301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "x"), (308, "POST", "x")]
        {
            let mut next = redirected(&post, status, "/next").unwrap().unwrap();
            assert_eq!((next.method.as_str(), &next.body[..]), (method, body.as_bytes()), "{status}");
            assert_eq!(next.fields.get().contains_key(CONTENT_TYPE), !body.is_empty());
        }
        assert!(redirected(&post, 307, "http://b/").is_err());
        assert!(redirected(&post, 303, "http://b/").unwrap().is_some());
        for status in [200, 201, 300, 304, 404] {
            assert!(redirected(&post, status, "/next").unwrap().is_none(), "{status}");
        }
    }
}
