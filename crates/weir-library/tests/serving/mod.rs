//! A service on a thread of its own whose flows respond with their inputs.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use weir::{
    Begun, Failure, Field, Flows, HostType, LocalFuture, Opened, ParameterFrom, Route, RouteParameter, SourceProblem,
    Stop, Text, Type, TypeDefinition, TypeShape, Value, Variant,
};
use weir_events::Signal;
use weir_library::http;

use crate::support::{Answer, Client, PATIENCE};

/// Responds with the inputs of each flow; the route of `/failing` fails, and that of `/full` has no room.
pub(crate) struct Shown {
    routes: Arc<[Route]>,
    pub(crate) begun: Mutex<Vec<usize>>,
    pub(crate) given_up: Arc<Gate>,
}

impl Flows for Shown {
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        self.begun.lock().unwrap().push(entry);
        let answer = match &*self.routes[entry].pattern {
            "/failing" => Err(Failure::function("the reason is secret")),
            "/full" => return Begun::Full,
            "/nonsense" => Ok(Value::Int(1)),
            "/never" => return self.never(),
            _ => http::text(&inputs.iter().map(Value::to_string).collect::<Vec<_>>().join("|")).into_value(),
        };
        match entry % 2 {
            0 => Begun::Done(answer),
            _ => Begun::Pending(Box::pin(async {
                tokio::task::yield_now().await;
                answer
            })),
        }
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }

    fn report(&self, problem: SourceProblem) {
        panic!("{problem:?}");
    }
}

impl Shown {
    /// Returns a flow that waits forever, and signals when it is cancelled.
    fn never(&self) -> Begun {
        let given_up = GivenUp(Arc::clone(&self.given_up));
        Begun::Pending(Box::pin(async move {
            let _given_up = given_up;
            std::future::pending().await
        }))
    }
}

/// Signals the cancellation of a flow.
pub(crate) struct GivenUp(Arc<Gate>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap() += 1;
        self.0.changed.notify_all();
    }
}

/// Number of cancelled flows.
#[derive(Default)]
pub(crate) struct Gate {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn wait_for(&self, count: usize) {
        let reached = self.changed.wait_timeout_while(self.count.lock().unwrap(), PATIENCE, |seen| *seen < count);
        assert!(!reached.unwrap().1.timed_out(), "no flow was given up");
    }
}

pub(crate) struct Service {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) flows: Arc<Shown>,
    stop: Signal,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn parameter(name: &str, ty: Type, from: ParameterFrom) -> RouteParameter {
    RouteParameter { name: name.into(), ty, from, default: None }
}

pub(crate) fn route(method: &str, pattern: &str, parameters: Vec<RouteParameter>) -> Route {
    Route { method: method.into(), pattern: pattern.into(), parameters, types: definitions() }
}

pub(crate) fn field(name: &str, ty: Type) -> Field {
    Field::new(name, ty)
}

pub(crate) fn definitions() -> Arc<[TypeDefinition]> {
    let variant = |name: &str, fields| Variant::new(name, fields);
    let define = |name: &str, shape| TypeDefinition { name: name.into(), doc: Text::default(), shape };
    Arc::new([
        define(
            "Post",
            TypeShape::Record(vec![
                field("title", Type::Text),
                field("tags", Type::list(Type::Text)),
                field("stars", Type::option(Type::Int)),
                field("shape", Type::named("Shape")),
            ]),
        ),
        define(
            "Shape",
            TypeShape::Enum(vec![
                variant("Dot", vec![]),
                variant("Circle", vec![field("0", Type::Float)]),
                variant("Box", vec![field("width", Type::Int), field("height", Type::Int)]),
                variant("Pair", vec![field("0", Type::Int), field("1", Type::Int)]),
            ]),
        ),
        define("Order", TypeShape::Enum(vec![variant("Up", vec![]), variant("Down", vec![])])),
    ])
}

pub(crate) fn open(routes: Vec<Route>, arguments: Vec<Value>) -> Result<Arc<dyn Opened>, Failure> {
    let library = weir_library::library();
    let (signature, source) = &library.modules["http"].sources["http"];
    let mut all = arguments;
    all.extend(signature.parameters[all.len()..].iter().map(|parameter| parameter.default.clone().unwrap()));
    source.open(all, routes.into(), &library.environment)
}

impl Service {
    pub(crate) fn start(routes: Vec<Route>) -> Service {
        Service::start_with(routes, &[])
    }

    /// Starts a service with these limits.
    pub(crate) fn start_with(routes: Vec<Route>, limits: &[(&str, Value)]) -> Service {
        let flows =
            Arc::new(Shown { routes: routes.clone().into(), begun: Mutex::default(), given_up: Arc::default() });
        let library = weir_library::library();
        let (signature, _) = &library.modules["http"].sources["http"];
        let given = |name: &str| limits.iter().find(|(limit, _)| *limit == name).map(|(_, value)| value.clone());
        let arguments = signature.parameters.iter().map(|parameter| match &*parameter.name {
            "port" => Value::Int(0),
            name => given(name).unwrap_or_else(|| parameter.default.clone().unwrap()),
        });
        let opened = open(routes, arguments.collect()).unwrap();
        let address = opened.describe().strip_prefix("http://").unwrap().parse().unwrap();
        let stop = Signal::new();
        let (stopping, flowing) = (stop.clone(), Arc::clone(&flows));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::LocalRuntime::new().unwrap();
            let stop = Stop::new(stopping.fired());
            runtime.block_on(opened.run(flowing, stop)).unwrap();
        });
        Service { address, flows, stop, thread: Some(thread) }
    }

    pub(crate) fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let mut client = Client::connect(self.address);
        let length = body.len();
        let fields = format!("Host: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
        client.send(&format!("{method} {target} HTTP/1.1\r\n{fields}\r\n{body}"));
        client.answer_to(method)
    }

    /// Waits until so many flows have begun.
    pub(crate) fn wait_for_begun(&self, count: usize) {
        while self.flows.begun.lock().unwrap().len() < count {
            std::thread::yield_now();
        }
    }

    /// Tells the service to stop, without waiting for it.
    pub(crate) fn stop(&self) {
        self.stop.fire();
    }

    /// Sends a request; returns the status and the body of the response.
    pub(crate) fn told(&self, method: &str, target: &str, body: &str) -> String {
        let answer = self.ask(method, target, body);
        format!("{} {}", answer.status, String::from_utf8(answer.body).unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.fire();
        let _ = self.thread.take().unwrap().join();
    }
}
