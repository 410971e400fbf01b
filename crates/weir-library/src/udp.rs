//! UDP: receiving and sending packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::net::UdpSocket;
use weir::{Failure, FailureKind, HostType, Module, Text, Type, Value};
use weir_events::{after, until};

use crate::network::{Network, Reach};
use crate::stream_source::{Emitter, Stream, StreamDefinition, optional, parameter};
use crate::tcp::{address, remote_port};

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
    /// `true` for the socket of `udp.packets`, which sends replies.
    receives: bool,
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
            let socket = Socket::bind(at, true)
                .map_err(|error| Failure::function(format!("cannot receive at {at}: {error}")))?;
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
        pub(crate) udp: super::socket, super::send, super::ask
    }
}

impl Socket {
    fn bind(address: SocketAddr, receives: bool) -> std::io::Result<Socket> {
        let socket = StdSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Socket(Arc::new(Inner { socket, watched: OnceLock::new(), receives })))
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
    Ok(Socket::bind(SocketAddr::from(([0, 0, 0, 0], 0)), false)?)
}

/// Sends a packet to an address and port, such as `127.0.0.1:9000`.
///
/// # Errors
/// Fails if `to` is not an address with a port, the packet is too large, or the operating system refuses. A socket of
/// `udp.packets` answers anybody; for another one, the plan may permit certain addresses only.
#[weir::function]
pub async fn send(#[environment] network: &Network, socket: Socket, to: String, bytes: Bytes) -> Result<(), Failure> {
    let address: SocketAddr = to.parse().map_err(|_| {
        Failure::argument(format!("`to` must be an address and port such as 127.0.0.1:9000, not {to:?}"))
    })?;
    if !socket.0.receives {
        network.check_host(&address.ip().to_string())?;
    }
    socket.watched()?.send_to(&bytes, address).await?;
    Ok(())
}

/// Sends a packet to a host and returns the answer: the first packet that comes back from the same address and port. A
/// packet can be lost, so ask again after a failure: `retry(3) { udp.ask(…) }`.
///
/// # Errors
/// Fails if there is no answer within `timeout`; if all addresses of the host are private, unless `private: true` permits
/// them; and if the plan does not permit the host.
#[weir::function(awaits_peer)]
pub async fn ask(
    #[environment] network: &Network,
    host: Text,
    port: i64,
    bytes: Bytes,
    #[default(Duration::from_secs(5))] timeout: Duration,
    #[default(false)] private: bool,
) -> Result<Bytes, Failure> {
    let late = || Failure::new(FailureKind::Timeout, format!("no answer from `{host}` within {timeout:?}"));
    let asking = asked(network, (&host, remote_port(port)?), &bytes, Reach::of(private));
    until(pin!(asking), &after(timeout)).await.unwrap_or_else(|()| Err(late()))
}

async fn asked(network: &Network, to: (&str, u16), bytes: &[u8], reach: Reach) -> Result<Bytes, Failure> {
    let (host, port) = to;
    let addresses = network.addresses(host, port, reach).await?;
    let to = *addresses.first().ok_or_else(|| Failure::function(format!("`{host}` has no address")))?;
    let own: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(own, 0)).await?;
    // The kernel drops packets of all others.
    socket.connect(to).await?;
    socket.send(bytes).await.map_err(|error| Failure::function(format!("cannot send to {to}: {error}")))?;
    let mut answer = BytesMut::with_capacity(PACKET_BYTES_MAX);
    let received = socket.recv_buf(&mut answer).await;
    received.map_err(|error| Failure::function(format!("no answer from {to}: {error}")))?;
    // Copied, so that a small packet does not keep a buffer of the maximum size alive.
    Ok(Bytes::copy_from_slice(&answer))
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
