//! Items: what stands at the top level of a file.

use super::{Argument, Block, Docs, Expr, Name, Path, Pattern, Type};
use crate::Span;
use std::sync::Arc;

/// One item.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// The `///` lines above it.
    pub docs: Docs,
    /// Which item.
    pub kind: ItemKind,
    /// Its place, without the documentation.
    pub span: Span,
}

/// The forms of an item. Where the text was so wrong that no item could be made of it, there is none.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `use http, files`.
    Use(Use),
    /// `shared name = value`.
    Shared(Shared),
    /// `constraint ledger`.
    Constraint(Constraint),
    /// `record Post { id: Int }`.
    Record(Record),
    /// `enum Shape { Circle(radius: Float), Empty }`.
    Enum(Enum),
    /// `fn name(a: Int) -> Int { … }`.
    Function(Function),
    /// `service name on http(port: 8080) { … }`.
    Service(Service),
    /// `for x in source { … }`.
    Entry(Entry),
    /// `on failure of files.read { … }`, for the whole file.
    FailureHandler(FailureHandler),
    /// `test "name" { … }`.
    Test(Test),
}

/// `use http, my_module as m`.
#[derive(Clone, PartialEq, Debug)]
pub struct Use {
    /// The modules; at least one.
    pub modules: Vec<UsedModule>,
}

/// One module of a `use`.
#[derive(Clone, PartialEq, Debug)]
pub struct UsedModule {
    /// The module.
    pub name: Name,
    /// What it is called in this file instead.
    pub alias: Option<Name>,
    /// Name and alias.
    pub span: Span,
}

/// `shared name: Type = value`: one value for all flows; with `per session` behind it, one for each session.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// Its name.
    pub name: Name,
    /// Its type, where written.
    pub ty: Option<Type>,
    /// What it begins as.
    pub value: Expr,
    /// Whether `per session` is written behind it.
    pub per_session: bool,
}

/// `constraint ledger`: a resource outside the program that `atomic` can name.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    /// Its name.
    pub name: Name,
}

/// `record Post { id: Int, title: Text }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The type's name.
    pub name: Name,
    /// The fields in order.
    pub fields: Vec<FieldDeclaration>,
}

/// One field of a record's declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldDeclaration {
    /// The `///` lines above it.
    pub docs: Docs,
    /// The field's name.
    pub name: Name,
    /// The field's type.
    pub ty: Type,
    /// Name and type.
    pub span: Span,
}

/// `enum Shape { Circle(radius: Float), Square(Float), Empty }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Enum {
    /// The type's name.
    pub name: Name,
    /// The variants in order.
    pub variants: Vec<Variant>,
}

/// One variant of an enum's declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// The `///` lines above it.
    pub docs: Docs,
    /// The variant's name.
    pub name: Name,
    /// The values that it carries, in order.
    pub payload: Vec<PayloadField>,
    /// Name and payload.
    pub span: Span,
}

/// One value that a variant carries.
#[derive(Clone, PartialEq, Debug)]
pub struct PayloadField {
    /// Its name, where it has one.
    pub name: Option<Name>,
    /// Its type.
    pub ty: Type,
    /// Name and type.
    pub span: Span,
}

/// `fn name(a: Int, b: Text = "x") -> Type { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// The type of what it gives; `()` where none is written.
    pub returns: Option<Type>,
    /// What it does.
    pub body: Block,
}

/// One parameter of a `fn` or a route.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// What it is where the caller gives nothing.
    pub default: Option<Expr>,
    /// Name, type and default.
    pub span: Span,
}

/// `service name on http(port: 8080) { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Service {
    /// Its name.
    pub name: Name,
    /// What it is served on: the module behind `on`.
    pub transport: Name,
    /// What stands in parentheses behind it.
    pub arguments: Vec<Argument>,
    /// What stands in the braces, in order.
    pub members: Vec<ServiceMember>,
    /// The place of the braces.
    pub braces: Span,
}

impl Service {
    /// The routes in order.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::Route(route) => Some(route),
            _ => None,
        })
    }

    /// The handlers that hold for all routes, in order.
    pub fn handlers(&self) -> impl Iterator<Item = &FailureHandler> {
        self.members.iter().filter_map(|member| match &member.kind {
            ServiceMemberKind::FailureHandler(handler) => Some(handler),
            _ => None,
        })
    }

    /// What tells one session from another, if anything does. The parser reports a second one.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.members.iter().find_map(|member| match &member.kind {
            ServiceMemberKind::Session(session) => Some(session),
            _ => None,
        })
    }
}

/// One line or route in a service.
#[derive(Clone, PartialEq, Debug)]
pub struct ServiceMember {
    /// The `///` lines above it.
    pub docs: Docs,
    /// Which member.
    pub kind: ServiceMemberKind,
    /// Its place, without the documentation.
    pub span: Span,
}

/// What can stand in a service.
#[derive(Clone, PartialEq, Debug)]
pub enum ServiceMemberKind {
    /// `session = request.cookie("id")`.
    Session(Session),
    /// `on failure of files.read { … }`, for all routes.
    FailureHandler(FailureHandler),
    /// `get "/{name}" (name: Text) { … }`.
    Route(Route),
}

/// `session = value`: flows whose values are equal belong to one session (Flux §2.5).
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    /// The session's key.
    pub value: Expr,
    /// The whole line.
    pub span: Span,
}

/// `get "/{name}" (name: Text, scale: Int = 8) { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// Which requests it answers.
    pub method: Method,
    /// The place of the method's word.
    pub method_span: Span,
    /// Which paths it answers.
    pub path: RoutePath,
    /// What it takes from the request.
    pub parameters: Vec<RouteParameter>,
    /// What it does.
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
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 6] = [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Patch, Self::Head];

    /// The word that begins a route of this method.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Patch => "patch",
            Self::Head => "head",
        }
    }

    /// The method that begins with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.word() == word)
    }
}

/// The path of a route, such as `"/posts/{id}"`.
#[derive(Clone, PartialEq, Debug)]
pub struct RoutePath {
    /// The pieces from left to right.
    pub parts: Vec<PathPart>,
    /// Its place, with the quotes.
    pub span: Span,
}

/// A piece of a route's path.
#[derive(Clone, PartialEq, Debug)]
pub enum PathPart {
    /// Characters that must be there, escapes resolved; may hold any number of `/`.
    Literal(Arc<str>),
    /// `{name}`: anything up to the next `/`.
    Parameter(Name),
    /// `{name..}`: all that is left, with its `/`.
    Rest(Name),
}

impl RoutePath {
    /// The names in braces, from left to right.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().filter_map(|part| match part {
            PathPart::Literal(_) => None,
            PathPart::Parameter(name) | PathPart::Rest(name) => Some(name),
        })
    }
}

/// One parameter of a route, with the part of the request that it comes from.
#[derive(Clone, PartialEq, Debug)]
pub struct RouteParameter {
    /// Where it comes from.
    pub place: ParameterLocation,
    /// Name, type and default.
    pub parameter: Parameter,
}

/// The part of a request that a parameter comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterLocation {
    /// The path names it.
    Path,
    /// The path does not name it.
    Query,
    /// It is marked `header`.
    Header,
    /// It is marked `cookie`.
    Cookie,
    /// It is marked `body`.
    Body,
}

impl ParameterLocation {
    /// The places that a word before a parameter names, with the word.
    pub const MARKED: [(&'static str, ParameterLocation); 3] =
        [("body", Self::Body), ("header", Self::Header), ("cookie", Self::Cookie)];

    /// The word before a parameter of this place, where there is one.
    #[must_use]
    pub fn mark(self) -> Option<&'static str> {
        Self::MARKED.iter().find(|(_, place)| *place == self).map(|(mark, _)| *mark)
    }
}

/// `for x in source { … }` at the top level: each element starts one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// What each element is taken apart with.
    pub pattern: Pattern,
    /// Where the elements come from.
    pub source: Expr,
    /// `session = value`, at the head of the braces.
    pub session: Option<Session>,
    /// What happens to one element.
    pub body: Block,
    /// What happens once, when there are no more: `at end { … }`.
    pub end: Option<Block>,
}

/// `on failure of files.read as failure { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct FailureHandler {
    /// The function whose failures it handles.
    pub function: Path,
    /// What the failure is called in the body.
    pub failure: Option<Name>,
    /// What happens instead.
    pub body: Block,
    /// The whole handler.
    pub span: Span,
}

/// `test "name" { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// What the test says, escapes resolved.
    pub name: Arc<str>,
    /// The name's place, with the quotes.
    pub name_span: Span,
    /// What is done and expected.
    pub body: Block,
}
