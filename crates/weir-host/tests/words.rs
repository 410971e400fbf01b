//! Typed entry points: functions of scalars that take and return words.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

use std::time::{Duration, SystemTime};

use weir::{Size, Text, WordCode};

#[weir::function(pure)]
fn weighed(value: i64, weight: f64, is_double: bool, count: u8) -> f64 {
    value as f64 * weight * if is_double { 2.0 } else { 1.0 } + f64::from(count)
}

#[weir::function(pure)]
fn doubled(value: u64) -> u64 {
    value.wrapping_mul(2)
}

#[weir::function(pure)]
fn measured(length: Duration, from: SystemTime, size: Size) -> SystemTime {
    from + length + Duration::from_nanos(size.0)
}

#[weir::function(pure)]
fn of_text(text: Text) -> i64 {
    text.len() as i64
}

#[weir::function(pure)]
fn to_text(value: i64) -> String {
    value.to_string()
}

#[weir::function(pure)]
fn fallible(value: i64) -> Result<i64, std::num::TryFromIntError> {
    u8::try_from(value).map(i64::from)
}

#[weir::function(pure)]
fn borrowing(value: &i64) -> i64 {
    *value
}

weir::library!(words: weighed, doubled, measured, of_text, to_text, fallible, borrowing);

fn entry_point(name: &str) -> Option<WordCode> {
    words().functions[name].words
}

#[test]
fn words_are_the_arguments_and_the_result() {
    let weighed = entry_point("weighed").unwrap();
    let word = weighed(&[(-3_i64).cast_unsigned(), 1.5_f64.to_bits(), 1, 200]).unwrap();
    assert_eq!(f64::from_bits(word), 191.0);
    let measured = entry_point("measured").unwrap();
    assert_eq!(measured(&[5, (-20_i64).cast_unsigned(), 7]).unwrap().cast_signed(), -8);
}

#[test]
fn a_word_outside_of_the_rust_type_is_refused_as_a_value_is() {
    let weighed = entry_point("weighed").unwrap();
    let failure = weighed(&[1, 0, 0, 300]).unwrap_err();
    assert_eq!(failure.message.as_str(), "argument `count`: must be 0 to 255, not 300");
    let doubled = entry_point("doubled").unwrap();
    let failure = doubled(&[i64::MAX.cast_unsigned()]).unwrap_err();
    assert_eq!(failure.message.as_str(), "18446744073709551614 is above 9223372036854775807, the largest Int");
    let failure = entry_point("measured").unwrap()(&[(-1_i64).cast_unsigned(), 0, 0]).unwrap_err();
    assert_eq!(failure.message.as_str(), "argument `length`: must not be negative, but is -1ns");
}

#[test]
fn functions_of_other_types_have_none() {
    for name in ["of_text", "to_text", "fallible", "borrowing"] {
        assert!(entry_point(name).is_none(), "{name}");
    }
}
