//! Numbers of JSON, without loss of digits.
//!
//! `serde_json` hands on a number as an `i64`, a `u64` or an `f64`. The digits of a number that none of these holds are taken
//! from the text, which is searched for the numbers in it only as far as the last of them that needs it. (The feature
//! `arbitrary_precision` of `serde_json` would instead allocate each number of every request, and take an object with a
//! certain key for a number.)

use std::cell::Cell;
use std::fmt;

use memchr::memchr2;
use serde::{Serialize, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;
use weir::Text;

/// The number of decimal digits that every `f64` keeps.
const DIGITS_KEPT: usize = f64::DIGITS as usize;

/// Zero with a sign, which the parser hands on as a number with a fraction.
const MINUS_ZERO: &str = "-0";

/// A number of JSON.
#[derive(Clone, Debug)]
pub(super) enum JsonNumber {
    /// A number that is written again with the same value.
    Machine(Number),
    /// A number that no integer and no `f64` of 64 bits holds, as it was written; and `-0`, which is a whole number for an
    /// `Int` and has a sign for a `Float`.
    Exact(Text),
}

impl JsonNumber {
    /// Returns the number of this text, whose nearest `f64` is known. `None` if that is not finite.
    pub(super) fn of_text(nearest: f64, text: &str) -> Option<JsonNumber> {
        let machine = Number::from_f64(nearest)?;
        if text == MINUS_ZERO {
            return Some(JsonNumber::Exact(MINUS_ZERO.into()));
        }
        // A text that is as short has no more digits, whatever they are.
        if text.len() <= DIGITS_KEPT && nearest.is_normal() {
            return Some(JsonNumber::Machine(machine));
        }
        let decimal = Decimal::of(text);
        let is_kept = decimal.digits.len() <= DIGITS_KEPT && (nearest.is_normal() || decimal.digits.is_empty());
        Some(match is_kept || decimal == Decimal::of(&format!("{nearest:e}")) {
            true => JsonNumber::Machine(machine),
            false => JsonNumber::Exact(text.into()),
        })
    }

    /// Returns the number if it is whole and fits.
    pub(super) fn as_i64(&self) -> Option<i64> {
        match self {
            JsonNumber::Machine(number) => number.as_i64(),
            JsonNumber::Exact(text) => (text.as_str() == MINUS_ZERO).then_some(0),
        }
    }

    /// Returns the nearest `f64`.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            JsonNumber::Machine(number) => number.as_f64(),
            JsonNumber::Exact(text) => text.parse().ok(),
        }
    }
}

impl PartialEq for JsonNumber {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (JsonNumber::Machine(one), JsonNumber::Machine(other)) => one == other,
            (JsonNumber::Exact(one), JsonNumber::Exact(other)) => Decimal::of(one) == Decimal::of(other),
            _ => false,
        }
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonNumber::Machine(number) => number.fmt(f),
            JsonNumber::Exact(text) => f.write_str(text),
        }
    }
}

impl Serialize for JsonNumber {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            JsonNumber::Machine(number) => number.serialize(to),
            JsonNumber::Exact(text) => {
                serde_json::from_str::<&RawValue>(text).map_err(serde::ser::Error::custom)?.serialize(to)
            }
        }
    }
}

/// The value of a number's text: 0.digits · 10^exponent, without zeros at either end of the digits.
#[derive(PartialEq)]
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i128,
}

impl Decimal {
    /// Reads the text of a number, which is one of JSON.
    fn of(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        let mut significant: Vec<u8> = digits.skip_while(|digit| *digit == b'0').collect();
        let leading = whole.len() + fraction.len() - significant.len();
        while significant.last() == Some(&b'0') {
            significant.pop();
        }
        // Numbers with exponents of more than 38 digits are taken for equal.
        let limit = if exponent.starts_with('-') { i128::MIN } else { i128::MAX };
        let exponent = exponent.parse::<i128>().unwrap_or(limit);
        let exponent = match significant.is_empty() {
            true => 0,
            false => exponent.saturating_add(whole.len() as i128 - leading as i128),
        };
        Decimal { is_negative: mantissa.starts_with('-'), digits: significant, exponent }
    }
}

/// The numbers in a text of JSON, in the order in which the parser meets them.
pub(super) struct NumberTexts<'a> {
    json: &'a [u8],
    /// The place behind the number that was found last.
    at: Cell<usize>,
    /// Number of numbers that were passed since then.
    passed: Cell<usize>,
}

impl<'a> NumberTexts<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        NumberTexts { json, at: Cell::new(0), passed: Cell::new(0) }
    }

    /// Passes a number.
    pub(super) fn pass(&self) {
        self.passed.set(self.passed.get() + 1);
    }

    /// Returns the text of the next number.
    pub(super) fn next(&self) -> Option<&'a str> {
        for _ in 0..self.passed.take() {
            self.find();
        }
        self.find()
    }

    /// Finds the number behind the last one.
    fn find(&self) -> Option<&'a str> {
        let mut at = self.at.get();
        loop {
            match self.json.get(at)? {
                b'"' => at = self.behind_string(at + 1),
                b'-' | b'0'..=b'9' => break,
                _ => at += 1,
            }
        }
        let number = &self.json[at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = number.iter().position(|byte| !is_part(byte)).unwrap_or(number.len());
        self.at.set(at + length);
        str::from_utf8(&number[..length]).ok()
    }

    /// Returns the place behind the string whose first character is here.
    fn behind_string(&self, mut at: usize) -> usize {
        while let Some(found) = self.json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += found + 1;
            match self.json[at - 1] {
                b'"' => return at,
                _ => at += 1,
            }
        }
        self.json.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> JsonNumber {
        JsonNumber::of_text(text.parse().expect("a number"), text).expect("finite")
    }

    #[test]
    fn only_numbers_that_would_lose_digits_are_kept_as_texts() {
        for kept in
            ["1.0", "1e22", "10000000000000000000000", "0.1", "1.50", "-0.0", "-0.0e5", "5e-324", "123456789.012345e3"]
        {
            assert!(matches!(number(kept), JsonNumber::Machine(_)), "{kept}");
        }
        for exact in
            ["12345678901234567890123", "0.1000000000000000055511151231257827", "1e-400", "-9.000000000000000000001"]
        {
            assert!(matches!(number(exact), JsonNumber::Exact(_)), "{exact}");
            assert_eq!(number(exact).to_string(), exact);
        }
    }

    #[test]
    fn zero_with_a_sign_is_a_whole_number() {
        assert_eq!(number("-0").as_i64(), Some(0));
        assert_eq!(number("-0").to_string(), "-0");
        assert!(number("-0").as_f64().is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        assert_eq!(number("-0.0").as_i64(), None);
    }

    #[test]
    fn exact_numbers_are_equal_if_their_values_are() {
        assert_eq!(number("12345678901234567890123"), number("1234567890123456789012.30e1"));
        assert_eq!(number("1e-400"), number("0.01E-0398"));
        for other in ["-12345678901234567890123", "12345678901234567890124", "12345678901234567890123e1"] {
            assert_ne!(number("12345678901234567890123"), number(other));
        }
    }

    #[test]
    fn numbers_in_strings_are_no_numbers() {
        let texts = NumberTexts::new(br#"{"1": [2, "3\"4", -5.5e+1, "\\"], "6": 7}"#);
        texts.pass();
        assert_eq!((texts.next(), texts.next(), texts.next()), (Some("-5.5e+1"), Some("7"), None));
    }

    proptest! {
        #[test]
        fn a_number_is_written_with_the_value_that_was_read(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?") {
            let written = number(&text).to_string();
            prop_assert!(Decimal::of(&written) == Decimal::of(&text), "{text} became {written}");
        }
    }
}
