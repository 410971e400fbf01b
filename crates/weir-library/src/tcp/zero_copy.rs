//! Zero-copy transfer of files to sockets inside the kernel.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{SendFlags, send};
use tokio::io::Interest;
use tokio::net::TcpStream;
use weir::Failure;

use super::idle_timeout::IdleTimer;
use crate::files::OpenFile;

/// Maximum number of bytes of one system call, which blocks the thread while the disk works.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Sends `head`; if a file follows, the kernel waits for it to fill the packet.
pub(super) async fn send_head(
    stream: &TcpStream,
    idle_timer: &mut IdleTimer,
    head: &[u8],
    more: bool,
) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    let flags = if more { SendFlags::MORE | SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL };
    #[cfg(not(target_os = "linux"))]
    let flags = {
        let _ = more;
        SendFlags::empty()
    };
    let mut sent = 0;
    while sent < head.len() {
        sent += ready(stream, idle_timer, || send(stream.as_fd(), &head[sent..], flags)).await?;
    }
    Ok(())
}

/// Sends the whole file.
#[cfg(target_os = "linux")]
pub(super) async fn send_file(stream: &TcpStream, idle_timer: &mut IdleTimer, file: &OpenFile) -> Result<(), Failure> {
    use rustix::fs::sendfile;

    let mut offset = 0;
    while offset < file.length {
        let count = usize::try_from((file.length - offset).min(CHUNK_BYTES)).unwrap_or(usize::MAX);
        let before = offset;
        ready(stream, idle_timer, || sendfile(stream.as_fd(), file.file.as_fd(), Some(&mut offset), count)).await?;
        if offset == before {
            return Err(Failure::function(format!("the file ended after {offset} of {} bytes", file.length)));
        }
    }
    Ok(())
}

/// Sends the whole file through a buffer, for operating systems without Linux's `sendfile`.
#[cfg(not(target_os = "linux"))]
pub(super) async fn send_file(stream: &TcpStream, idle_timer: &mut IdleTimer, file: &OpenFile) -> Result<(), Failure> {
    let mut offset = 0;
    while let Some(piece) = piece(file, offset).await? {
        send_head(stream, idle_timer, &piece, false).await?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// Reads the next piece of a file; `None` at its end.
///
/// # Errors
/// Fails if the file cannot be read, or has become shorter since it was opened.
pub(super) async fn piece(file: &OpenFile, offset: u64) -> Result<Option<Vec<u8>>, Failure> {
    use std::os::unix::fs::FileExt;

    if offset >= file.length {
        return Ok(None);
    }
    let (file, length) = (file.clone(), file.length);
    let reading = tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; usize::try_from((length - offset).min(CHUNK_BYTES)).unwrap_or(usize::MAX)];
        file.file.read_at(&mut piece, offset).map(|count| {
            piece.truncate(count);
            piece
        })
    });
    let piece = reading.await.map_err(|_| Failure::function("the file was not read, because the program stops"))??;
    if piece.is_empty() {
        return Err(Failure::function(format!("the file ended after {offset} of {length} bytes")));
    }
    Ok(Some(piece))
}

/// Performs a system call as soon as the socket accepts data.
async fn ready<T>(
    stream: &TcpStream,
    idle_timer: &mut IdleTimer,
    mut step: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, Failure> {
    let step = stream.async_io(Interest::WRITABLE, || step().map_err(io::Error::from));
    idle_timer.within("accepted nothing", step).await
}
