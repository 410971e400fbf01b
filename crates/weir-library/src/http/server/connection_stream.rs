//! The transport of a connection: the socket itself, or TLS on it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::ServerConfig;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// Writing to a connection that the client has closed returns an error instead of raising a signal. Where this flag
/// does not exist, Rust ignores the signal.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: SendFlags = SendFlags::empty();

/// A connection as bytes in both directions.
pub(super) enum ConnectionStream {
    /// The socket.
    Plain(TcpStream),
    /// TLS on the socket; boxed because it is large and most of it is touched only by encryption.
    Tls(Box<TlsStream<TcpStream>>),
}

impl ConnectionStream {
    /// Begins the handshake of a server.
    pub(super) fn handshake(stream: TcpStream, config: Arc<ServerConfig>) -> Accept<TcpStream> {
        TlsAcceptor::from(config).accept(stream)
    }

    /// Returns true if the client and the server have agreed on HTTP/2.
    pub(super) fn negotiated_http2(&self) -> bool {
        matches!(self, ConnectionStream::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2"))
    }

    /// Waits until there is something to read, or the client has ended its half.
    pub(super) fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ConnectionStream::Plain(stream) => stream.poll_read_ready(cx),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_fill_buf(cx).map_ok(|_| ()),
        }
    }

    /// Writes several buffers as one message.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            ConnectionStream::Plain(stream) => poll_send(stream, cx, parts),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    /// Returns true if writes return before the kernel has taken the bytes.
    pub(super) fn buffers_writes(&self) -> bool {
        matches!(self, ConnectionStream::Tls(_))
    }
}

/// Sends with `sendmsg`, which works on a socket directly, whereas `writev` has to find out that it has one.
fn poll_send(stream: &TcpStream, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
    let send = || Ok(sendmsg(stream, parts, &mut SendAncillaryBuffer::default(), NO_SIGNAL)?);
    loop {
        match stream.try_io(Interest::WRITABLE, send) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(stream.poll_write_ready(cx))?,
            sent => return Poll::Ready(sent),
        }
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ConnectionStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            ConnectionStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
