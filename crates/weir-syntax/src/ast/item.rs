//! Items: the declarations at the top level of a file.

use super::{Argument, Block, Docs, Expr, FileIndex, Name, Path, Pattern, TableDeclaration, Type};
use crate::Span;
use std::sync::Arc;

/// One item.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// The file that has it.
    pub file: FileIndex,
    /// Documentation above it.
    pub docs: Docs,
    /// Source range of `pub`, if other modules may use the item.
    pub public: Option<Span>,
    /// Form of the item.
    pub kind: ItemKind,
    /// Source range, without the documentation.
    pub span: Span,
}

/// The forms of an item. Source from which no item can be read is reported and left out.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `use http, files`.
    Use(Use),
    /// `library common = "../common"`.
    Library(LibraryFolder),
    /// `shared name = value`.
    Shared(Shared),
    /// `constraint ledger on billing.post`.
    Constraint(Constraint),
    /// `table users: User key name`.
    Table(TableDeclaration),
    /// `config rate: Int = 100`, `secret signing_key: Bytes`.
    Config(Config),
    /// `const attempts_max = 3`.
    Constant(NamedConstant),
    /// `type Prices = Map(Text, Int)`.
    Alias(TypeAlias),
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

/// `library common = "../common"`: a folder of modules that programs share.
#[derive(Clone, PartialEq, Debug)]
pub struct LibraryFolder {
    /// Name, with which the modules of the folder begin: `use common.dates`.
    pub name: Name,
    /// Path of the folder, relative to that of the program.
    pub path: Arc<str>,
    /// Source range of the path, including the quotes.
    pub path_span: Span,
}

/// `use http, billing.invoices, my_module as m`.
#[derive(Clone, PartialEq, Debug)]
pub struct Use {
    /// Modules; at least one.
    pub modules: Vec<UsedModule>,
}

/// One module of a `use`.
#[derive(Clone, PartialEq, Debug)]
pub struct UsedModule {
    /// Folders of the module, outermost first.
    pub folders: Vec<Name>,
    /// Name of the module.
    pub name: Name,
    /// Name of the module in this file.
    pub alias: Option<Name>,
    /// Source range of folders, name and alias.
    pub span: Span,
}

impl UsedModule {
    /// Returns the name of the module with those of its folders: `billing.invoices`.
    #[must_use]
    pub fn path(&self) -> Arc<str> {
        if self.folders.is_empty() {
            return self.name.text.clone();
        }
        let names = self.folders.iter().chain([&self.name]).map(Name::as_str);
        names.collect::<Vec<_>>().join(".").into()
    }

    /// Returns the name that the module has in the file.
    #[must_use]
    pub fn called(&self) -> &Name {
        self.alias.as_ref().unwrap_or(&self.name)
    }
}

/// `shared name: Type = value`: one value for all flows, or one for each session if `per session` follows.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// Name.
    pub name: Name,
    /// Type, if written.
    pub ty: Option<Type>,
    /// Initial value.
    pub value: Expr,
    /// True if `per session` follows.
    pub per_session: bool,
}

/// `constraint ledger per session on billing.post, read billing.total`: a resource outside the program that steps hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    /// Name.
    pub name: Name,
    /// True if `per session` follows: all steps hold it per session.
    pub per_session: bool,
    /// Functions and modules behind `on`, each call of which holds it.
    pub bindings: Vec<ConstraintBinding>,
}

/// One function or module that a constraint is bound to.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstraintBinding {
    /// True if `read` precedes: a call holds the constraint together with other readers.
    pub read: bool,
    /// Path of the function, or name of the module.
    pub path: Path,
    /// Source range of `read` and the path.
    pub span: Span,
}

/// `config rate: Int = 100` or `secret signing_key: Bytes`: a value that is set where the program runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// True for a `secret`.
    pub secret: bool,
    /// Name.
    pub name: Name,
    /// Type; for a secret, the form in which it is written.
    pub ty: Type,
    /// Value if none is set.
    pub default: Option<Expr>,
}

/// `const attempts_max = 3`.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedConstant {
    /// Name.
    pub name: Name,
    /// Type, if it is written.
    pub ty: Option<Type>,
    /// The constant expression.
    pub value: Expr,
}

/// `type Prices = Map(Text, Int)`: another name of a type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeAlias {
    /// The name.
    pub name: Name,
    /// The type that it stands for.
    pub ty: Type,
}

/// `record Post { id: Int, title: Text }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Name of the type.
    pub name: Name,
    /// Fields in source order.
    pub fields: Vec<FieldDeclaration>,
}

/// One field of a record declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldDeclaration {
    /// Documentation above it.
    pub docs: Docs,
    /// Name of the field.
    pub name: Name,
    /// Type of the field.
    pub ty: Type,
    /// Name of the field outside the program, in JSON and the like.
    pub external: Option<ExternalName>,
    /// Value of the field if a literal leaves it out.
    pub default: Option<Expr>,
    /// Source range from the name to the end.
    pub span: Span,
}

/// `as "user-name"`: the name of a field or variant outside the program.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalName {
    /// The name with escapes resolved.
    pub text: Arc<str>,
    /// Source range, including the quotes.
    pub span: Span,
}

/// `enum Shape { Circle(radius: Float), Square(Float), Empty }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Enum {
    /// Name of the type.
    pub name: Name,
    /// Variants in source order.
    pub variants: Vec<Variant>,
}

/// One variant of an enum declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// Documentation above it.
    pub docs: Docs,
    /// Name of the variant.
    pub name: Name,
    /// Values of the payload, in source order.
    pub payload: Vec<PayloadField>,
    /// Name of the variant outside the program, in JSON and the like.
    pub external: Option<ExternalName>,
    /// Source range from the name to the end.
    pub span: Span,
}

/// One value of a variant's payload.
#[derive(Clone, PartialEq, Debug)]
pub struct PayloadField {
    /// Name, if there is one.
    pub name: Option<Name>,
    /// Type.
    pub ty: Type,
    /// Source range of name and type.
    pub span: Span,
}

/// `fn name(a: Int, b: Text = "x") -> Type { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Name.
    pub name: Name,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Return type; `()` if none is written.
    pub returns: Option<Type>,
    /// Body.
    pub body: Block,
}

/// One parameter of a `fn` or a route.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Name.
    pub name: Name,
    /// Type.
    pub ty: Type,
    /// Default value.
    pub default: Option<Expr>,
    /// Source range of name, type and default.
    pub span: Span,
}

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

/// `for x in source { … }` at the top level: each element starts one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Pattern that binds each element.
    pub pattern: Pattern,
    /// The source of the elements.
    pub source: Expr,
    /// `session = value`, at the head of the braces.
    pub session: Option<Session>,
    /// Body of one flow.
    pub body: Block,
    /// `at end { … }`: runs once, after the last element.
    pub end: Option<Block>,
}

/// `on failure of files.read(name) as failure { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct FailureHandler {
    /// The function whose failures it handles.
    pub function: Path,
    /// Patterns for the first arguments of the call that failed.
    pub arguments: Vec<Pattern>,
    /// Name of the failure in the body.
    pub failure: Option<Name>,
    /// Body that runs instead.
    pub body: Block,
    /// Source range of the handler.
    pub span: Span,
}

/// `test "name" { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// Name of the test with escapes resolved.
    pub name: Arc<str>,
    /// Source range of the name, including the quotes.
    pub name_span: Span,
    /// Body of the test.
    pub body: Block,
}
