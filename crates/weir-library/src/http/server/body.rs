//! Reads the body of a request whole, within the limits of size and time.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout_at};

use super::Limits;
use super::limits::after;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than the limit, or says that it will be.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// The connection ended in it, or it was framed wrongly.
    Broken,
}

impl BodyError {
    /// The status that answers it.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// The whole body. Memory is taken as it comes, not as its head announces it.
///
/// # Errors
/// A [`BodyError`] for one that is too large, too slow, or broken.
pub async fn read_body(mut body: Incoming, limits: &Limits) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    let deadline = after(Instant::now(), limits.body_timeout);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let piece_deadline = deadline.min(after(Instant::now(), limits.body_idle_timeout));
        let piece = match timeout_at(piece_deadline, body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        if first.len() + rest.len() + piece.len() > limits.body_bytes_max {
            return Err(BodyError::TooLarge);
        }
        // A body in one piece, as most are, is not copied.
        if first.is_empty() {
            first = piece;
        } else {
            rest.extend_from_slice(&piece);
        }
    }
    if rest.is_empty() { Ok(first) } else { Ok([first, rest.freeze()].concat().into()) }
}
