//! Sources: what flows begin from.
//!
//! 1. The program is checked against the [`SourceSignature`].
//! 2. The runtime calls [`Source::open`] with the arguments; binding a port, opening a file happen here, and fail here.
//! 3. It runs the [`Opened`] source on one event loop, or on each of them ([`Opened::loops`]).
//! 4. The source calls [`Flows::begin`] for every element, and waits for [`Flows::room`] where there is none.
//! 5. When [`Stop`] says so, the source takes in nothing new, answers what has begun, and returns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use weir_events::Event;

use crate::{Environment, Failure, Parameter, Text, Type, Value};

/// A future that stays on its event loop, which is a `LocalRuntime` of tokio.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// What the compiler knows of a source.
#[derive(Clone, Debug)]
pub struct SourceSignature {
    /// The module that it belongs to.
    pub module: Text,
    /// Its name within the module; that of a service's transport is the module's own, as in `on http(…)`.
    pub name: Text,
    /// What its author says of it.
    pub doc: Text,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What its elements are; `None` for a transport, whose routes say it.
    pub element: Option<Type>,
    /// What a flow must answer with, for a transport: `http.Response`.
    pub answer: Option<Type>,
    /// Whether its elements have an order that the program's stateful functions must see.
    pub ordered: bool,
}

/// Something that flows begin from.
pub trait Source: Send + Sync {
    /// Gets ready: binds the port, opens the file. `arguments` are in the order of the signature's parameters;
    /// `environment` is what the embedder gave, such as the directory that files lie below.
    ///
    /// # Errors
    /// Fails with what to do about it: the port is taken, the file is not there.
    fn open(
        &self,
        arguments: Vec<Value>,
        routes: Arc<[Route]>,
        environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure>;
}

/// A source that is ready to run.
pub trait Opened: Send + Sync {
    /// Where it listens or what it reads, for the start-up message: `http://127.0.0.1:8080`.
    fn describe(&self) -> String;

    /// On how many event loops it runs.
    fn loops(&self) -> Loops {
        Loops::One
    }

    /// How far it is, where its input is finite and its extent is known.
    fn progress(&self) -> Option<Progress> {
        None
    }

    /// Begins a flow for every element until the input ends or `stop` says so. Awaited on an event loop whose runtime is
    /// tokio's `LocalRuntime`: tasks that it spawns with `spawn_local` stay on that thread.
    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>>;
}

/// How far a source is with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Elements that flows have begun from.
    pub elements: u64,
    /// How much of the input that was, in a unit of the source's own, such as bytes.
    pub done: u64,
    /// How much the input is in that unit.
    pub whole: u64,
}

/// On how many event loops a source runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// On one.
    One,
    /// On each of them, as a server that accepts connections on every loop.
    Each,
}

/// Where a source begins flows; an engine is behind it.
pub trait Flows: Send + Sync {
    /// Begins a flow at the entry point: for a service the index of the route, else 0. The inputs are in the order of
    /// the entry's parameters; they are taken unless the answer is [`Begun::Full`], so that a value that cannot be
    /// cloned, such as a connection, is still there when there is room.
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun;

    /// The same for a flow whose answer nobody wants, as those of a stream. [`Begun::Done`] then says no more than that
    /// somebody else sees to it; it may not even have begun before the source waits for something.
    fn begin_detached(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        self.begin(entry, inputs)
    }

    /// Waits until a flow may begin.
    fn room(&self) -> LocalFuture<()>;
}

/// A flow that has begun.
pub enum Begun {
    /// It is through already.
    Done(Result<Value, Failure>),
    /// It goes on; dropping the future gives the flow up.
    Pending(LocalFuture<Result<Value, Failure>>),
    /// The engine's queue of flows is full: nothing has begun. A service answers 503, a stream waits for
    /// [`Flows::room`].
    Full,
}

/// Tells a source to stop. Cloned freely; it fires once.
#[derive(Clone)]
pub struct Stop(Event<()>);

impl Stop {
    /// A stop by an event that takes effect when the program stops, and ever after.
    pub fn new(stopped: Event<()>) -> Self {
        Stop(stopped)
    }

    /// Takes effect when the program stops, and ever after: to be awaited, or to be a branch of a choice.
    pub fn stopped(&self) -> Event<()> {
        self.0.clone()
    }
}

/// One route of a service, as its transport sees it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The method, in capitals: `GET`.
    pub method: Text,
    /// The path with its parameters in braces: `/users/{name}`.
    pub pattern: Text,
    /// The parameters, in the order of the entry's inputs.
    pub parameters: Vec<RouteParameter>,
    /// The definitions of the named types in `parameters`.
    pub types: Arc<[crate::TypeDefinition]>,
}

/// One parameter of a route.
#[derive(Clone, Debug)]
pub struct RouteParameter {
    /// Its name, as the request spells it.
    pub name: Text,
    /// Its type: what the text of the request is parsed into.
    pub ty: Type,
    /// Where it is found.
    pub from: ParameterFrom,
    /// What it is where the request leaves it out; `None` makes it required, unless its type is an `Option`.
    pub default: Option<Value>,
}

/// Where a route's parameter is found in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterFrom {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In the field of the header that has its name, with `-` for each `_`.
    Header,
    /// In the cookie of its name.
    Cookie,
    /// It is the body: `Text` and `Bytes` as they come, everything else as JSON.
    Body,
}
