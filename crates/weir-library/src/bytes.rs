//! Bytes: their number, their parts, and the texts that they are.

use bytes::{Bytes, BytesMut};
use weir::{Failure, FailureKind};

/// The most bytes that [`join`] makes: 64 MiB.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

weir::library! {
    /// Bytes: their number, their parts, and the texts that they are.
    pub(crate) bytes: length, is_empty, slice, join, of_text, to_text, starts_with, ends_with, find
}

/// How many there are.
#[weir::function(pure)]
pub fn length(bytes: &[u8]) -> i64 {
    bytes.len() as i64
}

/// Whether there are none.
#[weir::function(pure)]
pub fn is_empty(bytes: &[u8]) -> bool {
    bytes.is_empty()
}

/// The bytes from position `from` up to and without `to`, without copying them; positions beyond the end are the end.
#[weir::function(pure)]
pub fn slice(bytes: Bytes, from: i64, to: i64) -> Bytes {
    let position = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (position(from), position(to));
    bytes.slice(from..to.max(from))
}

/// All parts in one.
///
/// # Errors
/// Fails where they are more than 64 MiB together.
#[weir::function(pure)]
pub fn join(parts: &[Bytes]) -> Result<Bytes, Failure> {
    let length = parts.iter().fold(0_usize, |length, part| length.saturating_add(part.len()));
    if length > BYTES_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("more than {BYTES_MAX} bytes")));
    }
    let mut joined = BytesMut::with_capacity(length);
    parts.iter().for_each(|part| joined.extend_from_slice(part));
    Ok(joined.freeze())
}

/// The bytes of a text in UTF-8.
#[weir::function(pure)]
pub fn of_text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The text that the bytes are in UTF-8.
///
/// # Errors
/// Fails where they are not UTF-8, with the position of the first byte that is not.
#[weir::function(pure)]
pub fn to_text(bytes: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|error| Failure::function(format!("byte {} is not UTF-8", error.valid_up_to())))
}

/// Whether they begin with `start`.
#[weir::function(pure)]
pub fn starts_with(bytes: &[u8], start: &[u8]) -> bool {
    bytes.starts_with(start)
}

/// Whether they end with `end`.
#[weir::function(pure)]
pub fn ends_with(bytes: &[u8], end: &[u8]) -> bool {
    bytes.ends_with(end)
}

/// The position of the first `part`, counted from 0.
#[weir::function(pure)]
pub fn find(bytes: &[u8], part: &[u8]) -> Option<i64> {
    memchr::memmem::find(bytes, part).map(|at| at as i64)
}
