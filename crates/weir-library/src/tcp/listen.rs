//! TCP listeners: streams of connections, and of the lines that arrive over them.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type as SocketType};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use weir::{Failure, HostType, ListenAddress, Loops, Parameter, SourceProblem, Type, Value};
use weir_events::{Event, after, rendezvous, until};

use super::Connection;
use super::idle_timeout::IdleLimits;
use crate::lines::LineSplitter;
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, optional, parameter};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
/// Pause after accepting has failed, for example because the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Default idle timeout of a connection.
const IDLE_NS: i64 = 75_000_000_000;
/// Maximum number of connections whose lines are read at a time.
const CONNECTIONS_MAX: usize = 10_000;

fn parameters() -> Vec<Parameter> {
    vec![
        parameter("port", Type::Int),
        optional("address", Type::Text, Value::text("127.0.0.1")),
        optional("idle", Type::Duration, Value::Duration(IDLE_NS)),
    ]
}

/// Returns the definition of `tcp.listen(port)`.
pub(super) fn connections() -> StreamDefinition<Connections> {
    StreamDefinition {
        name: "listen",
        doc: "Begins a flow for each connection to a port of this machine. `address: \"0.0.0.0\"` accepts connections \
              from other machines; port 0 lets the operating system choose a port. Operations on a connection that is \
              idle for longer than `idle` fail.",
        parameters: parameters(),
        element: Connection::ty(),
        ordered: false,
        open: |arguments| Ok(Connections(Listening::open(arguments)?)),
    }
}

/// Returns the definition of `tcp.lines(port)`.
pub(super) fn lines() -> StreamDefinition<ConnectionLines> {
    StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line that arrives over any connection to a port of this machine. The lines of one \
              connection keep their order; those of several connections are interleaved as they arrive. A connection \
              that sends an invalid line, or nothing for longer than `idle`, is closed.",
        parameters: parameters(),
        element: Type::Text,
        ordered: true,
        open: |arguments| {
            let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
            Ok(ConnectionLines { listening: Listening::open(arguments)?, slots })
        },
    }
}

/// A listening socket.
pub(super) struct Listening {
    socket: StdListener,
    address: SocketAddr,
    idle: Duration,
}

impl Listening {
    fn open(arguments: &SourceArguments<'_>) -> Result<Self, Failure> {
        let address = address(arguments)?;
        let bound = bind(address).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) =
            bound.map_err(|error| Failure::function(format!("cannot listen at {address}: {error}")))?;
        Ok(Listening { socket, address, idle: arguments.duration(2, "idle")? })
    }

    /// Returns a listener on this event loop.
    fn listener(&self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.socket.try_clone()?)
    }
}

/// Returns the address given by the first two arguments.
pub(crate) fn address(arguments: &SourceArguments<'_>) -> Result<SocketAddr, Failure> {
    let (port, address) = (arguments.int(0)?, arguments.text(1)?);
    let port = ListenAddress::port(port).map_err(Failure::argument)?;
    let ip = ListenAddress::ip(address).map_err(Failure::argument)?;
    Ok(SocketAddr::new(ip, port))
}

fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), SocketType::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts the next connection. The failure of a single connection, or a lack of file descriptors, does not end the
/// source.
async fn accept(listener: &TcpListener, emitter: &Emitter) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                emitter.report(SourceProblem::NotAccepted(Failure::function(error.to_string())));
                after(ACCEPT_PAUSE).await;
            }
        }
    }
}

pub(super) struct Connections(Listening);

impl Stream for Connections {
    fn describe(&self) -> String {
        format!("tcp://{}", self.0.address)
    }

    fn loops(&self) -> Loops {
        Loops::Each
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let listener = self.0.listener()?;
        // Dropped together with this loop when the program stops.
        let (_running, ends) = rendezvous::<()>();
        let limits = IdleLimits::new(self.0.idle, &ends.recv().wrap(|_| ()));
        loop {
            let (stream, peer) = accept(&listener, &emitter).await;
            let connection = Connection::new(stream, peer, limits.clone());
            emitter.emit(connection.into_value()?).await;
        }
    }
}

pub(super) struct ConnectionLines {
    listening: Listening,
    slots: Arc<Semaphore>,
}

impl Stream for ConnectionLines {
    fn describe(&self) -> String {
        format!("the lines to tcp://{}", self.listening.address)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let listener = self.listening.listener()?;
        let mut connections = JoinSet::new();
        let late = after(self.listening.idle);
        loop {
            let slot = Arc::clone(&self.slots).acquire_owned().await?;
            let (stream, _) = accept(&listener, &emitter).await;
            connections.spawn_local(emit_lines(stream, late.clone(), emitter.clone(), slot));
            while connections.try_join_next().is_some() {}
        }
    }
}

/// Emits the lines of one connection. An error ends only this connection.
async fn emit_lines(mut stream: TcpStream, late: Event<()>, emitter: Emitter, _slot: OwnedSemaphorePermit) {
    let mut lines = LineSplitter::new();
    while let Ok(Ok(Some(line))) = until(pin!(lines.next(&mut stream)), &late).await {
        emitter.emit(Value::text(line)).await;
    }
}
