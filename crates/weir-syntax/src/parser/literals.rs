//! Numbers, sizes and durations.

use super::Parser;
use crate::ast::{Literal, LiteralValue};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic};
use std::sync::Arc;

/// Units of sizes in bytes; powers of 1024.
const SIZE_UNITS: &[(&str, u64)] = &[("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1 << 40)];

/// Units of durations in nanoseconds.
const DURATION_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

/// Longest number that a message quotes.
const SHOWN_DIGITS_MAX: usize = 40;

impl Parser<'_> {
    /// `-? number`, `true`, `false`. Reports a number that cannot be read, and returns `None`.
    pub(super) fn signed_literal(&mut self) -> Option<Literal> {
        let start = self.span();
        let negative = self.eat(T::Minus).is_some();
        let digits = self.token_text();
        let kind = self.peek();
        self.bump();
        let span = self.since(start);
        let value = match kind {
            T::True => Ok(LiteralValue::Bool(true)),
            T::False => Ok(LiteralValue::Bool(false)),
            _ => number(digits, negative),
        };
        let raw = Arc::from(format!("{}{digits}", if negative { "-" } else { "" }));
        match value {
            Ok(value) => Some(Literal { value, raw, span }),
            Err(fault) => {
                let shown = if digits.len() > SHOWN_DIGITS_MAX { String::new() } else { format!(" `{digits}`") };
                let mut diagnostic =
                    Diagnostic::new(Code::InvalidNumber, format!("invalid number{shown}")).at(span, fault.reason());
                if let Some(hint) = fault.hint(digits) {
                    diagnostic = diagnostic.hint(hint);
                }
                self.report(diagnostic);
                None
            }
        }
    }
}

/// Reasons why a number cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NumberError {
    TooLarge,
    NotExact,
    NegativeUnit,
    UnknownUnit,
    BadDigits,
}

impl NumberError {
    fn reason(self) -> &'static str {
        match self {
            Self::TooLarge => "does not fit into 64 bits",
            Self::NotExact => "not a whole number of bytes or nanoseconds",
            Self::NegativeUnit => "sizes and durations cannot be negative",
            Self::UnknownUnit => "unknown unit",
            Self::BadDigits => "invalid digits for this base",
        }
    }

    fn hint(self, digits: &str) -> Option<&'static str> {
        match self {
            Self::UnknownUnit => Some("sizes end in b, kb, mb, gb, tb; durations in ns, us, ms, s, m, h, d"),
            Self::TooLarge => Some(largest(digits)),
            _ => None,
        }
    }
}

/// Returns the limit of the kind of number that these digits begin.
fn largest(digits: &str) -> &'static str {
    if digits.starts_with("0x") || digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return "an `Int` is at most 9223372036854775807; a number with a fraction may be larger";
    }
    match digits.trim_start_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '_' | '.')) {
        "b" | "kb" | "mb" | "gb" | "tb" => "a `Size` is less than 16777216tb",
        unit if unit.starts_with(['e', 'E']) || unit.is_empty() => "a `Float` is at most 1.7976931348623157e308",
        _ => "a `Duration` is at most 106751d",
    }
}

/// Parses digits with an optional unit.
fn number(text: &str, negative: bool) -> Result<LiteralValue, NumberError> {
    let digits = text.replace('_', "");
    for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        // `0b` alone is zero bytes.
        if let Some(rest) = digits.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            return integer(rest, base, negative);
        }
    }
    let is_float = |text: &str| text.parse::<f64>().is_ok();
    let unit_at = digits.find(|character: char| character.is_ascii_alphabetic());
    match unit_at {
        None if digits.contains('.') => float(&digits, negative),
        None => integer(&digits, 10, negative),
        Some(at) if digits[at..].starts_with(['e', 'E']) && is_float(&digits) => float(&digits, negative),
        Some(at) => quantity(&digits[..at], &digits[at..], negative),
    }
}

fn integer(digits: &str, base: u32, negative: bool) -> Result<LiteralValue, NumberError> {
    if !digits.chars().all(|digit| digit.is_digit(base)) {
        return Err(NumberError::BadDigits);
    }
    let signed = format!("{}{digits}", if negative { "-" } else { "" });
    i64::from_str_radix(&signed, base).map(LiteralValue::Int).map_err(|_| NumberError::TooLarge)
}

fn float(digits: &str, negative: bool) -> Result<LiteralValue, NumberError> {
    let value: f64 = digits.parse().map_err(|_| NumberError::BadDigits)?;
    if value.is_finite() {
        Ok(LiteralValue::Float(if negative { -value } else { value }))
    } else {
        Err(NumberError::TooLarge)
    }
}

/// Returns `digits` multiplied by `unit`, if the product is whole: `1.5s`, `0.5kb`.
fn quantity(digits: &str, unit: &str, negative: bool) -> Result<LiteralValue, NumberError> {
    let find = |units: &[(&str, u64)]| units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
    let is_size = find(SIZE_UNITS).is_some();
    let scale = find(SIZE_UNITS).or_else(|| find(DURATION_UNITS)).ok_or(NumberError::UnknownUnit)?;
    if negative {
        return Err(NumberError::NegativeUnit);
    }
    match scaled(digits, scale)? {
        bytes if is_size => Ok(LiteralValue::Size(bytes)),
        nanoseconds if i64::try_from(nanoseconds).is_ok() => Ok(LiteralValue::Duration(nanoseconds)),
        _ => Err(NumberError::TooLarge),
    }
}

fn scaled(digits: &str, scale: u64) -> Result<u64, NumberError> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let units: u128 = format!("{whole}{fraction}").parse().map_err(|_| NumberError::TooLarge)?;
    let divisor = u32::try_from(fraction.len())
        .ok()
        .and_then(|places| 10u128.checked_pow(places))
        .ok_or(NumberError::NotExact)?;
    let product = units.checked_mul(u128::from(scale)).ok_or(NumberError::TooLarge)?;
    if product % divisor != 0 {
        return Err(NumberError::NotExact);
    }
    u64::try_from(product / divisor).map_err(|_| NumberError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_fits_into_64_bits_with_a_sign() {
        for text in ["106752d", "213503d", "213504d", "9223372036854775808ns", "9223372036855ms"] {
            assert_eq!(number(text, false), Err(NumberError::TooLarge), "{text}");
        }
        assert_eq!(number("9223372036854775807ns", false), Ok(LiteralValue::Duration(i64::MAX as u64)));
    }

    #[test]
    fn numbers_mean_what_they_say() {
        let cases = [
            ("1_000", LiteralValue::Int(1000)),
            ("0xff", LiteralValue::Int(255)),
            ("0o17", LiteralValue::Int(15)),
            ("0b101", LiteralValue::Int(5)),
            ("9223372036854775807", LiteralValue::Int(i64::MAX)),
            ("1.5e3", LiteralValue::Float(1500.0)),
            ("2e-3", LiteralValue::Float(0.002)),
            ("64mb", LiteralValue::Size(64 << 20)),
            ("0b", LiteralValue::Size(0)),
            ("0.5kb", LiteralValue::Size(512)),
            ("200ms", LiteralValue::Duration(200_000_000)),
            ("1.5s", LiteralValue::Duration(1_500_000_000)),
            ("2m", LiteralValue::Duration(120_000_000_000)),
        ];
        for (text, value) in cases {
            assert_eq!(number(text, false), Ok(value), "{text}");
        }
        assert_eq!(number("9223372036854775808", true), Ok(LiteralValue::Int(i64::MIN)));
    }

    #[test]
    fn numbers_that_mean_nothing_say_why() {
        let cases = [
            ("9223372036854775808", NumberError::TooLarge),
            ("1e999", NumberError::TooLarge),
            ("20000000000gb", NumberError::TooLarge),
            ("0.3b", NumberError::NotExact),
            ("5megabytes", NumberError::UnknownUnit),
            ("0b12", NumberError::BadDigits),
            ("0xfg", NumberError::BadDigits),
        ];
        for (text, fault) in cases {
            assert_eq!(number(text, false), Err(fault), "{text}");
        }
    }
}
