//! Route parameters that come from header fields and from cookies (RFC 6265, §5.4).

use hyper::header::{COOKIE, HeaderMap, HeaderName};
use weir::{RouteParameter, Type, Value};

use super::cookies::HOST_PREFIX;
use super::encrypted_cookies::CookieKeys;
use super::input::{InputError, NamedTypes, expected, is_scalar, left_out, scalar_or_error};
use crate::json::decode;

/// Returns the header field of a parameter: its name, with `-` for each `_`.
pub(super) fn field_of(parameter: &str) -> String {
    parameter.replace('_', "-")
}

/// Returns `true` if a header field can hold a value of the type.
pub(super) fn can_hold(field: &str, ty: &Type, definitions: NamedTypes<'_>) -> bool {
    let ty = if let Type::Option(some) = ty { some } else { ty };
    HeaderName::from_bytes(field.as_bytes()).is_ok() && is_scalar(ty, definitions)
}

/// Parses the input that comes from a header field.
pub(super) fn field_input(
    parameter: &RouteParameter,
    field: &str,
    header: &HeaderMap,
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let problem = |what| InputError::new(format!("`{field}` in the header"), what);
    let mut values = header.get_all(field).iter();
    let value = match (values.next(), values.next()) {
        (Some(_), Some(_)) => return Err(problem("given twice".into())),
        (value, _) => value.map(|value| std::str::from_utf8(value.as_bytes())),
    };
    let text = value.transpose().map_err(|_| problem("not UTF-8".into()))?;
    input(parameter, text, definitions).map_err(problem)
}

/// Parses the input that comes from the cookie `name`.
pub(super) fn cookie_input(
    parameter: &RouteParameter,
    name: &str,
    header: &HeaderMap,
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let value = cookie_value(name, header)?;
    input(parameter, value, definitions).map_err(|what| cookie_error(name, what))
}

/// Parses the input that comes from the encrypted cookie `name`. A cookie that the service has not made, or that has expired
/// or has another type than in an earlier version of the program, counts as missing.
pub(super) fn encrypted_cookie_input(
    parameter: &RouteParameter,
    name: &str,
    (header, keys): (&HeaderMap, &CookieKeys),
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let name_sent = format!("{HOST_PREFIX}{name}");
    let json = cookie_value(&name_sent, header)?.and_then(|text| keys.decrypt(name, text));
    let value = json.and_then(|json| decode::parse(&json, "", &parameter.ty, definitions).ok());
    let missing = || cookie_error(&name_sent, "missing or expired".to_owned());
    value.or_else(|| left_out(parameter)).ok_or_else(missing)
}

fn cookie_error(name: &str, what: String) -> InputError {
    InputError::new(format!("the cookie `{name}`"), what)
}

/// Returns the value of a cookie. The order of cookies says nothing about who set them, so that two different values of one
/// name are refused.
fn cookie_value<'h>(name: &str, header: &'h HeaderMap) -> Result<Option<&'h str>, InputError> {
    // Each cookie is looked at alone: another host of the domain could have set one that is not ASCII.
    let cookies = header.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let texts = cookies.filter_map(|cookie| std::str::from_utf8(cookie.trim_ascii()).ok());
    let pairs = texts.filter_map(|cookie| cookie.split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let value = values.next();
    if values.any(|other| Some(other) != value) {
        return Err(cookie_error(name, "given twice".to_owned()));
    }
    Ok(value)
}

fn input(parameter: &RouteParameter, text: Option<&str>, definitions: NamedTypes<'_>) -> Result<Value, String> {
    match (text, &parameter.ty) {
        (Some(text), Type::Option(some)) => scalar_or_error(some, text, definitions).map(Value::some),
        (Some(text), ty) => scalar_or_error(ty, text, definitions),
        (None, ty) => left_out(parameter).ok_or_else(|| format!("missing, expected {}", expected(ty, definitions))),
    }
}
