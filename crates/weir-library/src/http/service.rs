//! The source of `service … on http(…)`: a server that begins a flow for each request.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir::{Environment, Failure, Flows, ListenProtocol, LocalFuture, Loops, Opened, Route, Source, Stop, Value};

use crate::files::Root;

use super::argument_faults;
use super::flow_handler::FlowHandler;
use super::health::closing;
use super::parameters;
use super::request_log::RequestLog;
use super::request_policy::RequestPolicy;
use super::routes::Routes;
use super::server::{RequestDeadlines, Server, TlsFiles};

/// The source `http(port: …)`.
pub(super) struct Http;

impl Source for Http {
    fn open(
        &self,
        arguments: Vec<Value>,
        routes: Arc<[Route]>,
        environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        let tls = tls_files(&arguments, environment)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = parameters::address(&arguments)?;
        let limits = parameters::limits(&arguments)?;
        let (routes, policy) = answering(&arguments, &routes)?;
        let server = Server::bind(address, limits).map_err(|error| cannot_listen(address, &error))?;
        let server = match tls {
            Some(files) => server.with_tls(files).map_err(|error| Failure::function(error.to_string()))?,
            None => server,
        };
        let address = server.address();
        let log = parameters::log_requests(&arguments).then(|| RequestLog::of(environment)).flatten();
        let shutdown_delay = parameters::shutdown_delay(&arguments)?;
        Ok(Arc::new(HttpService { server, routes, scheme, address, policy, log, shutdown_delay }))
    }

    fn check(&self, arguments: &[Value], routes: &Arc<[Route]>, environment: &Environment) -> Result<(), Failure> {
        parameters::address(arguments)?;
        parameters::limits(arguments)?;
        parameters::shutdown_delay(arguments)?;
        answering(arguments, routes)?;
        match tls_files(arguments, environment)? {
            Some(files) => files.check().map_err(|error| Failure::function(error.to_string())),
            None => Ok(()),
        }
    }

    fn listens(&self) -> Option<ListenProtocol> {
        Some(ListenProtocol::Tcp)
    }

    fn loops(&self) -> Loops {
        Loops::Each
    }

    fn faults(&self, arguments: &[Option<Value>], routes: &Arc<[Route]>) -> Vec<(usize, Failure)> {
        argument_faults::faults(arguments, routes)
    }
}

fn tls_files(arguments: &[Value], environment: &Environment) -> Result<Option<TlsFiles>, Failure> {
    let root = environment.get::<Root>();
    parameters::tls_files(arguments, root.as_ref().map_or(Path::new(""), |root| root.path()))
}

/// Returns the routes of a service, and the rules by which it answers.
fn answering(arguments: &[Value], routes: &Arc<[Route]>) -> Result<(Arc<Routes>, Arc<RequestPolicy>), Failure> {
    let routes = Arc::new(Routes::new(Arc::clone(routes))?);
    let policy = Arc::new(RequestPolicy::of(arguments)?);
    policy.check(&routes)?;
    Ok((routes, policy))
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
struct HttpService {
    server: Server,
    routes: Arc<Routes>,
    /// `http` or `https`.
    scheme: &'static str,
    address: SocketAddr,
    policy: Arc<RequestPolicy>,
    log: Option<RequestLog>,
    shutdown_delay: Duration,
}

impl Opened for HttpService {
    fn describe(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let limits = self.server.limits();
            let (routes, body_bytes_max) = (Arc::clone(&self.routes), limits.body_bytes_max);
            let answers = FlowHandler {
                routes,
                policy: Arc::clone(&self.policy),
                body_bytes_max,
                deadlines: RequestDeadlines::of(limits),
                flows,
                log: self.log.clone(),
                spare: Cell::default(),
                answers_all: Cell::default(),
            };
            let closing = closing(Arc::clone(&self.policy), &stop, self.shutdown_delay);
            let grace_max = stop.drain_timeout().saturating_sub(self.shutdown_delay);
            self.server.run(answers, &closing, grace_max).await.map_err(Failure::from)
        })
    }
}
