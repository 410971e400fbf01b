//! Response body over HTTP/2 that shows whether the client accepts it.
//!
//! hyper asks for a chunk when the stream's flow-control window has room. If a client does not open its window, the
//! body stays here, where the connection's watchdog sees it, and at most one chunk is buffered below.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::activity::ActivityTracker;
use super::chunked_body::ChunkedBody;

/// The default size of a frame (RFC 9113 §4.2).
const PIECE_BYTES: usize = 16 * 1024;

/// Bytes that a connection holds for one stream, until they are released or this is dropped.
pub(super) struct HeldForStream {
    activity: Rc<ActivityTracker>,
    bytes: u64,
    /// False if the connection must not hold them.
    pub(super) has_room: bool,
}

impl HeldForStream {
    pub(super) fn new(activity: &Rc<ActivityTracker>, bytes: u64) -> Self {
        let has_room = bytes == 0 || activity.hold_more(bytes);
        let mut held = HeldForStream { activity: Rc::clone(activity), bytes, has_room };
        if !has_room {
            held.release(u64::MAX);
        }
        held
    }

    fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        if bytes > 0 {
            self.bytes -= bytes;
            self.activity.release(bytes);
        }
    }
}

impl Drop for HeldForStream {
    fn drop(&mut self) {
        self.release(u64::MAX);
    }
}

/// A response body that counts as unsent until it is dropped.
pub(super) struct MeteredBody {
    body: ChunkedBody,
    held: HeldForStream,
}

impl MeteredBody {
    /// Creates the body of a response that the connection holds.
    pub(super) fn new(body: Bytes, held: HeldForStream) -> Self {
        let unsent = &held.activity.unsent;
        unsent.set(unsent.get() + 1);
        MeteredBody { body: ChunkedBody::new(body, PIECE_BYTES), held }
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.held.release(frame.data_ref().map_or(0, |piece| piece.len() as u64));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for MeteredBody {
    fn drop(&mut self) {
        let unsent = &self.held.activity.unsent;
        unsent.set(unsent.get() - 1);
    }
}
