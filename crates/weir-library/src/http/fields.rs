//! Route parameters that come from header fields and from cookies (RFC 6265, §5.4).

use hyper::header::{COOKIE, HeaderMap, HeaderName};
use weir::{RouteParameter, Type, Value};

use super::input::{InputError, NamedTypes, expected, is_scalar, left_out, scalar_or_error};

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

/// Parses the input that comes from the cookie `name`. The order of cookies says nothing about who set them, so that two
/// different values of one name are refused.
pub(super) fn cookie_input(
    parameter: &RouteParameter,
    name: &str,
    header: &HeaderMap,
    definitions: NamedTypes<'_>,
) -> Result<Value, InputError> {
    let lines = header.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let value = values.next();
    let problem = |what| InputError::new(format!("the cookie `{name}`"), what);
    if values.any(|other| Some(other) != value) {
        return Err(problem("given twice".into()));
    }
    input(parameter, value, definitions).map_err(problem)
}

fn input(parameter: &RouteParameter, text: Option<&str>, definitions: NamedTypes<'_>) -> Result<Value, String> {
    match (text, &parameter.ty) {
        (Some(text), Type::Option(some)) => scalar_or_error(some, text, definitions).map(Value::some),
        (Some(text), ty) => scalar_or_error(ty, text, definitions),
        (None, ty) => left_out(parameter).ok_or_else(|| format!("missing, expected {}", expected(ty, definitions))),
    }
}
