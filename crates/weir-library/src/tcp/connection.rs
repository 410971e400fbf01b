//! TCP connections: reading bytes and lines, writing bytes and files.
//!
//! A connection is moved and never shared, so that it has a single reader. Each operation waits at most for the
//! connection's idle timeout, so that an inactive client cannot hold resources for long. When the program stops, a
//! connection without unread input is at its end, so that nothing waits for a request that may never arrive.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use weir::{Failure, FailureKind, Text};
use weir_events::never;

use super::idle_timeout::{ConnectionClient, IdleLimits, IdleTimer};
use super::transport::TcpTransport;
use crate::files::OpenFile;

/// Maximum number of bytes returned by one read.
const PIECE_BYTES: usize = 64 * 1024;
/// Writes up to this length are joined into one buffer, which costs less than a vectored write.
const JOINED_BYTES_MAX: usize = 2 * 1024;
/// Maximum number of bytes that are searched for a terminator, or requested at once.
const SPAN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection. Dropping it closes it.
#[derive(Debug, weir::Type)]
#[weir(opaque, unique, name = "tcp.Connection")]
pub struct Connection {
    stream: TcpTransport,
    peer: SocketAddr,
    /// Bytes that have arrived and have not been returned.
    buffer: BytesMut,
    idle_timer: IdleTimer,
    /// The permit of a connection that the program has made.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Creates a connection that a listener has accepted.
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, limits: IdleLimits, client: ConnectionClient) -> Self {
        // A program's writes are meant to be sent; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let idle_timer = IdleTimer::new(limits, Some(client));
        Connection { stream: TcpTransport::Plain(stream), peer, buffer: BytesMut::new(), idle_timer, _permit: None }
    }

    /// Creates a connection that the program has made.
    pub(super) fn outgoing(
        stream: TcpTransport,
        peer: SocketAddr,
        idle: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let idle_timer = IdleTimer::new(IdleLimits::new(idle, &never()), None);
        Connection { stream, peer, buffer: BytesMut::new(), idle_timer, _permit: Some(permit) }
    }

    /// Waits for the first bytes of a new message, unless the program stops; returns `false` at the end.
    async fn fill_first(&mut self) -> Result<bool, Failure> {
        self.buffer.reserve(PIECE_BYTES);
        let read = self.stream.read_buf(&mut self.buffer);
        self.idle_timer.unless_stopped("sent nothing", read).await.map(|count| count.is_some_and(|count| count > 0))
    }

    /// Waits for more bytes; returns `false` at the end.
    async fn fill(&mut self) -> Result<bool, Failure> {
        self.buffer.reserve(PIECE_BYTES);
        let read = self.stream.read_buf(&mut self.buffer);
        self.idle_timer.within("sent nothing", read).await.map(|count| count > 0)
    }

    /// Reads until `end` occurs, and returns the offset after it; `None` if the input ends before.
    async fn find(&mut self, end: &[u8], limit: usize) -> Result<Option<usize>, Failure> {
        let mut from = 0;
        loop {
            if let Some(at) = memmem::find(&self.buffer[from..], end) {
                return Ok(Some(from + at + end.len()));
            }
            if self.buffer.len() >= limit {
                return Err(Failure::new(FailureKind::Limit, format!("no terminator within {limit} bytes")));
            }
            from = self.buffer.len().saturating_sub(end.len() - 1);
            let filled = if self.buffer.is_empty() { self.fill_first().await? } else { self.fill().await? };
            if !filled {
                return Ok(None);
            }
        }
    }
}

fn limited(bytes: i64, name: &str) -> Result<usize, Failure> {
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=SPAN_BYTES_MAX).contains(bytes))
        .ok_or_else(|| Failure::argument(format!("`{name}` must be 1 to {SPAN_BYTES_MAX}, not {bytes}")))
}

/// Returns the address and port of the peer.
#[weir::function(pure)]
pub fn peer(connection: &Connection) -> String {
    connection.peer.to_string()
}

/// Returns the bytes that have arrived, and waits if there are none; returns no bytes at the end.
///
/// # Errors
/// Fails if the connection breaks or is idle for too long.
#[weir::function(awaits_peer)]
pub async fn read(connection: &mut Connection) -> Result<Bytes, Failure> {
    if connection.buffer.is_empty() {
        connection.fill_first().await?;
    }
    Ok(connection.buffer.split().freeze())
}

/// Returns exactly this many bytes.
///
/// # Errors
/// Fails if the connection ends before, breaks, or is idle for too long.
#[weir::function(awaits_peer)]
pub async fn read_exactly(connection: &mut Connection, bytes: i64) -> Result<Bytes, Failure> {
    if bytes == 0 {
        return Ok(Bytes::new());
    }
    let bytes = limited(bytes, "bytes")?;
    while connection.buffer.len() < bytes {
        if !connection.fill().await? {
            let arrived = connection.buffer.len();
            return Err(Failure::function(format!("the connection ended after {arrived} of {bytes} bytes")));
        }
    }
    Ok(connection.buffer.split_to(bytes).freeze())
}

/// Returns the next line without its terminator, `\n` or `\r\n`; an unterminated rest is a line as well. `None` at the
/// end.
///
/// # Errors
/// Fails if the line is not UTF-8 or longer than `at_most` bytes, or if the connection breaks or is idle for too long.
#[weir::function(awaits_peer)]
pub async fn read_line(connection: &mut Connection, #[default(65_536)] at_most: i64) -> Result<Option<Text>, Failure> {
    let at_most = limited(at_most, "at_most")?;
    let line = match connection.find(b"\n", at_most).await? {
        Some(length) => connection.buffer.split_to(length),
        None if connection.buffer.is_empty() => return Ok(None),
        None => connection.buffer.split(),
    };
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| Failure::function("a line is not UTF-8"))?;
    Ok(Some(line.into()))
}

/// Returns everything up to and including the first `end`, such as the head of a request with its empty line. `None` if
/// the connection ends and nothing has arrived.
///
/// # Errors
/// Fails if `end` does not occur within `at_most` bytes, or if the connection ends before it, breaks, or is idle for
/// too long.
#[weir::function(awaits_peer)]
pub async fn read_until(
    connection: &mut Connection,
    end: &str,
    #[default(65_536)] at_most: i64,
) -> Result<Option<Bytes>, Failure> {
    if end.is_empty() {
        return Err(Failure::argument("`end` must not be empty"));
    }
    match connection.find(end.as_bytes(), limited(at_most, "at_most")?).await? {
        Some(length) => Ok(Some(connection.buffer.split_to(length).freeze())),
        None if connection.buffer.is_empty() => Ok(None),
        None => Err(Failure::function("the connection ended before the terminator")),
    }
}

/// Sends all bytes.
///
/// # Errors
/// Fails if the connection breaks, or if the peer accepts nothing for too long.
#[weir::function(awaits_peer)]
pub async fn write(connection: &mut Connection, bytes: Bytes) -> Result<(), Failure> {
    write_all(connection, [&bytes]).await
}

/// Sends a text.
///
/// # Errors
/// Fails if the connection breaks, or if the peer accepts nothing for too long.
#[weir::function(awaits_peer)]
pub async fn write_text(connection: &mut Connection, text: Text) -> Result<(), Failure> {
    write_all(connection, [text.as_bytes()]).await
}

/// Sends two byte strings, such as a head and a body, one after the other without joining them first.
///
/// # Errors
/// Fails if the connection breaks, or if the peer accepts nothing for too long.
#[weir::function(awaits_peer)]
pub async fn write_both(connection: &mut Connection, first: Bytes, second: Bytes) -> Result<(), Failure> {
    write_all(connection, [&first, &second]).await
}

async fn write_all<const PARTS: usize>(connection: &mut Connection, parts: [&[u8]; PARTS]) -> Result<(), Failure> {
    let Connection { stream, idle_timer, .. } = connection;
    let mut slices = parts.map(io::IoSlice::new);
    let mut left = &mut slices[..];
    io::IoSlice::advance_slices(&mut left, 0);
    let sent = if left.is_empty() { None } else { send_joined(stream, left) };
    io::IoSlice::advance_slices(&mut left, sent.unwrap_or(0));
    while !left.is_empty() {
        match idle_timer.within("accepted nothing", stream.write_vectored(left)).await? {
            0 => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            written => io::IoSlice::advance_slices(&mut left, written),
        }
    }
    idle_timer.within("accepted nothing", stream.flush()).await
}

/// Sends a short message without waiting; returns the number of bytes sent, or `None` if the message is too long or the
/// socket is not ready.
fn send_joined(stream: &TcpTransport, parts: &[io::IoSlice<'_>]) -> Option<usize> {
    let mut joined = [0; JOINED_BYTES_MAX];
    let mut length = 0;
    for part in parts {
        joined.get_mut(length..length + part.len())?.copy_from_slice(part);
        length += part.len();
    }
    stream.try_write(&joined[..length])
}

/// Sends `head` and then the whole file, which the kernel copies from its page cache to a connection without TLS (`sendfile`).
/// Parts that are not in the page cache are read from disk meanwhile, so reading is better for large files that are not
/// cached.
///
/// # Errors
/// Fails if the connection breaks, if the peer accepts nothing for too long, or if the file has become shorter since it
/// was opened. In the last case the peer has received a part of it, and the connection is unusable.
#[weir::function(awaits_peer)]
pub async fn send_file(connection: &mut Connection, head: Bytes, file: OpenFile) -> Result<(), Failure> {
    let Connection { stream, idle_timer, .. } = connection;
    if let TcpTransport::Plain(stream) = stream {
        super::zero_copy::send_head(stream, idle_timer, &head, file.length > 0).await?;
        return super::zero_copy::send_file(stream, idle_timer, &file).await;
    }
    write_all(connection, [&head]).await?;
    let mut offset = 0;
    while let Some(piece) = super::zero_copy::piece(&file, offset).await? {
        offset += piece.len() as u64;
        write_all(connection, [&piece]).await?;
    }
    Ok(())
}

/// Announces the end of the data and closes the connection.
///
/// # Errors
/// Fails if the connection is already broken.
#[weir::function(awaits_peer)]
pub async fn close(connection: Connection) -> Result<(), Failure> {
    let Connection { mut stream, .. } = connection;
    Ok(stream.shutdown().await?)
}
