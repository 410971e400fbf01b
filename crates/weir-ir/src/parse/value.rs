//! Constants and types.

use std::sync::Arc;

use weir_host::{Failure, FailureKind, Type, Value};

use super::cursor::Cursor;
use super::error::ParseResult;
use crate::print::is_type_word;

const KINDS: [FailureKind; 12] = [
    FailureKind::Function,
    FailureKind::Arithmetic,
    FailureKind::Argument,
    FailureKind::Panic,
    FailureKind::Timeout,
    FailureKind::Cancelled,
    FailureKind::Limit,
    FailureKind::Constraint,
    FailureKind::Conflict,
    FailureKind::Uncertain,
    FailureKind::Memory,
    FailureKind::Program,
];

/// A constant, as [`crate::print::Constant`] writes it.
pub(super) fn value(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    cursor.deeper(|cursor| {
        if cursor.sees("\"") {
            Ok(Value::Text(cursor.quoted()?))
        } else if cursor.sees("[") {
            Ok(Value::list(cursor.list("[", "]", value)?))
        } else if cursor.sees("{") {
            Ok(Value::Map(cursor.list("{", "}", entry)?.into_iter().collect()))
        } else if cursor.eat("()") {
            Ok(Value::Unit)
        } else if cursor.sees("(") {
            Ok(Value::Record(cursor.list("(", ")", value)?.into()))
        } else if cursor.eat("#") {
            variant(cursor)
        } else {
            word(cursor)
        }
    })
}

fn entry(cursor: &mut Cursor<'_>) -> ParseResult<(Value, Value)> {
    let key = value(cursor)?;
    cursor.expect(":")?;
    Ok((key, value(cursor)?))
}

fn variant(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    let tag = cursor.number("the tag of a variant")?;
    if !cursor.rest().starts_with('(') {
        return Ok(Value::Variant(tag, None));
    }
    Ok(Value::Variant(tag, Some(cursor.list("(", ")", value)?.into())))
}

fn word(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    if cursor.eat("true") {
        Ok(Value::Bool(true))
    } else if cursor.eat("false") {
        Ok(Value::Bool(false))
    } else if cursor.eat("time(") {
        bracketed(cursor, |cursor| Ok(Value::Time(signed(cursor)?)))
    } else if cursor.eat("float(") {
        bracketed(cursor, |cursor| {
            let bits = u64::from_str_radix(cursor.run(|c| c.is_ascii_hexdigit()), 16);
            Ok(Value::Float(f64::from_bits(bits.map_err(|_| cursor.error("the 64 bits of a float"))?)))
        })
    } else if cursor.eat("bytes(") {
        bracketed(cursor, bytes)
    } else if cursor.eat("failure(") {
        bracketed(cursor, failure)
    } else {
        number(cursor)
    }
}

fn bracketed<T>(cursor: &mut Cursor<'_>, inner: impl FnOnce(&mut Cursor<'_>) -> ParseResult<T>) -> ParseResult<T> {
    let inner = inner(cursor)?;
    cursor.expect(")")?;
    Ok(inner)
}

fn signed(cursor: &mut Cursor<'_>) -> ParseResult<i64> {
    let digits = cursor.run(|c| c == '-' || c.is_ascii_digit());
    digits.parse().map_err(|_| cursor.error("a number of 64 bits before this"))
}

fn bytes(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    let digits = cursor.run(|c| c.is_ascii_hexdigit());
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.map(Value::bytes).ok_or_else(|| cursor.error("two hexadecimal digits for each byte before this"))
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn failure(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    let kind = KINDS.into_iter().find(|kind| cursor.eat(kind.name()));
    let kind = kind.ok_or_else(|| cursor.error("the kind of a failure, such as `program`"))?;
    cursor.expect(",")?;
    Ok(Value::Failure(Box::new(Failure::new(kind, cursor.quoted()?))))
}

/// `-5`, `1.5`, `1e-7`, `5ms`, `64mb`.
fn number(cursor: &mut Cursor<'_>) -> ParseResult<Value> {
    cursor.eat("");
    let all = cursor.rest();
    let digits = cursor.run(|c| c == '-' || c.is_ascii_digit());
    let is_float = fraction(cursor, ".") | fraction(cursor, "e");
    let float = &all[..all.len() - cursor.rest().len()];
    if is_float {
        return float.parse().map(Value::Float).map_err(|_| cursor.error("a float before this"));
    }
    let number: i128 = digits.parse().map_err(|_| cursor.error("a constant"))?;
    let suffix = cursor.run(|c| c.is_ascii_lowercase());
    united(number, suffix).ok_or_else(|| cursor.error("a number in range, with a known unit, before this"))
}

/// Parses the part of a float after this mark, if it has one.
fn fraction(cursor: &mut Cursor<'_>, mark: &str) -> bool {
    let is_digit = |c: char| c == '-' || c.is_ascii_digit();
    let is_here = cursor.rest().strip_prefix(mark).is_some_and(|rest| rest.starts_with(is_digit));
    if is_here {
        cursor.run(|c| mark.contains(c));
        cursor.run(is_digit);
    }
    is_here
}

fn united(number: i128, unit: &str) -> Option<Value> {
    const NANOS: [(&str, i128); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    const BYTES: [(&str, i128); 5] = [("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];
    let factor = |units: &[(&str, i128)]| units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    if unit.is_empty() {
        return i64::try_from(number).ok().map(Value::Int);
    }
    if let Some(factor) = factor(&NANOS) {
        return i64::try_from(number.checked_mul(factor)?).ok().map(Value::Duration);
    }
    u64::try_from(number.checked_mul(factor(&BYTES)?)?).ok().map(Value::Size)
}

/// A type, as [`crate::print::TypeText`] writes it.
pub(super) fn ty(cursor: &mut Cursor<'_>) -> ParseResult<Type> {
    cursor.deeper(|cursor| {
        if cursor.eat("()") {
            Ok(Type::Unit)
        } else if cursor.sees("(") {
            Ok(Type::Tuple(cursor.list("(", ")", ty)?.into()))
        } else if cursor.eat("'") {
            Ok(Type::Parameter(cursor.name("the name of a type parameter")?))
        } else if cursor.sees("\"") {
            Ok(Type::Named(cursor.quoted()?))
        } else {
            type_word(cursor)
        }
    })
}

fn type_word(cursor: &mut Cursor<'_>) -> ParseResult<Type> {
    let name = cursor.name("a type")?;
    Ok(match name.as_str() {
        "Bool" => Type::Bool,
        "Int" => Type::Int,
        "Float" => Type::Float,
        "Text" => Type::Text,
        "Bytes" => Type::Bytes,
        "Time" => Type::Time,
        "Duration" => Type::Duration,
        "Size" => Type::Size,
        "Failure" => Type::Failure,
        "Never" => Type::Never,
        "List" => bracket(cursor, |cursor| Ok(Type::list(ty(cursor)?)))?,
        "Option" => bracket(cursor, |cursor| Ok(Type::option(ty(cursor)?)))?,
        "Map" => pair(cursor, Type::map)?,
        "Result" => pair(cursor, Type::result)?,
        "fn" => {
            let parameters = cursor.list("(", ")", ty)?;
            cursor.expect("->")?;
            Type::Function(Arc::new((parameters, ty(cursor)?)))
        }
        other => {
            debug_assert!(!is_type_word(other), "`{other}` is missing here");
            Type::Named(name)
        }
    })
}

fn bracket(cursor: &mut Cursor<'_>, inner: impl FnOnce(&mut Cursor<'_>) -> ParseResult<Type>) -> ParseResult<Type> {
    cursor.expect("(")?;
    bracketed(cursor, inner)
}

fn pair(cursor: &mut Cursor<'_>, make: impl FnOnce(Type, Type) -> Type) -> ParseResult<Type> {
    bracket(cursor, |cursor| {
        let first = ty(cursor)?;
        cursor.expect(",")?;
        Ok(make(first, ty(cursor)?))
    })
}
