//! Responses that violate the protocol although a parser finds an end of them, which would make it doubtful where the next
//! response begins.
//!
//! A response that is refused, or whose body cannot be read within its limits, also ends its connection
//! ([`ConnectionUse`]), so that nothing of it reaches another call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::body::Incoming;
use hyper::ext::on_informational;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::http::Extensions;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use weir::{Failure, FailureKind};

use super::stoppable_stream::ReadingStop;

/// Maximum number of informational responses (100 to 199) before a response. Servers send one or two.
pub(super) const INFORMATIONAL_MAX: usize = 16;

/// Maximum size of the header fields of a response. The parser reads about as much before it refuses a header that is not
/// complete, but accepts a longer one whose end it has read.
pub(super) const FIELDS_BYTES_MAX: usize = 64 * 1024;

/// The connection over which a request is sent.
#[derive(Clone)]
pub(super) struct ConnectionUse(CaptureConnection);

impl ConnectionUse {
    /// Follows the request to its connection.
    pub(super) fn of<B>(request: &mut Request<B>) -> Self {
        ConnectionUse(capture_connection(request))
    }

    /// Keeps the connection from being used again.
    pub(super) fn end(&self) {
        if let Some(connection) = &*self.0.connection_metadata() {
            connection.poison();
        }
    }

    /// Ends the reading from the connection.
    fn stop_reading(&self) {
        let mut extras = Extensions::new();
        if let Some(connection) = &*self.0.connection_metadata() {
            connection.get_extras(&mut extras);
        }
        extras.get::<ReadingStop>().into_iter().for_each(ReadingStop::stop);
    }
}

/// The informational responses that the server has sent to one request. With the first that is too many, nothing more is
/// read from the connection: a parser that finds an endless number of them would not return.
pub(super) struct InformationalResponses(Arc<AtomicUsize>);

impl InformationalResponses {
    /// Counts those to a request that is sent over this connection.
    pub(super) fn of<B>(request: &mut Request<B>, connection: ConnectionUse) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        on_informational(request, move |_| {
            if counted.fetch_add(1, Ordering::Relaxed) == INFORMATIONAL_MAX {
                connection.stop_reading();
            }
        });
        InformationalResponses(count)
    }

    /// Returns `true` if there were too many.
    pub(super) fn are_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > INFORMATIONAL_MAX
    }
}

/// Checks the header of a response.
///
/// # Errors
/// Fails if it is too long, if the end of its body is doubtful (RFC 9112, section 6.3), or if it belongs to a protocol that
/// the request has not asked for.
pub(super) fn check(response: &Response<Incoming>) -> Result<(), Failure> {
    let bytes: usize = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > FIELDS_BYTES_MAX {
        let message = format!("the header fields of the response take more than {FIELDS_BYTES_MAX} bytes");
        return Err(Failure::new(FailureKind::Limit, message));
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::function("the response changes the protocol, which the request has not asked for"));
    }
    let mut codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    if response.headers().contains_key(CONTENT_LENGTH) {
        return Err(Failure::function("the response has both `Content-Length` and `Transfer-Encoding`"));
    }
    if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some() {
        return Err(Failure::function("the response has a `Transfer-Encoding` that the request does not accept"));
    }
    Ok(())
}
