//! Functions on bytes: length, slices, searching, and conversion from and to text.

use bytes::{Bytes, BytesMut};
use weir::{Failure, FailureKind, Value};

use crate::units;

/// Maximum number of bytes in the result of [`join`]: 64 MiB.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

weir::library! {
    /// Functions on bytes: length, slices, searching, and conversion from and to text.
    pub(crate) bytes: length, is_empty, at, slice, join, of_text, to_text, of_int, to_int, starts_with, ends_with, find
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

/// Returns the byte at a position, from 0 to 255; `None` beyond the end.
#[weir::function(pure, total)]
pub fn at(bytes: &[u8], position: i64) -> Option<i64> {
    bytes.get(usize::try_from(position).ok()?).map(|byte| i64::from(*byte))
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

/// Returns a whole number as `length` bytes, from 1 to 8, the most significant first, as most protocols send them.
///
/// # Errors
/// Fails if the number is negative or needs more bytes, and for another length.
#[weir::function(pure)]
pub fn of_int(int: i64, length: i64) -> Result<Bytes, Failure> {
    let (all, width) = (int.to_be_bytes(), usize::try_from(length).ok().filter(|width| (1..=8).contains(width)));
    let Some(width) = width else {
        return Err(Failure::function(format!("{length} is not a length from 1 to 8 bytes")));
    };
    let (above, kept) = all.split_at(8 - width);
    if int < 0 || above.iter().any(|byte| *byte != 0) {
        return Err(Failure::function(format!("{int} cannot be written in {length} bytes")));
    }
    Ok(Bytes::copy_from_slice(kept))
}

/// Returns the whole number that the bytes, at least one, write with the most significant one first.
///
/// # Errors
/// Fails if there are no bytes, or if the number does not fit into an `Int`.
#[weir::function(pure)]
pub fn to_int(bytes: &[u8]) -> Result<i64, Failure> {
    if bytes.is_empty() {
        return Err(Failure::function("no bytes write no number"));
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = &bytes[zeros..];
    if digits.len() > 8 || (digits.len() == 8 && digits[0] > i8::MAX as u8) {
        return Err(Failure::function(format!("a number of {} bytes does not fit into an `Int`", digits.len())));
    }
    Ok(digits.iter().fold(0, |number, byte| number << 8 | i64::from(*byte)))
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
