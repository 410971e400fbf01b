//! The client: its connections, and the exchange of a request for a response.

use std::borrow::Cow;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::response::Parts;
use tokio::sync::OnceCell;
use weir::{Failure, FailureKind};

use super::body;
use super::connector::CheckedConnector;
use super::framing::{self, ConnectionUse, INFORMATIONAL_MAX};
use super::options::Call;
use super::permits::Permits;
use super::pool::{ConnectionError, ConnectionPool};
use super::pooled_connection::PooledConnection;
use super::redirect::following;
use super::response::ClientResponse;
use super::url;
use crate::network::{ConnectError, Network, Reach};
use crate::time_limit::{TimeIsUp, TimeLimit};

/// The HTTP client of a program.
pub struct Client {
    pools: OnceCell<Pools>,
    permits: Permits,
    network: Network,
}

/// Error of a request that got no response.
enum RequestError {
    /// No connection was made.
    Connection(ConnectionError),
    Transport(hyper::Error),
    /// The server sent too many informational responses.
    InformationalFlood,
}

/// The permit or response for which a call waits.
enum Awaited {
    Permit,
    Response(Option<ConnectionUse>),
}

impl Awaited {
    /// Returns the failure of a call whose time is up. Its connection is not used again: the peer of a connection that others
    /// could share, as HTTP/2 does, may be gone.
    fn late(self, call: &Call) -> Failure {
        let (host, timeout) = (host_of(call), call.timeout);
        let message = match self {
            Awaited::Permit => format!("{host} was not called within {timeout:?}: too many calls are under way"),
            Awaited::Response(connection) => {
                connection.iter().for_each(ConnectionUse::end);
                format!("{host} did not answer within {timeout:?}")
            }
        };
        Failure::new(FailureKind::Timeout, message)
    }
}

/// Connections by their reach: a call for public addresses must not get a connection to a private one.
struct Pools {
    public: ConnectionPool,
    private: ConnectionPool,
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
    #[expect(clippy::manual_async_fn, reason = "the future of an `async fn` would have room for the call twice")]
    pub(super) fn run(&self, mut call: Call) -> impl Future<Output = Result<ClientResponse, Failure>> + Send {
        async move {
            call.fields.pass_on_trace();
            let mut awaited = Awaited::Permit;
            let mut limit = TimeLimit::new(call.timeout);
            let outcome = {
                let mut exchange = pin!(self.exchange(&mut call, &mut awaited));
                poll_fn(|cx| limit.poll(exchange.as_mut(), cx)).await
            };
            outcome.unwrap_or_else(|TimeIsUp| Err(awaited.late(&call)))
        }
    }

    /// Sends the request, follows redirects, and reads the response. `call` becomes the redirected call, and `awaited` tells
    /// for what it waits.
    async fn exchange(&self, call: &mut Call, awaited: &mut Awaited) -> Result<ClientResponse, Failure> {
        let mut redirects = 0;
        loop {
            *awaited = Awaited::Permit;
            let permit = self.permits.acquire(&host_of(call)).await;
            *awaited = Awaited::Response(None);
            let pool = self.pool(call.reach).await;
            let mut begun = send(pool, call, awaited).await?;
            match redirected(call, &begun, redirects).inspect_err(|_| begun.connection.usage().end())? {
                Some(next) => {
                    pool.give_back(begun.connection, &call.url);
                    *call = *next;
                }
                None => {
                    let body = begun.read(call.bytes_max).await.inspect_err(|_| begun.connection.usage().end())?;
                    pool.give_back(begun.connection, &call.url);
                    let (status, headers, url) = (begun.head.status, begun.head.headers, take(&mut call.url));
                    return Ok(ClientResponse { status, headers, body, url });
                }
            }
            // A call never waits for a permit while it has one.
            drop(permit);
            redirects += 1;
        }
    }

    async fn pool(&self, reach: Reach) -> &ConnectionPool {
        let make = || async {
            let config = Arc::unwrap_or_clone(self.network.tls().await);
            let pool =
                |reach| ConnectionPool::new(CheckedConnector { reach, network: self.network.clone() }, config.clone());
            Pools { public: pool(Reach::Public), private: pool(Reach::Private) }
        };
        let pools = self.pools.get_or_init(make).await;
        if reach == Reach::Private { &pools.private } else { &pools.public }
    }
}

/// The head of a response, and the connection over which its body comes.
struct BegunResponse {
    head: Parts,
    /// `None` once it is read.
    body: Option<Incoming>,
    connection: PooledConnection,
}

impl BegunResponse {
    /// Reads the body.
    ///
    /// # Errors
    /// Fails as [`body::read`] does.
    async fn read(&mut self, bytes_max: usize) -> Result<Bytes, Failure> {
        let Some(incoming) = self.body.take() else { return Ok(Bytes::new()) };
        body::read(self.connection.arriving(incoming), &mut self.head.headers, bytes_max).await
    }
}

/// Sends one request, and returns its response. A request that has the same effect twice as once is sent again, once, if its
/// connection ended without a response: the server may have closed a kept connection at the moment at which it was used
/// (RFC 9110, section 9.2.2).
async fn send(pool: &ConnectionPool, call: &mut Call, awaited: &mut Awaited) -> Result<BegunResponse, Failure> {
    let mut sent = send_once(pool, call, awaited).await;
    if matches!(&sent, Err(RequestError::Transport(error)) if call.may_resend && ended_without_response(error)) {
        // Boxed, because it is seldom needed: the future of each call would be as large.
        sent = Box::pin(send_once(pool, call, awaited)).await;
    }
    sent.map_err(|error| failure(call, &error))
}

/// Sends one request. If a kept connection turns out to be closed before anything is sent, another one is taken.
async fn send_once(
    pool: &ConnectionPool,
    call: &mut Call,
    awaited: &mut Awaited,
) -> Result<BegunResponse, RequestError> {
    loop {
        let mut connection = pool.connection(&call.url).await.map_err(RequestError::Connection)?;
        *awaited = Awaited::Response(Some(connection.usage().clone()));
        let sent = connection.send(call).await;
        if connection.usage().is_flooded() {
            connection.usage().end();
            return Err(RequestError::InformationalFlood);
        }
        let mut error = match sent {
            Ok(response) => {
                let (head, body) = response.into_parts();
                return Ok(BegunResponse { head, body: Some(body), connection });
            }
            Err(error) => error,
        };
        connection.usage().end();
        if error.take_message().is_none() || !connection.is_reused {
            return Err(RequestError::Transport(error.into_error()));
        }
    }
}

/// Checks the head of a response, to which so many redirects have led, and returns the call that follows it if it is another
/// redirect.
fn redirected(call: &Call, begun: &BegunResponse, redirects: u8) -> Result<Option<Box<Call>>, Failure> {
    framing::check(&begun.head)?;
    let next = if call.redirects_max > 0 { following(call, &begun.head)? } else { None };
    match next {
        Some(_) if redirects == call.redirects_max => Err(too_many_redirects(redirects)),
        next => Ok(next.map(Box::new)),
    }
}

fn host_of(call: &Call) -> Cow<'_, str> {
    let host = url::host(&call.url);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) { host.to_ascii_lowercase().into() } else { host.into() }
}

fn too_many_redirects(redirects: u8) -> Failure {
    Failure::new(FailureKind::Limit, format!("more than {redirects} redirects (`redirects_max`)"))
}

/// Returns `true` if a connection was established, and ended before the response began.
fn ended_without_response(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || is_reset(error)
}

/// Returns `true` if the other side has closed a connection, or the end of TLS on it is missing, as with servers that only close
/// the socket.
fn is_reset(error: &hyper::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};

    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

/// Converts an error of the transport. The URL is not shown, because its query may contain credentials.
fn failure(call: &Call, error: &RequestError) -> Failure {
    let host = call.url.host().unwrap_or_default();
    let error: &(dyn Error + 'static) = match error {
        RequestError::Connection(error) => &**error,
        RequestError::Transport(error) => error,
        RequestError::InformationalFlood => {
            let message =
                format!("{host} sent more than {INFORMATIONAL_MAX} informational responses (100 to 199) in a row");
            return Failure::new(FailureKind::Limit, message);
        }
    };
    let mut source = Some(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<ConnectError>() {
            return Failure::function(refused.to_string());
        }
        last = cause.to_string();
        source = cause.source();
    }
    // rustls refers to its manual, which says how to write a client.
    let said = last.split(": https://docs.rs/").next().unwrap_or_default();
    Failure::function(format!("no response from {host}: {said}{}", hint(said)))
}

/// Returns what to do about an error of TLS.
fn hint(said: &str) -> &'static str {
    if said.contains("UnknownIssuer") {
        "; the system does not trust the issuer of its certificate (`SSL_CERT_FILE` names the file of those to trust)"
    } else if said.contains("CaUsedAsEndEntity") {
        "; its certificate is that of an authority and not that of a server, which `openssl req -x509` makes with `-addext \
         basicConstraints=critical,CA:FALSE`"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::call_fields::Headers;
    use crate::client::options::CallOptions;

    /// The future is moved and allocated for each call.
    #[test]
    fn the_future_of_a_call_is_small() {
        let options = CallOptions {
            headers: Headers::new(),
            bearer: None,
            timeout: std::time::Duration::from_secs(1),
            bytes_max: weir::Size(1),
            redirects_max: 1,
            private: false,
        };
        let call = Call::new(hyper::Method::GET, "http://a.example/", options).unwrap();
        let client = Client::default();
        let running = client.run(call);
        assert!(size_of_val(&running) < 2_500, "{} bytes", size_of_val(&running));
    }
}
