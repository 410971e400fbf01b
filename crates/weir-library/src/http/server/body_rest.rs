//! The rest of a request's body that nobody reads, because the request is answered before its end.
//!
//! Over HTTP/1, hyper closes the connection after such an answer, and the stream below it is read on for a while
//! (`request_validation`). Over HTTP/2, a stream that nobody reads is reset behind the answer (RFC 9113, section 8.1), and some
//! clients, such as curl 7.88, then report an error instead of the answer. So its rest is read on, too, and the stream is only reset if
//! that takes long: most bodies are on their way already.

use std::pin::pin;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::{Request, Version};
use weir_events::{Event, until};

use super::arriving_bytes::ArrivingBytes;

/// Maximum number of bytes of a body that are read on.
const REST_BYTES_MAX: usize = 1024 * 1024;

/// A body that may be left before its end.
pub struct BodyRest {
    pub(super) body: Incoming,
    /// Counts a body that announces no length.
    pub(super) arriving: Option<ArrivingBytes>,
    is_http2: bool,
}

impl BodyRest {
    /// Returns the body of a request, and the request without it.
    #[must_use]
    pub fn split(request: Request<Incoming>) -> (hyper::http::request::Parts, BodyRest) {
        let (mut head, body) = request.into_parts();
        let is_http2 = head.version == Version::HTTP_2;
        let arriving = head.extensions.remove();
        (head, BodyRest { body, arriving, is_http2 })
    }

    /// Returns true if the request has a body, perhaps an empty one of unknown length.
    pub(in crate::http) fn is_there(&self) -> bool {
        self.body.size_hint().exact() != Some(0)
    }

    /// Leaves the body. Over HTTP/2 it is read on within this time limit.
    pub(in crate::http) fn leave(self, late: &Event<()>) {
        if self.is_http2 && !self.body.is_end_stream() {
            // It ends with its connection at the latest.
            drop(tokio::task::spawn_local(read_on(self.body, late.clone())));
        }
    }
}

async fn read_on(mut body: Incoming, late: Event<()>) {
    let reading = async {
        let mut left = REST_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    _ = until(pin!(reading), &late).await;
}
