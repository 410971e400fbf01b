//! The body of an answer over HTTP/2, given in pieces so that it is known whether the client takes it.
//!
//! hyper asks for a piece when the stream's window has room. So a client that opens no window leaves its body here,
//! where the connection's watch sees it, and takes at most a piece of memory below.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::pieces::Pieces;
use super::pulse::Pulse;

/// The default size of a frame (RFC 9113 §4.2).
const PIECE_BYTES: usize = 16 * 1024;

/// What is left of a body.
pub(super) struct Metered {
    body: Pieces,
    pulse: Rc<Pulse>,
}

impl Metered {
    pub(super) fn new(body: Bytes, pulse: Rc<Pulse>) -> Self {
        pulse.unsent.set(pulse.unsent.get() + 1);
        Metered { body: Pieces::new(body, PIECE_BYTES), pulse }
    }
}

impl Body for Metered {
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

impl Drop for Metered {
    fn drop(&mut self) {
        self.pulse.unsent.set(self.pulse.unsent.get() - 1);
    }
}
