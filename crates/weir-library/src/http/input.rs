//! Parsing of request texts into values of the route's types, after percent-decoding.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use weir::{RouteParameter, Type, Value};

pub(super) use crate::input::{InputError, NamedTypes, expected, is_scalar, scalar_or_error};

/// Percent-decodes a component of a path; `None` if the encoding is malformed or the result is not UTF-8.
pub(super) fn decode_path(part: &str) -> Option<Cow<'_, str>> {
    if !part.bytes().any(|byte| byte == b'%') {
        return Some(Cow::Borrowed(part));
    }
    if !is_well_encoded(part) {
        return None;
    }
    percent_decode_str(part).decode_utf8().ok()
}

/// Decodes a name or value of a query, in which `+` stands for a space.
pub(super) fn decode_query(part: &str) -> Option<Cow<'_, str>> {
    if !part.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return Some(Cow::Borrowed(part));
    }
    let blanks = part.replace('+', " ");
    decode_path(&blanks).map(|text| Cow::Owned(text.into_owned()))
}

/// Returns `true` if every `%` is followed by two hexadecimal digits.
fn is_well_encoded(text: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'%', bytes).all(|at| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)))
}

/// Returns the value of a parameter that the request leaves out: its default, or `None` for an option.
pub(super) fn left_out(parameter: &RouteParameter) -> Option<Value> {
    let none = matches!(parameter.ty, Type::Option(_)).then(Value::none);
    parameter.default.clone().or(none)
}
