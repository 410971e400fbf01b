//! The source behind `service … on http(…)`: listens, finds the route, begins a flow, answers with its result.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use weir::{
    Begun, Failure, Flows, LocalFuture, Loops, Opened, Parameter, Passing, Route, Source, SourceSignature, Stop, Type,
    Value,
};

use super::input::Problem;
use super::response::Response;
use super::routes::{Found, Routes};
use super::server::{Handler, Limits, Server, read_body};

/// `http(port: …)`.
pub(super) struct Http;

/// A limit as a parameter of `http(…)`: its name, its type, its default and how it is set.
struct LimitParameter {
    name: &'static str,
    ty: Type,
    default: Value,
    set: fn(&mut Limits, &Value),
}

/// The limits that a program may set, all under their own names.
fn limit_parameters() -> Vec<LimitParameter> {
    let limits = Limits::default();
    macro_rules! size {
        ($field:ident) => {
            LimitParameter {
                name: stringify!($field),
                ty: Type::Size,
                default: Value::Size(limits.$field as u64),
                set: |limits, value| {
                    if let Value::Size(size) = value {
                        limits.$field = usize::try_from(*size).unwrap_or(usize::MAX);
                    }
                },
            }
        };
    }
    macro_rules! duration {
        ($field:ident) => {
            LimitParameter {
                name: stringify!($field),
                ty: Type::Duration,
                default: Value::Duration(i64::try_from(limits.$field.as_nanos()).unwrap_or(i64::MAX)),
                set: |limits, value| {
                    if let Value::Duration(nanos) = value {
                        limits.$field = Duration::from_nanos(u64::try_from(*nanos).unwrap_or(0));
                    }
                },
            }
        };
    }
    vec![
        size!(header_bytes_max),
        duration!(header_timeout),
        size!(body_bytes_max),
        duration!(body_timeout),
        duration!(body_idle_timeout),
        duration!(idle_timeout),
        duration!(write_timeout),
        duration!(shutdown_grace),
        LimitParameter {
            name: "connections_max",
            ty: Type::Int,
            default: Value::Int(limits.connections_max as i64),
            set: |limits, value| {
                if let Value::Int(count) = value {
                    limits.connections_max = usize::try_from(*count).unwrap_or(0);
                }
            },
        },
    ]
}

/// What the compiler knows of `http(…)`.
pub(super) fn signature() -> SourceSignature {
    let parameter = |name: &str, ty, default| Parameter { name: name.into(), ty, passing: Passing::Value, default };
    let mut parameters =
        vec![parameter("port", Type::Int, None), parameter("address", Type::Text, Some(Value::text("127.0.0.1")))];
    parameters.extend(limit_parameters().into_iter().map(|limit| parameter(limit.name, limit.ty, Some(limit.default))));
    SourceSignature {
        module: "http".into(),
        name: "http".into(),
        doc:
            "Serves HTTP/1.1 and HTTP/2 without TLS at a port of this machine. `address: \"0.0.0.0\"` lets others in; \
              port 0 lets the system choose."
                .into(),
        parameters,
        element: None,
        answer: Some(Type::named("http.Response")),
        ordered: false,
    }
}

impl Source for Http {
    fn open(&self, arguments: Vec<Value>, routes: Arc<[Route]>) -> Result<Arc<dyn Opened>, Failure> {
        let address = address(arguments.first(), arguments.get(1))?;
        let limits = limits(arguments.get(2..).unwrap_or_default())?;
        let routes = Arc::new(Routes::new(routes)?);
        let server = Server::bind(address, limits).map_err(|error| cannot_listen(address, &error))?;
        let address = server.address().map_err(|error| cannot_listen(address, &error))?;
        Ok(Arc::new(Service { server, routes, address }))
    }
}

fn address(port: Option<&Value>, address: Option<&Value>) -> Result<SocketAddr, Failure> {
    let port = match port {
        Some(Value::Int(port)) => {
            u16::try_from(*port).map_err(|_| Failure::argument(format!("`port` is {port}, it must be 0 to 65535")))?
        }
        _ => return Err(Failure::argument("`port` is missing")),
    };
    let text = match address {
        Some(Value::Text(text)) => text.as_str(),
        _ => "127.0.0.1",
    };
    let address: IpAddr = text
        .parse()
        .map_err(|_| Failure::argument(format!("`address` is {text:?}, it must be an IP address such as 127.0.0.1")))?;
    Ok(SocketAddr::new(address, port))
}

fn limits(arguments: &[Value]) -> Result<Limits, Failure> {
    /// Below this no request of a browser comes through.
    const HEADER_BYTES_LEAST: usize = 1024;
    let mut limits = Limits::default();
    for (parameter, argument) in limit_parameters().iter().zip(arguments) {
        (parameter.set)(&mut limits, argument);
    }
    if limits.connections_max == 0 {
        return Err(Failure::argument("`connections_max` must be at least 1"));
    }
    // The count of slots is a semaphore's, which has an end.
    limits.connections_max = limits.connections_max.min(tokio::sync::Semaphore::MAX_PERMITS);
    if limits.header_bytes_max < HEADER_BYTES_LEAST {
        return Err(Failure::argument(format!("`header_bytes_max` must be at least {HEADER_BYTES_LEAST}b")));
    }
    Ok(limits)
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
            let answers = Answers { routes: Arc::clone(&self.routes), limits: self.server.limits().clone(), flows };
            self.server.run(answers, stop.stopped()).await.map_err(Failure::from)
        })
    }
}

/// Answers requests with the results of flows.
struct Answers {
    routes: Arc<Routes>,
    limits: Limits,
    flows: Arc<dyn Flows>,
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
        let Beginning { route, mut inputs, body } = self.beginning(&request)?;
        if let Some(parameter) = body {
            let read = read_body(request.into_body(), &self.limits).await;
            let body = read.map_err(|error| Box::new(Response::of_status(error.status()).closing()))?;
            inputs[parameter] = self.routes.body_input(route, parameter, body).map_err(|one| refusal(&[one]))?;
        }
        let result = match self.flows.begin(route, inputs) {
            Begun::Done(result) => result,
            Begun::Going(flow) => flow.await,
            Begun::Full => return Err(Box::new(Response::overloaded())),
        };
        Ok(response_of(result))
    }

    /// Which flow the request begins, as far as its head says.
    fn beginning(&self, request: &Request<Incoming>) -> Result<Beginning, Box<Response>> {
        let uri = request.uri();
        match self.routes.find(request.method(), uri.path()) {
            Found::Route(route, parts) => {
                let inputs = self.routes.inputs(route, &parts, uri.query());
                let (inputs, body) = inputs.map_err(|all| refusal(&all))?;
                Ok(Beginning { route, inputs, body })
            }
            Found::OtherMethods(allow) => Err(Box::new(Response::not_allowed(allow))),
            Found::Options(allow) => Err(Box::new(Response::options(allow))),
            Found::Nothing => Err(Box::new(Response::of_status(StatusCode::NOT_FOUND))),
        }
    }
}

/// A flow to begin.
struct Beginning {
    route: usize,
    inputs: Vec<Value>,
    /// The input that is the body, which is to be read yet.
    body: Option<usize>,
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
