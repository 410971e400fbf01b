//! The source behind `service … on http(…)`: listens, finds the route, begins a flow, answers with its result.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use weir::{Begun, Environment, Failure, Flows, LocalFuture, Loops, Opened, Route, Source, Stop, Value};
use weir_events::until;

use super::input::Problem;
use super::parameters;
use super::response::Response;
use super::routes::{Found, Routes};
use super::server::{Handler, Late, Server, read_body};

/// `http(port: …)`.
pub(super) struct Http;

impl Source for Http {
    fn open(
        &self,
        arguments: Vec<Value>,
        routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        let address = parameters::address(&arguments)?;
        let limits = parameters::limits(&arguments)?;
        let routes = Arc::new(Routes::new(routes)?);
        let server = Server::bind(address, limits).map_err(|error| cannot_listen(address, &error))?;
        let address = server.address().map_err(|error| cannot_listen(address, &error))?;
        Ok(Arc::new(Service { server, routes, address }))
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    let advice = match error.kind() {
        ErrorKind::AddrInUse => "another program listens there; stop it, or choose another port",
        ErrorKind::PermissionDenied => "ports below 1024 are reserved; choose a higher one",
        ErrorKind::AddrNotAvailable => "this machine does not have that address",
        _ => return Failure::function(format!("cannot listen at {address}: {error}")),
    };
    Failure::function(format!("cannot listen at {address}: {advice}"))
}

/// A service that listens.
struct Service {
    server: Server,
    routes: Arc<Routes>,
    address: SocketAddr,
}

impl Opened for Service {
    fn describe(&self) -> String {
        format!("http://{}", self.address)
    }

    fn loops(&self) -> Loops {
        Loops::Each
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let limits = self.server.limits();
            let (routes, body_bytes_max) = (Arc::clone(&self.routes), limits.body_bytes_max);
            let answers = Answers { routes, body_bytes_max, late: Late::of(limits), flows, spare: Cell::default() };
            self.server.run(answers, &stop.stopped()).await.map_err(Failure::from)
        })
    }
}

/// Answers requests with the results of flows.
struct Answers {
    routes: Arc<Routes>,
    body_bytes_max: usize,
    late: Late,
    flows: Arc<dyn Flows>,
    /// An empty list for the inputs of the next flow.
    spare: Cell<Vec<Value>>,
}

impl Handler for Answers {
    async fn handle(&self, request: Request<Incoming>) -> hyper::Response<Bytes> {
        let to_head = request.method() == Method::HEAD;
        let response = self.answer(request).await.unwrap_or_else(|refusal| *refusal);
        response.into_hyper(to_head)
    }
}

impl Answers {
    /// The answer of the flow, or of the service where there is no flow to begin.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response, Box<Response>> {
        let mut inputs = self.spare.take();
        inputs.clear();
        let (route, body) = self.beginning(&request, &mut inputs)?;
        if let Some(parameter) = body {
            let read = read_body(request.into_body(), self.body_bytes_max, &self.late).await;
            let body = read.map_err(|error| Box::new(Response::of_status(error.status()).closing()))?;
            inputs[parameter] = self.routes.body_input(route, parameter, body).map_err(|one| refusal(&[one]))?;
        }
        let begun = self.flows.begin(route, &mut inputs);
        self.spare.set(inputs);
        let result = match begun {
            Begun::Done(result) => result,
            Begun::Going(flow) => match until(flow, &self.late.answer).await {
                Ok(result) => result,
                // The flow was dropped with its future: it is given up where it waits, and releases what it holds.
                Err(()) => return Err(Box::new(Response::overloaded())),
            },
            Begun::Full => return Err(Box::new(Response::overloaded())),
        };
        Ok(response_of(result))
    }

    /// The route whose flow the request begins, and which of its inputs is the body, which is to be read yet; the others are
    /// filled in.
    fn beginning(
        &self,
        request: &Request<Incoming>,
        inputs: &mut Vec<Value>,
    ) -> Result<(usize, Option<usize>), Box<Response>> {
        let uri = request.uri();
        match self.routes.find(request.method(), uri.path()) {
            Found::Route(route, parts) => {
                let body = self.routes.inputs(route, &parts, uri.query(), inputs).map_err(|all| refusal(&all))?;
                Ok((route, body))
            }
            Found::OtherMethods(allow) => Err(Box::new(Response::not_allowed(allow))),
            Found::Options(allow) => Err(Box::new(Response::options(allow))),
            Found::Nothing => Err(Box::new(Response::of_status(StatusCode::NOT_FOUND))),
        }
    }
}

fn refusal(problems: &[Problem]) -> Box<Response> {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    Box::new(Response::plain(StatusCode::BAD_REQUEST, lines.join("\n")))
}

/// A flow that failed has been logged by the runtime; its reason is nobody's outside.
fn response_of(result: Result<Value, Failure>) -> Response {
    let Ok(Value::Host(value)) = result else { return Response::of_status(StatusCode::INTERNAL_SERVER_ERROR) };
    match value.into_any().downcast::<Response>() {
        Ok(response) => Arc::unwrap_or_clone(response),
        Err(_) => Response::of_status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
