//! Functions on bytes: length, slices, searching, and conversion from and to text.

use bytes::{Bytes, BytesMut};
use weir::{Failure, FailureKind, Value};

use crate::units;

/// Maximum number of bytes in the result of [`join`]: 64 MiB.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

weir::library! {
    /// Functions on bytes: length, slices, searching, and conversion from and to text.
    pub(crate) bytes: length, is_empty, slice, join, of_text, to_text, starts_with, ends_with, find
}

/// Returns the number of bytes.
#[weir::function(pure)]
pub fn length(bytes: &[u8]) -> i64 {
    bytes.len() as i64
}

/// Returns `true` if there are no bytes.
#[weir::function(pure)]
pub fn is_empty(bytes: &[u8]) -> bool {
    bytes.is_empty()
}

/// Returns the bytes from position `from` (inclusive) to position `to` (exclusive) without copying them. Positions
/// beyond the end are clamped to it.
#[weir::function(pure)]
pub fn slice(bytes: Bytes, from: i64, to: i64) -> Bytes {
    let position = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (position(from), position(to));
    bytes.slice(from..to.max(from))
}

/// Concatenates all parts.
///
/// # Errors
/// Fails if the result would be longer than 64 MiB.
#[weir::function(pure, room = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add).min(BYTES_MAX), units = units::to_join(parts, &Value::Unit))]
pub fn join(parts: &[Bytes]) -> Result<Bytes, Failure> {
    let length = parts.iter().fold(0_usize, |length, part| length.saturating_add(part.len()));
    if length > BYTES_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("the result has more than {BYTES_MAX} bytes")));
    }
    let mut joined = BytesMut::with_capacity(length);
    parts.iter().for_each(|part| joined.extend_from_slice(part));
    Ok(joined.freeze())
}

/// Returns the UTF-8 bytes of a text.
#[weir::function(pure, room = text.len(), units = units::to_copy(text))]
pub fn of_text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Decodes bytes as UTF-8 text.
///
/// # Errors
/// Fails if the bytes are not valid UTF-8; the message gives the position of the first invalid byte.
#[weir::function(pure, room = 2 * bytes.len(), units = units::to_copy(bytes))]
pub fn to_text(bytes: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|error| Failure::function(format!("byte {} is not UTF-8", error.valid_up_to())))
}

/// Returns `true` if the bytes begin with `start`.
#[weir::function(pure)]
pub fn starts_with(bytes: &[u8], start: &[u8]) -> bool {
    bytes.starts_with(start)
}

/// Returns `true` if the bytes end with `end`.
#[weir::function(pure)]
pub fn ends_with(bytes: &[u8], end: &[u8]) -> bool {
    bytes.ends_with(end)
}

/// Returns the position of the first occurrence of `part`, counted from 0.
#[weir::function(pure, units = units::to_scan(bytes))]
pub fn find(bytes: &[u8], part: &[u8]) -> Option<i64> {
    memchr::memmem::find(bytes, part).map(|at| at as i64)
}
