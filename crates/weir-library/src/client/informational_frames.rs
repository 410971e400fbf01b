//! Limit on the informational responses over HTTP/2, which hyper skips without telling.
//!
//! The frames of a connection are followed below their parser (RFC 9113, section 4.1): a `HEADERS` frame that does not end its
//! stream is an informational response or the head of the response itself. With the first that is too many for one stream,
//! reading fails, and so do the calls that share the connection.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::INFORMATIONAL_MAX;

/// Length of the head of a frame: its length, type, flags and stream.
const HEAD_LENGTH: usize = 9;
/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
/// The flag of the last frame of a stream.
const END_STREAM: u8 = 1;
/// Maximum number of streams that wait for their response: more than a connection has calls.
const STREAMS_MAX: usize = 4096;

/// A connection of HTTP/2 whose frames are followed.
pub(super) struct FollowedStream<S> {
    stream: TokioIo<S>,
    frames: FrameFollower,
}

impl<S> FollowedStream<S> {
    /// Follows the frames of a connection from its beginning.
    pub(super) fn new(stream: S) -> Self {
        FollowedStream { stream: TokioIo::new(stream), frames: FrameFollower::default() }
    }
}

impl<S: hyper::rt::Read + Unpin> AsyncRead for FollowedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.frames.follow(&buf.filled()[before..]).map_err(io::Error::other))
    }
}

impl<S: hyper::rt::Write + Unpin> AsyncWrite for FollowedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
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

/// Follower of the frames that a server sends.
#[derive(Default)]
struct FrameFollower {
    /// The beginning of a frame's head.
    head: Vec<u8>,
    /// Number of bytes that are left of a frame.
    left: usize,
    /// For each stream whose response has not begun, the number of heads so far.
    heads: BTreeMap<u32, usize>,
}

impl FrameFollower {
    /// Follows the next bytes of the connection.
    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let (more, rest) = bytes.split_at(bytes.len().min(HEAD_LENGTH - self.head.len()));
            self.head.extend_from_slice(more);
            bytes = rest;
            if let Ok([a, b, c, kind, flags, stream @ ..]) = <[u8; HEAD_LENGTH]>::try_from(&self.head[..]) {
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                self.frame(kind, flags, u32::from_be_bytes(stream))?;
                self.head.clear();
            }
        }
        Ok(())
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32) -> Result<(), String> {
        if kind != HEADERS || flags & END_STREAM != 0 {
            if matches!(kind, DATA | HEADERS | RST_STREAM) {
                self.heads.remove(&stream);
            }
            return Ok(());
        }
        let heads = self.heads.entry(stream).or_default();
        *heads += 1;
        // The last one may be that of the response itself.
        if *heads > INFORMATIONAL_MAX + 1 || self.heads.len() > STREAMS_MAX {
            return Err(format!("more than {INFORMATIONAL_MAX} informational responses (100 to 199) in a row"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, length: u8) -> Vec<u8> {
        let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, stream];
        bytes.extend(vec![HEADERS; usize::from(length)]);
        bytes
    }

    /// Follows bytes that arrive in pieces of this length.
    fn is_accepted(bytes: &[u8], piece: usize) -> bool {
        let mut follower = FrameFollower::default();
        bytes.chunks(piece).all(|piece| follower.follow(piece).is_ok())
    }

    #[test]
    fn the_heads_of_each_stream_are_counted_however_they_arrive() {
        let head = |stream| frame(HEADERS, 4, stream, 20);
        let most: Vec<u8> = (0..=INFORMATIONAL_MAX).flat_map(|_| [head(1), head(3)].concat()).collect();
        let ended =
            [most.clone(), frame(DATA, 0, 1, 200), frame(HEADERS, 5, 1, 5), frame(RST_STREAM, 0, 3, 4)].concat();
        let again = [ended.clone(), most.clone()].concat();
        for piece in [1, 7, 64, usize::MAX] {
            assert!(is_accepted(&again, piece), "pieces of {piece}");
            assert!(!is_accepted(&[most.clone(), head(3)].concat(), piece), "pieces of {piece}");
        }
    }
}
