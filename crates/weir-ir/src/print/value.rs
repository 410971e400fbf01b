//! Constants, types and names as text.

use std::fmt::{self, Display};

use weir_host::{Type, Value};

use super::Commas;

/// A constant as the IR writes it. Unlike in messages, texts are always quoted, bytes are
/// given in full, and times as nanoseconds since 1970.
#[derive(Clone, Copy)]
pub struct Constant<'a>(pub &'a Value);

impl Display for Constant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Text(text) => Quoted(text).fmt(f),
            Value::Time(since_1970) => write!(f, "time({since_1970})"),
            Value::Float(float) if !float.is_finite() => write!(f, "float({:016x})", float.to_bits()),
            Value::Bytes(bytes) => {
                f.write_str("bytes(")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(")")
            }
            Value::List(elements) => {
                write!(f, "[{}]", Commas(elements.iter().map(|element| Constant(&element).to_string())))
            }
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| format!("{}: {}", Constant(key), Constant(value)));
                write!(f, "{{{}}}", Commas(entries))
            }
            Value::Record(fields) if fields.len() < 2 => write!(f, "({},)", Commas(fields.iter().map(Constant))),
            Value::Record(fields) => write!(f, "({})", Commas(fields.iter().map(Constant))),
            Value::Variant(tag, None) => write!(f, "#{tag}"),
            Value::Variant(tag, Some(payload)) => write!(f, "#{tag}({})", Commas(payload.iter().map(Constant))),
            Value::Failure(failure) => write!(f, "failure({}, {})", failure.kind.name(), Quoted(&failure.message)),
            other => Display::fmt(other, f),
        }
    }
}

/// A type as the IR writes it: as in messages, but a type parameter is `'T`, so that it is no named type.
#[derive(Clone, Copy)]
pub struct TypeText<'a>(pub &'a Type);

impl Display for TypeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::List(element) => write!(f, "List({})", TypeText(element)),
            Type::Map(pair) => write!(f, "Map({}, {})", TypeText(&pair.0), TypeText(&pair.1)),
            Type::Option(some) => write!(f, "Option({})", TypeText(some)),
            Type::Result(pair) => write!(f, "Result({}, {})", TypeText(&pair.0), TypeText(&pair.1)),
            Type::Tuple(parts) if parts.len() < 2 => write!(f, "({},)", Commas(parts.iter().map(TypeText))),
            Type::Tuple(parts) => write!(f, "({})", Commas(parts.iter().map(TypeText))),
            Type::Function(pair) => {
                write!(f, "fn({}) -> {}", Commas(pair.0.iter().map(TypeText)), TypeText(&pair.1))
            }
            Type::Parameter(name) => write!(f, "'{}", NameText(name)),
            Type::Named(name) if is_type_word(name) => Quoted(name).fmt(f),
            Type::Named(name) => NameText(name).fmt(f),
            plain => Display::fmt(plain, f),
        }
    }
}

/// Returns true if the word is a built-in type, so that a named type of that name is quoted.
pub(crate) fn is_type_word(name: &str) -> bool {
    const WORDS: [&str; 15] = [
        "Bool", "Int", "Float", "Text", "Bytes", "Time", "Duration", "Size", "Failure", "Never", "List", "Map",
        "Option", "Result", "fn",
    ];
    WORDS.contains(&name)
}

/// A name: bare if it consists of letters, digits, `_`, `.`, `/` and `#` and does not begin with a digit; else quoted.
#[derive(Clone, Copy)]
pub struct NameText<'a>(pub &'a str);

impl Display for NameText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = self.0.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if begins && self.0.chars().all(is_bare) { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// Returns true if an unquoted name may contain the character.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '#')
}

/// A quoted text, on one line whatever it holds.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}
