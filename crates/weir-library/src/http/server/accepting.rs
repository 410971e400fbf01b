//! Accepts the connections of one event loop, and makes room for them when there are too many.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use weir_events::after;

use super::connection::serve_connection;
use super::graceful_shutdown::GracefulShutdown;
use super::tls::TlsIdentity;
use super::{BACKLOG, Handler, Limits};
use crate::connection_table::{ConnectionTable, Entering, attach};
use crate::descriptors;

/// The first and the longest pause after accepting has failed, for example because the process has no file descriptors
/// left.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Time for which connections that were closed or refused are counted before they are reported.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The answer to a connection for which there is no place.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// Accepts connections on one event loop.
pub(super) struct Acceptor<'a, H> {
    pub(super) listener: &'a TcpListener,
    pub(super) limits: Rc<Limits>,
    pub(super) table: &'a Arc<ConnectionTable>,
    pub(super) tls: Option<&'a TlsIdentity>,
    pub(super) shutdown: &'a GracefulShutdown,
    pub(super) handler: Rc<H>,
    pub(super) shed: Rc<RefCell<ShedConnections>>,
}

/// The connections that were closed or refused since the last report.
#[derive(Default)]
pub(super) struct ShedConnections {
    closed: u64,
    refused: u64,
}

impl<H: Handler> Acceptor<'_, H> {
    /// Accepts connections forever.
    pub(super) async fn accept(&self, connections: &mut JoinSet<()>) -> Infallible {
        let mut pause = PAUSE_MIN;
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    pause = PAUSE_MIN;
                    self.serve(stream, peer, connections);
                    while connections.try_join_next().is_some() {}
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    self.handler.source_retries(&error);
                    if descriptors::is_exhausted(&error)
                        && has_pending(self.listener)
                        && self.table.close_waiting(Instant::now())
                    {
                        self.count(connections, |shed| shed.closed += 1);
                        pause = PAUSE_MIN;
                    }
                    after(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Accepts the connections that the kernel has completed by now, at most as many as it keeps. Their clients believe that they
    /// have reached the server, and would be reset when it stops to listen.
    pub(super) fn accept_completed(&self, connections: &mut JoinSet<()>) {
        for _ in 0..BACKLOG {
            let Ok((socket, peer)) = SockRef::from(self.listener).accept() else { return };
            let (Some(peer), Ok(())) = (peer.as_socket(), socket.set_nonblocking(true)) else { continue };
            if let Ok(stream) = TcpStream::from_std(socket.into()) {
                self.serve(stream, peer, connections);
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        let place = match self.table.enter(peer.ip(), Instant::now()) {
            Entering::Entered(place) => place,
            Entering::Instead(place) => {
                self.count(connections, |shed| shed.closed += 1);
                place
            }
            Entering::Refused => {
                // The answer fits into the buffer of a new socket; a client that has gone needs none.
                if self.tls.is_none() {
                    let _ = stream.try_write(REFUSAL);
                }
                return self.count(connections, |shed| shed.refused += 1);
            }
        };
        // A response is written as a whole; waiting to fill a packet would only delay its end.
        let _ = stream.set_nodelay(true);
        let entry = Arc::clone(place.entry());
        let handle = self.shutdown.join(place);
        let tls = self.tls.map(|tls| tls.config(|error| self.handler.certificate_stays(error)));
        let serving =
            serve_connection((stream, peer.ip()), tls, Rc::clone(&self.limits), Rc::clone(&self.handler), handle);
        let task = connections.spawn_local(serving);
        attach(self.table, peer.ip(), &entry, Box::new(move || task.abort()));
    }

    /// Counts a connection that was closed or refused; the first one begins a period, at whose end all of them are reported.
    fn count(&self, connections: &mut JoinSet<()>, count: impl FnOnce(&mut ShedConnections)) {
        let mut shed = self.shed.borrow_mut();
        let is_first = shed.closed + shed.refused == 0;
        count(&mut shed);
        if is_first {
            let (shed, handler) = (Rc::clone(&self.shed), Rc::clone(&self.handler));
            let limit = self.table.connections_max();
            connections.spawn_local(async move {
                after(REPORT_PERIOD).await;
                let ShedConnections { closed, refused } = shed.take();
                handler.connections_shed(closed, refused, limit);
            });
        }
    }
}

/// Reports connections that were closed because of what they held; to be run until the server stops.
pub(super) async fn report_holders<H: Handler>(table: Arc<ConnectionTable>, handler: Rc<H>) {
    loop {
        table.holder_closed.notified().await;
        after(REPORT_PERIOD).await;
        let closed = table.take_holders_closed();
        if closed > 0 {
            handler.holders_closed(closed);
        }
    }
}

/// Returns true if a connection waits to be accepted: without descriptors, accepting fails also if none does.
fn has_pending(listener: &TcpListener) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// Returns `true` for errors of a connection that was gone before it was accepted; the next one may succeed.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
