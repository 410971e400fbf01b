//! An HTTP server on hyper 1, with limits for everything that a client can do to it.
//!
//! A [`Server`] is a listening socket. [`Server::run`] serves it on the event loop that awaits it. Several loops may
//! run one server, each on a thread of its own; the operating system gives a connection to the loop that accepts first.
//! A connection and all its state stay on its loop; loops share only the listening socket and the `connection_table`, which
//! chooses the connection to close when there are too many.
//!
//! The server speaks HTTP/1.0 and 1.1 with keep-alive and pipelining, and HTTP/2: over TLS to clients that negotiate it, and
//! without TLS to those that begin with it.
//!
//! 1. `connection` makes the handshake of TLS, detects the protocol and passes the connection to hyper,
//! 2. behind `request_validation`, which refuses malformed requests that hyper would accept, and leaves out the fields that a
//!    client repeats (`repeated_fields`),
//! 3. answered by the handler, perhaps before the end of the body, whose rest is left (`body_rest`); what connections hold for
//!    their clients is counted (`connection_table`, `arriving_bytes`, `metered_body`),
//! 4. under `activity`, which ends what takes too long and releases the buffers of idle connections.
//! 5. When the server stops, it refuses new connections, and `graceful_shutdown` ends the others after the requests that they have
//!    begun, which are answered at the end of the grace period at the latest.

mod accepting;
mod activity;
mod arriving_bytes;
mod body;
mod body_rest;
mod chunked_body;
mod connection;
mod connection_stream;
mod framing;
mod graceful_shutdown;
mod limits;
mod metered_body;
mod repeated_fields;
mod request_validation;
mod supervisor;
mod tls;

pub use body::{BodyError, read_body};
pub use body_rest::BodyRest;
pub use limits::{Limits, RequestDeadlines};
pub use repeated_fields::RepeatedHeader;
pub use tls::TlsFiles;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use parking_lot::Mutex;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use weir_events::{Event, until};

use crate::descriptors;

use crate::connection_table::ConnectionTable;
use accepting::{Acceptor, report_holders};
use graceful_shutdown::{GracefulShutdown, grace_before};
use tls::TlsIdentity;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;

/// A response, or the future of one. Most responses are available at once, and then no future moves them about.
pub enum HandlerResponse<'a> {
    /// The response.
    Now(Response<Bytes>),
    /// Its future.
    Later(Pin<Box<dyn Future<Output = Response<Bytes>> + 'a>>),
}

/// Handler of requests.
pub trait Handler: 'static {
    /// Returns the response to one request, which came from `peer`. If it repeats the header fields of an earlier request,
    /// they are `repeated`, and the request has none. The future of the response stays on the connection's event loop, and is
    /// dropped if the client disconnects. A response that needs the request longer than this call takes it out of its place;
    /// most do not, and then it is not moved, because it is large.
    fn handle(
        &self,
        request: &mut Option<Request<Incoming>>,
        repeated: Option<Rc<RepeatedHeader>>,
        peer: IpAddr,
    ) -> HandlerResponse<'_>;

    /// Is told that a connection could not be accepted, for example because the process has no file descriptors left.
    fn source_retries(&self, _error: &io::Error) {}

    /// Is told that the files of TLS have changed and cannot be used: connections get the certificate that was read before.
    fn certificate_stays(&self, _error: &io::Error) {}

    /// Is told once a second that so many connections were closed or refused because the limit of connections is reached.
    fn connections_shed(&self, _closed: u64, _refused: u64, _limit: usize) {}

    /// Is told that the server stops and its grace period is over. Each answer that is still awaited has to be there when it is
    /// polled next, or its client gets none.
    fn answer_all(&self) {}

    /// Is told once a second that so many connections were closed because of the memory that they held for their clients.
    fn holders_closed(&self, _closed: u64) {}
}

/// A listening socket and its limits.
pub struct Server {
    /// `None` once the server stops: the socket refuses connections when no event loop has it any more.
    listener: Mutex<Option<std::net::TcpListener>>,
    address: SocketAddr,
    limits: Limits,
    table: Arc<ConnectionTable>,
    tls: Option<TlsIdentity>,
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
        let table = ConnectionTable::new(limits.connections_max);
        let listener: std::net::TcpListener = socket.into();
        Ok(Server { address: listener.local_addr()?, listener: Mutex::new(Some(listener)), limits, table, tls: None })
    }

    /// Returns the server with TLS.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or the files are not a certificate and its key.
    pub fn with_tls(self, files: TlsFiles) -> io::Result<Server> {
        Ok(Server { tls: Some(TlsIdentity::read(files)?), ..self })
    }

    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Serves until `stop` takes effect, and then until the pending requests are answered, at the end of the grace period at the
    /// latest, which ends before the time `end` from the stop. New connections are refused then.
    /// Must be awaited on tokio's `LocalRuntime` with I/O and time enabled: connections are tasks of it, so that
    /// nothing stands between the event loop and a connection that is ready.
    ///
    /// # Errors
    /// Fails if the socket cannot be registered with this event loop.
    pub async fn run<H: Handler>(&self, handler: H, stop: &Event<()>, end: Duration) -> io::Result<()> {
        let Some(listener) = self.listener.lock().as_ref().map(std::net::TcpListener::try_clone) else { return Ok(()) };
        let listener = listener.and_then(TcpListener::from_std).map_err(cannot_register)?;
        let shutdown = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let acceptor = Acceptor {
            listener: &listener,
            limits: Rc::new(self.limits.clone()),
            table: &self.table,
            tls: self.tls.as_ref(),
            shutdown: &shutdown,
            handler: Rc::new(handler),
            shed: Rc::default(),
        };
        connections.spawn_local(report_holders(Arc::clone(&self.table), Rc::clone(&acceptor.handler)));
        let Err(()) = until(pin!(acceptor.accept(&mut connections)), stop).await;
        drop(self.listener.lock().take());
        acceptor.accept_completed(&mut connections);
        let handler = acceptor.handler;
        drop(listener);
        // Dropping the set cancels the connections that are still open after the grace period.
        shutdown.shut_down(grace_before(end, &self.limits), || handler.answer_all()).await;
        Ok(())
    }
}

/// Explains why an event loop cannot listen.
fn cannot_register(error: io::Error) -> io::Error {
    if !descriptors::is_exhausted(&error) {
        return error;
    }
    let message = "no file descriptor is left for the listener of an event loop; raise the limit of open files \
                   (`ulimit -n`), or use fewer threads (`--threads`)";
    io::Error::other(message)
}
