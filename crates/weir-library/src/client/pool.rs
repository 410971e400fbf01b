//! Connections of the client: made when a call needs one, and kept for the next call to their origin.
//!
//! 1. A call takes an idle connection of HTTP/1, or shares one of HTTP/2; otherwise it makes one. Of the idle ones it takes the
//!    one that was used last, preferably one whose socket belongs to the event loop of the call, so that its response wakes no
//!    other thread.
//! 2. The call drives a connection of HTTP/1 itself ([`PooledConnection`]); one of HTTP/2 has a task of its own.
//! 3. When the call has read its response, it gives the connection back, unless it was ended ([`ConnectionUse::end`]) or is
//!    not idle. A call that is dropped drops its connection, which closes it.
//! 4. While connections are idle, a task closes those that were not used for a while, or that their server has closed.
//!
//! It is written on hyper's connections instead of the pooled client of hyper-util: that one makes a channel, a task and two
//! futures of a new connection for each request, which costs as much as all else that a small request needs.

use std::error::Error;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hyper::Uri;
use hyper::client::conn::http2;
use hyper::http::uri::{Authority, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
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
use super::pooled_connection::{HttpSender, PooledConnection, host_field};

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

fn authority(url: &Uri) -> &str {
    url.authority().map_or("", Authority::as_str)
}

/// Returns the event loop to which tasks of this thread belong.
fn current_loop() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http_body_util::BodyExt;
    use hyper::Method;
    use rustls::RootCertStore;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::options::{Call, CallOptions};
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
}
