//! Constants as text, for the defaults of fields: numbers as programs write them, `"…"`, `[…]`, `{key: value}`, records and
//! tuples as `(…)`, and variants as `#1` or `#1(…)`.

use std::fmt::{self, Display, Write as _};

use super::read::{DEPTH_MAX, TypeParser};
use crate::{Failure, Text, Value};

/// A constant as text.
pub(super) struct ConstantText<'a>(pub(super) &'a Value);

impl Display for ConstantText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Unit => f.write_str("()"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "float {}", value.to_bits()),
            Value::Duration(value) => write!(f, "duration {value}"),
            Value::Size(value) => write!(f, "size {value}"),
            Value::Text(text) => QuotedName(text).fmt(f),
            Value::List(elements) => {
                f.write_str("[")?;
                separated(f, elements.iter(), |f, element| ConstantText(&element).fmt(f))?;
                f.write_str("]")
            }
            Value::Map(entries) => {
                f.write_str("{")?;
                separated(f, entries.iter(), |f, (key, value)| {
                    write!(f, "{}: {}", ConstantText(key), ConstantText(value))
                })?;
                f.write_str("}")
            }
            Value::Record(parts) => {
                f.write_str("(")?;
                separated(f, parts.iter(), |f, part| ConstantText(part).fmt(f))?;
                f.write_str(")")
            }
            Value::Variant(tag, None) => write!(f, "#{tag}"),
            Value::Variant(tag, Some(payload)) => {
                write!(f, "#{tag}(")?;
                separated(f, payload.iter(), |f, part| ConstantText(part).fmt(f))?;
                f.write_str(")")
            }
            // No constant expression has another value.
            _ => f.write_str("?"),
        }
    }
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    parts: impl Iterator<Item = T>,
    each: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, part) in parts.enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        each(f, part)?;
    }
    Ok(())
}

/// A text in quotation marks.
pub(super) struct QuotedName<'a>(pub(super) &'a str);

impl Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

impl TypeParser<'_> {
    /// Parses a text in quotation marks.
    pub(super) fn quoted(&mut self) -> Result<Text, Failure> {
        self.mark("\"")?;
        let text = &self.whole()[self.at..];
        let (mut value, mut escaped) = (String::new(), false);
        for (at, c) in text.char_indices() {
            match c {
                '"' if !escaped => {
                    self.at += at + 1;
                    return Ok(value.into());
                }
                '\\' if !escaped => escaped = true,
                c => {
                    value.push(c);
                    escaped = false;
                }
            }
        }
        Err(self.expected("the end of a text"))
    }

    /// Parses a constant.
    pub(super) fn constant(&mut self) -> Result<Value, Failure> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.expected("less depth"));
        }
        let value = self.constant_of_form()?;
        self.depth -= 1;
        Ok(value)
    }

    fn constant_of_form(&mut self) -> Result<Value, Failure> {
        match self.rest().as_bytes().first() {
            Some(b'"') => return self.quoted().map(Value::Text),
            Some(b'[') => {
                self.mark("[")?;
                return self.listed("]", TypeParser::constant).map(Value::list);
            }
            Some(b'{') => {
                self.mark("{")?;
                return Ok(Value::Map(self.listed("}", TypeParser::entry)?.into_iter().collect()));
            }
            Some(b'(') => {
                self.mark("(")?;
                let parts = self.listed(")", TypeParser::constant)?;
                return Ok(if parts.is_empty() { Value::Unit } else { Value::Record(parts.into()) });
            }
            Some(b'#') => {
                self.mark("#")?;
                let tag = self.number()?;
                let payload = if self.takes("(") { Some(self.listed(")", TypeParser::constant)?.into()) } else { None };
                return Ok(Value::Variant(tag, payload));
            }
            _ => {}
        }
        for (word, value) in [("true", true), ("false", false)] {
            if self.takes(word) {
                return Ok(Value::Bool(value));
            }
        }
        if self.takes("float ") {
            return self.number().map(|bits| Value::Float(f64::from_bits(bits)));
        }
        if self.takes("duration ") {
            return self.number().map(Value::Duration);
        }
        if self.takes("size ") {
            return self.number().map(Value::Size);
        }
        self.number().map(Value::Int)
    }

    fn entry(&mut self) -> Result<(Value, Value), Failure> {
        let key = self.constant()?;
        self.mark(":")?;
        Ok((key, self.constant()?))
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N, Failure> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        let number = rest[..end].parse().map_err(|_| self.expected("a constant"))?;
        self.at += end;
        Ok(number)
    }
}
