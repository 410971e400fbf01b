//! Stream between a connection's transport and hyper that validates requests and records the connection's activity.
//!
//! 1. [`Framing`] follows the bytes of the socket before hyper sees them.
//! 2. At the byte where a request becomes invalid, hyper reads [`MALFORMED`] instead, and nothing after it. It is
//!    invalid in a head, in a chunk size and in a trailer, so hyper answers 400 and closes, once it has answered the
//!    requests before.
//! 3. Header fields that the client repeats are removed before hyper sees them (`repeated_fields`).
//! 4. Short vectored writes are gathered into one buffer, because a single buffer is cheaper for the kernel by more
//!    than copying costs.
//! 5. If a connection ends with unread input, it is read on for a while after the last byte was written (*lingering
//!    close*): otherwise the kernel would reset the connection, and the client would lose the response that explains
//!    why.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::ActivityTracker;
use super::connection_stream::ConnectionStream;
use super::framing::{Framing, FramingVerdict};

/// Bytes that hyper reads in place of an invalid request: a byte that is allowed nowhere in a head; a carriage return
/// without its line feed, at which hyper refuses a trailer, whose bytes it does not examine before its end; and the end of a
/// head, because hyper examines an incomplete head only when it ends.
const MALFORMED: &[u8] = b"\0\r\0\n\n";
/// Maximum number of bytes read from a lingering connection before it is reset.
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of bytes that are gathered into one buffer.
const GATHERED_BYTES_MAX: usize = 4096;

/// A connection as hyper sees it.
pub(super) struct ValidatingStream {
    stream: ConnectionStream,
    /// Bytes that were read to detect the protocol.
    first: Vec<u8>,
    input: InputState,
    activity: Rc<ActivityTracker>,
    discarded: usize,
}

enum InputState {
    Followed(Framing),
    /// HTTP/2, which has frames of its own.
    Opaque,
    /// The rest of [`MALFORMED`].
    Refused(&'static [u8]),
}

impl ValidatingStream {
    /// Wraps an HTTP/1 connection of which `first` has been read.
    pub(super) fn http1(
        stream: ConnectionStream,
        first: Vec<u8>,
        framing: Framing,
        activity: Rc<ActivityTracker>,
    ) -> Self {
        ValidatingStream { stream, first, input: InputState::Followed(framing), activity, discarded: 0 }
    }

    /// Wraps an HTTP/2 connection of which `first` has been read.
    pub(super) fn http2(stream: ConnectionStream, first: Vec<u8>, activity: Rc<ActivityTracker>) -> Self {
        ValidatingStream { stream, first, input: InputState::Opaque, activity, discarded: 0 }
    }

    /// Returns the socket of a connection that is between requests.
    pub(super) fn into_stream(self) -> ConnectionStream {
        self.stream
    }

    fn read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let length = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first[..length]);
        self.first.drain(..length);
        if self.first.is_empty() {
            self.first = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Validates the bytes that were read into `buf` from `start` on.
    fn follow(&mut self, buf: &mut ReadBuf<'_>, start: usize) {
        let InputState::Followed(framing) = &mut self.input else { return };
        let heads_before = framing.heads_begun();
        let verdict = framing.follow(&buf.filled()[start..]);
        self.activity.in_head.set(framing.is_in_head());
        self.activity.between.set(framing.is_between());
        self.activity.heads.set(self.activity.heads.get() + framing.heads_begun() - heads_before);
        if let FramingVerdict::Refuse { at } = verdict {
            buf.set_filled(start + at);
        }
        leave_out(buf, start, framing.left_out());
        if verdict != FramingVerdict::Pass {
            self.input = InputState::Refused(MALFORMED);
            self.refuse(buf);
        }
    }

    /// Gives hyper the rest of [`MALFORMED`]; returns `false` if nothing is left.
    fn refuse(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let InputState::Refused(left) = &mut self.input else { return false };
        let (now, later) = left.split_at(left.len().min(buf.remaining()));
        buf.put_slice(now);
        *left = later;
        !now.is_empty()
    }

    fn write_parts(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > GATHERED_BYTES_MAX {
            return self.stream.poll_send(cx, parts);
        }
        let mut space = [MaybeUninit::uninit(); GATHERED_BYTES_MAX];
        let mut gathered = ReadBuf::uninit(&mut space);
        parts.iter().for_each(|part| gathered.put_slice(part));
        Pin::new(&mut self.stream).poll_write(cx, gathered.filled())
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.activity.write_blocked.set(true),
            Poll::Ready(Ok(length)) => {
                self.activity.write_blocked.set(false);
                self.activity.written.set(self.activity.written.get() + *length as u64);
            }
            Poll::Ready(Err(_)) => {}
        }
    }

    fn has_unread_input(&self) -> bool {
        match &self.input {
            InputState::Followed(framing) => !framing.is_between() || !self.first.is_empty(),
            InputState::Opaque => false,
            InputState::Refused(_) => true,
        }
    }

    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.activity.lingering.set(true);
        let mut scratch = [MaybeUninit::uninit(); 4096];
        while self.discarded < LINGER_BYTES_MAX {
            let mut buf = ReadBuf::uninit(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => self.discarded += buf.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Removes these ranges, counted from `start`, from what was read.
fn leave_out(buf: &mut ReadBuf<'_>, start: usize, ranges: &[Range<usize>]) {
    let Some(first) = ranges.first() else { return };
    let (mut end, length) = (start + first.start, buf.filled().len());
    for (index, range) in ranges.iter().enumerate() {
        let kept = start + range.end..ranges.get(index + 1).map_or(length, |next| start + next.start);
        let kept_bytes = kept.len();
        buf.filled_mut().copy_within(kept, end);
        end += kept_bytes;
    }
    buf.set_filled(end);
}

impl AsyncRead for ValidatingStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !matches!(this.input, InputState::Refused(_)) {
            let start = buf.filled().len();
            let read = this.read(cx, buf);
            this.activity.starved.set(read.is_pending());
            ready!(read)?;
            this.follow(buf, start);
            return Poll::Ready(Ok(()));
        }
        // Pending is not the end of input, at which hyper would drop a response that is still being computed.
        if this.refuse(buf) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for ValidatingStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.note_write(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.write_parts(cx, parts);
        this.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        if this.stream.buffers_writes() {
            this.activity.write_blocked.set(flushed.is_pending());
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        if this.has_unread_input() { this.linger(cx) } else { Poll::Ready(Ok(())) }
    }
}
