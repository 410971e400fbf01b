//! What both IRs have in common: a program is shared values and entry points, whose bodies are blocks or graphs.

use weir_host::{Text, Type, TypeDefinition, Value};

/// A program: what is shared, and where flows begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Program<B> {
    /// The named types that the program defines or uses.
    pub types: Vec<TypeDefinition>,
    /// The shared values, in the order in which they are made.
    pub shared: Vec<SharedValue<B>>,
    /// The entry points, in the order of the text.
    pub entries: Vec<Entry<B>>,
}

/// One `shared` value.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedValue<B> {
    /// Its name.
    pub name: Text,
    /// Its type.
    pub ty: Type,
    /// Whether each session has one of its own.
    pub per_session: bool,
    /// What makes it: once, when the program starts; of one per session, when a step of a session first holds it. It
    /// touches no resource of the program, and one per session neither waits nor has states of its own.
    pub init: B,
}

/// A source and the entry points that its flows begin at.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<B> {
    /// Its name: that of the service, or of the source.
    pub name: Text,
    /// The path of the source among the libraries' sources: `http.http` for `service … on http(…)`, `files.lines`.
    pub source: Text,
    /// What makes the source's arguments, once, when the program starts: yields a tuple of them, in the order of its
    /// parameters.
    pub arguments: B,
    /// Whether its stateful functions must see the source's order.
    pub ordered: bool,
    /// The flows that may begin: one for each route of a service; else the one of an element, and perhaps [`AT_END`]
    /// that of the end.
    pub flows: Vec<Flow<B>>,
}

/// Which of a stream's flows is the one that begins once, when there are no more elements and the flows of all are
/// through. It begins with nothing.
pub const AT_END: usize = 1;

/// The body of an entry point: what happens to one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow<B> {
    /// Its name: `get /{name}`, or that of the source.
    pub name: Text,
    /// How requests find it, for a service.
    pub route: Option<FlowRoute>,
    /// What it begins with.
    pub parameters: Vec<Variable>,
    /// What it answers; [`Type::Unit`] where nobody waits for an answer.
    pub result: Type,
    /// What happens.
    pub body: B,
}

/// The route of a service's flow. Its parameters are the flow's, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRoute {
    /// The method, in capitals.
    pub method: Text,
    /// The path with its parameters in braces.
    pub pattern: Text,
    /// For each parameter, where it is found and what it is where it is left out.
    pub parameters: Vec<RouteParameter>,
}

/// Where a route's parameter is found.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteParameter {
    /// Its name, as requests spell it.
    pub name: Text,
    /// Where it is found.
    pub from: weir_host::ParameterFrom,
    /// What it is where a request leaves it out.
    pub default: Option<Value>,
}

/// The index of a variable, unique within a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub u32);

/// A variable where it is bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its index.
    pub var: Var,
    /// What the text calls it; a hint for people, may be empty.
    pub name: Text,
    /// Its type.
    pub ty: Type,
}

/// A place in the program's text, in bytes from its beginning; `0..0` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

impl<B> Entry<B> {
    /// What happens when there are no more elements; nothing for a service.
    #[must_use]
    pub fn end(&self) -> Option<&Flow<B>> {
        self.flows.get(AT_END).filter(|flow| flow.route.is_none())
    }
}

impl<B> Default for Program<B> {
    fn default() -> Self {
        Program { types: Vec::new(), shared: Vec::new(), entries: Vec::new() }
    }
}
