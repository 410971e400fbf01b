//! The structure that both IRs share: a program has shared values and entry points, whose bodies are blocks or graphs.

use std::sync::Arc;

use weir_host::{Route, Text, Type, TypeDefinition, Value};

/// The depth to which blocks, types and constants may nest. It bounds the recursion of everything that walks an IR.
pub const NESTING_MAX: usize = 256;

/// A program: its types, its shared values and its entry points.
#[derive(Clone, Debug, PartialEq)]
pub struct Program<B> {
    /// The named types that the program defines or uses.
    pub types: Vec<TypeDefinition>,
    /// The calls of `fn`s that were inlined, which the origins of operations refer to. A call follows those around it.
    pub inlined_calls: Vec<InlinedCall>,
    /// The shared values, in the order in which they are created.
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
    /// True if each session has a value of its own.
    pub per_session: bool,
    /// The body that computes the value: once, when the program starts, or when a step of a session first holds it. The
    /// body touches no resource of the program; the body of a session's value neither waits nor has private states.
    pub init: B,
}

/// An entry point: a source and the flows that its elements or requests begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<B> {
    /// Its name: that of the service, or of the source.
    pub name: Text,
    /// The path of the source among the libraries' sources: `http.http` for `service … on http(…)`, `files.lines`.
    pub source: Text,
    /// The body that computes the source's arguments once, when the program starts: it yields a tuple in the order of
    /// the source's parameters.
    pub arguments: B,
    /// True if stateful functions must see the elements in the order of the source.
    pub ordered: bool,
    /// The flows: one for each route of a service; otherwise one for an element, and possibly one [`AT_END`].
    pub flows: Vec<Flow<B>>,
}

impl<B> Entry<B> {
    /// Returns the routes of a service, as its transport sees them. `types` are the definitions of the program.
    pub fn routes(&self, types: &Arc<[TypeDefinition]>) -> Arc<[Route]> {
        self.flows.iter().filter_map(|flow| flow.route_of(types)).collect()
    }
}

/// The index of the flow of a stream that begins once, without parameters, after the last element, when the flows of all
/// elements have ended.
pub const AT_END: usize = 1;

/// A flow: the body of an entry point, which runs once for each element or request.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow<B> {
    /// Its name: `get /{name}`, or that of the source.
    pub name: Text,
    /// The route by which requests find the flow of a service.
    pub route: Option<FlowRoute>,
    /// The parameters.
    pub parameters: Vec<Variable>,
    /// The type of the answer, [`Type::Unit`] if none is awaited.
    pub result: Type,
    /// The body.
    pub body: B,
    /// The call sites that passes removed from the body, whose names plans may still use.
    pub former_sites: Vec<FormerSite>,
}

impl<B> Flow<B> {
    fn route_of(&self, types: &Arc<[TypeDefinition]>) -> Option<Route> {
        let route = self.route.as_ref()?;
        let parameters = route.parameters.iter().zip(&self.parameters).map(|(parameter, variable)| {
            let (name, default) = (parameter.name.clone(), parameter.default.clone());
            weir_host::RouteParameter { name, ty: variable.ty.clone(), from: parameter.from, default }
        });
        Some(Route {
            method: route.method.clone(),
            pattern: route.pattern.clone(),
            parameters: parameters.collect(),
            types: Arc::clone(types),
        })
    }
}

/// A call site that a pass removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerSite {
    /// Its name.
    pub site: Text,
    /// The name of the call site that took its place; `None` if nothing did, because its result was not used.
    pub now: Option<Text>,
}

/// The route of a service's flow. Its parameters are the flow's, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRoute {
    /// The method, in capitals.
    pub method: Text,
    /// The path with its parameters in braces.
    pub pattern: Text,
    /// The place and the default of each parameter.
    pub parameters: Vec<RouteParameter>,
}

/// The place in a request where a route's parameter is found, and its default.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteParameter {
    /// Its name, as requests spell it.
    pub name: Text,
    /// The part of the request that holds it.
    pub from: weir_host::ParameterFrom,
    /// The value if a request leaves it out.
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
    /// Its name in the text, a hint for readers; may be empty.
    pub name: Text,
    /// Its type.
    pub ty: Type,
}

/// A range of the program's text in bytes; `0..0` if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
    /// The inlined call that the operation belongs to; `None` in the body of the flow itself.
    pub inlined_call: Option<InlinedCallId>,
}

/// The way in which a fold ends before its list does, if it may: its state is then a `Result`, and rounds behind an `Err` only
/// yield it. A `for` or `fold` of a program becomes such a fold if its body may leave the `fn` around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoopExit {
    /// It does not.
    #[default]
    Never,
    /// By the failure of a `?` at this position. A read may happen although the failure comes before it in the text.
    Failure(Origin),
    /// By a `return` at this position. Nothing behind it is asked for.
    Return(Origin),
}

impl LoopExit {
    /// Returns the exit of a loop that has both: a `return`, and then the first one in the text.
    #[must_use]
    pub fn or(self, other: LoopExit) -> LoopExit {
        let order = |exit: &LoopExit| match exit {
            LoopExit::Return(at) => (0, at.start),
            LoopExit::Failure(at) => (1, at.start),
            LoopExit::Never => (2, 0),
        };
        std::cmp::min_by_key(self, other, order)
    }

    /// Returns the position, to change it.
    pub(crate) fn position_mut(&mut self) -> Option<&mut Origin> {
        match self {
            LoopExit::Never => None,
            LoopExit::Failure(at) | LoopExit::Return(at) => Some(at),
        }
    }
}

/// The index of an inlined call in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InlinedCallId(pub u32);

/// A call of a `fn` that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The name of the `fn`.
    pub function: Text,
    /// The place of the call, which may itself belong to an inlined call.
    pub called_at: Origin,
}

impl<B> Program<B> {
    /// Returns the inlined calls around an operation, innermost first.
    pub fn inlined_calls_around(&self, origin: Origin) -> impl Iterator<Item = (InlinedCallId, &InlinedCall)> {
        let call = |id: InlinedCallId| Some((id, self.inlined_calls.get(id.0 as usize)?));
        // Every call follows those around it, so that the chain ends.
        let outer = move |&(id, inner): &(InlinedCallId, &InlinedCall)| {
            inner.called_at.inlined_call.filter(|outer| *outer < id).and_then(call)
        };
        std::iter::successors(origin.inlined_call.and_then(call), outer)
    }
}

impl<B> Entry<B> {
    /// Returns the flow that runs after the last element; `None` for a service.
    #[must_use]
    pub fn end(&self) -> Option<&Flow<B>> {
        self.flows.get(AT_END).filter(|flow| flow.route.is_none())
    }
}

impl Variable {
    /// Returns true if an operation that binds the variable yields a value.
    #[must_use]
    pub fn yields(&self) -> bool {
        self.ty != Type::Never
    }
}

impl<B> Default for Program<B> {
    fn default() -> Self {
        Program { types: Vec::new(), inlined_calls: Vec::new(), shared: Vec::new(), entries: Vec::new() }
    }
}
