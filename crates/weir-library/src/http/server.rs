//! An HTTP server on hyper 1, with limits for everything that a client can do to it.
//!
//! A [`Server`] is a listening socket. [`Server::run`] serves it on the event loop that awaits it; several loops may run
//! one server, each on a thread of its own, and the system gives a connection to whichever is there first. A
//! connection stays on its loop, and so does everything about it; loops share the listening socket and the count of
//! connections, and nothing else.
//!
//! It speaks HTTP/1.0 and 1.1 with keep-alive and pipelining, and HTTP/2 without TLS to clients that begin with it.
//!
//! 1. `connection` finds out the protocol and hands the connection to hyper,
//! 2. behind a `validated` that refuses what hyper lets through,
//! 3. under a `activity` that ends what takes too long, and lets a connection rest that is idle.
//! 4. When the server stops, its `shutdown` of connections ends after what each has begun, within the grace time.

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

/// Connections that the system completes before they are accepted.
const BACKLOG: i32 = 1024;
/// The first and the longest pause after accepting failed, as it does when the process has no more files.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Answers requests.
pub trait Handler: 'static {
    /// The answer to one request. Its future stays on the connection's event loop, and is dropped when the client
    /// leaves.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Bytes>>;
}

/// A listening socket and its limits.
pub struct Server {
    listener: std::net::TcpListener,
    limits: Limits,
    slots: Arc<Semaphore>,
}

impl Server {
    /// Listens at `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// Fails as the system does: the address is in use, the port is reserved.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Server> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let slots = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
        Ok(Server { listener: socket.into(), limits, slots })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Fails as the system does.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Serves until `stop` takes effect, and then until the requests that have begun are answered or the grace time is
    /// over. To be awaited on a `LocalRuntime` of tokio with I/O and time: connections are tasks of it, so that nothing
    /// stands between the event loop and a connection that has something to do.
    ///
    /// # Errors
    /// Fails where the socket cannot be watched by this event loop.
    pub async fn run<H: Handler>(&self, handler: H, stop: &Event<()>) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener.try_clone()?)?;
        let shutdown = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let accepting = self.accept(&listener, &shutdown, Rc::new(handler), &mut connections);
        let Err(()) = until(pin!(accepting), stop).await;
        drop(listener);
        // Whoever is not through when the grace time is over is given up with the set.
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
                    // An answer is written whole; waiting to fill a packet would only delay its end.
                    let _ = stream.set_nodelay(true);
                    let handle = shutdown.join(slot);
                    connections.spawn_local(serve_connection(stream, Rc::clone(&limits), Rc::clone(&handler), handle));
                    while connections.try_join_next().is_some() {}
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(_) => {
                    after(pause).await;
                    pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                }
            }
        }
    }
}

/// Errors of a connection that was gone before it was accepted; the next one may be well.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
