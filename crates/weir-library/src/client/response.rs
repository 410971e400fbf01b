//! Responses of other services.

use bytes::Bytes;
use hyper::header::{HeaderMap, SET_COOKIE};
use hyper::{StatusCode, Uri};
use weir::{Borrowable, Failure, FailureKind, Text, TypeArgument, Value};

use crate::json::{Json, parse_bytes};

/// A response: its status, header fields and body, and the URL that it came from. Cloning it does not copy the body.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "client.Response")]
pub struct ClientResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) url: Uri,
}

impl ClientResponse {
    /// Returns the body of a successful response.
    fn of_success(&self) -> Result<&Bytes, Failure> {
        if self.status.is_success() {
            return Ok(&self.body);
        }
        let host = self.url.host().unwrap_or("the service");
        Err(Failure::function(format!("{host} answered {}", self.status)))
    }
}

/// Returns the status, such as 200.
#[weir::function(pure)]
pub fn status(response: &ClientResponse) -> i64 {
    response.status.as_u16().into()
}

/// Returns the value of the cookie that a service sets with `http.with_cookie`.
#[weir::function(pure)]
pub fn cookie(response: &ClientResponse, name: &str) -> Option<String> {
    let prefix = format!("__Host-{name}=");
    let set = response.headers.get_all(SET_COOKIE).iter().filter_map(|field| field.to_str().ok());
    let mut values = set.filter_map(|field| field.strip_prefix(&*prefix));
    values.next_back().map(|value| value.split(';').next().unwrap_or_default().to_owned())
}

/// Returns the body, whatever the status is.
#[weir::function(pure)]
pub fn body(response: &ClientResponse) -> Bytes {
    response.body.clone()
}

/// Returns the body as text. `response.body()` has that of an answer with any status, and `bytes.to_text` reads it.
///
/// # Errors
/// Fails if the status is not a success (200 to 299), or the body is not UTF-8.
#[weir::function(pure, units = units_of(response))]
pub fn text(response: &ClientResponse) -> Result<String, Failure> {
    let text = std::str::from_utf8(response.of_success()?);
    text.map(str::to_owned).map_err(|_| Failure::function("the response is not UTF-8"))
}

/// Returns the units of copying the body.
fn units_of(response: &Value) -> u64 {
    <ClientResponse as Borrowable>::borrow_from(response).map_or(0, |response| response.body.len() as u64 / 16)
}

/// Returns the body as JSON of any shape.
///
/// # Errors
/// Fails if the status is not a success (200 to 299), or the body is not JSON.
#[weir::function(pure, units = units_of(response).saturating_mul(8))]
pub fn json(response: &ClientResponse) -> Result<Json, Failure> {
    parse_bytes(response.of_success()?)
}

/// Reads the body, which is JSON, as a value of the type that the place of the call expects, as `json.decode` does:
/// `let user: User = client.get(url)?.decode_json()?`.
///
/// # Errors
/// Fails if the status is not a success (200 to 299), or if the body is not JSON or does not have the type; the message
/// says where, what was expected and what was found.
#[weir::function(pure, units = units_of(response).saturating_mul(8))]
pub fn decode_json(response: &ClientResponse, of: TypeArgument<'a'>) -> Result<Value, Failure> {
    crate::json::decoded(response.of_success()?, &of)
}

/// Returns the value of a header field; the first if there are several of this name.
#[weir::function(pure)]
pub fn header(response: &ClientResponse, name: &str) -> Option<String> {
    let value = response.headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Returns the URL that the response came from, after all redirects.
#[weir::function(pure)]
pub fn url(response: &ClientResponse) -> String {
    response.url.to_string()
}

/// Makes a response, for tests that replace a call: `with client.get = |url| Ok(client.response(body: "[]"))`.
///
/// # Errors
/// A status that is not 100 to 999 ends the flow.
#[weir::function(pure)]
pub fn response(#[default(200)] status: i64, #[default("")] body: Text) -> crate::Limited<ClientResponse> {
    let code = u16::try_from(status).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let invalid = || Failure::new(FailureKind::Argument, format!("{status} is not the status of a response"));
    crate::Limited(code.ok_or_else(invalid).map(|status| ClientResponse {
        status,
        headers: HeaderMap::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
        url: Uri::from_static("https://test.invalid/"),
    }))
}
