//! HTTP/1.1 on raw sockets: parsing the head of a request, and composing the head of a response.
//!
//! These are `parse` and `compose` of the web server in the thesis on Ohua (§2.3); `accept`, `read`, `load` and `reply`
//! are in `tcp` and `files`. A service that needs all of HTTP, with limits on its clients, uses `http`.

mod fields;

use bytes::Bytes;
use hyper::StatusCode;
use percent_encoding::percent_decode_str;
use weir::{Failure, FailureKind, Text};

pub use fields::Fields;

use crate::units;

/// Maximum number of fields in a head.
const HEADERS_MAX: usize = 64;

weir::library! {
    /// HTTP/1.1 on raw sockets: parsing and composing heads.
    pub(crate) http1: parse, header, head
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq, weir::Type)]
#[weir(name = "http1.Request")]
pub struct Request {
    /// The method as it was sent: `GET`.
    pub method: Text,
    /// The decoded path without its leading `/`: `a b.html` for `/a%20b.html`.
    pub path: Text,
    /// The part after `?`, as it was sent.
    pub query: Option<Text>,
    /// `true` if another request may follow on the connection.
    pub keep_alive: bool,
    /// Length of the body after the head, in bytes.
    pub length: i64,
    /// The header fields, with names in lower case; several fields of one name are joined by `, `.
    pub headers: Fields,
}

/// Parses the head of a request: its first line and fields, including the empty line at the end.
///
/// # Errors
/// Fails if it is not an HTTP/1 head, is incomplete, or has a body of unknown length.
#[weir::function(pure, units = units::to_transform(head))]
pub fn parse(head: &[u8]) -> Result<Request, Failure> {
    if has_bare_line_feed(head) {
        return Err(Failure::function("not a request: a line ends without a carriage return"));
    }
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Failure::function("the head is incomplete")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Failure::new(FailureKind::Limit, format!("the head has more than {HEADERS_MAX} fields")));
        }
        Err(error) => return Err(Failure::function(format!("not a request: {error}"))),
    }
    if parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host")).count() > 1 {
        return Err(Failure::function("not a request: it names two hosts"));
    }
    let headers = Fields::of(parsed.headers)?;
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query.into())));
    Ok(Request {
        method: parsed.method.unwrap_or_default().into(),
        path: decoded(path.strip_prefix('/').unwrap_or(path))?,
        query,
        keep_alive: keep_alive(parsed.version == Some(1), headers.get("connection")),
        length: length(&headers)?,
        headers,
    })
}

/// Returns `true` if a line feed ends a line alone: a proxy in front may see another request than this parser.
fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

fn decoded(path: &str) -> Result<Text, Failure> {
    let path = percent_decode_str(path).decode_utf8();
    path.map(|path| Text::from(&*path)).map_err(|_| Failure::function("the path is not UTF-8"))
}

fn keep_alive(is_1_1: bool, connection: Option<&str>) -> bool {
    let says = |word: &str| {
        connection.is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    if is_1_1 { !says("close") } else { says("keep-alive") }
}

/// Returns the length of the body. A head with both a length and chunks is refused, because a proxy in front may follow
/// the other one.
fn length(headers: &Fields) -> Result<i64, Failure> {
    if headers.get("transfer-encoding").is_some() {
        return Err(Failure::function("chunked bodies are not supported"));
    }
    let Some(length) = headers.get("content-length") else { return Ok(0) };
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    length.parse().ok().filter(|_| digits).ok_or_else(|| Failure::function("the length of the body is not a number"))
}

/// Returns the value of a request's header field, whose name may be written in any case.
#[weir::function(pure)]
pub fn header(request: &Request, name: &str) -> Option<Text> {
    request.headers.get(name).map(Text::from)
}

/// Composes the head of a response with a body of this length.
///
/// # Errors
/// Fails if there is no such status, the length is negative, or the type is not valid in a header field.
#[weir::function(pure)]
pub fn head(
    status: i64,
    length: i64,
    keep_alive: bool,
    #[default("application/octet-stream")] r#type: &str,
) -> Result<Bytes, Failure> {
    let code = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    let code = code.ok_or_else(|| Failure::argument(format!("`status` must be 100 to 999, not {status}")))?;
    if length < 0 {
        return Err(Failure::argument(format!("`length` must be at least 0, not {length}")));
    }
    if !r#type.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err(Failure::argument(format!("`type` must be valid in a header field, not {:?}", r#type)));
    }
    let connection = if keep_alive { "keep-alive\r\n\r\n" } else { "close\r\n\r\n" };
    let reason = code.canonical_reason().unwrap_or("");
    let mut digits = itoa::Buffer::new();
    let length = digits.format(length);
    let status = ["HTTP/1.1 ", code.as_str(), " ", reason];
    let fields = ["\r\nContent-Type: ", r#type, "\r\nContent-Length: ", length, "\r\nConnection: ", connection];
    let length = status.iter().chain(&fields).map(|part| part.len()).sum();
    let mut head = String::with_capacity(length);
    head.extend(status.into_iter().chain(fields));
    Ok(head.into())
}
