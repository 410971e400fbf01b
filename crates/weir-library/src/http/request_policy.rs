//! The rules of a service for all requests and answers, which the server and tests of routes have in common.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, VARY};
use hyper::{Method, StatusCode, Uri};
use weir::{Failure, Value};

use super::client_address::TrustedProxies;
use super::cookies::set_cookie;
use super::cross_origin::{CrossOriginPolicy, OriginGrant};
use super::encrypted_cookies::{CookieKeys, EncryptedCookie};
use super::form_body::FormEncoding;
use super::health::HealthRoute;
use super::input::{InputError, is_encoded, normalized_path};
use super::parameters;
use super::request_fields::RequestFields;
use super::response::Response;
use super::routes::{BodyInput, BodyKind, RequestSender, RouteMatch, Routes, is_unread_body};

/// The rules of a service for the senders of requests, and for all answers.
#[derive(Debug)]
pub(super) struct RequestPolicy {
    cross_origin: CrossOriginPolicy,
    proxies: TrustedProxies,
    pub(super) health: HealthRoute,
    /// Header fields of answers that do not set them themselves.
    headers: Vec<(HeaderName, HeaderValue)>,
    compressed: bool,
    cookie_keys: CookieKeys,
}

impl AsRef<HealthRoute> for RequestPolicy {
    fn as_ref(&self) -> &HealthRoute {
        &self.health
    }
}

impl RequestPolicy {
    /// Returns the rules that the arguments of `http` describe.
    ///
    /// # Errors
    /// Fails if an argument is not an origin, a header field, an address, or a path.
    pub(super) fn of(arguments: &[Value]) -> Result<RequestPolicy, Failure> {
        Ok(RequestPolicy {
            cross_origin: parameters::cross_origin(arguments)?,
            proxies: parameters::trusted_proxies(arguments)?,
            health: parameters::health(arguments)?,
            headers: parameters::headers(arguments)?,
            compressed: parameters::compressed(arguments),
            cookie_keys: parameters::cookie_keys(arguments)?,
        })
    }

    /// Checks that routes fit the arguments: none has the path of `health`, and there are keys for the cookies that they read.
    ///
    /// # Errors
    /// Fails with the reason why they do not.
    pub(super) fn check(&self, routes: &Routes) -> Result<(), Failure> {
        routes.leave_to_server(self.health.path())?;
        if self.cookie_keys.is_empty() { routes.need_no_keys() } else { Ok(()) }
    }

    /// Returns the header fields that an answer gets for a page of another origin.
    pub(super) fn grant(&self, method: &Method, fields: &HeaderMap) -> Option<OriginGrant> {
        self.cross_origin.grant(method, fields)
    }

    /// Returns `true` if all answers have further header fields.
    pub(super) fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Converts an answer for hyper, as [`Response::take_for_hyper`] does. A failure to do so is reported; the client is not told
    /// the reason.
    pub(super) fn answer(
        &self,
        response: &mut Response,
        to_head: bool,
        request: RequestFields<'_>,
        report: impl FnOnce(Failure),
    ) -> hyper::Response<Bytes> {
        if let Some(cookies) = response.take_encrypted() {
            let without = std::mem::replace(response, Response::of_status(StatusCode::INTERNAL_SERVER_ERROR));
            match self.with_cookies(without, &cookies) {
                Ok(with) => *response = with,
                Err(failure) => report(failure),
            }
        }
        // Errors are short, and are converted for clients that prefer JSON instead.
        response.negotiation.compressed |= self.compressed && response.code() == StatusCode::OK;
        response.take_for_hyper(to_head, request)
    }

    /// Returns the response with cookies that are encrypted.
    #[cold]
    fn with_cookies(&self, response: Response, cookies: &[EncryptedCookie]) -> Result<Response, Failure> {
        cookies.iter().try_fold(response, |response, cookie| {
            let field = set_cookie(&cookie.name, &self.cookie_keys.encrypt(cookie)?, Some(cookie.max_age));
            response.with_further_field(SET_COOKIE, field).map_err(Failure::from)
        })
    }

    /// Adds the header fields that all answers have, unless an answer sets them itself. What an answer depends on (`Vary`)
    /// adds to what it names itself.
    pub(super) fn add_headers(&self, response: &mut hyper::Response<Bytes>) {
        let fields = response.headers_mut();
        for (name, value) in &self.headers {
            if name != VARY {
                fields.entry(name).or_insert_with(|| value.clone());
            } else if !fields.get_all(VARY).iter().any(|own| own == value) {
                fields.append(VARY, value.clone());
            }
        }
    }
}

/// A request without its body, which a route is found for.
pub(super) struct RoutedRequest<'r> {
    pub(super) method: &'r Method,
    pub(super) uri: &'r Uri,
    pub(super) fields: &'r HeaderMap,
    /// False if the fields are known not to say from which page the request comes.
    pub(super) may_be_of_page: bool,
    /// Address from which the request came.
    pub(super) peer: IpAddr,
    pub(super) has_body: bool,
}

impl RoutedRequest<'_> {
    /// Finds the route of the request and fills in its inputs, except for the body, which has not been read. Returns the
    /// route and the input that is the body, or the refusal of the request.
    pub(super) fn matched(
        &self,
        routes: &Routes,
        policy: &RequestPolicy,
        inputs: &mut Vec<Value>,
    ) -> Result<(usize, Option<BodyInput>), Box<Response>> {
        let path = self.uri.path();
        let is_encoded = is_encoded(path);
        let path = if is_encoded { normalized_path(path) } else { Cow::Borrowed(path) };
        if self.may_be_of_page && policy.cross_origin.refuses(self.method, self.uri, self.fields) {
            let text = "a page of another site sent this request";
            return Err(Box::new(Response::plain(StatusCode::FORBIDDEN, text)));
        }
        if let Some(answer) = policy.health.answer(self.method, &path) {
            return Err(Box::new(answer));
        }
        // Not moved into the result, because it is large.
        let found = routes.at(self.method, &path);
        let found = match policy.cross_origin.answers_preflight(self.method, self.fields) {
            true => routes.methods(&path),
            false => routes.find(self.method, &path, found.as_ref()),
        };
        match found {
            RouteMatch::Route(route, parts) => {
                let query = self.uri.query();
                let sender = RequestSender {
                    fields: self.fields,
                    peer: self.peer,
                    proxies: &policy.proxies,
                    keys: &policy.cookie_keys,
                };
                let body =
                    routes.inputs(route, (parts, is_encoded), query, &sender, inputs).map_err(|all| refusal(&all))?;
                let input_of = |parameter| match is_unread_body(&routes.parameter(route, parameter).ty) {
                    true => Ok(BodyInput { parameter, form: None, is_unread: true }),
                    false => self.body(parameter, routes.body_kind(route, parameter)),
                };
                let body = body.map(input_of).transpose()?;
                Ok((route, body))
            }
            RouteMatch::OtherMethods(allow) => Err(Box::new(Response::not_allowed(allow))),
            RouteMatch::Options(allow) => Err(Box::new(Response::options(allow))),
            RouteMatch::NotFound => Err(Box::new(Response::of_status(StatusCode::NOT_FOUND))),
        }
    }

    /// Returns the input of a body, or the refusal of one that is of another or an unknown type.
    fn body(&self, parameter: usize, kind: BodyKind) -> Result<BodyInput, Box<Response>> {
        let media_type = self.fields.get(CONTENT_TYPE).filter(|_| self.has_body);
        Ok(BodyInput { parameter, form: body_encoding(kind, media_type, self.has_body)?, is_unread: false })
    }
}

/// Returns the encoding of a body that is a form, or the refusal of a body that is of another or an unknown type.
pub(super) fn body_encoding(
    kind: BodyKind,
    media_type: Option<&HeaderValue>,
    has_body: bool,
) -> Result<Option<FormEncoding>, Box<Response>> {
    Ok(match kind {
        BodyKind::Json if has_body && !media_type.is_some_and(is_json) => return Err(Box::new(not_json())),
        BodyKind::Form if has_body => Some(FormEncoding::of(media_type).ok_or_else(|| Box::new(not_a_form()))?),
        BodyKind::Form => Some(FormEncoding::Urlencoded),
        BodyKind::Json | BodyKind::Raw => None,
    })
}

/// Returns the answer to a body that does not say that it is a form.
fn not_a_form() -> Response {
    let text = "the body must be a form: `Content-Type: application/x-www-form-urlencoded` or `multipart/form-data`";
    Response::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

/// Returns the answer to a body that does not say that it is JSON: pages of other sites may send texts and forms without
/// asking, and a browser asks before it sends JSON.
fn not_json() -> Response {
    let text = "the body must be JSON and say so: `Content-Type: application/json`";
    Response::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

/// Returns `true` for the media type of JSON, or one based on it, such as `application/problem+json`.
fn is_json(media_type: &HeaderValue) -> bool {
    let essence = media_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

pub(super) fn refusal(problems: &[InputError]) -> Box<Response> {
    let lines: Vec<String> = problems.iter().map(InputError::to_string).collect();
    Box::new(Response::plain(StatusCode::BAD_REQUEST, lines.join("\n")))
}
