//! The part of HTTP/1.1 that a static server needs: the head of a GET request, and the head of its response.

use std::io::{self, BufRead};
use std::path::{Component, Path, PathBuf};

/// Maximum size of a request head in bytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The file relative to the root; `None` if it must not be served.
    pub(crate) path: Option<PathBuf>,
    /// `true` if the client wants to keep the connection.
    pub(crate) keeps_alive: bool,
}

/// Reads the next request; `None` at the end of the connection.
pub(crate) fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut head = io::Read::take(stream, HEAD_BYTES_MAX);
    let mut first = String::new();
    if head.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let (method, target, version) = (words.next(), words.next(), words.next());
    let mut keeps_alive = version == Some("HTTP/1.1");
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.as_str() {
            "" => break,
            "connection: close" => keeps_alive = false,
            "connection: keep-alive" => keeps_alive = true,
            _ => {}
        }
    }
    let path = target.filter(|_| method == Some("GET")).and_then(safe_path);
    Ok(Some(Request { path, keeps_alive }))
}

/// Returns the path below the root; `None` if the target leads out of it.
fn safe_path(target: &str) -> Option<PathBuf> {
    let target = target.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(if target.is_empty() { "index.html" } else { target });
    path.components().all(|component| matches!(component, Component::Normal(_))).then(|| path.to_owned())
}

/// Formats the head of a response.
pub(crate) fn answer_head(status: u16, length: u64, keeps_alive: bool) -> String {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        _ => "Service Unavailable",
    };
    let connection = if keeps_alive { "keep-alive" } else { "close" };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Option<Request> {
        read_request(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn a_path_stays_below_the_root() {
        let path = |target: &str| request(&format!("GET {target} HTTP/1.1\r\n\r\n")).unwrap().path;
        assert_eq!(path("/a/b.txt?x=1"), Some("a/b.txt".into()));
        assert_eq!(path("/"), Some("index.html".into()));
        assert_eq!((path("/../secret"), path("/a/../../secret")), (None, None));
    }

    #[test]
    fn a_connection_is_kept_as_the_client_wants() {
        let keeps = |text: &str| request(text).unwrap().keeps_alive;
        assert!(keeps("GET / HTTP/1.1\r\nHost: here\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
        assert_eq!(request(""), None);
    }

    #[test]
    fn only_get_is_served_and_a_head_that_breaks_off_is_an_error() {
        assert_eq!(request("PUT /a HTTP/1.1\r\n\r\n").unwrap().path, None);
        assert!(read_request(&mut "GET / HTTP/1.1\r\nHost".as_bytes()).is_err());
    }
}
