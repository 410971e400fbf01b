//! Parsing of external text into values of a type, with readable errors.
//!
//! Path and query components and strings in JSON use the same syntax for values.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use weir::{Failure, HostType, Type, TypeDefinition, TypeShape, Value};

/// Error in an input, such as a part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputError {
    /// The part of the input: `` `scale` in the query ``. Empty for the whole of it.
    pub(crate) place: String,
    /// Description of the error: `expected a whole number, found "big"`.
    pub(crate) what: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

impl InputError {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        InputError { place: place.into(), what: what.into() }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::function(error.to_string())
    }
}

/// The units of a size, in bytes, as in programs.
const SIZE_UNITS: [(&str, u64); 5] = [("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];
/// The units of a duration, in nanoseconds, as in programs.
const DURATION_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Definitions of named types.
#[derive(Clone, Copy)]
pub(crate) struct NamedTypes<'a>(pub(crate) &'a [TypeDefinition]);

impl<'a> NamedTypes<'a> {
    pub(crate) fn shape(self, name: &str) -> Option<&'a TypeShape> {
        self.0.iter().find(|definition| &*definition.name == name).map(|definition| &definition.shape)
    }
}

/// Returns `true` if values of this type can be written as a single text, such as a component of a path.
pub(crate) fn is_scalar(ty: &Type, definitions: NamedTypes<'_>) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Float | Type::Text | Type::Size | Type::Duration | Type::Time => true,
        Type::Named(name) => matches!(definitions.shape(name), Some(TypeShape::Enum(variants))
            if variants.iter().all(|variant| variant.fields.is_empty())),
        _ => false,
    }
}

/// Describes a text of this type, for messages.
pub(crate) fn expected(ty: &Type, definitions: NamedTypes<'_>) -> String {
    match ty {
        Type::Bool => "`true` or `false`".into(),
        Type::Int => "a whole number".into(),
        Type::Float => "a number".into(),
        Type::Text => "a text".into(),
        Type::Size => "a size such as `64mb`".into(),
        Type::Duration => "a duration such as `200ms`".into(),
        Type::Time => "a time such as `2026-11-22T20:15:00Z`".into(),
        Type::Unit => "`null`".into(),
        Type::List(_) => "a list".into(),
        Type::Tuple(parts) => format!("a list of {}", parts.len()),
        Type::Map(_) => "an object".into(),
        Type::Option(some) => expected(some, definitions),
        Type::Named(name) => match definitions.shape(name) {
            Some(TypeShape::Enum(variants)) => {
                let names: Vec<_> = variants.iter().map(|variant| format!("`{}`", variant.external_name())).collect();
                format!("one of {}", names.join(", "))
            }
            _ => "an object".into(),
        },
        other => other.to_string(),
    }
}

/// Describes a text of this type, for a message about another text: a whole number or a time was expected within its range if
/// the text is one outside of it.
pub(crate) fn expected_beside(ty: &Type, text: &str, definitions: NamedTypes<'_>) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match ty {
        Type::Int if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("a whole number from {} to {}", i64::MIN, i64::MAX)
        }
        Type::Time if crate::time::is_out_of_range(text) => "a time between the years 1677 and 2262".into(),
        _ => expected(ty, definitions),
    }
}

/// Parses a decoded text as a value of a scalar type; `None` if it is malformed.
pub(crate) fn scalar(ty: &Type, text: &str, definitions: NamedTypes<'_>) -> Option<Value> {
    match ty {
        Type::Text => Some(Value::text(text)),
        Type::Int => text.parse().ok().map(Value::Int),
        Type::Float => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Float),
        Type::Bool => text.parse().ok().map(Value::Bool),
        Type::Size => measure(text, &SIZE_UNITS).map(Value::Size),
        Type::Duration => duration(text).map(Value::Duration),
        Type::Time => crate::time::parse(text).and_then(SystemTime::into_value).ok(),
        Type::Named(name) => match definitions.shape(name)? {
            TypeShape::Enum(variants) => {
                let tag = variants.iter().position(|variant| &**variant.external_name() == text)?;
                Some(Value::Variant(u32::try_from(tag).ok()?, None))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Parses a duration, which may be negative, into nanoseconds.
fn duration(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    i64::try_from(sign * i128::from(measure(text, &DURATION_UNITS)?)).ok()
}

/// Parses a number followed by its unit, as in programs: the product must be whole, as that of `1.5s` in nanoseconds.
fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if [whole, fraction].iter().any(|digits| digits.is_empty() || digits.contains('.')) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let divisor = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let product = format!("{whole}{fraction}").parse::<u128>().ok()?.checked_mul(u128::from(*factor))?;
    if product % divisor == 0 { u64::try_from(product / divisor).ok() } else { None }
}

/// Parses a decoded text as a value of a scalar type, or returns the message of the error.
pub(crate) fn scalar_or_error(ty: &Type, text: &str, definitions: NamedTypes<'_>) -> Result<Value, String> {
    scalar(ty, text, definitions)
        .ok_or_else(|| format!("expected {}, found {}", expected_beside(ty, text, definitions), shown(text)))
}

/// Maximum number of characters of an input in a message.
const SHOWN_MAX: usize = 40;

/// Formats a text for messages: quoted, and truncated to less than a line.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Truncates a name from outside for messages to less than a line.
pub(crate) fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}
