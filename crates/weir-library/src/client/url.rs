//! URLs of requests: checks, origins, and the target of a redirect (RFC 3986, section 5).

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use weir::Failure;

/// Parses the URL that a program requests.
///
/// # Errors
/// Fails as [`parse`] does, and if a segment of the path is `.` or `..`, also percent-encoded: servers resolve them, so
/// that `"…/users/{name}/avatar"` would leave its folder if the name is `..`.
pub(super) fn requested(text: &str) -> Result<Uri, Failure> {
    let url = parse(text)?;
    let path = url.path();
    let begins_with_dot = |at: usize| matches!(path.as_bytes().get(at + 1), Some(b'.' | b'%'));
    let mut slashes = memchr::memchr_iter(b'/', path.as_bytes());
    if slashes.any(|at| begins_with_dot(at) && path[at + 1..].split('/').next().is_some_and(is_dots)) {
        return Err(refused(text, "a segment of its path is `.` or `..`"));
    }
    Ok(url)
}

/// Returns `true` for the segments `.` and `..`, whose dots may be percent-encoded.
fn is_dots(segment: &str) -> bool {
    match without_dot(segment) {
        Some("") => true,
        Some(rest) => without_dot(rest) == Some(""),
        None => false,
    }
}

/// Returns the rest of a segment that begins with a dot.
fn without_dot(segment: &str) -> Option<&str> {
    let (first, rest) = segment.split_at_checked(3).unwrap_or_default();
    segment.strip_prefix('.').or_else(|| first.eq_ignore_ascii_case("%2e").then_some(rest))
}

/// Parses the URL of a request.
///
/// # Errors
/// Fails unless it is absolute, of `http` or `https`, and without a name and password.
pub(super) fn parse(text: &str) -> Result<Uri, Failure> {
    // A fragment is for the client only.
    let text = &text[..memchr::memchr(b'#', text.as_bytes()).unwrap_or(text.len())];
    let url: Uri = text.parse().map_err(|error| refused(text, &format!("{error}; `client.encode` encodes a part")))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().unwrap_or_default().is_empty() {
        return Err(refused(text, "it must begin with `https://` or `http://` and a host"));
    }
    if url.authority().is_some_and(|authority| memchr::memchr(b'@', authority.as_str().as_bytes()).is_some()) {
        // The text is not shown, because it contains a password.
        return Err(Failure::argument("a URL must not contain a name and password; use a header"));
    }
    Ok(url)
}

fn refused(text: &str, why: &str) -> Failure {
    // The query may contain credentials.
    let shown: String = text.split('?').next().unwrap_or_default().chars().take(200).collect();
    Failure::argument(format!("{shown:?} is not the URL of a request: {why}"))
}

/// Returns the host of a URL without a name and password; an address of IPv6 in its brackets.
pub(super) fn host(url: &Uri) -> &str {
    let authority = url.authority().map_or("", Authority::as_str);
    match authority.rfind(':') {
        Some(at) if !authority.ends_with(']') => &authority[..at],
        _ => authority,
    }
}

/// Returns `true` if two URLs have the same scheme, host and port.
pub(super) fn is_same_origin(url: &Uri, other: &Uri) -> bool {
    let host = |url: &Uri| url.host().unwrap_or_default().to_ascii_lowercase();
    url.scheme() == other.scheme() && host(url) == host(other) && port(url) == port(other)
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 })
}

/// Returns the URL to which `location` leads from `base`.
///
/// # Errors
/// Fails if the result is not the URL of a request.
pub(super) fn joined(base: &Uri, location: &str) -> Result<Uri, Failure> {
    let location = location.split('#').next().unwrap_or_default();
    if location.contains("://") && location.find(['/', '?']).is_none_or(|at| location[..at].ends_with(':')) {
        return parse(location);
    }
    let scheme = base.scheme_str().unwrap_or("https");
    if let Some(behind) = location.strip_prefix("//") {
        return parse(&format!("{scheme}://{behind}"));
    }
    let authority = base.authority().map_or("", Authority::as_str);
    let (path, query) = location.split_once('?').map_or((location, None), |(path, query)| (path, Some(query)));
    let path = match path {
        "" => base.path().to_owned(),
        path if path.starts_with('/') => without_dots(path),
        path => without_dots(&format!("{}/{path}", base.path().rsplit_once('/').map_or("", |(folder, _)| folder))),
    };
    let old = base.path_and_query().and_then(PathAndQuery::query).filter(|_| location.is_empty());
    let query = query.or(old).map_or(String::new(), |query| format!("?{query}"));
    parse(&format!("{scheme}://{authority}{path}{query}"))
}

/// Removes the segments `.` and `..` from an absolute path.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        match *segment {
            "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
        if at + 1 == segments.len() && matches!(*segment, "." | "..") {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_rfc() {
        // RFC 3986, section 5.4, with the base `http://a/b/c/d;p?q`, as far as HTTP can request them.
        let base: Uri = "http://a/b/c/d;p?q".parse().unwrap();
        let examples = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./../g", "http://a/b/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("http://g/x", "http://g/x"),
            ("/x?u=http://g/", "http://a/x?u=http://g/"),
        ];
        for (location, expected) in examples {
            assert_eq!(joined(&base, location).unwrap().to_string(), expected, "{location}");
        }
        for location in ["ftp://g/", "javascript:x", "http://", "http://u:p@g/"] {
            let joined = joined(&base, location);
            assert!(joined.is_err() || is_same_origin(&joined.unwrap(), &base), "{location}");
        }
    }

    #[test]
    fn urls_that_are_no_requests_are_refused_without_showing_credentials() {
        for text in ["", "/a", "a.example", "ftp://a/", "http://", "http:///a", "https://a b/", "mailto:a@b"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let said = parse("https://ada:secret@a.example/").unwrap_err().message.to_string();
        assert!(!said.contains("secret"), "{said}");
        let said = parse("https://a b/?token=secret").unwrap_err().message.to_string();
        assert!(!said.contains("secret"), "{said}");
    }

    #[test]
    fn the_host_is_what_is_before_the_port() {
        for text in
            ["http://a.example/", "http://a.example:8080/x:y", "http://[::1]:80/", "http://[::1]/", "http://a:/"]
        {
            let url = parse(text).unwrap();
            assert_eq!(Some(host(&url)), url.host(), "{text}");
        }
    }

    #[test]
    fn segments_of_dots_are_refused() {
        for path in ["users/../avatar", "..", "a/.", ".", "%2e%2E/a", ".%2e", "%2E.", "a/%2e", "%2e/"] {
            assert!(requested(&format!("http://a.example/{path}")).is_err(), "{path}");
        }
        assert!(requested("http://a.example/a../..b/.well-known?q=../").is_ok());
        assert!(requested("http://a.example/.../%2e%2e%2e/%2/%2ea/.%2").is_ok());
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| is_same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("http://a.example/x", "http://A.example:80/y") && same("https://a/", "https://a:443/"));
        assert!(
            !same("http://a/", "https://a/") && !same("http://a/", "http://a:8080/") && !same("http://a/", "http://b/")
        );
    }
}
