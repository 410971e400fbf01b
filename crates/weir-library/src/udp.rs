//! UDP: receiving and sending packets.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use tokio::net::UdpSocket;
use weir::{Failure, HostType, Module, Type, Value};

use crate::stream_source::{Emitter, Stream, StreamDefinition, optional, parameter};
use crate::tcp::address;

/// Maximum size of a packet in bytes.
const PACKET_BYTES_MAX: usize = 65_535;

/// A packet that has arrived.
#[derive(Clone, Debug, weir::Type)]
#[weir(name = "udp.Packet")]
pub struct Packet {
    /// Address and port of the sender.
    pub sender: String,
    /// The packet's contents.
    pub bytes: Bytes,
    /// The socket at which the packet arrived, for replies.
    pub socket: Socket,
}

/// A socket from which packets are sent. Cloning it increments a reference count.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "udp.Socket")]
pub struct Socket(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: StdSocket,
    /// The socket registered with the event loop that first waits for it.
    watched: OnceLock<UdpSocket>,
}

/// Builds the module `udp`.
pub(crate) fn udp() -> Module {
    let packets = StreamDefinition {
        name: "packets",
        doc: "Begins a flow for each packet that arrives at a port of this machine. `address: \"0.0.0.0\"` accepts \
              packets from other machines; port 0 lets the operating system choose a port. Packets that arrive while \
              there is no room for their flows wait in the socket's buffer, and are lost when it is full.",
        parameters: vec![parameter("port", Type::Int), optional("address", Type::Text, Value::text("127.0.0.1"))],
        element: Packet::ty(),
        ordered: false,
        open: |arguments| {
            let at = address(arguments)?;
            let socket =
                Socket::bind(at).map_err(|error| Failure::function(format!("cannot receive at {at}: {error}")))?;
            Ok(Packets { address: socket.0.socket.local_addr()?, socket })
        },
    };
    // No function mentions a packet, so the module's type definitions need it added.
    let mut module = packets.listening_within(functions::udp(), weir::ListenProtocol::Udp);
    let mut definitions = Vec::new();
    Packet::define(&mut definitions);
    module.types.extend(definitions.into_iter().map(|definition| (definition.name.clone(), definition)));
    module
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// UDP: receiving and sending packets.
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
            // If another thread was first, its socket serves as well.
            let _ = self.0.watched.set(socket);
        }
        Ok(self.0.watched.get().expect("it was set above"))
    }
}

/// Returns a socket at a port that the operating system chooses, for sending.
///
/// # Errors
/// Fails if the operating system provides none.
#[weir::function]
pub fn socket() -> Result<Socket, Failure> {
    Ok(Socket::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?)
}

/// Sends a packet to an address and port, such as `127.0.0.1:9000`.
///
/// # Errors
/// Fails if `to` is not an address with a port, the packet is too large, or the operating system refuses.
#[weir::function]
pub async fn send(socket: Socket, to: String, bytes: Bytes) -> Result<(), Failure> {
    let address: SocketAddr = to.parse().map_err(|_| {
        Failure::argument(format!("`to` must be an address and port such as 127.0.0.1:9000, not {to:?}"))
    })?;
    socket.watched()?.send_to(&bytes, address).await?;
    Ok(())
}

/// The source `udp.packets(9000)`.
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
                    // Copied, so that a small packet does not keep a buffer of the maximum size alive.
                    let bytes = Bytes::copy_from_slice(&room);
                    let packet = Packet { sender: sender.to_string(), bytes, socket: self.socket.clone() };
                    emitter.emit(packet.into_value()?).await;
                }
                // An earlier packet of ours was not received; that does not end the stream.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
