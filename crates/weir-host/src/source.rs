//! Sources, which begin flows.
//!
//! 1. The compiler checks the program against the [`SourceSignature`].
//! 2. The runtime calls [`Source::check`], and then [`Source::open`], with the arguments. Binding a port or opening a file
//!    happens, and fails, in this step.
//! 3. The runtime runs the [`Opened`] source on one event loop, or on each of them ([`Source::loops`]).
//! 4. The source calls [`Flows::begin`] for every element, and awaits [`Flows::room`] if there is no room.
//! 5. When [`Stop`] takes effect, the source accepts no new input, completes the flows that have begun, and returns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use weir_events::Event;

use crate::{Environment, Failure, ListenProtocol, Parameter, Text, Type, Value};

/// A future that stays on its event loop, which is a `LocalRuntime` of tokio.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// The signature of a source, for the compiler.
#[derive(Clone, Debug)]
pub struct SourceSignature {
    /// The module of the source.
    pub module: Text,
    /// The name within the module; for the transport of a service it is the module's own, as in `on http(…)`.
    pub name: Text,
    /// The documentation.
    pub doc: Text,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The type of the elements; `None` for a transport, whose routes define it.
    pub element: Option<Type>,
    /// For a transport, the type of a flow's answer: `http.Response`.
    pub answer: Option<Type>,
    /// `true` if the elements have an order that the program's stateful functions must observe.
    pub ordered: bool,
}

/// A source of flows, not yet open.
pub trait Source: Send + Sync {
    /// Opens the source, for example by binding a port or opening a file. `arguments` are in the order of the
    /// signature's parameters; `environment` contains the values that the embedder provides, such as the root directory
    /// for files.
    ///
    /// # Errors
    /// Fails if the source cannot be opened; the message says what to do about it.
    fn open(
        &self,
        arguments: Vec<Value>,
        routes: Arc<[Route]>,
        environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure>;

    /// Checks everything on which [`Source::open`] would fail and that can be checked while another program still uses the
    /// address or file, such as the files of a certificate. Changes nothing.
    ///
    /// # Errors
    /// Fails if `open` would.
    fn check(&self, _arguments: &[Value], _routes: &Arc<[Route]>, _environment: &Environment) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the protocol by which the source listens at the address that its parameters `port` and `address` give;
    /// `None` if it does not listen. The compiler checks such addresses.
    fn listens(&self) -> Option<ListenProtocol> {
        None
    }

    /// Returns true if the source reads the standard input, of which a process has one.
    fn reads_standard_input(&self) -> bool {
        false
    }

    /// Returns the number of event loops on which the source runs.
    fn loops(&self) -> Loops {
        Loops::One
    }

    /// Returns the parameters, by index, whose arguments `open` would refuse, with the reasons. The compiler asks before the
    /// program starts: an argument that is computed at the start is `None`.
    fn faults(&self, _arguments: &[Option<Value>], _routes: &Arc<[Route]>) -> Vec<(usize, Failure)> {
        Vec::new()
    }
}

/// A source that is ready to run.
pub trait Opened: Send + Sync {
    /// Describes the address or the input of the source, for the start-up message: `http://127.0.0.1:8080`.
    fn describe(&self) -> String;

    /// Returns the progress of the source, if its input is finite and of known length.
    fn progress(&self) -> Option<Progress> {
        None
    }

    /// Begins a flow for every element until the input ends or `stop` takes effect. Awaited on an event loop whose
    /// runtime is tokio's `LocalRuntime`: tasks started with `spawn_local` stay on that thread.
    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>>;
}

/// Progress of a source through its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of elements for which flows have begun.
    pub elements: u64,
    /// Amount of input consumed, in a unit of the source's choice, such as bytes.
    pub done: u64,
    /// Total amount of input in that unit.
    pub whole: u64,
}

/// Number of event loops on which a source runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// One event loop.
    One,
    /// Every event loop, as for a server that accepts connections on each.
    Each,
}

/// Interface through which a source begins flows; implemented by engines.
pub trait Flows: Send + Sync {
    /// Begins a flow at an entry point: the index of the route for a service, otherwise 0. The inputs are in the order
    /// of the entry's parameters. They are taken unless the result is [`Begun::Full`], so that an input that cannot be
    /// cloned, such as a connection, is still there when there is room.
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun;

    /// Returns true if a flow may begin now: false if work like it waits too long for a thread already. A source asks before
    /// it takes trouble for the flow, such as reading the body of a request, and then calls [`Flows::begin_admitted`].
    fn admits(&self, _entry: usize) -> bool {
        true
    }

    /// Begins a flow like [`Flows::begin`], for which [`Flows::admits`] has returned true.
    fn begin_admitted(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        self.begin(entry, inputs)
    }

    /// Begins a detached flow, whose result is not awaited, such as a flow of a stream. [`Begun::Done`] then means only
    /// that the engine is responsible for the flow; it may not begin before the source waits for something.
    fn begin_detached(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        self.begin(entry, inputs)
    }

    /// Waits until there is room for a flow.
    fn room(&self) -> LocalFuture<()>;

    /// Reports something that went wrong in a source that goes on.
    fn report(&self, problem: SourceProblem);
}

/// Something that went wrong in a source that goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceProblem {
    /// An element was malformed, and no flow began for it.
    ElementSkipped(Failure),
    /// No connection could be accepted, or no input read, for example because the process has no file descriptors left. The
    /// source tries again.
    Retries(Failure),
    /// A request could not be answered as its client expects, although no flow has failed, such as for want of memory for its
    /// body.
    RequestFailed(Failure),
    /// The limit of connections is reached, and connections were closed or refused.
    ShedsConnections(Failure),
}

/// A flow that has begun.
pub enum Begun {
    /// The flow has ended.
    Done(Result<Value, Failure>),
    /// The flow is running; dropping the future cancels it.
    Pending(LocalFuture<Result<Value, Failure>>),
    /// The engine's queue of flows is full, or work like it waits too long, and nothing has begun. A service answers 503, a
    /// stream waits for [`Flows::room`].
    Full,
}

/// Signal for a source to stop. Can be cloned; takes effect once.
#[derive(Clone)]
pub struct Stop {
    stopped: Event<()>,
    drain_timeout: Duration,
}

impl Stop {
    /// Creates a signal from an event that takes effect when the program stops, and stays in effect.
    pub fn new(stopped: Event<()>) -> Self {
        Stop { stopped, drain_timeout: Duration::MAX }
    }

    /// Returns the signal of a program that cancels its flows when it has been told to stop and this time has passed.
    #[must_use]
    pub fn within(self, drain_timeout: Duration) -> Self {
        Stop { drain_timeout, ..self }
    }

    /// Returns the time from the stop of the program to the end of all that it has begun.
    pub fn drain_timeout(&self) -> Duration {
        self.drain_timeout
    }

    /// Returns the event that takes effect when the program stops, and stays in effect; it can be awaited or used in a
    /// choice.
    pub fn stopped(&self) -> Event<()> {
        self.stopped.clone()
    }
}

/// A route of a service, as its transport sees it.
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

/// A parameter of a route.
#[derive(Clone, Debug)]
pub struct RouteParameter {
    /// The name, as it appears in the request.
    pub name: Text,
    /// The type into which the text of the request is parsed.
    pub ty: Type,
    /// The part of the request that holds it.
    pub from: ParameterFrom,
    /// The value if the request leaves the parameter out; `None` makes it required, unless its type is an `Option`.
    pub default: Option<Value>,
}

/// Part of a request that holds a route's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterFrom {
    /// The path.
    Path,
    /// The query.
    Query,
    /// The header field of the parameter's name, with `-` for each `_`.
    Header,
    /// The cookie of the parameter's name behind `__Host-`, which only this host can set.
    Cookie,
    /// The cookie of the parameter's name, which other hosts of the domain can set.
    UnprefixedCookie,
    /// The cookie of the parameter's name behind `__Host-`, whose value the service has encrypted.
    EncryptedCookie,
    /// The body, which is a form with fields and files.
    Form,
    /// The body: `Text` and `Bytes` unchanged, all other types as JSON.
    Body,
}
