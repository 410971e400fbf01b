//! Responses that violate the protocol although a parser finds an end of them, which would make it doubtful where the next
//! response begins.
//!
//! A response that is refused, or whose body cannot be read within its limits, also ends its connection
//! ([`ConnectionUse`]), so that nothing of it reaches another call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::ext::on_informational;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::http::Extensions;
use hyper::http::response::Parts;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::connect::Connected;
use weir::{Failure, FailureKind};

use super::stoppable_stream::ReadingStop;

/// Maximum number of informational responses (100 to 199) before a response. Servers send one or two.
pub(super) const INFORMATIONAL_MAX: usize = 16;

/// Maximum size of the header fields of a response. The parser reads about as much before it refuses a header that is not
/// complete, but accepts a longer one whose end it has read.
pub(super) const FIELDS_BYTES_MAX: usize = 64 * 1024;

/// The use of a connection: whether it may be used again, and the informational responses to its request of HTTP/1. With the
/// first that is too many, nothing more is read from the connection: a parser that finds an endless number of them would not
/// return.
#[derive(Clone)]
pub(super) struct ConnectionUse(Arc<UseState>);

struct UseState {
    is_ended: AtomicBool,
    informational: AtomicUsize,
    reading: ReadingStop,
}

impl ConnectionUse {
    /// Returns the use of a connection with these properties.
    pub(super) fn of(connected: &Connected) -> Self {
        let mut properties = Extensions::new();
        connected.get_extras(&mut properties);
        let reading = properties.remove().unwrap_or_default();
        ConnectionUse(Arc::new(UseState {
            is_ended: AtomicBool::default(),
            informational: AtomicUsize::new(0),
            reading,
        }))
    }

    /// Counts the informational responses to this request from now on.
    pub(super) fn begin<B>(&self, request: &mut Request<B>) {
        self.0.informational.store(0, Ordering::Relaxed);
        let usage = Arc::clone(&self.0);
        on_informational(request, move |_| {
            if usage.informational.fetch_add(1, Ordering::Relaxed) == INFORMATIONAL_MAX {
                usage.reading.stop();
            }
        });
    }

    /// Returns `true` if there were too many informational responses.
    pub(super) fn is_flooded(&self) -> bool {
        self.0.informational.load(Ordering::Relaxed) > INFORMATIONAL_MAX
    }

    /// Keeps the connection from being used again.
    pub(super) fn end(&self) {
        self.0.is_ended.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the connection must not be used again.
    pub(super) fn is_ended(&self) -> bool {
        self.0.is_ended.load(Ordering::Relaxed)
    }
}

/// Checks the header of a response.
///
/// # Errors
/// Fails if it is too long, if the end of its body is doubtful (RFC 9112, section 6.3), or if it belongs to a protocol that
/// the request has not asked for.
pub(super) fn check(head: &Parts) -> Result<(), Failure> {
    let bytes: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > FIELDS_BYTES_MAX {
        let message = format!("the header fields of the response take more than {FIELDS_BYTES_MAX} bytes");
        return Err(Failure::new(FailureKind::Limit, message));
    }
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::function("the response changes the protocol, which the request has not asked for"));
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    if head.headers.contains_key(CONTENT_LENGTH) {
        return Err(Failure::function("the response has both `Content-Length` and `Transfer-Encoding`"));
    }
    if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some() {
        return Err(Failure::function("the response has a `Transfer-Encoding` that the request does not accept"));
    }
    Ok(())
}
