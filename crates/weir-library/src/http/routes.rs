//! Routing of requests, and the inputs of a route's flow.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use matchit::Params;
use weir::{Failure, ParameterFrom, Route, RouteParameter, Type, TypeShape, Value};

use super::client_address::TrustedProxies;
use super::cookies::HOST_PREFIX;
use super::encrypted_cookies::CookieKeys;
use super::fields;
use super::form_body::{self, FormEncoding};
use super::input::{InputError, NamedTypes, decode_path, encode_path, is_scalar, left_out, scalar_or_error};
use super::method_routes::{MethodRoutes, PathMatch, next_placeholder, of_method};
use super::query::Query;
use super::type_description::description;
use crate::json::decode;

/// Name of the parameter `(header client_address: Text)`, which no request can set.
const CLIENT_ADDRESS: &str = "client_address";

/// The routes of a service, compiled for lookup.
pub(super) struct Routes {
    routes: std::sync::Arc<[Route]>,
    /// For each route, the source of each of its parameters.
    sources: Vec<Vec<ParameterSource>>,
    /// In the order in which the methods are declared first, and `HEAD` last.
    methods: Vec<MethodRoutes>,
}

/// Part of a request that holds a parameter.
enum ParameterSource {
    /// The path: the name of the pattern's placeholder, which is its number.
    Path(String),
    Query,
    /// The header field of this name.
    Header(String),
    /// The address of the client.
    ClientAddress,
    /// The cookie of this name.
    Cookie(String),
    /// The encrypted cookie of this name, and the description of its type.
    EncryptedCookie(String, String),
    Body,
    Form,
}

/// The kind of body that the requests of a route have.
#[derive(Clone, Copy)]
pub(super) enum BodyKind {
    /// Text or bytes.
    Raw,
    Json,
    Form,
}

impl BodyKind {
    /// Returns the kind of body from which a parameter of this type is read.
    pub(super) fn of(is_form: bool, ty: &Type) -> Self {
        match ty {
            _ if is_form => BodyKind::Form,
            Type::Bytes | Type::Text => BodyKind::Raw,
            _ => BodyKind::Json,
        }
    }
}

/// Returns true if a parameter of this type is a body that the flow reads itself, a `RequestBody`.
pub(super) fn is_unread_body(ty: &Type) -> bool {
    *ty == Type::named("http.RequestBody")
}

/// The input of a flow that is the body of its request.
pub(super) struct BodyInput {
    /// `true` if the flow reads the body itself: it begins with a `RequestBody`.
    pub(super) is_unread: bool,
    /// The index among the inputs.
    pub(super) parameter: usize,
    /// The encoding of a form.
    pub(super) form: Option<FormEncoding>,
}

/// The header of a request, and from where it came.
pub(super) struct RequestSender<'r> {
    pub(super) fields: &'r HeaderMap,
    pub(super) peer: IpAddr,
    pub(super) proxies: &'r TrustedProxies,
    pub(super) keys: &'r CookieKeys,
}

impl RequestSender<'_> {
    /// Parses the input that comes from the header or the address. A function of its own, because the others would otherwise
    /// prepare what only it needs.
    #[inline(never)]
    fn input(
        &self,
        place: &ParameterSource,
        parameter: &RouteParameter,
        definitions: NamedTypes<'_>,
    ) -> Result<Value, InputError> {
        match place {
            ParameterSource::ClientAddress => {
                let client = self.proxies.client(self.peer, self.fields).to_string();
                scalar_or_error(&parameter.ty, &client, definitions)
                    .map_err(|what| InputError::new(format!("`{CLIENT_ADDRESS}`"), what))
            }
            ParameterSource::Header(field) if self.proxies.is_untrusted(field, self.peer) => {
                fields::field_input(parameter, field, &HeaderMap::new(), definitions)
            }
            ParameterSource::Header(field) => fields::field_input(parameter, field, self.fields, definitions),
            ParameterSource::Cookie(name) => fields::cookie_input(parameter, name, self.fields, definitions),
            ParameterSource::EncryptedCookie(name, ty) => {
                fields::encrypted_cookie_input(parameter, (name, ty), (self.fields, self.keys), definitions)
            }
            ParameterSource::Path(_) | ParameterSource::Query | ParameterSource::Body | ParameterSource::Form => {
                unreachable!("the header does not hold it")
            }
        }
    }
}

/// Result of matching a method and a path.
pub(super) enum RouteMatch<'f, 'r, 'p> {
    /// The index of the route, and the parts of the path that fill the pattern's placeholders.
    Route(usize, &'f Params<'r, 'p>),
    /// The path has routes for other methods only.
    OtherMethods(HeaderValue),
    /// The request asks for the methods of the path.
    Options(HeaderValue),
    /// No route has such a path.
    NotFound,
}

impl Routes {
    /// Compiles the routes.
    ///
    /// # Errors
    /// Fails if two routes have the same method and path, or if a request cannot hold a parameter of the given type.
    pub(super) fn new(routes: std::sync::Arc<[Route]>) -> Result<Routes, Failure> {
        let mut all = Routes { routes, sources: Vec::new(), methods: Vec::new() };
        for index in 0..all.routes.len() {
            all.add(index)?;
        }
        all.answer_head();
        for of in &mut all.methods {
            of.prepare().map_err(|(index, reason)| refused(&all.routes[index], &reason))?;
        }
        Ok(all)
    }

    fn add(&mut self, index: usize) -> Result<(), Failure> {
        let route = &self.routes[index];
        let refused = |reason: String| refused(route, &reason);
        let (pattern, names) = without_names(&route.pattern);
        let source_of = |parameter: &RouteParameter| {
            let place = source_of(parameter, &names, NamedTypes(&route.types))?;
            check(parameter, &place, NamedTypes(&route.types)).map(|()| place)
        };
        let sources: Vec<_> = route.parameters.iter().map(source_of).collect::<Result<_, _>>().map_err(refused)?;
        let method = Method::from_bytes(route.method.as_bytes()).map_err(|error| refused(error.to_string()))?;
        of_method(&mut self.methods, method).add(pattern, index).map_err(|error| refused(error.into()))?;
        self.sources.push(sources);
        Ok(())
    }

    /// Lets the routes of `GET` answer `HEAD`, unless a path has a route of its own for it.
    fn answer_head(&mut self) {
        let of_get = self.methods.iter().find(|of| of.method == Method::GET).map(|of| of.patterns().to_vec());
        for (pattern, route) in of_get.into_iter().flatten() {
            _ = of_method(&mut self.methods, Method::HEAD).add(pattern, route);
        }
    }

    /// Checks that no route has this path, which the server answers itself.
    ///
    /// # Errors
    /// Fails if one has it.
    pub(super) fn leave_to_server(&self, path: &str) -> Result<(), Failure> {
        match self.methods.iter().flat_map(MethodRoutes::patterns).any(|(pattern, _)| pattern == path) {
            true => Err(Failure::argument(format!("the path of `health`, {path:?}, is also that of a route"))),
            false => Ok(()),
        }
    }

    /// Finds the most specific route of a method and a path, which is normalized. `HEAD` uses the route of `GET`.
    #[inline]
    pub(super) fn at<'r, 'p>(&'r self, method: &Method, path: &'p str) -> Option<PathMatch<'r, 'p>> {
        self.methods.iter().find(|of| of.method == *method)?.at(path)
    }

    /// Returns what a request gets whose method and path have this route, if any.
    #[inline]
    pub(super) fn find<'f, 'r, 'p>(
        &self,
        method: &Method,
        path: &str,
        found: Option<&'f PathMatch<'r, 'p>>,
    ) -> RouteMatch<'f, 'r, 'p> {
        match found {
            Some(found) => RouteMatch::Route(*found.value, &found.params),
            None => match self.methods(path) {
                RouteMatch::Options(allow) if path != "*" && method != Method::OPTIONS => {
                    RouteMatch::OtherMethods(allow)
                }
                methods => methods,
            },
        }
    }

    /// Returns the methods of a path, for a preflight.
    #[cold]
    pub(super) fn methods<'f, 'r, 'p>(&self, path: &str) -> RouteMatch<'f, 'r, 'p> {
        let matching = self.methods.iter().filter(|of| path == "*" || of.at(path).is_some());
        let mut names: Vec<&str> = matching.map(|of| of.method.as_str()).collect();
        if names.is_empty() && path != "*" {
            return RouteMatch::NotFound;
        }
        if !names.contains(&"OPTIONS") {
            names.push("OPTIONS");
        }
        RouteMatch::Options(HeaderValue::try_from(names.join(", ")).expect("methods are tokens"))
    }

    /// Appends the inputs of the route's flow to `inputs`. Returns the index of the input that is the body, which is
    /// still [`Value::Absent`]. The parts of the path contain no `%` unless it is encoded.
    ///
    /// # Errors
    /// Fails with every error in the path, the query and the header.
    pub(super) fn inputs(
        &self,
        route: usize,
        (parts, is_encoded): (&Params<'_, '_>, bool),
        query: Option<&str>,
        sender: &RequestSender<'_>,
        inputs: &mut Vec<Value>,
    ) -> Result<Option<usize>, Vec<InputError>> {
        let Route { parameters, types, .. } = &self.routes[route];
        if parameters.is_empty() && query.is_none() {
            return Ok(None);
        }
        let definitions = NamedTypes(types);
        let query = Query::new(query).map_err(|problem| vec![problem])?;
        let (mut body, mut problems) = (None, Vec::new());
        // Without `zip`, which is a call of its own unless the whole program is optimised at link time.
        let mut sources = self.sources[route].iter();
        for (index, parameter) in parameters.iter().enumerate() {
            let Some(place) = sources.next() else { break };
            let input = match place {
                ParameterSource::Path(number) => {
                    let part = parts.get(number).unwrap_or_default();
                    path_input(parameter, (part, is_encoded), definitions)
                }
                ParameterSource::Query => query.input(parameter, definitions),
                ParameterSource::Body | ParameterSource::Form => {
                    body = Some(index);
                    Ok(Value::Absent)
                }
                of_sender => sender.input(of_sender, parameter, definitions),
            };
            match input {
                Ok(input) => inputs.push(input),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(body) } else { Err(problems) }
    }

    /// Returns what the route takes as its body, which this parameter holds.
    pub(super) fn body_kind(&self, route: usize, parameter: usize) -> BodyKind {
        let is_form = matches!(self.sources[route][parameter], ParameterSource::Form);
        BodyKind::of(is_form, &self.routes[route].parameters[parameter].ty)
    }

    /// Returns a parameter of a route.
    pub(super) fn parameter(&self, route: usize, parameter: usize) -> &RouteParameter {
        &self.routes[route].parameters[parameter]
    }

    /// Returns true if the route takes a form.
    pub(super) fn takes_form(&self, route: usize) -> bool {
        self.sources[route].iter().any(|source| matches!(source, ParameterSource::Form))
    }

    /// Checks that no route reads an encrypted cookie.
    ///
    /// # Errors
    /// Fails if one does.
    pub(super) fn need_no_keys(&self) -> Result<(), Failure> {
        let parameters = self.routes.iter().flat_map(|route| route.parameters.iter().map(move |of| (route, of)));
        match parameters.into_iter().find(|(_, parameter)| parameter.from == ParameterFrom::EncryptedCookie) {
            None => Ok(()),
            Some((Route { method, pattern, .. }, parameter)) => Err(Failure::argument(format!(
                "the route {method} {pattern} reads the encrypted cookie `{}`, and the service has no `cookie_keys`; declare \
                 `secret cookie_key: Bytes`, and write `cookie_keys: [cookie_key]`",
                parameter.name
            ))),
        }
    }

    /// Parses the body as the input of the route's body parameter.
    ///
    /// # Errors
    /// Fails if the body is not of the parameter's type.
    pub(super) fn body_input(&self, route: usize, input: &BodyInput, body: Bytes) -> Result<Value, InputError> {
        let Route { parameters, types, .. } = &self.routes[route];
        decoded_body(&parameters[input.parameter], NamedTypes(types), input.form.as_ref(), body)
    }
}

/// Returns the failure of a service with a route that cannot be.
fn refused(route: &Route, reason: &str) -> Failure {
    Failure::function(format!("route {} {}: {reason}", route.method, route.pattern))
}

/// Parses a body as a parameter of a route.
///
/// # Errors
/// Fails if the body is not of the parameter's type.
pub(super) fn decoded_body(
    parameter: &RouteParameter,
    types: NamedTypes<'_>,
    form: Option<&FormEncoding>,
    body: Bytes,
) -> Result<Value, InputError> {
    if let Some(encoding) = form {
        return form_body::decode(encoding, body, &parameter.ty, types);
    }
    if let (true, Some(missing)) = (body.is_empty(), left_out(parameter)) {
        return Ok(missing);
    }
    match &parameter.ty {
        Type::Bytes => Ok(Value::bytes(body)),
        Type::Text => match std::str::from_utf8(&body) {
            Ok(text) => Ok(Value::text(text)),
            Err(error) => Err(InputError::new("body", format!("not UTF-8: {error}"))),
        },
        ty => decode::parse(&body, "body", ty, types),
    }
}

/// Translates a pattern to `matchit`'s syntax, in which the rest of a path is `{*name}` and not `{name..}`.
/// Placeholders are numbered, so that routes of one path may name them differently; returns the names as well.
fn without_names(pattern: &str) -> (String, Vec<&str>) {
    let (mut numbered, mut names, mut left) = (String::new(), Vec::new(), pattern);
    while let Some((before, name, after)) = next_placeholder(left) {
        let rest_of_path = name.ends_with("..");
        let star = if rest_of_path { "*" } else { "" };
        numbered.push_str(&format!("{}{{{star}{}}}", encode_path(before), names.len()));
        names.push(name.trim_end_matches('.'));
        left = after;
    }
    numbered.push_str(&encode_path(left));
    (numbered, names)
}

/// Returns the part of a request that holds the parameter; `names` are the placeholders of the pattern.
fn source_of(
    parameter: &RouteParameter,
    names: &[&str],
    definitions: NamedTypes<'_>,
) -> Result<ParameterSource, String> {
    Ok(match parameter.from {
        ParameterFrom::Path => {
            let number = names.iter().position(|name| *name == &*parameter.name);
            ParameterSource::Path(number.ok_or_else(|| cannot_hold(parameter))?.to_string())
        }
        ParameterFrom::Query => ParameterSource::Query,
        ParameterFrom::Header if &*parameter.name == CLIENT_ADDRESS => ParameterSource::ClientAddress,
        ParameterFrom::Header => ParameterSource::Header(fields::field_of(&parameter.name)),
        ParameterFrom::Cookie => ParameterSource::Cookie(format!("{HOST_PREFIX}{}", parameter.name)),
        ParameterFrom::UnprefixedCookie => ParameterSource::Cookie(parameter.name.to_string()),
        ParameterFrom::EncryptedCookie => {
            let ty = description(&parameter.ty, definitions);
            ParameterSource::EncryptedCookie(parameter.name.to_string(), ty)
        }
        ParameterFrom::Form => ParameterSource::Form,
        ParameterFrom::Body => ParameterSource::Body,
    })
}

/// Checks that a request can hold the parameter. The compiler has already checked it; this is for other callers.
fn check(parameter: &RouteParameter, place: &ParameterSource, definitions: NamedTypes<'_>) -> Result<(), String> {
    let fits = match (place, &parameter.ty) {
        (ParameterSource::Body | ParameterSource::Form, ty) if is_unread_body(ty) => true,
        (ParameterSource::ClientAddress, ty) => *ty == Type::Text,
        (ParameterSource::Path(_), ty) => is_scalar(ty, definitions),
        (ParameterSource::Header(field), ty) => fields::can_hold(field, ty, definitions),
        (ParameterSource::Cookie(_), ty) => fields::can_hold("cookie", ty, definitions),
        (ParameterSource::Query, Type::Option(ty) | Type::List(ty)) => is_scalar(ty, definitions),
        (ParameterSource::Query, ty) => is_scalar(ty, definitions),
        (ParameterSource::EncryptedCookie(..), ty) => decode::is_sayable(ty, definitions),
        (ParameterSource::Form, Type::Named(name)) => matches!(definitions.shape(name), Some(TypeShape::Record(_))),
        (ParameterSource::Form, _) => false,
        (ParameterSource::Body, Type::Bytes) => true,
        (ParameterSource::Body, ty) => decode::is_sayable(ty, definitions),
    };
    if fits { Ok(()) } else { Err(cannot_hold(parameter)) }
}

fn cannot_hold(parameter: &RouteParameter) -> String {
    format!("that part of a request cannot hold `{}: {}`", parameter.name, parameter.ty)
}

fn path_input(
    parameter: &RouteParameter,
    (part, is_encoded): (&str, bool),
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let place = || format!("`{}` in the path", parameter.name);
    let text = match is_encoded {
        true => decode_path(part).map_err(|what| InputError::new(place(), what))?,
        false => Cow::Borrowed(part),
    };
    scalar_or_error(&parameter.ty, &text, definitions).map_err(|what| InputError::new(place(), what))
}
