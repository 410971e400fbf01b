//! Requests that tests make of services of the program, without a socket: `todos.get("/todos/7")`.
//!
//! The compiler inlines the routes of the service into the test. A function of this module finds the route of the request
//! and parses its inputs, as the server would; the test computes the route's body, and [`answer`] turns the response into
//! the one that a client would receive.

mod forms;

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use indexmap::IndexMap;
use parking_lot::Mutex;
use weir::{Failure, Generic, HostType, Route, Text, Type, Typed, Value};

use super::cookies::HOST_PREFIX;
use super::input::normalized_path;
use super::parameters;
use super::request_body::{BodyHead, RequestBody};
use super::request_fields::RequestFields;
use super::request_policy::{RequestPolicy, RoutedRequest, refusal};
use super::response::Response;
use super::routes::Routes;
use super::server::Limits;
use crate::Limited;
use crate::client::ClientResponse;
use crate::json::encode::written;

/// Builds the module `service`, whose functions tests call on the name of a service.
pub(crate) fn service() -> weir::Module {
    functions::service()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Requests of a service in a test, without a socket: `todos.get("/todos/7")`, and
        /// `todos.post("/todos", Todo { title: "Rest" })`. They return a `client.Response`. The functions below `put` belong
        /// to what the compiler makes of such a call.
        pub(crate) service: super::delete, super::get, super::head, super::patch, super::post, super::put,
            super::answer, super::failed, super::input, super::refused, super::route
    }
}

/// The services of a program that is tested, by their names.
#[derive(Clone, Default)]
pub struct TestedServices(IndexMap<Text, Arc<TestedService>>);

struct TestedService {
    routes: Routes,
    policy: Arc<RequestPolicy>,
    limits: Limits,
}

impl TestedServices {
    /// Adds a service with these arguments of `http`.
    ///
    /// # Errors
    /// Fails if the server would not start with these arguments and routes.
    pub fn add(&mut self, name: Text, arguments: &[Value], routes: Arc<[Route]>) -> Result<(), Failure> {
        let (routes, policy) = (Routes::new(routes)?, RequestPolicy::of(arguments)?);
        policy.check(&routes)?;
        let service = TestedService { routes, policy: Arc::new(policy), limits: parameters::limits(arguments)? };
        self.0.insert(name, Arc::new(service));
        Ok(())
    }
}

/// The failures of routes that a test has called, which their clients see as 500.
#[derive(Clone, Default)]
pub struct RouteFailures(Arc<Mutex<Vec<RouteFailure>>>);

/// The failure of a route.
#[derive(Clone, Debug)]
pub struct RouteFailure {
    /// The name of the service, and the method and path of the route.
    pub route: Text,
    /// The failure.
    pub failure: Failure,
    /// The place in the route where it arose, in bytes of the source.
    pub position: u32,
}

impl RouteFailures {
    /// The number of failures that are kept.
    const KEPT_MAX: usize = 100;

    fn add(&self, failure: RouteFailure) {
        let mut kept = self.0.lock();
        if kept.len() < Self::KEPT_MAX {
            kept.push(failure);
        }
    }

    /// Takes the failures, in the order of their requests.
    #[must_use]
    pub fn take(&self) -> Vec<RouteFailure> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A request of a test, as the service matches it.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "service.Request")]
pub struct ServiceRequest {
    /// The route and its inputs, or the refusal of the request.
    matched: Result<(usize, Vec<Value>), Box<Response>>,
    method: Method,
    url: Uri,
    fields: HeaderMap,
    /// The rules of the service, for its answer.
    policy: Arc<RequestPolicy>,
}

/// Header fields of a request, or its cookies, by their names.
type Named = IndexMap<Text, Text>;

/// Parameters that all requests have.
#[derive(weir::FunctionOptions)]
pub(crate) struct RequestOptions {
    /// Header fields of the request.
    #[default(Named::new())]
    pub headers: Named,
    /// Cookies of the request, by the names that routes give to them.
    #[default(Named::new())]
    pub cookies: Named,
}

/// Requests a path of the service, with its query.
#[weir::function(reads)]
pub(crate) fn get(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::GET, path), None, &options))
}

/// Requests the header of a response.
#[weir::function(reads)]
pub(crate) fn head(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::HEAD, path), None, &options))
}

/// Sends a request with `DELETE`.
#[weir::function(reads)]
pub(crate) fn delete(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::DELETE, path), None, &options))
}

/// Sends a body with `POST`: to a route with a `form`, a record as a form with its fields; otherwise a text or bytes as they
/// are, and any other value as JSON.
#[weir::function(reads)]
pub(crate) fn post(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    body: Typed<'a'>,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::POST, path), Some(&body), &options))
}

/// Sends a body with `PUT`.
#[weir::function(reads)]
pub(crate) fn put(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    body: Typed<'a'>,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::PUT, path), Some(&body), &options))
}

/// Sends a body with `PATCH`.
#[weir::function(reads)]
pub(crate) fn patch(
    #[environment] services: &TestedServices,
    service: Text,
    path: &str,
    body: Typed<'a'>,
    #[options] options: RequestOptions,
) -> Limited<ServiceRequest> {
    Limited(services.requested((service, Method::PATCH, path), Some(&body), &options))
}

impl TestedServices {
    fn requested(
        &self,
        (service, method, path): (Text, Method, &str),
        body: Option<&Typed<'a'>>,
        options: &RequestOptions,
    ) -> Result<ServiceRequest, Failure> {
        let tested = self.0.get(&*service);
        let tested = tested.ok_or_else(|| Failure::argument(format!("only tests can call the service `{service}`")))?;
        let invalid =
            || Failure::argument(format!("{path:?} is not the path of a request, such as \"/todos?done=true\""));
        let url = Uri::try_from(path).ok().filter(|_| path.starts_with('/')).ok_or_else(invalid)?;
        let (body, media_type) = match body {
            Some(body) if tested.takes_form(&method, &url) => forms::form_of(&body.value, &body.of)?,
            Some(body) => body_of(body)?,
            None => (Bytes::new(), String::new()),
        };
        let mut fields = fields_of(options, &media_type)?;
        let host = format!("{service}.invalid");
        let takes_body = !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        if takes_body && !fields.contains_key(CONTENT_LENGTH) {
            fields.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        if !fields.contains_key(HOST) {
            fields.insert(HOST, HeaderValue::try_from(&*host).map_err(|_| invalid())?);
        }
        let (peer, has_body) = (Ipv4Addr::LOCALHOST.into(), !body.is_empty());
        let head = RoutedRequest { method: &method, uri: &url, fields: &fields, may_be_of_page: true, peer, has_body };
        let matched = tested.matched(&head, body);
        let url = Uri::try_from(format!("http://{host}{path}")).map_err(|_| invalid())?;
        Ok(ServiceRequest { matched, method, url, fields, policy: Arc::clone(&tested.policy) })
    }
}

impl TestedService {
    /// Returns `true` if the route of a request takes a form.
    fn takes_form(&self, method: &Method, url: &Uri) -> bool {
        let path = normalized_path(url.path());
        self.routes.at(method, &path).is_some_and(|found| self.routes.takes_form(*found.value))
    }

    fn matched(&self, head: &RoutedRequest<'_>, body: Bytes) -> Result<(usize, Vec<Value>), Box<Response>> {
        if head_bytes(head) > self.limits.header_bytes_max {
            return Err(Box::new(Response::of_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
        }
        let mut inputs = Vec::new();
        let (route, input) = head.matched(&self.routes, &self.policy, &mut inputs)?;
        if let Some(input) = input.as_ref().filter(|input| input.is_unread) {
            let body_head = BodyHead {
                parameter: self.routes.parameter(route, input.parameter).clone(),
                media_type: head.fields.get(CONTENT_TYPE).cloned(),
                has_body: head.has_body,
            };
            let unread = RequestBody::whole((body, self.limits.body_bytes_max), body_head);
            inputs[input.parameter] = unread.into_value().unwrap_or(Value::Absent);
            return Ok((route, inputs));
        }
        if body.len() > self.limits.body_bytes_max {
            return Err(Box::new(Response::of_status(StatusCode::PAYLOAD_TOO_LARGE)));
        }
        if let Some(input) = input {
            inputs[input.parameter] =
                self.routes.body_input(route, &input, body).map_err(|problem| refusal(&[problem]))?;
        }
        Ok((route, inputs))
    }
}

/// Returns the length of a request's head in HTTP/1: its first line and its fields.
fn head_bytes(head: &RoutedRequest<'_>) -> usize {
    let first = head.method.as_str().len() + head.uri.to_string().len() + "  HTTP/1.1\r\n".len();
    let fields = head.fields.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    first + fields.sum::<usize>() + "\r\n".len()
}

/// Returns the bytes of a body, and its media type.
fn body_of(body: &Typed<'a'>) -> Result<(Bytes, String), Failure> {
    let (body, media_type) = match (&body.of.ty, &body.value) {
        (Type::Text, Value::Text(text)) => (Bytes::copy_from_slice(text.as_bytes()), "text/plain; charset=utf-8"),
        (Type::Bytes, Value::Bytes(bytes)) => ((**bytes).clone(), "application/octet-stream"),
        _ => (written(&body.value, &body.of)?.into(), "application/json"),
    };
    Ok((body, media_type.to_owned()))
}

/// Returns the header fields of a request, as a server receives them: without spaces around values. A `_` in a name is a
/// `-`, as in the names of parameters. Each cookie is sent with the prefix `__Host-` and without, as routes take either.
fn fields_of(options: &RequestOptions, media_type: &str) -> Result<HeaderMap, Failure> {
    let mut fields = HeaderMap::new();
    for (name, value) in &options.headers {
        let invalid = |_| Failure::argument(format!("`{name}: {value}` is not a header field"));
        let field = HeaderName::try_from(name.replace('_', "-")).map_err(|_| invalid(()))?;
        let value = value.trim_matches([' ', '\t']);
        fields.append(field, HeaderValue::try_from(value).map_err(|_| invalid(()))?);
    }
    if !media_type.is_empty() && !fields.contains_key(CONTENT_TYPE) {
        let invalid = |_| Failure::argument(format!("`{media_type}` is not a media type"));
        fields.insert(CONTENT_TYPE, HeaderValue::try_from(media_type).map_err(invalid)?);
    }
    for (name, value) in &options.cookies {
        let invalid = |_| Failure::argument(format!("the cookie `{name}` cannot be sent"));
        let sent = format!("{HOST_PREFIX}{name}={value}; {name}={value}");
        fields.append(COOKIE, HeaderValue::try_from(sent).map_err(invalid)?);
    }
    Ok(fields)
}

/// Returns the number of the route that a request matches, and -1 if it is refused.
#[weir::function(pure)]
pub(crate) fn route(request: &ServiceRequest) -> i64 {
    request.matched.as_ref().map_or(-1, |(route, _)| i64::try_from(*route).unwrap_or(-1))
}

/// Returns the input with this number of the route that a request matches. `none`, an empty list, says of which type it is.
#[weir::function(pure)]
pub(crate) fn input(request: &ServiceRequest, none: Vec<Generic<'a'>>, number: i64) -> Limited<Generic<'a'>> {
    let _ = none;
    let inputs = request.matched.as_ref().map_or(&[][..], |(_, inputs)| inputs);
    let input = usize::try_from(number).ok().and_then(|number| inputs.get(number)).cloned();
    Limited(input.map(Generic).ok_or_else(|| Failure::argument("the route has no such input")))
}

/// Returns the response to a request that the server refuses.
#[weir::function(pure)]
pub(crate) fn refused(request: &ServiceRequest) -> Response {
    match &request.matched {
        Err(refusal) => (**refusal).clone(),
        Ok(_) => Response::of_status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Returns the response to a request whose flow has failed. The failure of `route`, and its place in the source, are kept for
/// the report of the test.
#[weir::function(reads)]
pub(crate) fn failed(
    #[environment] failures: &RouteFailures,
    failure: Failure,
    route: Text,
    position: i64,
) -> Response {
    failures.add(RouteFailure { route, failure, position: u32::try_from(position).unwrap_or(u32::MAX) });
    Response::of_status(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Returns the response that a client receives, without the field `Date`, which tests could not compare.
#[weir::function(pure)]
pub(crate) fn answer(request: &ServiceRequest, mut response: Response) -> ClientResponse {
    let to_head = request.method == Method::HEAD;
    response.complete_at_path(request.url.path());
    let mut answer =
        request.policy.answer(&mut response, to_head, RequestFields::of(&mut request.fields.clone()), drop);
    request.policy.add_headers(&mut answer);
    let (mut head, body) = answer.into_parts();
    let has_length = !to_head && head.status != StatusCode::NO_CONTENT && head.status != StatusCode::NOT_MODIFIED;
    if has_length && !head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    ClientResponse { status: head.status, headers: head.headers, body, url: request.url.clone() }
}
