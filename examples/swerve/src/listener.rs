//! The listener: takes connections from the system and hands them to the network processor.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use weir_events::{Channel, Signal, after, choose};

use crate::log::{Line, Log};
use crate::server::Style;

/// Pause after a failed accept: if the system gives no connection, mostly for want of files, an immediate retry would
/// fail as well.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens until the signal is given.
pub(crate) fn run(socket: &TcpListener, connections: &Channel<TcpStream>, style: Style, stop: &Signal, log: &Log) {
    for stream in socket.incoming() {
        if stop.is_fired() {
            return;
        }
        let Ok(stream) = stream else {
            choose([after(PAUSE), stop.fired()]).sync();
            continue;
        };
        log.write(Line::ConnectionStart);
        match style {
            // Nothing is accepted while no thread is free.
            Style::Synchronous => {
                let taken = connections.send_once(stream).wrap(|sent| sent.is_ok());
                if !choose([taken, stop.fired().wrap(|()| false)]).sync() {
                    return;
                }
            }
            Style::Asynchronous => connections.send_and_go(stream),
        }
    }
}
