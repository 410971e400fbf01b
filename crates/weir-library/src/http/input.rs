//! Parsing of request texts into values of the route's types, after percent-decoding.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use weir::{RouteParameter, Type, Value};

pub(super) use crate::input::{InputError, NamedTypes, expected, is_scalar, scalar_or_error};

/// Characters that a path contains in percent-encoding only (RFC 3986, section 3.3).
const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'|');

/// The fault of a `%` that begins no encoded byte.
const LONE_PERCENT: &str = "expected two hexadecimal digits behind `%`, write `%25` for the character";
/// The fault of encoded bytes that are no characters.
const NOT_UTF8: &str = "the percent-encoding is not that of UTF-8";

/// Returns the literal part of a route as requests contain it: in normalized percent-encoding. It may be encoded already.
pub(super) fn encode_path(literal: &str) -> String {
    const WITH_PERCENT: &AsciiSet = &NOT_IN_PATH.add(b'%');
    if is_well_encoded(literal) {
        return normalized_path(&utf8_percent_encode(literal, NOT_IN_PATH).to_string()).into_owned();
    }
    utf8_percent_encode(literal, WITH_PERCENT).to_string()
}

/// Returns `true` if a path, or a part of one, may contain encoded characters.
#[inline]
pub(super) fn is_encoded(path: &str) -> bool {
    contains(path, |byte| byte == b'%')
}

/// Normalizes the percent-encoding of a path (RFC 3986, sections 6.2.2.1 and 6.2.2.2), so that equivalent paths have the
/// same route: hexadecimal digits are in upper case, and letters, digits, `-`, `.`, `_` and `~` are not encoded.
pub(super) fn normalized_path(path: &str) -> Cow<'_, str> {
    if !needs_normalizing(path) {
        return Cow::Borrowed(path);
    }
    let mut normalized = String::with_capacity(path.len());
    let mut parts = path.split('%');
    normalized.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (digits, rest) = part.split_at(2);
        let byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        match byte {
            _ if is_unreserved(byte) => normalized.push(char::from(byte)),
            _ => {
                normalized.push('%');
                normalized.extend(digits.bytes().map(|digit| char::from(digit.to_ascii_uppercase())));
            }
        }
        normalized.push_str(rest);
    }
    Cow::Owned(normalized)
}

/// Percent-decodes a component of a path; fails with what is wrong.
pub(super) fn decode_path(part: &str) -> Result<Cow<'_, str>, &'static str> {
    if !is_encoded(part) {
        return Ok(Cow::Borrowed(part));
    }
    let mut pieces = part.as_bytes().split(|byte| *byte == b'%');
    let mut decoded = Vec::with_capacity(part.len());
    decoded.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (digits, rest) = piece.split_first_chunk().ok_or(LONE_PERCENT)?;
        decoded.push(encoded_byte(*digits).ok_or(LONE_PERCENT)?);
        decoded.extend_from_slice(rest);
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| NOT_UTF8)
}

/// Returns the byte that two hexadecimal digits stand for.
fn encoded_byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Returns the digits behind each `%` of a text, and the byte that they stand for; `None` for a `%` that begins no encoded byte.
fn encoded_bytes(text: &str) -> impl Iterator<Item = Option<(&[u8; 2], u8)>> {
    let pieces = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    pieces.map(|piece| piece.first_chunk().and_then(|digits| Some((digits, encoded_byte(*digits)?))))
}

/// Returns `true` if a path is well encoded, and its percent-encoding is not normalized.
fn needs_normalizing(path: &str) -> bool {
    let mut is_normal = true;
    for encoded in encoded_bytes(path) {
        let Some((digits, byte)) = encoded else { return false };
        is_normal &= !digits.iter().any(u8::is_ascii_lowercase) && !is_unreserved(byte);
    }
    !is_normal
}

/// Returns `true` if a byte is that of a character which a path contains without encoding.
fn is_unreserved(byte: u8) -> bool {
    matches!(byte, b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
}

/// Decodes a name or value of a query, in which `+` stands for a space; fails with what is wrong.
pub(super) fn decode_query(part: &str) -> Result<Cow<'_, str>, &'static str> {
    if !contains(part, is_coded) {
        return Ok(Cow::Borrowed(part));
    }
    let blanks = part.replace('+', " ");
    decode_path(&blanks).map(|text| Cow::Owned(text.into_owned()))
}

/// Returns `true` if this byte means another character in a query.
pub(super) fn is_coded(byte: u8) -> bool {
    matches!(byte, b'+' | b'%')
}

/// Returns `true` if a text contains such a byte. It looks at all of them, without branches: most texts are short and contain none.
#[inline]
pub(super) fn contains(text: &str, is_sought: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |found, byte| found | is_sought(byte))
}

/// Returns `true` if every `%` is followed by two hexadecimal digits.
fn is_well_encoded(text: &str) -> bool {
    encoded_bytes(text).all(|encoded| encoded.is_some())
}

/// Returns the value of a parameter that the request leaves out: its default, or `None` for an option.
pub(super) fn left_out(parameter: &RouteParameter) -> Option<Value> {
    let none = matches!(parameter.ty, Type::Option(_)).then(Value::none);
    parameter.default.clone().or(none)
}
