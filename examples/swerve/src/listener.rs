//! The listener: accepts connections from the operating system and passes them to the network processor.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use weir_events::{Channel, Parcel, Signal, a_send_parcel, after, choose};

use crate::log::{Line, Log};
use crate::server::Style;

/// Pause after accepting has failed, usually for lack of file descriptors; an immediate retry would fail as well.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens until `stop` is fired.
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
            // No connection is accepted while all threads are busy.
            Style::Synchronous => {
                let taken = connections.send_parcel(&Parcel::new(stream)).wrap(|sent| sent.is_ok());
                if !choose([taken, stop.fired().wrap(|()| false)]).sync() {
                    return;
                }
            }
            Style::ReadAhead => drop(connections.post(stream)),
            Style::Asynchronous => a_send_parcel(connections, &Parcel::new(stream)).a_sync(),
        }
    }
}
