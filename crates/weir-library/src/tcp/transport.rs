//! The transport of a connection: the socket itself, or TLS on it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection as bytes in both directions.
#[derive(Debug)]
pub(crate) enum TcpTransport {
    /// The socket.
    Plain(TcpStream),
    /// TLS on the socket, as its client; boxed because it is large.
    Tls(Box<TlsStream<TcpStream>>),
}

impl TcpTransport {
    /// Returns the address and port of the peer.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        match self {
            TcpTransport::Plain(stream) => stream.peer_addr(),
            TcpTransport::Tls(stream) => stream.get_ref().0.peer_addr(),
        }
    }

    /// Writes without waiting, if the bytes go to the socket as they are.
    pub(super) fn try_write(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            TcpTransport::Plain(stream) => stream.try_write(bytes).ok(),
            TcpTransport::Tls(_) => None,
        }
    }
}

impl AsyncRead for TcpTransport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TcpTransport::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            TcpTransport::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for TcpTransport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            TcpTransport::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            TcpTransport::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            TcpTransport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            TcpTransport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TcpTransport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            TcpTransport::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TcpTransport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            TcpTransport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
