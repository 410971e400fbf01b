//! An HTTP server on hyper 1, with limits for everything that a client can do to it.
//!
//! A [`Server`] is a listening socket. [`Server::run`] serves it on the event loop that awaits it. Several loops may
//! run one server, each on a thread of its own; the operating system gives a connection to the loop that accepts first.
//! A connection and all its state stay on its loop; loops share only the listening socket and the number of
//! connections.
//!
//! The server speaks HTTP/1.0 and 1.1 with keep-alive and pipelining, and HTTP/2 without TLS to clients that begin with
//! it.
//!
//! 1. `connection` detects the protocol and passes the connection to hyper,
//! 2. behind `request_validation`, which refuses malformed requests that hyper would accept,
//! 3. under `activity`, which ends what takes too long and releases the buffers of idle connections.
//! 4. When the server stops, `graceful_shutdown` ends the connections after the requests that they have begun, within
//!    the grace period.

mod activity;
mod body;
mod chunked_body;
mod connection;
mod framing;
mod graceful_shutdown;
mod limits;
mod metered_body;
mod request_validation;

pub use body::{BodyError, read_body};
pub use limits::{Limits, RequestDeadlines};

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use weir_events::{Event, after, until};

use connection::serve_connection;
use graceful_shutdown::GracefulShutdown;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
/// The first and the longest pause after accepting has failed, for example because the process has no file descriptors
/// left.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Handler of requests.
pub trait Handler: 'static {
    /// Returns the response to one request. The future stays on the connection's event loop, and is dropped if the
    /// client disconnects.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Bytes>>;

    /// Is told that a connection could not be accepted, for example because the process has no file descriptors left.
    fn not_accepted(&self, _error: &io::Error) {}
}

/// A listening socket and its limits.
pub struct Server {
    listener: std::net::TcpListener,
    limits: Limits,
    slots: Arc<Semaphore>,
}

impl Server {
    /// Listens at `address`; port 0 lets the operating system choose one.
    ///
    /// # Errors
    /// Fails if the operating system refuses, for example because the address is in use or the port is reserved.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Server> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let slots = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
        Ok(Server { listener: socket.into(), limits, slots })
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// Fails if the operating system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Serves until `stop` takes effect, and then until the pending requests are answered or the grace period is over.
    /// Must be awaited on tokio's `LocalRuntime` with I/O and time enabled: connections are tasks of it, so that
    /// nothing stands between the event loop and a connection that is ready.
    ///
    /// # Errors
    /// Fails if the socket cannot be registered with this event loop.
    pub async fn run<H: Handler>(&self, handler: H, stop: &Event<()>) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener.try_clone()?)?;
        let shutdown = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let accepting = self.accept(&listener, &shutdown, Rc::new(handler), &mut connections);
        let Err(()) = until(pin!(accepting), stop).await;
        drop(listener);
        // Dropping the set cancels the connections that are still open after the grace period.
        shutdown.shut_down(&self.limits).await;
        Ok(())
    }

    /// Accepts connections forever.
    async fn accept<H: Handler>(
        &self,
        listener: &TcpListener,
        shutdown: &GracefulShutdown,
        handler: Rc<H>,
        connections: &mut JoinSet<()>,
    ) -> Infallible {
        let limits = Rc::new(self.limits.clone());
        let mut pause = ACCEPT_PAUSE_MIN;
        loop {
            let slot = Arc::clone(&self.slots).acquire_owned().await.expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((stream, _)) => {
                    pause = ACCEPT_PAUSE_MIN;
                    // A response is written as a whole; waiting to fill a packet would only delay its end.
                    let _ = stream.set_nodelay(true);
                    let handle = shutdown.join(slot);
                    connections.spawn_local(serve_connection(stream, Rc::clone(&limits), Rc::clone(&handler), handle));
                    while connections.try_join_next().is_some() {}
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    handler.not_accepted(&error);
                    after(pause).await;
                    pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                }
            }
        }
    }
}

/// Returns `true` for errors of a connection that was gone before it was accepted; the next one may succeed.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
