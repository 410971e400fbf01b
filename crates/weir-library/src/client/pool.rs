//! Connections of the client: made when a call needs one, and kept for the next call to their origin.
//!
//! 1. A call takes an idle connection of HTTP/1, or shares one of HTTP/2; otherwise it makes one. Of the idle ones it takes the
//!    one that was used last, preferably one whose socket belongs to the event loop of the call, so that its response wakes no
//!    other thread.
//! 2. The call drives a connection of HTTP/1 itself ([`Http1Connection`]); one of HTTP/2 has a task of its own.
//! 3. When the call has read its response, it gives the connection back, unless it was ended ([`ConnectionUse::end`]) or is
//!    not idle. A call that is dropped drops its connection, which closes it.
//! 4. While connections are idle, a task closes those that were not used for a while, or that their server has closed.
//!
//! It is written on hyper's connections instead of the pooled client of hyper-util: that one makes a channel, a task and two
//! futures of a new connection for each request, which costs as much as all else that a small request needs.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use foldhash::fast::RandomState;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{TrySendError, http2};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue};
use hyper::http::uri::{Authority, Parts, Scheme};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use indexmap::IndexMap;
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::runtime::{self, Handle};
use tokio::time::sleep;
use tower_service::Service;

use super::connector::CheckedConnector;
use super::framing::{ConnectionUse, FIELDS_BYTES_MAX};
use super::http1_connection::{Http1Connection, SentBody};
use super::informational_frames::FollowedStream;
use super::options::Call;
use super::stoppable_stream::StoppableStream;

/// Maximum number of idle connections to one origin, and the time for which they are kept: less than servers usually keep
/// theirs, so that a request seldom meets a connection that is being closed.
const IDLE_MAX: usize = 32;
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two looks for connections that were idle for too long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3);

/// Error of a connection that could not be made.
pub(super) type ConnectionError = Box<dyn Error + Send + Sync>;

type Connector = HttpsConnector<CheckedConnector>;

/// The connections of calls with the same reach.
pub(super) struct ConnectionPool(Arc<PoolConnections>);

struct PoolConnections {
    connector: Connector,
    kept: Mutex<KeptConnections>,
}

#[derive(Default)]
struct KeptConnections {
    /// The connections by their host and port, without TLS and with it.
    plain: IndexMap<Box<str>, OriginConnections, RandomState>,
    encrypted: IndexMap<Box<str>, OriginConnections, RandomState>,
    /// `true` while a task closes idle connections.
    is_swept: bool,
}

/// The connections to an origin that the next call may use.
#[derive(Default)]
struct OriginConnections {
    /// Idle connections of HTTP/1, the one that was used last at the end.
    idle: Vec<IdleConnection>,
    /// The one of HTTP/2, with the time of its last use.
    shared: Option<(SharedConnection, Instant)>,
}

struct IdleConnection {
    connection: PooledConnection,
    since: Instant,
}

#[derive(Clone)]
struct SharedConnection {
    sender: http2::SendRequest<SentBody>,
    usage: ConnectionUse,
}

/// A connection that a call uses.
pub(super) struct PooledConnection {
    sender: HttpSender,
    usage: ConnectionUse,
    /// The event loop of its socket.
    event_loop: Option<runtime::Id>,
    /// `true` if an earlier call has used it.
    pub(super) is_reused: bool,
}

enum HttpSender {
    /// HTTP/1; boxed because it is large and moved often.
    Http1(Box<Http1Connection<MaybeHttpsStream<StoppableStream>>>),
    Http2(http2::SendRequest<SentBody>),
}

impl ConnectionPool {
    /// Returns an empty pool, whose connections are made in this way.
    pub(super) fn new(connector: CheckedConnector, tls: ClientConfig) -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(connector);
        ConnectionPool(Arc::new(PoolConnections { connector, kept: Mutex::default() }))
    }

    /// Returns a connection to the origin of the URL.
    pub(super) async fn connection(&self, url: &Uri) -> Result<PooledConnection, ConnectionError> {
        let kept = self.0.kept.lock().take(url);
        match kept {
            Some(connection) => Ok(connection),
            // Boxed, because it is large and seldom needed: the future of each call would be as large.
            None => Box::pin(self.0.connect(url)).await,
        }
    }

    /// Keeps a connection for the next call to the origin of the URL, if it can be used again.
    pub(super) fn give_back(&self, connection: PooledConnection, url: &Uri) {
        // One that still sends or receives something after the end of a response is not ready.
        if connection.usage.is_ended() || !connection.is_ready() || matches!(connection.sender, HttpSender::Http2(_)) {
            return;
        }
        let mut kept = self.0.kept.lock();
        let idle = &mut kept.of(url).idle;
        if idle.len() >= IDLE_MAX {
            idle.retain_mut(|idle| !idle.connection.has_ended());
        }
        if idle.len() < IDLE_MAX {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
        self.0.sweep_later(&mut kept);
    }
}

impl PoolConnections {
    /// Makes a connection. One of HTTP/2 is left if there is another one meanwhile.
    async fn connect(self: &Arc<Self>, url: &Uri) -> Result<PooledConnection, ConnectionError> {
        let stream = self.connector.clone().call(url.clone()).await?;
        let connected = stream.connected();
        let usage = ConnectionUse::of(&connected);
        let event_loop = current_loop();
        if !connected.is_negotiated_h2() {
            let sender = HttpSender::Http1(Box::new(Http1Connection::new(stream, host_field(url)?).await?));
            return Ok(PooledConnection { sender, usage, event_loop, is_reused: false });
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_header_list_size(FIELDS_BYTES_MAX as u32);
        let (mut sender, connection) =
            builder.handshake::<_, SentBody>(TokioIo::new(FollowedStream::new(stream))).await?;
        // A connection that ends early tells the calls that wait for it.
        drop(tokio::spawn(connection));
        sender.ready().await?;
        let mut kept = self.kept.lock();
        let origin = kept.of(url);
        if let Some(other) = origin.shared_connection() {
            return Ok(other);
        }
        let shared = SharedConnection { sender: sender.clone(), usage: usage.clone() };
        origin.shared = Some((shared, Instant::now()));
        self.sweep_later(&mut kept);
        Ok(PooledConnection { sender: HttpSender::Http2(sender), usage, event_loop, is_reused: false })
    }

    /// Begins to close connections that are idle for too long, unless a task does.
    fn sweep_later(self: &Arc<Self>, kept: &mut KeptConnections) {
        if std::mem::replace(&mut kept.is_swept, true) {
            return;
        }
        let sweeper = Sweeper(Arc::downgrade(self));
        drop(tokio::spawn(async move {
            while sweeper.0.upgrade().is_some_and(|pool| pool.kept.lock().sweep(Instant::now())) {
                sleep(SWEEP_INTERVAL).await;
            }
        }));
    }
}

/// The task that closes idle connections. If it ends with its event loop, another one begins later.
struct Sweeper(Weak<PoolConnections>);

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.0.upgrade().into_iter().for_each(|pool| pool.kept.lock().is_swept = false);
    }
}

impl KeptConnections {
    fn origins(&mut self, url: &Uri) -> &mut IndexMap<Box<str>, OriginConnections, RandomState> {
        if url.scheme() == Some(&Scheme::HTTPS) { &mut self.encrypted } else { &mut self.plain }
    }

    /// Returns the connections to the origin of the URL.
    fn of(&mut self, url: &Uri) -> &mut OriginConnections {
        let (origins, authority) = (self.origins(url), authority(url));
        match origins.get_index_of(authority) {
            Some(at) => &mut origins[at],
            None => origins.entry(authority.into()).or_default(),
        }
    }

    /// Takes a connection to the origin of the URL that can be used.
    fn take(&mut self, url: &Uri) -> Option<PooledConnection> {
        let origin = self.origins(url).get_mut(authority(url))?;
        if let Some(shared) = origin.shared_connection() {
            return Some(shared);
        }
        let here = current_loop();
        let is_near = |idle: &IdleConnection| idle.connection.event_loop == here && idle.connection.is_ready();
        let nearest = origin.idle.iter().rposition(is_near);
        let taken = nearest.or_else(|| origin.idle.iter().rposition(|idle| idle.connection.is_ready()))?;
        let connection = origin.idle.remove(taken).connection;
        Some(PooledConnection { is_reused: true, ..connection })
    }

    /// Closes the connections that are idle for too long; returns `false` if none is left.
    fn sweep(&mut self, now: Instant) -> bool {
        for origins in [&mut self.plain, &mut self.encrypted] {
            origins.retain(|_, origin| {
                let is_kept = |since: Instant| now.saturating_duration_since(since) < IDLE_TIMEOUT;
                origin.idle.retain_mut(|idle| is_kept(idle.since) && !idle.connection.has_ended());
                origin.shared.take_if(|(shared, since)| !is_kept(*since) || !shared.can_be_used());
                !origin.idle.is_empty() || origin.shared.is_some()
            });
        }
        self.is_swept = !self.plain.is_empty() || !self.encrypted.is_empty();
        self.is_swept
    }
}

impl OriginConnections {
    /// Returns the connection of HTTP/2, if there is one that can be used.
    fn shared_connection(&mut self) -> Option<PooledConnection> {
        let (shared, since) = self.shared.as_mut().filter(|(shared, _)| shared.can_be_used())?;
        *since = Instant::now();
        let SharedConnection { sender, usage } = shared.clone();
        Some(PooledConnection { sender: HttpSender::Http2(sender), usage, event_loop: None, is_reused: true })
    }
}

impl SharedConnection {
    fn can_be_used(&self) -> bool {
        !self.usage.is_ended() && self.sender.is_ready()
    }
}

impl PooledConnection {
    /// Returns what is known of its use, and can end it.
    pub(super) fn usage(&self) -> &ConnectionUse {
        &self.usage
    }

    /// Sends the request of a call.
    ///
    /// # Errors
    /// Fails if there is no response. The error has the request if none of it was sent.
    pub(super) async fn send(
        &mut self,
        call: &mut Call,
    ) -> Result<Response<Incoming>, TrySendError<Request<SentBody>>> {
        // Made by a function of its own: the future has no room for it.
        let request = self.request(call);
        match &mut self.sender {
            HttpSender::Http1(connection) => connection.send(request).await,
            HttpSender::Http2(sender) => sender.try_send_request(request).await,
        }
    }

    /// Returns a request of a call over this connection.
    fn request(&self, call: &mut Call) -> Request<SentBody> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.headers_mut() = call.fields.taken();
        if call.body.is_empty() && matches!(call.method, Method::POST | Method::PUT | Method::PATCH) {
            // These methods expect content; without a length, some servers refuse the request (RFC 9110, section 8.6).
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        match &self.sender {
            HttpSender::Http1(connection) => {
                *request.uri_mut() = path_of(&call.url);
                request.headers_mut().insert(HOST, connection.host.clone());
                self.usage.begin(&mut request);
            }
            HttpSender::Http2(_) => *request.uri_mut() = call.url.clone(),
        }
        request
    }

    /// Returns the body of a response, which arrives while it is polled.
    pub(super) fn arriving(&mut self, body: Incoming) -> ArrivingBody<'_> {
        ArrivingBody { body, connection: self }
    }

    fn is_ready(&self) -> bool {
        match &self.sender {
            HttpSender::Http1(connection) => connection.is_ready(),
            HttpSender::Http2(sender) => sender.is_ready(),
        }
    }

    fn has_ended(&mut self) -> bool {
        match &mut self.sender {
            HttpSender::Http1(connection) => connection.has_ended(),
            HttpSender::Http2(sender) => sender.is_closed(),
        }
    }
}

/// The body of a response, and the connection over which it arrives.
pub(super) struct ArrivingBody<'c> {
    body: Incoming,
    connection: &'c mut PooledConnection,
}

impl Body for ArrivingBody<'_> {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let ArrivingBody { body, connection } = &mut *self;
        let frame = match &mut connection.sender {
            HttpSender::Http1(connection) => ready!(connection.poll_frame(body, cx)),
            HttpSender::Http2(_) => match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                // hyper takes a reset without an error for the end.
                None if !body.is_end_stream() => return Poll::Ready(Some(Err("its stream was reset".into()))),
                frame => frame,
            },
        };
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn authority(url: &Uri) -> &str {
    url.authority().map_or("", Authority::as_str)
}

/// Returns the event loop to which tasks of this thread belong.
fn current_loop() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

/// Returns the value of the field `Host`: with the port, unless it is that of the scheme.
fn host_field(url: &Uri) -> Result<HeaderValue, ConnectionError> {
    let host = url.host().unwrap_or_default();
    let of_scheme = if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let value = match url.port_u16().filter(|port| *port != of_scheme) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    };
    Ok(value?)
}

/// Returns the path and query, which is all that a request of HTTP/1 names beside the host.
fn path_of(url: &Uri) -> Uri {
    let mut parts = Parts::default();
    parts.path_and_query = url.path_and_query().cloned();
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http_body_util::BodyExt;
    use rustls::RootCertStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::options::CallOptions;
    use crate::network::{Network, Reach};

    /// Answers each request without a body, on a task.
    async fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut read = [0; 1024];
                    while stream.read(&mut read).await.is_ok_and(|length| length > 0) {
                        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                    }
                });
            }
        });
        address
    }

    fn pool() -> ConnectionPool {
        let connector = CheckedConnector { reach: Reach::Private, network: Network::default() };
        let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        ConnectionPool::new(connector, tls)
    }

    async fn used(pool: &ConnectionPool, call: &mut Call) -> PooledConnection {
        let mut connection = pool.connection(&call.url).await.unwrap();
        connection.send(call).await.unwrap().into_body().collect().await.unwrap();
        connection
    }

    fn call(address: SocketAddr) -> Call {
        let (headers, timeout, bytes_max) = (super::super::Headers::new(), IDLE_TIMEOUT, weir::Size(1));
        let options = CallOptions { headers, bearer: None, timeout, bytes_max, redirects_max: 0, private: true };
        Call::new(Method::GET, &format!("http://{address}/"), options).unwrap()
    }

    #[tokio::test]
    async fn idle_connections_are_closed_in_time() {
        let (pool, mut call) = (pool(), call(server().await));
        for is_reused in [false, true] {
            let connection = used(&pool, &mut call).await;
            assert_eq!(connection.is_reused, is_reused);
            pool.give_back(connection, &call.url);
        }
        let now = Instant::now();
        assert!(pool.0.kept.lock().sweep(now + IDLE_TIMEOUT / 2));
        assert!(!pool.0.kept.lock().sweep(now + IDLE_TIMEOUT));
        assert!(pool.0.kept.lock().take(&call.url).is_none());
    }

    #[tokio::test]
    async fn the_number_of_idle_connections_is_bounded_and_ended_ones_are_not_kept() {
        let (pool, mut call) = (pool(), call(server().await));
        let mut all = Vec::new();
        for _ in 0..IDLE_MAX + 2 {
            all.push(used(&pool, &mut call).await);
        }
        all[0].usage().end();
        all.into_iter().for_each(|connection| pool.give_back(connection, &call.url));
        let mut kept = pool.0.kept.lock();
        assert_eq!(std::iter::from_fn(|| kept.take(&call.url)).count(), IDLE_MAX);
    }

    #[tokio::test]
    async fn a_call_takes_the_nearest_connection_that_was_used_last() {
        let (pool, mut call) = (pool(), call(server().await));
        let all = [used(&pool, &mut call).await, used(&pool, &mut call).await, used(&pool, &mut call).await];
        let elsewhere = [false, false, true];
        for (connection, elsewhere) in all.into_iter().zip(elsewhere) {
            let event_loop = connection.event_loop.filter(|_| !elsewhere);
            pool.give_back(PooledConnection { event_loop, ..connection }, &call.url);
        }
        let mut kept = pool.0.kept.lock();
        let first = kept.of(&call.url).idle[1].since;
        kept.take(&call.url).unwrap();
        assert!(kept.of(&call.url).idle.iter().all(|idle| idle.since != first), "the one that was used last here");
        let taken = [(); 3].map(|()| kept.take(&call.url).map(|connection| connection.event_loop.is_some()));
        assert_eq!(taken, [Some(true), Some(false), None]);
    }

    #[test]
    fn the_host_has_a_port_unless_it_is_that_of_the_scheme() {
        for (url, host) in [
            ("http://a.example/x", "a.example"),
            ("http://a.example:80/", "a.example"),
            ("http://a.example:443/", "a.example:443"),
            ("https://a.example:443/", "a.example"),
            ("https://[::1]:80/", "[::1]:80"),
        ] {
            assert_eq!(host_field(&url.parse().unwrap()).unwrap(), host, "{url}");
        }
    }

    #[test]
    fn a_request_names_its_path_and_query() {
        for (url, path) in
            [("http://a", "/"), ("http://a?b=c", "/?b=c"), ("http://a/b?c", "/b?c"), ("http://a/%20", "/%20")]
        {
            assert_eq!(path_of(&url.parse().unwrap()).to_string(), path, "{url}");
        }
    }
}
