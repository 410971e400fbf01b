//! TCP listeners: streams of connections, and of the lines that arrive over them.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::{Domain, Protocol, Socket, Type as SocketType};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, spawn_local};
use weir::{Failure, HostType, ListenAddress, Loops, Parameter, SourceProblem, Type, Value};
use weir_events::{Event, Signal, after, rendezvous, until};

use super::Connection;
use super::idle_timeout::{ConnectionClient, IdleLimits};
use crate::bad_elements::BadElements;
use crate::connection_table::{ConnectionTable, Entering, TablePlace, attach};
use crate::descriptors;
use crate::lines::{LineSplitter, line_element};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, optional, parameter};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 1024;
/// Pause after accepting has failed, for example because the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Default idle timeout of a connection.
const IDLE_NS: i64 = 75_000_000_000;
/// Default maximum number of connections.
const CONNECTIONS_MAX: i64 = 10_000;
/// Time for which connections that were closed or refused are counted before they are reported.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

fn parameters() -> Vec<Parameter> {
    vec![
        parameter("port", Type::Int),
        optional("address", Type::Text, Value::text("127.0.0.1")),
        optional("idle", Type::Duration, Value::Duration(IDLE_NS)),
        optional("connections_max", Type::Int, Value::Int(CONNECTIONS_MAX)),
    ]
}

/// Returns the definition of `tcp.listen(port)`.
pub(super) fn connections() -> StreamDefinition<Connections> {
    StreamDefinition {
        name: "listen",
        doc: "Begins a flow for each connection to a port of this machine. `address: \"0.0.0.0\"` accepts connections \
              from other machines; port 0 lets the operating system choose a port. Operations on a connection that is \
              idle for longer than `idle` fail. Beyond `connections_max`, and when the process has no file descriptors \
              left, the connection that has waited longest for its client, of the address that has most, is closed.",
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
              connection keep their order; those of several connections are interleaved as they arrive. A line that \
              is not UTF-8 or longer than 1 MiB is reported and skipped. A connection that sends nothing for longer than \
              `idle` is closed. Beyond `connections_max` the same happens as for `tcp.listen`.",
        parameters: parameters(),
        element: Type::Text,
        ordered: true,
        open: |arguments| Ok(ConnectionLines(Listening::open(arguments)?)),
    }
}

/// A listening socket.
pub(super) struct Listening {
    /// `None` once the program stops: the socket refuses connections when no event loop has it any more.
    socket: Mutex<Option<StdListener>>,
    address: SocketAddr,
    idle: Duration,
    table: Arc<ConnectionTable>,
}

impl Listening {
    fn open(arguments: &SourceArguments<'_>) -> Result<Self, Failure> {
        let address = address(arguments)?;
        let bound = bind(address).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) =
            bound.map_err(|error| Failure::function(format!("cannot listen at {address}: {error}")))?;
        let connections_max = usize::try_from(arguments.int(3)?).ok().filter(|max| *max > 0);
        let connections_max =
            connections_max.ok_or_else(|| Failure::argument("`connections_max` must be at least 1"))?;
        let table = ConnectionTable::new(connections_max);
        Ok(Listening { socket: Mutex::new(Some(socket)), address, idle: arguments.duration(2, "idle")?, table })
    }

    /// Returns an acceptor on this event loop; `None` if the program stops.
    fn acceptor<'a>(&'a self, emitter: &'a Emitter) -> io::Result<Option<TcpAcceptor<'a>>> {
        let Some(listener) = self.socket.lock().as_ref().map(StdListener::try_clone) else { return Ok(None) };
        let listener = TcpListener::from_std(listener?)?;
        Ok(Some(TcpAcceptor { listening: self, listener, table: &self.table, emitter, shed: Rc::default() }))
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

/// Accepts the connections of a listener on one event loop, and makes room for them when there are too many.
struct TcpAcceptor<'a> {
    listening: &'a Listening,
    listener: TcpListener,
    table: &'a Arc<ConnectionTable>,
    emitter: &'a Emitter,
    shed: Rc<Cell<ShedCounts>>,
}

/// The connections that were closed or refused since the last report.
#[derive(Clone, Copy, Default)]
struct ShedCounts {
    closed: u64,
    refused: u64,
}

impl TcpAcceptor<'_> {
    /// Accepts the next connection, with its place in the table. The failure of a single connection, or a lack of file
    /// descriptors, does not end the source.
    async fn accept(&self) -> (TcpStream, SocketAddr, TablePlace) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match self.table.enter(peer.ip(), Instant::now()) {
                    Entering::Entered(place) => return (stream, peer, place),
                    Entering::Instead(place) => {
                        self.count(|shed| shed.closed += 1);
                        return (stream, peer, place);
                    }
                    Entering::Refused => self.count(|shed| shed.refused += 1),
                },
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    self.emitter.report(SourceProblem::Retries(Failure::function(format!(
                        "a connection cannot be accepted: {error}"
                    ))));
                    if descriptors::is_exhausted(&error) && self.table.close_waiting(Instant::now()) {
                        self.count(|shed| shed.closed += 1);
                    }
                    after(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Counts a connection that was closed or refused; the first one begins a period, at whose end all of them are reported.
    fn count(&self, count: impl FnOnce(&mut ShedCounts)) {
        let mut shed = self.shed.get();
        let is_first = shed.closed + shed.refused == 0;
        count(&mut shed);
        self.shed.set(shed);
        if is_first {
            let (shed, emitter, limit) = (Rc::clone(&self.shed), self.emitter.clone(), self.table.connections_max());
            // The task ends with the event loop.
            drop(spawn_local(async move {
                after(REPORT_PERIOD).await;
                let ShedCounts { closed, refused } = shed.take();
                let message = format!("{closed} closed and {refused} refused at the limit of {limit}");
                emitter.report(SourceProblem::ShedsConnections(Failure::function(message)));
            }));
        }
    }
}

impl Drop for TcpAcceptor<'_> {
    /// An event loop drops its acceptor when the program stops, or when the source fails.
    fn drop(&mut self) {
        drop(self.listening.socket.lock().take());
    }
}

pub(super) struct Connections(Listening);

impl Stream for Connections {
    const LOOPS: Loops = Loops::Each;

    fn describe(&self) -> String {
        format!("tcp://{}", self.0.address)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let Some(acceptor) = self.0.acceptor(&emitter)? else { return Ok(()) };
        // Dropped together with this loop when the program stops.
        let (_running, ends) = rendezvous::<()>();
        let limits = IdleLimits::new(self.0.idle, &ends.recv().wrap(|_| ()));
        loop {
            let (stream, peer, place) = acceptor.accept().await;
            let (shed, entry) = (Signal::new(), Arc::clone(place.entry()));
            let close = shed.clone();
            attach(&self.0.table, peer.ip(), &entry, Box::new(move || _ = close.fire()));
            let connection = Connection::new(stream, peer, limits.clone(), ConnectionClient { place, shed });
            emitter.emit(connection.into_value()?).await;
        }
    }
}

pub(super) struct ConnectionLines(Listening);

impl Stream for ConnectionLines {
    fn describe(&self) -> String {
        format!("the lines to tcp://{}", self.0.address)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let Some(acceptor) = self.0.acceptor(&emitter)? else { return Ok(()) };
        let mut connections = JoinSet::new();
        let late = after(self.0.idle);
        loop {
            let (stream, peer, place) = acceptor.accept().await;
            let entry = Arc::clone(place.entry());
            let task = connections.spawn_local(emit_lines((stream, peer), late.clone(), emitter.clone(), place));
            attach(&self.0.table, peer.ip(), &entry, Box::new(move || task.abort()));
            while connections.try_join_next().is_some() {}
        }
    }
}

/// Emits the lines of one connection. An error of the connection ends only this connection.
async fn emit_lines((mut stream, peer): (TcpStream, SocketAddr), late: Event<()>, emitter: Emitter, place: TablePlace) {
    let mut lines = LineSplitter::new();
    while let Ok(Some(line)) = until(pin!(lines.next(&mut stream)), &late).await.map(Result::transpose) {
        let Ok(element) = line_element(line, &peer.to_string(), BadElements::Skip) else { return };
        place.entry().note(Instant::now(), true);
        emitter.emit_or_report(element).await;
        place.entry().note(Instant::now(), false);
    }
}
