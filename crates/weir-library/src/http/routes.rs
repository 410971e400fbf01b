//! Which route a request takes, and the inputs of its flow.

use std::borrow::Cow;
use std::iter;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use matchit::{Params, Router};
use weir::{Failure, ParameterFrom, Route, RouteParameter, Type, Value};

use super::fields;
use super::input::{Definitions, Problem, decode_path, decode_query, expected, is_scalar, scalar_or_problem};
use crate::json::decode;

/// Pairs of a query that are looked at; further ones are refused.
const QUERY_PAIRS_MAX: usize = 1000;

/// All routes of a service, ready to be found.
pub(super) struct Routes {
    routes: std::sync::Arc<[Route]>,
    /// For each route and each of its parameters, the number of the part of the path that it is, or the field of the header.
    parts: Vec<Vec<Option<String>>>,
    router: Router<usize>,
    paths: Vec<Path>,
}

/// The routes of one path.
struct Path {
    pattern: String,
    methods: Vec<(Method, usize)>,
    allow: HeaderValue,
}

/// What a method and a path lead to.
pub(super) enum Found<'r, 'p> {
    /// The route, by its index, and the parts of the path that its pattern leaves open.
    Route(usize, Params<'r, 'p>),
    /// The path has other methods.
    OtherMethods(HeaderValue),
    /// A question for the methods that the path has.
    Options(HeaderValue),
    /// There is no such path.
    Nothing,
}

impl Routes {
    /// Gets the routes ready.
    ///
    /// # Errors
    /// Fails where two have the same method and path, and where a parameter's type cannot be found in a request.
    pub(super) fn new(routes: std::sync::Arc<[Route]>) -> Result<Routes, Failure> {
        let mut all = Routes { routes, parts: Vec::new(), router: Router::new(), paths: Vec::new() };
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
        let part_of = |parameter: &RouteParameter| match parameter.from {
            ParameterFrom::Path => {
                names.iter().position(|name| *name == &*parameter.name).map(|number| number.to_string())
            }
            ParameterFrom::Header => Some(fields::field_of(&parameter.name)),
            ParameterFrom::Query | ParameterFrom::Cookie | ParameterFrom::Body => None,
        };
        let parts: Vec<_> = route.parameters.iter().map(part_of).collect();
        for (parameter, part) in route.parameters.iter().zip(&parts) {
            check(parameter, part.as_deref(), Definitions(&route.types)).map_err(refused)?;
        }
        let method = Method::from_bytes(route.method.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let at = match self.paths.iter().position(|path| path.pattern == pattern) {
            Some(at) => at,
            None => {
                let at = self.paths.len();
                self.router.insert(pattern.clone(), at).map_err(|error| refused(error.to_string()))?;
                self.paths.push(Path { pattern, methods: Vec::new(), allow: HeaderValue::from_static("") });
                at
            }
        };
        if self.paths[at].methods.iter().any(|(other, _)| *other == method) {
            return Err(refused("is there twice".into()));
        }
        self.paths[at].methods.push((method, index));
        self.parts.push(parts);
        Ok(())
    }

    /// What a request leads to. `HEAD` takes the route of `GET`.
    pub(super) fn find<'r, 'p>(&'r self, method: &Method, path: &'p str) -> Found<'r, 'p> {
        let Ok(found) = self.router.at(path) else { return Found::Nothing };
        let Path { methods, allow, .. } = &self.paths[*found.value];
        let route_of = |method: &Method| methods.iter().find(|(other, _)| other == method).map(|(_, route)| *route);
        let route = route_of(method).or_else(|| route_of(&Method::GET).filter(|_| method == Method::HEAD));
        match route {
            Some(route) => Found::Route(route, found.params),
            None if method == Method::OPTIONS => Found::Options(allow.clone()),
            None => Found::OtherMethods(allow.clone()),
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
    ) -> Result<Option<usize>, Vec<Problem>> {
        let Route { parameters, types, .. } = &self.routes[route];
        let definitions = Definitions(types);
        let query = Query::new(query).map_err(|problem| vec![problem])?;
        let (mut body, mut problems) = (None, Vec::new());
        for (index, parameter) in parameters.iter().enumerate() {
            let input = match (parameter.from, &self.parts[route][index]) {
                (ParameterFrom::Path, Some(part)) => {
                    path_input(parameter, parts.get(part).unwrap_or_default(), definitions)
                }
                (ParameterFrom::Header, Some(field)) => fields::field_input(parameter, field, header, definitions),
                (ParameterFrom::Cookie, _) => fields::cookie_input(parameter, header, definitions),
                (ParameterFrom::Body, _) => {
                    body = Some(index);
                    Ok(Value::Absent)
                }
                _ => query_input(parameter, &query, definitions),
            };
            input.map_or_else(|problem| problems.push(problem), |input| inputs.push(input));
        }
        if problems.is_empty() { Ok(body) } else { Err(problems) }
    }

    /// The input that the body is.
    ///
    /// # Errors
    /// What in it is not what the route takes.
    pub(super) fn body_input(&self, route: usize, parameter: usize, body: Bytes) -> Result<Value, Problem> {
        let Route { parameters, types, .. } = &self.routes[route];
        let parameter = &parameters[parameter];
        if let (true, Some(missing)) = (body.is_empty(), left_out(parameter)) {
            return Ok(missing);
        }
        match &parameter.ty {
            Type::Bytes => Ok(Value::bytes(body)),
            Type::Text => match std::str::from_utf8(&body) {
                Ok(text) => Ok(Value::text(text)),
                Err(error) => Err(Problem::new("body", format!("not UTF-8: {error}"))),
            },
            ty => decode::parse(&body, ty, Definitions(types)),
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

/// Whether requests can hold the parameter; the compiler has said so already, and this is for other callers.
fn check(parameter: &RouteParameter, part: Option<&str>, definitions: Definitions<'_>) -> Result<(), String> {
    let fits = match (parameter.from, &parameter.ty) {
        (ParameterFrom::Path, ty) => part.is_some() && is_scalar(ty, definitions),
        (ParameterFrom::Header, ty) => fields::can_hold(part, ty, definitions),
        (ParameterFrom::Cookie, ty) => fields::can_hold(Some("cookie"), ty, definitions),
        (ParameterFrom::Query, Type::Option(ty) | Type::List(ty)) => is_scalar(ty, definitions),
        (ParameterFrom::Query, ty) => is_scalar(ty, definitions),
        (ParameterFrom::Body, Type::Bytes) => true,
        (ParameterFrom::Body, ty) => decode::is_sayable(ty, definitions),
    };
    if fits { Ok(()) } else { Err(format!("a request cannot hold `{}: {}` there", parameter.name, parameter.ty)) }
}

fn allow(methods: &[(Method, usize)]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(|(method, _)| method.as_str()).collect();
    if names.contains(&"GET") && !names.contains(&"HEAD") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    HeaderValue::try_from(names.join(", ")).expect("methods are tokens")
}

fn path_input(parameter: &RouteParameter, part: &str, definitions: Definitions<'_>) -> Result<Value, Problem> {
    let place = || format!("`{}` in the path", parameter.name);
    let text = decode_path(part).ok_or_else(|| Problem::new(place(), "not UTF-8 in percent-encoding"))?;
    scalar_or_problem(&parameter.ty, &text, definitions).map_err(|what| Problem::new(place(), what))
}

fn query_input(parameter: &RouteParameter, query: &Query<'_>, definitions: Definitions<'_>) -> Result<Value, Problem> {
    let problem = |what| Problem::new(format!("`{}` in the query", parameter.name), what);
    let mut values = query.values(&parameter.name);
    let one = |ty, text| scalar_or_problem(ty, text, definitions).map_err(problem);
    if let Type::List(element) = &parameter.ty {
        let given: Vec<Value> = values.map(|text| one(element, text)).collect::<Result<_, _>>()?;
        let default = parameter.default.clone().filter(|_| given.is_empty());
        return Ok(default.unwrap_or_else(|| Value::list(given)));
    }
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(problem("is given twice".into())),
        (Some(text), None) => match &parameter.ty {
            Type::Option(some) => one(some, text).map(Value::some),
            ty => one(ty, text),
        },
        (None, _) => left_out(parameter)
            .ok_or_else(|| problem(format!("is missing, expected {}", expected(&parameter.ty, definitions)))),
    }
}

/// What the parameter is where the request leaves it out.
pub(super) fn left_out(parameter: &RouteParameter) -> Option<Value> {
    let none = matches!(parameter.ty, Type::Option(_)).then(Value::none);
    parameter.default.clone().or(none)
}

/// The pairs of a query. Most queries have nothing to decode, and are then looked through where they are.
struct Query<'q> {
    plain: &'q str,
    decoded: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

impl<'q> Query<'q> {
    fn new(query: Option<&'q str>) -> Result<Query<'q>, Problem> {
        let query = query.unwrap_or_default();
        // No byte takes part in two pairs, so that a short query has few.
        if query.len() <= QUERY_PAIRS_MAX && !query.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
            return Ok(Query { plain: query, decoded: Vec::new() });
        }
        let mut decoded = Vec::new();
        for (name, value) in pairs(query) {
            let (Some(name), Some(value)) = (decode_query(name), decode_query(value)) else {
                let place = format!("`{}` in the query", decode_query(name).unwrap_or(Cow::Borrowed(name)));
                return Err(Problem::new(place, "not UTF-8 in percent-encoding"));
            };
            if decoded.len() == QUERY_PAIRS_MAX {
                return Err(Problem::new("the query", format!("has more than {QUERY_PAIRS_MAX} parameters")));
            }
            decoded.push((name, value));
        }
        Ok(Query { plain: "", decoded })
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let decoded = self.decoded.iter().filter(move |(other, _)| *other == name).map(|(_, value)| &**value);
        pairs(self.plain).filter(move |(other, _)| *other == name).map(|(_, value)| value).chain(decoded)
    }
}

/// The names and values of a query, as they are written.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut left = query;
    iter::from_fn(move || {
        while !left.is_empty() {
            let (pair, rest) = cut(left, b'&');
            left = rest;
            if !pair.is_empty() {
                return Some(cut(pair, b'='));
            }
        }
        None
    })
}

/// What is before the first of these ASCII characters, and what is behind it. For texts too short to search by words.
fn cut(text: &str, at: u8) -> (&str, &str) {
    match text.bytes().position(|byte| byte == at) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}
