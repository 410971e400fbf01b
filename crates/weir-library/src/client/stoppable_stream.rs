//! The socket of the client's connections, whose reading can be stopped while a parser is at work on it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Stops the reading from a connection, which carries it among its properties.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingStop(Arc<AtomicBool>);

impl ReadingStop {
    /// Makes each further read fail.
    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A socket whose reading can be stopped.
#[derive(Debug)]
pub(super) struct StoppableStream {
    stream: TokioIo<TcpStream>,
    reading: ReadingStop,
}

impl StoppableStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        StoppableStream { stream: TokioIo::new(stream), reading: ReadingStop::default() }
    }
}

impl Connection for StoppableStream {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.reading.clone())
    }
}

impl Read for StoppableStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.reading.is_stopped() {
            return Poll::Ready(Err(io::Error::other("the reading was stopped")));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for StoppableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use hyper::http::Extensions;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn bytes_that_have_arrived_are_not_read_after_the_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        peer.write_all(b"two pieces").await.unwrap();
        let mut stoppable = TokioIo::new(StoppableStream::new(stream));
        let mut read = [0; 3];
        stoppable.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"two");
        let mut properties = Extensions::new();
        stoppable.inner().connected().get_extras(&mut properties);
        properties.get::<ReadingStop>().unwrap().stop();
        assert_eq!(stoppable.read(&mut read).await.unwrap_err().to_string(), "the reading was stopped");
    }
}
