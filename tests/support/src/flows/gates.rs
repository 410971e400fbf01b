//! Gated host functions: each call reports to the test that it has begun, and waits until the test releases it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use weir_host::{
    Argument, Call, Effects, Failure, Function, FunctionCode, Library, Mode, Module, Outcome, Parameter, Passing,
    Settled, Signature, StateOf, Type, Value, World,
};

/// Time limit for each event that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call that has begun and waits for its release.
pub struct Waiting {
    /// The path of the function, `module.name`.
    pub path: &'static str,
    /// The last argument of the call.
    pub argument: i64,
    release: oneshot::Sender<()>,
}

impl Waiting {
    /// Lets the call return.
    pub fn release(self) {
        _ = self.release.send(());
    }

    /// Waits until the call has been cancelled.
    pub fn given_up(mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let closed = async { tokio::time::timeout(PATIENCE, self.release.closed()).await };
        runtime.block_on(closed).expect("the call is given up");
    }

    /// Returns true if the call has been cancelled.
    pub fn is_given_up(&self) -> bool {
        self.release.is_closed()
    }
}

/// Creates gated functions and receives their calls.
pub struct Gates {
    sender: std::sync::mpsc::Sender<Waiting>,
    receiver: std::sync::mpsc::Receiver<Waiting>,
}

impl Default for Gates {
    fn default() -> Self {
        Self::new()
    }
}

impl Gates {
    /// Creates an instance that has received no call.
    #[must_use]
    pub fn new() -> Gates {
        let (sender, receiver) = std::sync::mpsc::channel();
        Gates { sender, receiver }
    }

    /// Waits for the next call that begins.
    pub fn next(&self) -> Waiting {
        self.receiver.recv_timeout(PATIENCE).expect("a call begins")
    }

    /// Returns the calls that have begun and that the test has not received.
    pub fn begun(&self) -> Vec<Waiting> {
        self.receiver.try_iter().collect()
    }

    /// Returns true if no call has begun that the test has not received.
    pub fn is_quiet(&self) -> bool {
        self.receiver.try_recv().is_err()
    }

    /// Creates a gated function that waits asynchronously and returns its last argument.
    pub fn waiting(&self, path: &'static str, world: World) -> Function {
        let sender = self.sender.clone();
        let code = FunctionCode::Waiting(Arc::new(move |call: &mut Call<'_>| {
            let argument = int(call, call.arguments.len() - 1);
            let guard = call.shared(0).map(weir_host::Shared::write_owned);
            let (release, released) = oneshot::channel();
            let announced = sender.send(Waiting { path, argument, release });
            Ok(Box::pin(async move {
                announced.expect("the test listens");
                _ = released.await;
                drop(guard);
                Settled { outcome: Outcome::Value(Value::Int(argument)), restored: Vec::new() }
            }))
        }));
        function(path, &[("x", Type::Int, Passing::Value)], world, code)
    }

    /// Creates a gated function that blocks its thread and returns its last argument.
    pub fn blocking(&self, path: &'static str, world: World) -> Function {
        let sender = self.sender.clone();
        let code = FunctionCode::Blocking(Arc::new(move |call: &mut Call<'_>| {
            let argument = int(call, call.arguments.len() - 1);
            let sender = sender.clone();
            Ok(Box::new(move || {
                let (release, released) = oneshot::channel();
                sender.send(Waiting { path, argument, release }).expect("the test listens");
                _ = released.blocking_recv();
                Settled { outcome: Outcome::Value(Value::Int(argument)), restored: Vec::new() }
            }))
        }));
        function(path, &[("x", Type::Int, Passing::Value)], world, code)
    }
}

/// Creates a pure function that returns at once.
pub fn immediate(
    path: &'static str,
    parameters: &[(&str, Type, Passing)],
    body: impl Fn(&mut Call<'_>) -> Outcome + Send + Sync + 'static,
) -> Function {
    function(path, parameters, World::Pure, FunctionCode::Immediate(Arc::new(body)))
}

/// Creates a function with this signature.
pub fn function(
    path: &'static str,
    parameters: &[(&str, Type, Passing)],
    world: World,
    code: FunctionCode,
) -> Function {
    let (module, name) = path.split_once('.').expect("a path");
    let parameters = parameters.iter().map(|(name, ty, passing)| Parameter {
        name: (*name).into(),
        ty: ty.clone(),
        passing: *passing,
        default: None,
    });
    let signature = Signature {
        module: module.into(),
        name: name.into(),
        doc: "".into(),
        parameters: parameters.collect(),
        result: Type::Int,
        failure: None,
        effects: Effects { world, ..Effects::default() },
        state: None,
        batch: None,
        internal: false,
    };
    Function { signature, code, words: None, batch: None, types: Vec::new(), location: None }
}

/// Adds private state to a function.
pub fn with_state(mut function: Function) -> Function {
    function.signature.state = Some(StateOf { name: "State".into(), mode: Mode::Write, make: |_| Ok(Value::Int(0)) });
    function
}

/// Adds a shared value as the first parameter of a function.
pub fn on_shared(mut function: Function, passing: Passing) -> Function {
    let parameter = Parameter { name: "on".into(), ty: Type::Int, passing, default: None };
    function.signature.parameters.insert(0, parameter);
    function
}

/// Makes a function fallible, with the failure type `Failure`.
pub fn fallible(mut function: Function) -> Function {
    function.signature.failure = Some(Type::Failure);
    function
}

/// Creates a library of these functions.
pub fn library(functions: impl IntoIterator<Item = Function>) -> Library {
    let mut library = Library::default();
    for function in functions {
        let name = function.signature.module.clone();
        let module = library.modules.shift_remove(&name).unwrap_or_else(|| Module::new(&name, ""));
        library.modules.insert(name, module.function(function));
    }
    library
}

/// Returns the argument at this index, an integer.
pub fn int(call: &mut Call<'_>, index: usize) -> i64 {
    match call.value(index) {
        Value::Int(value) => value,
        other => panic!("{other:?} is no integer, at {:?}", call.arguments.get(index).copied().map(argument)),
    }
}

fn argument(argument: Argument) -> String {
    format!("{argument:?}")
}

/// Creates a failure from an `Int`.
pub fn failure(text: &str) -> Value {
    Value::Failure(Box::new(Failure::function(text)))
}
