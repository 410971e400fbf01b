//! How a value reads in messages, in tests and in interpolated text.

use std::fmt;

use crate::Value;

/// Texts inside other values are quoted; a text alone is not. Bytes show their number, host values their type.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(value) => f.write_str(value),
            other => nested(other, f),
        }
    }
}

fn nested(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::Absent => f.write_str("absent"),
        Value::Unit => f.write_str("()"),
        Value::Bool(value) => write!(f, "{value}"),
        Value::Int(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{value:?}"),
        Value::Time(value) => write!(f, "time({value})"),
        Value::Duration(value) => duration(*value, f),
        Value::Size(value) => size(*value, f),
        Value::Text(value) => write!(f, "{value:?}"),
        Value::Bytes(value) => write!(f, "bytes({})", value.len()),
        Value::List(elements) => sequence(f, "[", elements, "]"),
        Value::Map(map) => entries(f, map),
        Value::Record(elements) => sequence(f, "(", elements, ")"),
        Value::Variant(tag, None) => write!(f, "#{tag}"),
        Value::Variant(tag, Some(payload)) => {
            write!(f, "#{tag}")?;
            sequence(f, "(", payload, ")")
        }
        Value::Failure(failure) => write!(f, "failure({:?})", failure.message),
        Value::Host(value) => write!(f, "<{}>", value.type_name()),
        Value::Unique(value) => write!(f, "<{}>", value.get().map_or("moved", |value| value.type_name())),
    }
}

fn sequence(f: &mut fmt::Formatter<'_>, open: &str, values: &[Value], close: &str) -> fmt::Result {
    f.write_str(open)?;
    for (index, value) in values.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        nested(value, f)?;
    }
    f.write_str(close)
}

fn entries(f: &mut fmt::Formatter<'_>, map: &indexmap::IndexMap<Value, Value>) -> fmt::Result {
    f.write_str("[")?;
    for (index, (key, value)) in map.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        nested(key, f)?;
        f.write_str(": ")?;
        nested(value, f)?;
    }
    f.write_str(if map.is_empty() { ":]" } else { "]" })
}

/// The largest unit that leaves no rest.
fn duration(nanos: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const UNITS: [(i64, &str); 5] =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(unit, _)| nanos != 0 && nanos % unit == 0) {
        Some((unit, name)) => write!(f, "{}{name}", nanos / unit),
        None => write!(f, "{nanos}ns"),
    }
}

/// The largest binary unit that leaves no rest.
fn size(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "tb"), (1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    match UNITS.iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => write!(f, "{}{name}", bytes / unit),
        None => write!(f, "{bytes}b"),
    }
}
