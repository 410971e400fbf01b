//! Reads the whole body of a request, within the limits of size and time.

use std::pin::pin;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use weir::memory::{Reservation, is_full};
use weir_events::until;

use super::arriving_bytes::ArrivingBytes;
use super::body_rest::BodyRest;
use super::limits::RequestDeadlines;

/// Reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body is longer than the limit, or its announced length is.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The program has no memory for the body.
    NoMemory,
    /// The connection ended within the body, or the body was framed incorrectly.
    Broken,
}

impl BodyError {
    /// Returns the status of the response.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads the whole body, of at most `bytes_max`. Its memory is reserved as its head announces it, and allocated as it
/// arrives: bodies that do not fit are refused before they are read, and those that are read fit.
///
/// # Errors
/// Fails with a [`BodyError`] if the body is too large, too slow or broken.
pub async fn read_body(
    BodyRest { body, arriving, .. }: &mut BodyRest,
    bytes_max: usize,
    deadlines: &RequestDeadlines,
) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    let Some(reserved) = Reservation::of(body.size_hint().lower()) else { return Err(BodyError::NoMemory) };
    until(pin!(read_pieces((body, arriving.as_ref()), bytes_max, reserved, deadlines)), &deadlines.body)
        .await
        .unwrap_or(Err(BodyError::TooSlow))
}

async fn read_pieces(
    (body, arriving): (&mut Incoming, Option<&ArrivingBytes>),
    bytes_max: usize,
    mut reserved: Reservation,
    deadlines: &RequestDeadlines,
) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    loop {
        let piece = match until(body.frame(), &deadlines.piece).await {
            Err(()) => return Err(BodyError::TooSlow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        let length = first.len().max(whole.len()) + piece.len();
        if length > bytes_max {
            return Err(BodyError::TooLarge);
        }
        reserved.shrink(piece.len());
        // Nearly what is allocated: `whole` has room for as much again at most.
        let may_hold = arriving.is_none_or(|arriving| arriving.grow_to(length as u64));
        if is_full() || !may_hold {
            return Err(BodyError::NoMemory);
        }
        // Most bodies arrive in one piece, which is not copied.
        if first.is_empty() {
            first = piece;
            continue;
        }
        if length > whole.capacity() {
            // Doubled as the body arrives, but not beyond its announced length.
            let capacity = (2 * length).min(announced).max(length);
            whole.reserve_exact(capacity - whole.len());
        }
        if whole.is_empty() {
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}
