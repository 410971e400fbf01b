//! Response body that is produced in chunks of limited size.
//!
//! If hyper copies what it sends, it buffers chunks only up to some hundred kilobytes, and continues when those are
//! sent. Copying a large body therefore needs no more memory than that.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The rest of a body.
pub(super) struct ChunkedBody {
    left: Bytes,
    piece_bytes_max: usize,
}

impl ChunkedBody {
    /// Creates a body in chunks of at most this length.
    pub(super) fn new(body: Bytes, piece_bytes_max: usize) -> Self {
        ChunkedBody { left: body, piece_bytes_max }
    }
}

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.left.len().min(self.piece_bytes_max);
        Poll::Ready(Some(Ok(Frame::data(self.left.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
