//! Services: their settings, sessions and routes, and the places in a request that a parameter is read from.

use super::{Argument, Block, Docs, Expr, FailureHandler, Name, Parameter};
use crate::Span;
use std::sync::Arc;

/// `service name on http(port: 8080) { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Service {
    /// Name.
    pub name: Name,
    /// Transport: the module after `on`.
    pub transport: Name,
    /// Arguments of the transport.
    pub arguments: Vec<Argument>,
    /// Members in source order.
    pub members: Vec<ServiceMember>,
    /// Source range of the braces.
    pub braces: Span,
}

impl Service {
    /// Returns the routes in source order.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::Route(route) => Some(route),
            _ => None,
        })
    }

    /// Returns the bodies that run before those of the routes, in source order.
    pub fn befores(&self) -> impl Iterator<Item = &Before> {
        self.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::Before(before) => Some(before),
            _ => None,
        })
    }

    /// Returns the failure handlers of the service in source order.
    pub fn handlers(&self) -> impl Iterator<Item = &FailureHandler> {
        self.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::FailureHandler(handler) => Some(handler),
            _ => None,
        })
    }

    /// Returns the session key, if the service declares one. The parser reports a second one.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.members.iter().find_map(|member| match &member.kind {
            ServiceMemberKind::Session(session) => Some(session),
            _ => None,
        })
    }
}

/// One member of a service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceMember {
    /// Documentation above it.
    pub docs: Docs,
    /// Form of the member.
    pub kind: ServiceMemberKind,
    /// Source range, without the documentation.
    pub span: Span,
}

/// The forms of a service member.
#[derive(Clone, PartialEq, Debug)]
pub enum ServiceMemberKind {
    /// `session = request.cookie("id")`.
    Session(Session),
    /// `on failure of files.read { … }`, for all routes.
    FailureHandler(FailureHandler),
    /// `before (header authorization: Text) { … }`, for all routes.
    Before(Before),
    /// `get "/{name}" (name: Text) { … }`.
    Route(Route),
}

/// `before (header authorization: Text) { … }`: the beginning of the body of every route of a service.
#[derive(Clone, PartialEq, Debug)]
pub struct Before {
    /// Parameters, which all routes have besides their own.
    pub parameters: Vec<RouteParameter>,
    /// Body.
    pub body: Block,
    /// Source range of the declaration.
    pub span: Span,
}

/// `session = value`: flows with equal values belong to one session (Flux §2.5).
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    /// The session key.
    pub value: Expr,
    /// Source range of the declaration.
    pub span: Span,
}

/// `get "/{name}" (name: Text, scale: Int = 8) { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Source range of the method.
    pub method_span: Span,
    /// Path pattern.
    pub path: RoutePath,
    /// Parameters that are read from the request.
    pub parameters: Vec<RouteParameter>,
    /// `session = value`, at the head of the braces. It replaces the session key of the service.
    pub session: Option<Session>,
    /// Body.
    pub body: Block,
}

/// The HTTP method of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Method {
    /// `get`.
    Get,
    /// `post`.
    Post,
    /// `put`.
    Put,
    /// `delete`.
    Delete,
    /// `patch`.
    Patch,
    /// `head`.
    Head,
    /// `options`.
    Options,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 7] = [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Patch, Self::Head, Self::Options];

    /// Returns the keyword of the method.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Patch => "patch",
            Self::Head => "head",
            Self::Options => "options",
        }
    }

    /// Returns the method with this keyword.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.word() == word)
    }
}

/// The path pattern of a route, such as `"/posts/{id}"`.
#[derive(Clone, PartialEq, Debug)]
pub struct RoutePath {
    /// Parts from left to right.
    pub parts: Vec<PathPart>,
    /// Source range, including the quotes.
    pub span: Span,
}

/// A part of a path pattern.
#[derive(Clone, PartialEq, Debug)]
pub enum PathPart {
    /// Literal characters with escapes resolved; may contain `/`.
    Literal(Arc<str>),
    /// `{name}`: all characters up to the next `/`.
    Parameter(Name),
    /// `{name..}`: the rest of the path, including `/`.
    Rest(Name),
}

impl RoutePath {
    /// Returns the names in braces, from left to right.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().filter_map(|part| match part {
            PathPart::Literal(_) => None,
            PathPart::Parameter(name) | PathPart::Rest(name) => Some(name),
        })
    }
}

/// One parameter of a route, and the part of the request that supplies it.
#[derive(Clone, PartialEq, Debug)]
pub struct RouteParameter {
    /// Part of the request that supplies it.
    pub place: ParameterLocation,
    /// Source range of name, type and default.
    pub parameter: Parameter,
}

/// The part of a request that supplies a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterLocation {
    /// The path names the parameter.
    Path,
    /// The query: the path does not name the parameter.
    Query,
    /// Marked with `header`.
    Header,
    /// Marked with `cookie`: its name in the request begins with `__Host-`.
    Cookie,
    /// Marked with `unprefixed_cookie`.
    UnprefixedCookie,
    /// Marked with `encrypted_cookie`.
    EncryptedCookie,
    /// Marked with `form`.
    Form,
    /// Marked with `body`.
    Body,
}

impl ParameterLocation {
    /// Locations that are marked by a keyword before the parameter, with the keyword.
    pub const MARKED: [(&'static str, ParameterLocation); 6] = [
        ("body", Self::Body),
        ("form", Self::Form),
        ("header", Self::Header),
        ("cookie", Self::Cookie),
        ("unprefixed_cookie", Self::UnprefixedCookie),
        ("encrypted_cookie", Self::EncryptedCookie),
    ];

    /// Returns true if the parameter is the body of the request.
    #[must_use]
    pub fn is_body(self) -> bool {
        matches!(self, Self::Body | Self::Form)
    }

    /// Returns the keyword before a parameter of this location, if there is one.
    #[must_use]
    pub fn mark(self) -> Option<&'static str> {
        Self::MARKED.iter().find(|(_, place)| *place == self).map(|(mark, _)| *mark)
    }
}
