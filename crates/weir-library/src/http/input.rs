//! The texts of a request: values of the types that a route says, once the encoding of paths and queries is taken off.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use weir::{RouteParameter, Type, Value};

pub(super) use crate::input::{InputError, TypeDefinitions, expected, is_scalar, scalar_or_error};

/// A part of a path without its percent-encoding; `None` where that is broken or does not give UTF-8.
pub(super) fn decode_path(part: &str) -> Option<Cow<'_, str>> {
    if !part.bytes().any(|byte| byte == b'%') {
        return Some(Cow::Borrowed(part));
    }
    if !is_well_encoded(part) {
        return None;
    }
    percent_decode_str(part).decode_utf8().ok()
}

/// A name or value of a query, where `+` is a blank.
pub(super) fn decode_query(part: &str) -> Option<Cow<'_, str>> {
    if !part.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return Some(Cow::Borrowed(part));
    }
    let blanks = part.replace('+', " ");
    decode_path(&blanks).map(|text| Cow::Owned(text.into_owned()))
}

/// Every `%` has its two digits.
fn is_well_encoded(text: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'%', bytes).all(|at| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)))
}

/// What the parameter is where the request leaves it out.
pub(super) fn left_out(parameter: &RouteParameter) -> Option<Value> {
    let none = matches!(parameter.ty, Type::Option(_)).then(Value::none);
    parameter.default.clone().or(none)
}
