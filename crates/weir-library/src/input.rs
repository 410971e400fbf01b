//! Turns texts that come from outside into values of the types that are wanted, or into what is wrong with them.
//!
//! The parts of a path and a query, and the texts within JSON, say values in the same way.

use std::fmt;

use weir::{Type, TypeDefinition, TypeShape, Value};

/// Something that is not what is wanted, such as in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputError {
    /// Where it is: `` `scale` in the query ``.
    pub(crate) place: String,
    /// What is the matter: `expected a whole number, found "big"`.
    pub(crate) what: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl InputError {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        InputError { place: place.into(), what: what.into() }
    }
}

/// The units of a size, in bytes, as in a program.
const SIZE_UNITS: [(&str, u64); 5] = [("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];
/// The units of a duration, in nanoseconds, as in a program.
const DURATION_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The definitions that types refer to.
#[derive(Clone, Copy)]
pub(crate) struct TypeDefinitions<'a>(pub(crate) &'a [TypeDefinition]);

impl<'a> TypeDefinitions<'a> {
    pub(crate) fn shape(self, name: &str) -> Option<&'a TypeShape> {
        self.0.iter().find(|definition| &*definition.name == name).map(|definition| &definition.shape)
    }
}

/// Whether values of this type can be written as one text, such as a part of a path.
pub(crate) fn is_scalar(ty: &Type, definitions: TypeDefinitions<'_>) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Float | Type::Text | Type::Size | Type::Duration => true,
        Type::Named(name) => matches!(definitions.shape(name), Some(TypeShape::Enum(variants))
            if variants.iter().all(|variant| variant.fields.is_empty())),
        _ => false,
    }
}

/// What a text of this type looks like, for messages.
pub(crate) fn expected(ty: &Type, definitions: TypeDefinitions<'_>) -> String {
    match ty {
        Type::Bool => "`true` or `false`".into(),
        Type::Int => "a whole number".into(),
        Type::Float => "a number".into(),
        Type::Text => "a text".into(),
        Type::Size => "a size such as `64mb`".into(),
        Type::Duration => "a duration such as `200ms`".into(),
        Type::List(_) => "a list".into(),
        Type::Tuple(parts) => format!("a list of {}", parts.len()),
        Type::Map(_) => "an object".into(),
        Type::Option(some) => expected(some, definitions),
        Type::Named(name) => match definitions.shape(name) {
            Some(TypeShape::Enum(variants)) => {
                let names: Vec<_> = variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
                format!("one of {}", names.join(", "))
            }
            _ => "an object".into(),
        },
        other => other.to_string(),
    }
}

/// The value that a decoded text of a scalar type says; `None` where it says none.
pub(crate) fn scalar(ty: &Type, text: &str, definitions: TypeDefinitions<'_>) -> Option<Value> {
    match ty {
        Type::Text => Some(Value::text(text)),
        Type::Int => text.parse().ok().map(Value::Int),
        Type::Float => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Float),
        Type::Bool => text.parse().ok().map(Value::Bool),
        Type::Size => measure(text, &SIZE_UNITS).map(Value::Size),
        Type::Duration => duration(text).map(Value::Duration),
        Type::Named(name) => match definitions.shape(name)? {
            TypeShape::Enum(variants) => {
                let tag = variants.iter().position(|variant| &*variant.name == text)?;
                Some(Value::Variant(u32::try_from(tag).ok()?, None))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Nanoseconds, also backwards.
fn duration(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    i64::try_from(sign * i128::from(measure(text, &DURATION_UNITS)?)).ok()
}

/// A whole number and its unit.
fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The same with what is wrong, in the words of a message.
pub(crate) fn scalar_or_error(ty: &Type, text: &str, definitions: TypeDefinitions<'_>) -> Result<Value, String> {
    scalar(ty, text, definitions)
        .ok_or_else(|| format!("expected {}, found {}", expected(ty, definitions), shown(text)))
}

/// A text as messages show it: quoted, and not longer than a line.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
