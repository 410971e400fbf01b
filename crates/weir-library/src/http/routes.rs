//! Which route a request takes, and the inputs of its flow.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use matchit::{Params, Router};
use weir::{Failure, ParameterFrom, Route, RouteParameter, Type, Value};

use super::fields;
use super::input::{InputError, TypeDefinitions, decode_path, is_scalar, left_out, scalar_or_error};
use super::query::Query;
use crate::json::decode;

/// All routes of a service, ready to be found.
pub(super) struct Routes {
    routes: std::sync::Arc<[Route]>,
    /// For each route and each of its parameters, where a request has it.
    sources: Vec<Vec<ParameterSource>>,
    router: Router<usize>,
    paths: Vec<PathRoutes>,
}

/// The routes of one path.
struct PathRoutes {
    pattern: String,
    methods: Vec<(Method, usize)>,
    allow: HeaderValue,
}

/// Where a request has a parameter.
enum ParameterSource {
    /// In the path: the number of the part that its pattern leaves open.
    Path(usize),
    Query,
    /// In the field of this name.
    Header(String),
    Cookie,
    Body,
}

/// What a method and a path lead to.
pub(super) enum RouteMatch<'r, 'p> {
    /// The route, by its index, and the parts of the path that its pattern leaves open.
    Route(usize, Params<'r, 'p>),
    /// The path has other methods.
    OtherMethods(HeaderValue),
    /// A question for the methods that the path has.
    Options(HeaderValue),
    /// There is no such path.
    NotFound,
}

impl Routes {
    /// Gets the routes ready.
    ///
    /// # Errors
    /// Fails where two have the same method and path, and where a parameter's type cannot be found in a request.
    pub(super) fn new(routes: std::sync::Arc<[Route]>) -> Result<Routes, Failure> {
        let mut all = Routes { routes, sources: Vec::new(), router: Router::new(), paths: Vec::new() };
        for index in 0..all.routes.len() {
            all.add(index)?;
        }
        for path in &mut all.paths {
            path.allow = allow(&path.methods);
        }
        Ok(all)
    }

    fn add(&mut self, index: usize) -> Result<(), Failure> {
        let route = &self.routes[index];
        let refused = |reason: String| Failure::function(format!("route {} {}: {reason}", route.method, route.pattern));
        let (pattern, names) = without_names(&route.pattern);
        let source_of = |parameter: &RouteParameter| {
            let place = source_of(parameter, &names)?;
            check(parameter, &place, TypeDefinitions(&route.types)).map(|()| place)
        };
        let sources: Vec<_> = route.parameters.iter().map(source_of).collect::<Result<_, _>>().map_err(refused)?;
        let method = Method::from_bytes(route.method.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let at = match self.paths.iter().position(|path| path.pattern == pattern) {
            Some(at) => at,
            None => {
                let at = self.paths.len();
                self.router.insert(pattern.clone(), at).map_err(|error| refused(error.to_string()))?;
                self.paths.push(PathRoutes { pattern, methods: Vec::new(), allow: HeaderValue::from_static("") });
                at
            }
        };
        if self.paths[at].methods.iter().any(|(other, _)| *other == method) {
            return Err(refused("is there twice".into()));
        }
        self.paths[at].methods.push((method, index));
        self.sources.push(sources);
        Ok(())
    }

    /// What a request leads to. `HEAD` takes the route of `GET`.
    pub(super) fn find<'r, 'p>(&'r self, method: &Method, path: &'p str) -> RouteMatch<'r, 'p> {
        let Ok(found) = self.router.at(path) else { return RouteMatch::NotFound };
        let PathRoutes { methods, allow, .. } = &self.paths[*found.value];
        let route_of = |method: &Method| methods.iter().find(|(other, _)| other == method).map(|(_, route)| *route);
        let route = route_of(method).or_else(|| route_of(&Method::GET).filter(|_| method == Method::HEAD));
        match route {
            Some(route) => RouteMatch::Route(route, found.params),
            None if method == Method::OPTIONS => RouteMatch::Options(allow.clone()),
            None => RouteMatch::OtherMethods(allow.clone()),
        }
    }

    /// Fills in the inputs of the route's flow, and yields the index of the one that is the body, which is absent yet.
    ///
    /// # Errors
    /// Everything in path, query and header that is not what the route takes.
    pub(super) fn inputs(
        &self,
        route: usize,
        parts: &Params<'_, '_>,
        query: Option<&str>,
        header: &HeaderMap,
        inputs: &mut Vec<Value>,
    ) -> Result<Option<usize>, Vec<InputError>> {
        let Route { parameters, types, .. } = &self.routes[route];
        let definitions = TypeDefinitions(types);
        let query = Query::new(query).map_err(|problem| vec![problem])?;
        let (mut body, mut problems) = (None, Vec::new());
        for (index, (parameter, place)) in parameters.iter().zip(&self.sources[route]).enumerate() {
            let input = match place {
                ParameterSource::Path(number) => {
                    path_input(parameter, parts.iter().nth(*number).map_or("", |(_, part)| part), definitions)
                }
                ParameterSource::Query => query.input(parameter, definitions),
                ParameterSource::Header(field) => fields::field_input(parameter, field, header, definitions),
                ParameterSource::Cookie => fields::cookie_input(parameter, header, definitions),
                ParameterSource::Body => {
                    body = Some(index);
                    Ok(Value::Absent)
                }
            };
            match input {
                Ok(input) => inputs.push(input),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(body) } else { Err(problems) }
    }

    /// The input that the body is.
    ///
    /// # Errors
    /// What in it is not what the route takes.
    pub(super) fn body_input(&self, route: usize, parameter: usize, body: Bytes) -> Result<Value, InputError> {
        let Route { parameters, types, .. } = &self.routes[route];
        let parameter = &parameters[parameter];
        if let (true, Some(missing)) = (body.is_empty(), left_out(parameter)) {
            return Ok(missing);
        }
        match &parameter.ty {
            Type::Bytes => Ok(Value::bytes(body)),
            Type::Text => match std::str::from_utf8(&body) {
                Ok(text) => Ok(Value::text(text)),
                Err(error) => Err(InputError::new("body", format!("not UTF-8: {error}"))),
            },
            ty => decode::parse(&body, ty, TypeDefinitions(types)),
        }
    }
}

/// The pattern as `matchit` writes it, where the rest of a path is `{*name}` and not `{name..}`, and with its parameters
/// numbered, so that routes of one path may name them differently; and their names.
fn without_names(pattern: &str) -> (String, Vec<&str>) {
    let (mut numbered, mut names, mut left) = (String::new(), Vec::new(), pattern);
    while let Some((before, name, after)) = next_parameter(left) {
        let rest_of_path = name.ends_with("..");
        let star = if rest_of_path { "*" } else { "" };
        numbered.push_str(&format!("{before}{{{star}{}}}", names.len()));
        names.push(name.trim_end_matches('.'));
        left = after;
    }
    numbered.push_str(left);
    (numbered, names)
}

fn next_parameter(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// Where requests have the parameter, in a path whose pattern leaves parts of these names open.
fn source_of(parameter: &RouteParameter, names: &[&str]) -> Result<ParameterSource, String> {
    Ok(match parameter.from {
        ParameterFrom::Path => {
            let number = names.iter().position(|name| *name == &*parameter.name);
            ParameterSource::Path(number.ok_or_else(|| cannot_hold(parameter))?)
        }
        ParameterFrom::Query => ParameterSource::Query,
        ParameterFrom::Header => ParameterSource::Header(fields::field_of(&parameter.name)),
        ParameterFrom::Cookie => ParameterSource::Cookie,
        ParameterFrom::Body => ParameterSource::Body,
    })
}

/// Whether requests can hold the parameter; the compiler has said so already, and this is for other callers.
fn check(parameter: &RouteParameter, place: &ParameterSource, definitions: TypeDefinitions<'_>) -> Result<(), String> {
    let fits = match (place, &parameter.ty) {
        (ParameterSource::Path(_), ty) => is_scalar(ty, definitions),
        (ParameterSource::Header(field), ty) => fields::can_hold(field, ty, definitions),
        (ParameterSource::Cookie, ty) => fields::can_hold("cookie", ty, definitions),
        (ParameterSource::Query, Type::Option(ty) | Type::List(ty)) => is_scalar(ty, definitions),
        (ParameterSource::Query, ty) => is_scalar(ty, definitions),
        (ParameterSource::Body, Type::Bytes) => true,
        (ParameterSource::Body, ty) => decode::is_sayable(ty, definitions),
    };
    if fits { Ok(()) } else { Err(cannot_hold(parameter)) }
}

fn cannot_hold(parameter: &RouteParameter) -> String {
    format!("a request cannot hold `{}: {}` there", parameter.name, parameter.ty)
}

fn allow(methods: &[(Method, usize)]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(|(method, _)| method.as_str()).collect();
    if names.contains(&"GET") && !names.contains(&"HEAD") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    HeaderValue::try_from(names.join(", ")).expect("methods are tokens")
}

fn path_input(parameter: &RouteParameter, part: &str, definitions: TypeDefinitions<'_>) -> Result<Value, InputError> {
    let place = || format!("`{}` in the path", parameter.name);
    let text = decode_path(part).ok_or_else(|| InputError::new(place(), "not UTF-8 in percent-encoding"))?;
    scalar_or_error(&parameter.ty, &text, definitions).map_err(|what| InputError::new(place(), what))
}
