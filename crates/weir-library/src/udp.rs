//! UDP: packets in, packets out.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use tokio::net::UdpSocket;
use weir::{Failure, HostType, Module, Type, Value};

use crate::stream_source::{Emitter, Stream, StreamDefinition, optional, parameter};
use crate::tcp::address;

/// The most bytes of a packet.
const PACKET_BYTES_MAX: usize = 65_535;

/// A packet that has come.
#[derive(Clone, Debug, weir::Type)]
#[weir(name = "udp.Packet")]
pub struct Packet {
    /// Who sent it: an address and a port.
    pub sender: String,
    /// What it holds.
    pub bytes: Bytes,
    /// The socket that it came to, from which it may be answered.
    pub socket: Socket,
}

/// A socket that packets are sent from. Cloning it counts a reference.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "udp.Socket")]
pub struct Socket(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: StdSocket,
    /// The socket on the event loop that first waits for it.
    watched: OnceLock<UdpSocket>,
}

/// The module `udp`.
pub(crate) fn udp() -> Module {
    let packets = StreamDefinition {
        name: "packets",
        doc: "Begins a flow for each packet that comes to a port of this machine. `address: \"0.0.0.0\"` lets others \
              in; port 0 lets the system choose. Packets that come while there is no room are kept by the system, as \
              far as it has room.",
        parameters: vec![parameter("port", Type::Int), optional("address", Type::Text, Value::text("127.0.0.1"))],
        element: Packet::ty(),
        ordered: false,
        open: |given| {
            let at = address(given)?;
            let socket =
                Socket::bind(at).map_err(|error| Failure::function(format!("cannot receive at {at}: {error}")))?;
            Ok(Packets { address: socket.0.socket.local_addr()?, socket })
        },
    };
    // No function mentions a packet, so that the module would not know what it is.
    let mut module = packets.within(functions::udp());
    let mut definitions = Vec::new();
    Packet::define(&mut definitions);
    module.types.extend(definitions.into_iter().map(|definition| (definition.name.clone(), definition)));
    module
}

mod functions {
    //! The functions of the module, apart so that the module made of them can be named as it is.

    weir::library! {
        /// UDP: packets in, packets out.
        pub(crate) udp: super::socket, super::send
    }
}

impl Socket {
    fn bind(address: SocketAddr) -> std::io::Result<Socket> {
        let socket = StdSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Socket(Arc::new(Inner { socket, watched: OnceLock::new() })))
    }

    fn watched(&self) -> std::io::Result<&UdpSocket> {
        if self.0.watched.get().is_none() {
            let socket = UdpSocket::from_std(self.0.socket.try_clone()?)?;
            // Somebody else may have been first, which is as good.
            let _ = self.0.watched.set(socket);
        }
        Ok(self.0.watched.get().expect("it was set above"))
    }
}

/// A socket at a port that the system chooses, to send from.
///
/// # Errors
/// Fails where the system gives none.
#[weir::function]
pub fn socket() -> Result<Socket, Failure> {
    Ok(Socket::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?)
}

/// Sends a packet to an address and port, such as `127.0.0.1:9000`.
///
/// # Errors
/// Fails where `to` is no address and port, the packet is too large, or the system refuses.
#[weir::function]
pub async fn send(socket: Socket, to: String, bytes: Bytes) -> Result<(), Failure> {
    let address: SocketAddr = to
        .parse()
        .map_err(|_| Failure::argument(format!("`to` is {to:?}, it must be an address and port: 127.0.0.1:9000")))?;
    socket.watched()?.send_to(&bytes, address).await?;
    Ok(())
}

/// `udp.packets(9000)`.
struct Packets {
    socket: Socket,
    address: SocketAddr,
}

impl Stream for Packets {
    fn describe(&self) -> String {
        format!("udp://{}", self.address)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let socket = self.socket.watched()?;
        let mut room = BytesMut::new();
        loop {
            room.clear();
            room.reserve(PACKET_BYTES_MAX);
            match socket.recv_buf_from(&mut room).await {
                Ok((_, sender)) => {
                    // A copy, so that a small packet does not hold room for the largest.
                    let bytes = Bytes::copy_from_slice(&room);
                    let packet = Packet { sender: sender.to_string(), bytes, socket: self.socket.clone() };
                    emitter.emit(packet.into_value()?).await;
                }
                // An earlier packet of ours found nobody: that is no end of what comes.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
