//! HTTP responses, as programs create them.

use std::fmt;

use bytes::Bytes;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use weir::Typed;

use super::encrypted_cookies::{EncryptedCookie, encrypted_length};
use super::problem_details;
use super::representation::{self, Negotiation};
use super::request_fields::RequestFields;
use crate::Limited;
use crate::html::Html;
use crate::json::encode::written;
use crate::units;

/// The media type of plain text.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
/// Media types that need no copy and no validation.
static WELL_KNOWN: [HeaderValue; 12] = [
    HeaderValue::from_static(PLAIN_TEXT),
    HeaderValue::from_static(HTML),
    HeaderValue::from_static(JSON),
    HeaderValue::from_static("application/octet-stream"),
    HeaderValue::from_static("image/jpeg"),
    HeaderValue::from_static("image/png"),
    HeaderValue::from_static("image/gif"),
    HeaderValue::from_static("image/webp"),
    HeaderValue::from_static("image/svg+xml"),
    HeaderValue::from_static("text/html"),
    HeaderValue::from_static("text/plain"),
    HeaderValue::from_static("text/css"),
];
/// Header fields that frame the message and are therefore set by the server only.
const FRAMING_FIELDS: [HeaderName; 6] = [CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// Characters that are percent-encoded in a `Location`: spaces, controls, and characters that would need quoting.
const NOT_IN_LOCATION: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`');
/// Maximum total size of a response's header fields, in bytes.
const FIELDS_BYTES_MAX: usize = 16 * 1024;

/// A response to a request: its status, header fields and body. Cloning it does not copy the body.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "http.Response")]
pub struct Response {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    /// Further header fields; boxed because most responses have none and are moved often.
    fields: Option<Box<FurtherFields>>,
    body: Bytes,
    pub(super) negotiation: Negotiation,
}

/// The header fields of a response besides its media type.
#[derive(Clone, Debug, Default)]
struct FurtherFields {
    fields: HeaderMap,
    /// Cookies that become fields when the service encrypts them.
    cookies: Vec<EncryptedCookie>,
}

impl FurtherFields {
    /// Returns the size of all fields.
    fn bytes(&self) -> usize {
        let cookies = self.cookies.iter().map(|cookie| cookie.name.len() + encrypted_length(cookie.value.len()));
        let fields = self.fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
        fields.chain(cookies).sum()
    }
}

/// Error of a response that cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The status is not a final one: it must be 200 to 599.
    Status(i64),
    /// The text is not a valid name of a header field.
    FieldName(String),
    /// The header field frames the message.
    FramingField(String),
    /// The value contains a line break, another control character, or a character outside ASCII.
    FieldValue(String),
    /// The header fields take more bytes than clients accept.
    TooManyFields,
    /// The status is not one of an error.
    NoProblem(i64),
    /// The redirect leads to another site, or to a path that depends on the page that asks for it.
    OtherSite,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseError::Status(code) => write!(f, "the status must be 200 to 599, not {code}"),
            ResponseError::FieldName(name) => write!(f, "{name:?} is not the name of a header field"),
            ResponseError::FramingField(name) => write!(f, "the header field `{name}` is set by the server"),
            ResponseError::FieldValue(name) => {
                write!(f, "the value of the header field `{name}` may contain only visible ASCII characters and spaces")
            }
            ResponseError::NoProblem(code) => write!(f, "the status of a problem must be 400 to 599, not {code}"),
            ResponseError::OtherSite => {
                f.write_str(
                    "the redirect leads to no path of this site, which begins with `/`, `./`, `../`, `?` or `#`; `external: true` permits \
                     other URLs, if they are trusted",
                )
            }
            ResponseError::TooManyFields => write!(f, "the header fields take more than {FIELDS_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for ResponseError {}

impl Response {
    pub(super) fn new(status: StatusCode, content_type: Option<HeaderValue>, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Response { status, content_type, fields: None, body, negotiation: Negotiation::default() }
    }

    /// Creates a plain-text response.
    pub(crate) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Response::new(status, Some(HeaderValue::from_static(PLAIN_TEXT)), text)
    }

    /// Creates a response whose body is the status in words.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        Response::plain(status, status.canonical_reason().unwrap_or_default())
    }

    /// Creates the response to a method that the path does not support.
    pub(crate) fn not_allowed(allow: HeaderValue) -> Self {
        Response::of_status(StatusCode::METHOD_NOT_ALLOWED).with_field(ALLOW, allow)
    }

    /// Creates the response to an `OPTIONS` request.
    pub(crate) fn options(allow: HeaderValue) -> Self {
        Response::new(StatusCode::NO_CONTENT, None, Bytes::new()).with_field(ALLOW, allow)
    }

    /// Creates the response of an overloaded server.
    pub(crate) fn overloaded() -> Self {
        Response::of_status(StatusCode::SERVICE_UNAVAILABLE).with_field(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Creates the response to a request whose flow is given up after it has begun. It does not ask the client to send the request
    /// once more if both may take effect: an atomic step that has begun goes on to its end.
    pub(crate) fn given_up(method: &Method) -> Self {
        if method.is_idempotent() {
            return Response::overloaded();
        }
        let why = "the answer takes too long; nobody knows whether the request has taken effect, or will";
        Response::plain(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// Completes the response to a request with this path, which says how the client has written the path of a folder.
    pub(super) fn complete_at_path(&mut self, path: &str) {
        if self.negotiation.to_folder {
            self.redirect_within_segment(path);
        }
    }

    /// Corrects a redirect to a folder for a request whose last segment contains an encoded `/`: `docs%2Fpages` is one
    /// segment, which a relative reference replaces as a whole. The `./` keeps a `:` in it from being read as the end of a
    /// scheme.
    #[cold]
    fn redirect_within_segment(&mut self, request_path: &str) {
        let segment = request_path.rsplit('/').next().unwrap_or_default();
        let has_slash = segment.as_bytes().windows(3).any(|part| part.eq_ignore_ascii_case(b"%2f"));
        if has_slash && let Ok(location) = HeaderValue::try_from(format!("./{segment}/")) {
            self.set_field(LOCATION, location);
        }
    }

    /// Creates the response to a request whose body has been read before, which no flow does.
    pub(super) fn closed_body() -> Self {
        Response::of_status(StatusCode::INTERNAL_SERVER_ERROR).closing()
    }

    /// Closes the connection after this response.
    pub(crate) fn closing(self) -> Self {
        self.with_field(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn with_field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.set_field(name, value);
        self
    }

    fn set_field(&mut self, name: HeaderName, value: HeaderValue) {
        self.fields.get_or_insert_default().fields.insert(name, value);
    }

    /// Returns the response with a cookie that its service encrypts.
    ///
    /// # Errors
    /// Fails if the header fields become too long.
    pub(super) fn with_encrypted(mut self, cookie: EncryptedCookie) -> Result<Self, ResponseError> {
        self.fields.get_or_insert_default().cookies.push(cookie);
        self.within_limit()
    }

    /// Returns the response with one more field of this name.
    ///
    /// # Errors
    /// Fails if the header fields become too long.
    pub(super) fn with_further_field(mut self, name: HeaderName, value: HeaderValue) -> Result<Self, ResponseError> {
        self.fields.get_or_insert_default().fields.append(name, value);
        self.within_limit()
    }

    fn within_limit(self) -> Result<Self, ResponseError> {
        let is_too_long = self.fields.as_ref().is_some_and(|further| further.bytes() > FIELDS_BYTES_MAX);
        if is_too_long { Err(ResponseError::TooManyFields) } else { Ok(self) }
    }

    /// Removes the cookie of this name, whose field begins with `set`.
    pub(super) fn remove_cookie(&mut self, name: &str, set: &str) {
        let Some(further) = &mut self.fields else { return };
        further.cookies.retain(|other| other.name != name);
        let fields = &mut further.fields;
        let is_other = |field: &&HeaderValue| !field.as_bytes().starts_with(set.as_bytes());
        let others: Vec<HeaderValue> = fields.get_all(SET_COOKIE).iter().filter(is_other).cloned().collect();
        fields.remove(SET_COOKIE);
        others.into_iter().for_each(|value| _ = fields.append(SET_COOKIE, value));
    }

    /// Takes the cookies that the service encrypts, if there are any.
    pub(super) fn take_encrypted(&mut self) -> Option<Vec<EncryptedCookie>> {
        let cookies = self.fields.as_mut().map(|further| &mut further.cookies).filter(|cookies| !cookies.is_empty());
        cookies.map(std::mem::take)
    }

    /// Turns the text of an error into problem details, if the client of this request prefers them.
    #[cold]
    fn error_for_client(&mut self, request: &HeaderMap) {
        let is_text = self.content_type.as_ref().is_some_and(|kind| kind == PLAIN_TEXT);
        if is_text && problem_details::is_preferred(request) {
            self.body = problem_details::body(self.status, &String::from_utf8_lossy(&self.body));
            self.content_type = Some(problem_details::media_type());
        }
    }

    /// Returns the status.
    #[must_use]
    pub fn code(&self) -> StatusCode {
        self.status
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the value of a header field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let content_type = name.eq_ignore_ascii_case("content-type");
        let of_fields = || self.fields.as_ref().and_then(|further| further.fields.get(name));
        let value = if content_type { self.content_type.as_ref() } else { of_fields() };
        value.and_then(|value| value.to_str().ok())
    }

    /// Converts the response to the representation that the header of a request asks for.
    fn negotiated(&mut self, to_head: bool, request: &HeaderMap) -> hyper::Response<Bytes> {
        let negotiation = std::mem::take(&mut self.negotiation);
        let whole = self.take_for_hyper(false, RequestFields::of(&mut HeaderMap::new()));
        let mut response = representation::negotiated(whole, to_head, request, negotiation);
        if to_head && response.status() != StatusCode::NOT_MODIFIED {
            let length = std::mem::take(response.body_mut()).len();
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response
    }

    /// Converts the response to a request with these fields for hyper, and leaves an empty one. To a `HEAD` request only the
    /// length of the body is sent.
    pub(crate) fn take_for_hyper(&mut self, to_head: bool, request: RequestFields<'_>) -> hyper::Response<Bytes> {
        if self.negotiation.compressed || self.negotiation.ranges {
            return self.negotiated(to_head, request.get());
        }
        if self.status.as_u16() >= 400 {
            self.error_for_client(request.get());
        }
        let without_body = matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let (length, is_own) = (self.body.len(), self.fields.is_some());
        let fields = request.parsed;
        match self.fields.take() {
            Some(own) => *fields = own.fields,
            None if fields.is_empty() => {}
            None => fields.clear(),
        }
        if let Some(content_type) = self.content_type.take().filter(|_| !without_body) {
            fields.insert(CONTENT_TYPE, content_type);
            // Browsers would guess the type of what a text or an upload looks like.
            if !is_own || !fields.contains_key(X_CONTENT_TYPE_OPTIONS) {
                fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            }
        }
        if to_head && !without_body {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let mut response =
            hyper::Response::new(if to_head || without_body { Bytes::new() } else { std::mem::take(&mut self.body) });
        *response.status_mut() = self.status;
        std::mem::swap(response.headers_mut(), fields);
        response
    }
}

/// Creates a response with status 200 and a body of this media type. Characters of the type that no header field may
/// contain are left out.
#[weir::function(pure)]
pub fn ok(body: Bytes, #[default("application/octet-stream")] r#type: &str) -> Response {
    Response::new(StatusCode::OK, Some(media_type(r#type)), body)
}

/// Creates a response with status 200 and a plain text.
#[weir::function(pure, units = units::to_copy(text))]
pub fn text(text: &str) -> Response {
    Response::plain(StatusCode::OK, Bytes::copy_from_slice(text.as_bytes()))
}

/// Creates a response with an HTML page, and with status 200 or the one that is given. A status that is not 200 to 599 ends
/// the flow.
#[weir::function(pure)]
pub fn html(page: &Html, #[default(200)] status: i64) -> Limited<Response> {
    let Some(code) = final_status(status) else { return Limited(Err(ResponseError::Status(status).into())) };
    let page = Bytes::copy_from_slice(page.as_str().as_bytes());
    Limited(Ok(Response::new(code, Some(HeaderValue::from_static(HTML)), page)))
}

/// Creates a response with any value as JSON, and with status 200 or the one that is given: records become objects, lists arrays, and `None` becomes
/// `null`. Request bodies are read in the same format. A value that nests more than 127 deep, or whose JSON is longer
/// than 64 MiB, ends the flow; so does a status that is not 200 to 599.
#[weir::function(pure, units = 2 * units::to_read(value))]
pub fn json(value: Typed<'a'>, #[default(200)] status: i64) -> Limited<Response> {
    let Some(code) = final_status(status) else { return Limited(Err(ResponseError::Status(status).into())) };
    let kind = HeaderValue::from_static(JSON);
    let written = written(&value.value, &value.of);
    Limited(written.map(|body| Response::new(code, Some(kind), body)))
}

/// Creates a response with status 400 and a text that says what is wrong with the request.
#[weir::function(pure)]
pub fn bad_request(text: &str) -> Response {
    Response::plain(StatusCode::BAD_REQUEST, Bytes::copy_from_slice(text.as_bytes()))
}

/// Creates an error response with problem details (RFC 9457): `{"title": "Conflict", "status": 409, "detail": …}`.
///
/// # Errors
/// Fails unless the status is 400 to 599.
#[weir::function(pure)]
pub fn problem(status: i64, #[default("")] detail: &str) -> Result<Response, ResponseError> {
    let status = final_status(status).filter(|code| code.as_u16() >= 400).ok_or(ResponseError::NoProblem(status))?;
    Ok(Response::new(status, Some(problem_details::media_type()), problem_details::body(status, detail)))
}

/// Creates a response with status 404.
#[weir::function(pure)]
pub fn not_found() -> Response {
    Response::of_status(StatusCode::NOT_FOUND)
}

/// Creates a redirect (status 303) to a path of this site, such as `/welcome`. A URL of another site needs
/// `external: true`, and ends the flow otherwise: a redirect to where a request says would lend this site's name to
/// others. Characters that no header field may contain are percent-encoded.
#[weir::function(pure)]
pub fn redirect(url: &str, #[default(false)] external: bool) -> Limited<Response> {
    if !external && !is_of_this_site(url) {
        return Limited(Err(ResponseError::OtherSite.into()));
    }
    let encoded: String = utf8_percent_encode(url, NOT_IN_LOCATION).collect();
    let location = HeaderValue::try_from(encoded).expect("all that is not visible ASCII has been encoded");
    Limited(Ok(Response::of_status(StatusCode::SEE_OTHER).with_field(LOCATION, location)))
}

/// Returns `true` if a browser takes the URL for one of the same site: a path, a query or a fragment. It takes `//` and
/// `/\` for the beginning of a host, and ignores line ends and tabs, which are encoded before it sees them.
fn is_of_this_site(url: &str) -> bool {
    let is_path = url.starts_with('/') && !url[1..].starts_with(['/', '\\']);
    is_path || url.starts_with(['?', '#']) || url.starts_with("./") || url.starts_with("../")
}

/// Creates a response with this status and a plain text: `http.status(204)?` has none.
///
/// # Errors
/// Fails unless `code` is 200 to 599.
#[weir::function(pure)]
pub fn status(code: i64, #[default("")] text: &str) -> Result<Response, ResponseError> {
    let status = final_status(code).ok_or(ResponseError::Status(code))?;
    Ok(Response::plain(status, Bytes::copy_from_slice(text.as_bytes())))
}

/// Returns the status of this number, if it is that of a response which ends an exchange.
pub(super) fn final_status(code: i64) -> Option<StatusCode> {
    let code = u16::try_from(code).ok().filter(|code| (200..=599).contains(code))?;
    StatusCode::from_u16(code).ok()
}

/// Returns the response with a header field, which replaces earlier ones of the same name.
///
/// # Errors
/// Fails if the name or the value is not valid in a header, and for fields that frame the message.
#[weir::function(pure)]
pub fn with_header(mut response: Response, name: &str, value: &str) -> Result<Response, ResponseError> {
    let (field, value) = checked_field(name, value)?;
    if field == CONTENT_TYPE {
        response.content_type = Some(value);
        return Ok(response);
    }
    response.with_field(field, value).within_limit()
}

/// Returns a header field that a program sets.
///
/// # Errors
/// Fails if the name or the value is not valid in a header, and for fields that frame the message.
pub(super) fn checked_field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ResponseError> {
    let field = HeaderName::try_from(name).map_err(|_| ResponseError::FieldName(name.into()))?;
    match FRAMING_FIELDS.contains(&field) {
        true => Err(ResponseError::FramingField(name.into())),
        false => Ok((field, field_value(name, value)?)),
    }
}

pub(super) fn media_type(text: &str) -> HeaderValue {
    match WELL_KNOWN.iter().find(|known| known.as_bytes() == text.as_bytes()) {
        Some(known) => known.clone(),
        None => HeaderValue::try_from(text.chars().filter(|c| matches!(c, ' '..='~')).collect::<String>())
            .expect("visible ASCII may stand in a field"),
    }
}

fn field_value(name: &str, value: &str) -> Result<HeaderValue, ResponseError> {
    let visible = value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let value = HeaderValue::from_str(value).ok().filter(|_| visible);
    value.ok_or_else(|| ResponseError::FieldValue(name.into()))
}
