//! The sockets of connections: encrypted or not, each of them waits with large messages (`paced_socket`).

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket};

use super::paced_socket::PacedSocket;
use super::tls::{EncryptedSocket, PostgresHandshake, PostgresTls};

/// The port of a server whose address names none.
const PORT: u16 = 5432;
/// Asks a server whether it can encrypt a connection: a length, and a number that stands for the question.
const ASK_FOR_ENCRYPTION: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// The answer of a server that can.
const ENCRYPTS: u8 = b'S';

/// A connection that has to be driven.
pub(super) type Driver = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// Connects to a server.
pub(super) async fn connect(
    config: &Config,
    tls: Option<PostgresTls>,
) -> Result<(Client, Driver), tokio_postgres::Error> {
    if let Some(socket) = unix_socket(config).await {
        let (client, connection) = config.connect_raw(PacedSocket::new(socket), NoTls).await?;
        return Ok((client, Box::pin(connection)));
    }
    let mut own = config.clone();
    if config.get_hosts().is_empty() {
        config.get_hostaddrs().iter().for_each(|address| _ = own.host(address.to_string()));
    }
    if own.get_hosts().iter().any(|host| matches!(host, Host::Unix(_))) {
        let (client, connection) = config.connect(NoTls).await?;
        return Ok((client, Box::pin(connection)));
    }
    // The library leaves every connection to `SocketMaker` then, which asks the server itself.
    own.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let maker = SocketMaker { tls, mode: config.get_ssl_mode(), negotiation: config.get_ssl_negotiation() };
    let (client, connection) = own.connect(maker).await?;
    Ok((client, Box::pin(connection)))
}

/// Connects to the only socket of an address. If that fails, the library tries again, and its error tells why.
async fn unix_socket(config: &Config) -> Option<UnixStream> {
    let [Host::Unix(folder)] = config.get_hosts() else { return None };
    if !config.get_hostaddrs().is_empty() || config.get_target_session_attrs() != TargetSessionAttrs::Any {
        return None;
    }
    let port = config.get_ports().first().copied().unwrap_or(PORT);
    let connecting = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")));
    let limit = config.get_connect_timeout().copied().unwrap_or(Duration::MAX);
    timeout(limit, connecting).await.ok()?.ok()
}

/// Makes the sockets of a connection from the connection to its host.
#[derive(Clone)]
struct SocketMaker {
    tls: Option<PostgresTls>,
    mode: SslMode,
    negotiation: SslNegotiation,
}

/// A connection to a host that is to be encrypted, or not.
struct SocketHandshake {
    /// `None` if it is not to be encrypted.
    encrypted: Option<PostgresHandshake>,
    maker: SocketMaker,
}

/// The socket of a connection to a host.
enum HostSocket {
    Plain(Socket),
    Encrypted(Box<EncryptedSocket>),
}

impl MakeTlsConnect<Socket> for SocketMaker {
    type Stream = PacedSocket<HostSocket>;
    type TlsConnect = SocketHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<SocketHandshake> {
        let encrypted = self.tls.as_mut().map(|tls| tls.make_tls_connect(host)).transpose()?;
        Ok(SocketHandshake { encrypted, maker: self.clone() })
    }
}

impl TlsConnect<Socket> for SocketHandshake {
    type Stream = PacedSocket<HostSocket>;
    type Error = Box<dyn Error + Sync + Send>;
    type Future = Pin<Box<dyn Future<Output = Result<PacedSocket<HostSocket>, Self::Error>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let SocketHandshake { encrypted, maker } = self;
            let Some(handshake) = encrypted else { return Ok(PacedSocket::new(HostSocket::Plain(socket))) };
            if maker.negotiation == SslNegotiation::Postgres && !encrypts(&mut socket).await? {
                return match maker.mode {
                    SslMode::Require => Err("server does not support TLS".into()),
                    _ => Ok(PacedSocket::new(HostSocket::Plain(socket))),
                };
            }
            Ok(PacedSocket::new(HostSocket::Encrypted(Box::new(handshake.connect(socket).await?))))
        })
    }
}

/// Asks the server whether it encrypts the connection.
async fn encrypts(socket: &mut Socket) -> io::Result<bool> {
    socket.write_all(&ASK_FOR_ENCRYPTION).await?;
    Ok(socket.read_u8().await? == ENCRYPTS)
}

impl AsyncRead for HostSocket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            HostSocket::Plain(socket) => Pin::new(socket).poll_read(context, out),
            HostSocket::Encrypted(socket) => Pin::new(socket).poll_read(context, out),
        }
    }
}

impl AsyncWrite for HostSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            HostSocket::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            HostSocket::Encrypted(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            HostSocket::Plain(socket) => Pin::new(socket).poll_flush(context),
            HostSocket::Encrypted(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            HostSocket::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            HostSocket::Encrypted(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
