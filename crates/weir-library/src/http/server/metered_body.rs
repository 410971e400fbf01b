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

/// A response body that counts as unsent until it is dropped.
pub(super) struct MeteredBody {
    body: ChunkedBody,
    activity: Rc<ActivityTracker>,
}

impl MeteredBody {
    pub(super) fn new(body: Bytes, activity: Rc<ActivityTracker>) -> Self {
        activity.unsent.set(activity.unsent.get() + 1);
        MeteredBody { body: ChunkedBody::new(body, PIECE_BYTES), activity }
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
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
        self.activity.unsent.set(self.activity.unsent.get() - 1);
    }
}
