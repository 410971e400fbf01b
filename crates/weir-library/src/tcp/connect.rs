//! Connections that a program makes, with and without TLS.

use std::pin::pin;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsConnector;
use weir::{Failure, FailureKind, Text};
use weir_events::{after, until};

use super::connection::Connection;
use super::transport::TcpTransport;
use crate::network::{Network, Reach};

/// Parameters of the functions that connect.
#[derive(weir::FunctionOptions)]
pub struct ConnectOptions {
    /// Maximum duration until the connection exists, with TLS if it has any.
    #[default(Duration::from_secs(10))]
    pub timeout: Duration,
    /// Maximum duration for which the peer may send or accept nothing.
    #[default(Duration::from_secs(75))]
    pub idle: Duration,
    /// `true` if addresses of private networks are permitted.
    #[default(false)]
    pub private: bool,
}

/// Connects to a host. Operations on the connection fail if the peer is idle for longer than `idle`.
///
/// # Errors
/// Fails if there is no connection within `timeout`; if all addresses of the host are private, unless `private: true`
/// permits them; and if the plan does not permit the host.
#[weir::function(awaits_peer)]
pub async fn connect(
    #[environment] network: &Network,
    host: Text,
    port: i64,
    #[options] options: ConnectOptions,
) -> Result<Connection, Failure> {
    let connecting = connected(network, (&host, port), &options, false);
    within(&host, options.timeout, connecting).await
}

/// Connects to a host with TLS, and checks its certificate. The functions of `tcp` read and write the connection.
///
/// # Errors
/// Fails as `tcp.connect` does, and if the certificate of the server is not one of the host that the system trusts.
#[weir::function(name = "connect", awaits_peer)]
pub async fn connect_tls(
    #[environment] network: &Network,
    host: Text,
    #[default(443)] port: i64,
    #[options] options: ConnectOptions,
) -> Result<Connection, Failure> {
    let connecting = connected(network, (&host, port), &options, true);
    within(&host, options.timeout, connecting).await
}

async fn connected(
    network: &Network,
    to: (&str, i64),
    options: &ConnectOptions,
    tls: bool,
) -> Result<Connection, Failure> {
    let (stream, permit) = transport_to(network, to, Reach::of(options.private), tls).await?;
    let peer = stream.peer()?;
    Ok(Connection::outgoing(stream, peer, options.idle, permit))
}

/// Connects to a host and port, with or without TLS. The permit is held as long as the connection.
///
/// # Errors
/// Fails if there is no connection, and if the certificate of the server is not trusted.
pub(crate) async fn transport_to(
    network: &Network,
    (host, port): (&str, i64),
    reach: Reach,
    tls: bool,
) -> Result<(TcpTransport, OwnedSemaphorePermit), Failure> {
    let port = remote_port(port)?;
    let permit = network.permit().await;
    if !tls {
        return Ok((TcpTransport::Plain(network.connect(host, port, reach).await?), permit));
    }
    server_name(host)?;
    let stream = network.connect(host, port, reach).await?;
    Ok((with_tls(network, host, stream).await?, permit))
}

/// Begins TLS on a connection to a host.
///
/// # Errors
/// Fails if the certificate of the server is not trusted.
pub(crate) async fn with_tls(network: &Network, host: &str, stream: TcpStream) -> Result<TcpTransport, Failure> {
    let handshake = TlsConnector::from(network.tls().await).connect(server_name(host)?, stream).await;
    let stream = handshake.map_err(|error| Failure::function(format!("no TLS with `{host}`: {error}")))?;
    Ok(TcpTransport::Tls(Box::new(stream)))
}

fn server_name(host: &str) -> Result<ServerName<'static>, Failure> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|_| Failure::argument(format!("{host:?} is neither the name of a host nor an address")))
}

/// Returns the port of another machine.
///
/// # Errors
/// Fails if it is not 1 to 65,535.
pub(crate) fn remote_port(port: i64) -> Result<u16, Failure> {
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    port.ok_or_else(|| Failure::argument("a port is 1 to 65535"))
}

async fn within<T>(
    host: &str,
    timeout: Duration,
    connecting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = || Failure::new(FailureKind::Timeout, format!("no connection to `{host}` within {timeout:?}"));
    until(pin!(connecting), &after(timeout)).await.unwrap_or_else(|()| Err(late()))
}
