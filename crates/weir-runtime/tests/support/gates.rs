//! Host functions that a test holds open: each call announces itself, and waits until the test lets it go.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use weir_host::{
    Argument, Call, Code, Effects, Failure, Function, Library, Mode, Module, Outcome, Parameter, Passing, Settled,
    Signature, StateOf, Type, Value, World,
};

/// How long a test waits for what must come, before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call that waits to be let go.
pub struct Waiting {
    /// The function's path.
    pub path: &'static str,
    /// Its first argument.
    pub argument: i64,
    release: oneshot::Sender<()>,
}

impl Waiting {
    /// Lets the call go on.
    pub fn release(self) {
        _ = self.release.send(());
    }

    /// Waits until nobody waits for the call any more.
    pub fn given_up(mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let closed = async { tokio::time::timeout(PATIENCE, self.release.closed()).await };
        runtime.block_on(closed).expect("the call is given up");
    }

    /// Whether nobody waits for the call any more.
    pub fn is_given_up(&self) -> bool {
        self.release.is_closed()
    }
}

/// Sees the calls.
pub struct Gates {
    sender: std::sync::mpsc::Sender<Waiting>,
    receiver: std::sync::mpsc::Receiver<Waiting>,
}

impl Gates {
    pub fn new() -> Gates {
        let (sender, receiver) = std::sync::mpsc::channel();
        Gates { sender, receiver }
    }

    /// The next call that has begun.
    pub fn next(&self) -> Waiting {
        self.receiver.recv_timeout(PATIENCE).expect("a call begins")
    }

    /// Whether no call has begun that was not seen.
    pub fn is_quiet(&self) -> bool {
        self.receiver.try_recv().is_err()
    }

    /// A function that waits; it gives its argument back.
    pub fn waiting(&self, path: &'static str, world: World) -> Function {
        let sender = self.sender.clone();
        let code = Code::Waiting(Arc::new(move |call: &mut Call<'_>| {
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

    /// A function that holds its thread until it is let go.
    pub fn blocking(&self, path: &'static str, world: World) -> Function {
        let sender = self.sender.clone();
        let code = Code::Blocking(Arc::new(move |call: &mut Call<'_>| {
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

/// A function without an effect.
pub fn immediate(
    path: &'static str,
    parameters: &[(&str, Type, Passing)],
    body: impl Fn(&mut Call<'_>) -> Outcome + Send + Sync + 'static,
) -> Function {
    function(path, parameters, World::Pure, Code::Immediate(Arc::new(body)))
}

/// A function with this signature.
pub fn function(path: &'static str, parameters: &[(&str, Type, Passing)], world: World, code: Code) -> Function {
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
    };
    Function { signature, code, batch: None, types: Vec::new(), location: None }
}

/// The same function with private state.
pub fn with_state(mut function: Function) -> Function {
    function.signature.state = Some(StateOf { name: "State".into(), mode: Mode::Write, make: |_| Ok(Value::Int(0)) });
    function
}

/// The same function, with a shared value as its first parameter.
pub fn on_shared(mut function: Function, passing: Passing) -> Function {
    let parameter = Parameter { name: "on".into(), ty: Type::Int, passing, default: None };
    function.signature.parameters.insert(0, parameter);
    function
}

/// The same function, which may fail with a `Failure`.
pub fn fallible(mut function: Function) -> Function {
    function.signature.failure = Some(Type::Failure);
    function
}

/// A library of these functions.
pub fn library(functions: impl IntoIterator<Item = Function>) -> Library {
    let mut library = Library::default();
    for function in functions {
        let name = function.signature.module.clone();
        let module = library.modules.shift_remove(&name).unwrap_or_else(|| Module::new(&name, ""));
        library.modules.insert(name, module.function(function));
    }
    library
}

/// The argument, an integer.
pub fn int(call: &mut Call<'_>, index: usize) -> i64 {
    match call.value(index) {
        Value::Int(value) => value,
        other => panic!("{other:?} is no integer, at {:?}", call.arguments.get(index).copied().map(argument)),
    }
}

fn argument(argument: Argument) -> String {
    format!("{argument:?}")
}

/// An `Int` as a failure.
pub fn failure(text: &str) -> Value {
    Value::Failure(Box::new(Failure::function(text)))
}
