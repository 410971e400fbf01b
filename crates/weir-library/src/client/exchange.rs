//! The client: its connections, and the exchange of a request for a response.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use weir::{Failure, FailureKind};
use weir_events::{after, until};

use super::body;
use super::connector::CheckedConnector;
use super::framing::{self, ConnectionUse, FIELDS_BYTES_MAX, INFORMATIONAL_MAX, InformationalResponses};
use super::informational_frames::LimitedConnector;
use super::options::Call;
use super::permits::Permits;
use super::redirect::following;
use super::response::ClientResponse;
use crate::network::{ConnectError, Network, Reach};
use crate::trace_context;

/// Maximum number of idle connections to one host, and the time for which they are kept: less than servers usually keep
/// theirs, so that a request seldom meets a connection that is being closed.
const IDLE_MAX: usize = 32;
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

type Pool = legacy::Client<LimitedConnector<HttpsConnector<CheckedConnector>>, Full<Bytes>>;

/// The HTTP client of a program.
pub struct Client {
    pools: OnceCell<Pools>,
    permits: Permits,
    network: Network,
}

/// Outcome of a request.
enum Step {
    /// A redirect, with the call that follows it.
    Redirect(Box<Call>),
    /// The response.
    Done(Box<ClientResponse>),
}

/// Error of a request that got no response.
enum RequestError {
    Transport(legacy::Error),
    /// The server sent too many informational responses.
    InformationalFlood,
}

/// The permit or response for which a call waits, with its host.
enum Awaited {
    Permit(String),
    Response(String, Option<ConnectionUse>),
}

impl Awaited {
    /// Returns the failure of a call whose time is up. Its connection is not used again: the peer of a connection that others
    /// could share, as HTTP/2 does, may be gone.
    fn late(self, timeout: Duration) -> Failure {
        let message = match self {
            Awaited::Permit(host) => format!("{host} was not called within {timeout:?}: too many calls are under way"),
            Awaited::Response(host, connection) => {
                connection.iter().for_each(ConnectionUse::end);
                format!("{host} did not answer within {timeout:?}")
            }
        };
        Failure::new(FailureKind::Timeout, message)
    }
}

/// Connections by their reach: a call for public addresses must not get a connection to a private one.
struct Pools {
    public: Pool,
    private: Pool,
}

impl Default for Client {
    fn default() -> Self {
        Client::new(Network::default())
    }
}

impl Client {
    /// Returns the client of a program that uses the network in this way.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Client { pools: OnceCell::new(), permits: Permits::default(), network }
    }

    /// Performs a call within its time.
    pub(super) async fn run(&self, mut call: Call) -> Result<ClientResponse, Failure> {
        trace_context::pass_on(&mut call.headers);
        let timeout = call.timeout;
        let awaited = Mutex::new(Awaited::Permit(host_of(&call)));
        let outcome = until(pin!(self.exchange(call, &awaited)), &after(timeout)).await;
        outcome.unwrap_or_else(|()| Err(awaited.into_inner().late(timeout)))
    }

    /// Sends the request, follows redirects, and reads the response. `awaited` tells for what it waits.
    async fn exchange(&self, mut call: Call, awaited: &Mutex<Awaited>) -> Result<ClientResponse, Failure> {
        let mut redirects = 0;
        loop {
            let host = host_of(&call);
            *awaited.lock() = Awaited::Permit(host.clone());
            let permit = self.permits.acquire(&host).await;
            *awaited.lock() = Awaited::Response(host, None);
            let (response, connection) = self.send(&call, awaited).await?;
            match step(&call, response, redirects).await.inspect_err(|_| connection.end())? {
                Step::Redirect(next) => call = *next,
                Step::Done(response) => return Ok(*response),
            }
            // A call never waits for a permit while it has one.
            drop(permit);
            redirects += 1;
        }
    }

    /// Sends one request, and returns the head of its response. A request that has the same effect twice as once is
    /// sent again, once, if its connection ended without a response: the server may have closed a kept connection at
    /// the moment at which it was used (RFC 9110, section 9.2.2).
    async fn send(
        &self,
        call: &Call,
        awaited: &Mutex<Awaited>,
    ) -> Result<(Response<Incoming>, ConnectionUse), Failure> {
        match self.send_once(call, awaited).await {
            Err(RequestError::Transport(error)) if call.may_resend && ended_without_response(&error) => {
                self.send_once(call, awaited).await
            }
            sent => sent,
        }
        .map_err(|error| failure(call, &error))
    }

    async fn send_once(
        &self,
        call: &Call,
        awaited: &Mutex<Awaited>,
    ) -> Result<(Response<Incoming>, ConnectionUse), RequestError> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.url.clone();
        *request.headers_mut() = call.headers.clone();
        if call.body.is_empty() && matches!(call.method, Method::POST | Method::PUT | Method::PATCH) {
            // These methods expect content; without a length, some servers refuse the request (RFC 9110, section 8.6).
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let connection = ConnectionUse::of(&mut request);
        let informational = InformationalResponses::of(&mut request, connection.clone());
        if let Awaited::Response(_, used) = &mut *awaited.lock() {
            *used = Some(connection.clone());
        }
        let pools = self.pools().await;
        let pool = if call.reach == Reach::Private { &pools.private } else { &pools.public };
        let error = match pool.request(request).await {
            _ if informational.are_too_many() => RequestError::InformationalFlood,
            Ok(response) => return Ok((response, connection)),
            Err(error) => RequestError::Transport(error),
        };
        connection.end();
        Err(error)
    }

    async fn pools(&self) -> &Pools {
        self.pools
            .get_or_init(|| async {
                let config = Arc::unwrap_or_clone(self.network.tls().await);
                let pool = |reach| self.pool(reach, config.clone());
                Pools { public: pool(Reach::Public), private: pool(Reach::Private) }
            })
            .await
    }

    fn pool(&self, reach: Reach, config: ClientConfig) -> Pool {
        let connector = CheckedConnector { reach, network: self.network.clone() };
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(connector);
        legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .http1_max_buf_size(FIELDS_BYTES_MAX)
            .http2_max_header_list_size(FIELDS_BYTES_MAX as u32)
            .build(LimitedConnector(https))
    }
}

/// Takes what follows from a response, to which so many redirects have led.
async fn step(call: &Call, response: Response<Incoming>, redirects: u8) -> Result<Step, Failure> {
    framing::check(&response)?;
    let (mut head, incoming) = response.into_parts();
    let next = if call.redirects_max > 0 { following(call, &head)? } else { None };
    match next {
        Some(_) if redirects == call.redirects_max => Err(too_many_redirects(redirects)),
        Some(next) => Ok(Step::Redirect(Box::new(next))),
        None => {
            let body = body::read(incoming, &mut head.headers, call.bytes_max).await?;
            let (status, headers, url) = (head.status, head.headers, call.url.clone());
            Ok(Step::Done(Box::new(ClientResponse { status, headers, body, url })))
        }
    }
}

fn host_of(call: &Call) -> String {
    call.url.host().unwrap_or_default().to_ascii_lowercase()
}

fn too_many_redirects(redirects: u8) -> Failure {
    Failure::new(FailureKind::Limit, format!("more than {redirects} redirects (`redirects_max`)"))
}

/// Returns `true` if a connection was established, and ended before the response began.
fn ended_without_response(error: &legacy::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
    !error.is_connect() && cause.is_some_and(|cause| cause.is_incomplete_message() || is_reset(cause))
}

fn is_reset(error: &hyper::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};

    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), BrokenPipe | ConnectionAborted | ConnectionReset))
}

/// Converts an error of the transport. The URL is not shown, because its query may contain credentials.
fn failure(call: &Call, error: &RequestError) -> Failure {
    let host = call.url.host().unwrap_or_default();
    let RequestError::Transport(error) = error else {
        let message =
            format!("{host} sent more than {INFORMATIONAL_MAX} informational responses (100 to 199) in a row");
        return Failure::new(FailureKind::Limit, message);
    };
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<ConnectError>() {
            return Failure::function(refused.to_string());
        }
        last = cause.to_string();
        source = cause.source();
    }
    let hint = if last.contains("UnknownIssuer") {
        "; the system does not trust the issuer of its certificate (`SSL_CERT_FILE` names the file of those to trust)"
    } else {
        ""
    };
    Failure::function(format!("no response from {host}: {last}{hint}"))
}
