//! Functions on whole numbers: conversion, bounds, and bits.

use weir::{Failure, FailureKind};

use crate::{Limited, number_format};

weir::library! {
    /// Functions on whole numbers: conversion, bounds, and bits.
    pub(crate) int: to_float, format, abs, min, max, clamp, modulo, power, bit_and, bit_or, bit_xor, bit_not, shift_left, shift_right,
        count_ones
}

/// Returns the number as a `Float`; beyond 2^53, the nearest one.
#[weir::function(pure, total)]
pub fn to_float(int: i64) -> f64 {
    int as f64
}

/// Formats the number with a comma between thousands, and with zeros in front up to a number of characters:
/// `1234567.format(thousands: true)` is `1,234,567`. In a text, `{n:,}` and `{n:08}` do the same.
#[weir::function(pure, total)]
pub fn format(int: i64, #[default(false)] thousands: bool, #[default(0)] zeros_to: i64) -> String {
    number_format::formatted(&int.to_string(), thousands, zeros_to)
}

/// Returns the number without its sign. That of the least `Int` does not fit into one and ends the flow, as `-` does.
#[weir::function(pure)]
pub fn abs(int: i64) -> Limited<i64> {
    checked(int.checked_abs())
}

/// Returns the smaller number.
#[weir::function(pure, total)]
pub fn min(int: i64, other: i64) -> i64 {
    int.min(other)
}

/// Returns the greater number.
#[weir::function(pure, total)]
pub fn max(int: i64, other: i64) -> i64 {
    int.max(other)
}

/// Returns the number, or the bound that it is beyond. If `least` is above `most`, it is `most`.
#[weir::function(pure, total)]
pub fn clamp(int: i64, least: i64, most: i64) -> i64 {
    int.max(least).min(most)
}

/// Returns the remainder of the division with the sign of `divisor`, unlike `%`: `-1.modulo(7)` is 6. A `divisor` of 0 ends the
/// flow.
#[weir::function(pure)]
pub fn modulo(int: i64, divisor: i64) -> Limited<i64> {
    let zero = || Failure::arithmetic(format!("{int} divided by zero"));
    let remainder = if divisor == 0 { Err(zero()) } else { Ok(int.wrapping_rem(divisor)) };
    let other_sign = |rest: i64| rest != 0 && (rest < 0) != (divisor < 0);
    Limited(remainder.map(|rest| if other_sign(rest) { rest + divisor } else { rest }))
}

/// Returns the number raised to a power; a power below 0 counts as 0. A result that does not fit into 64 bits ends the flow,
/// as `*` does.
#[weir::function(pure)]
pub fn power(int: i64, exponent: i64) -> Limited<i64> {
    let result = match (int, u32::try_from(exponent.max(0))) {
        (_, Ok(exponent)) => int.checked_pow(exponent),
        (0 | 1, Err(_)) => Some(int),
        (-1, Err(_)) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => None,
    };
    checked(result)
}

/// Returns the bits that are set in both numbers.
#[weir::function(pure, total)]
pub fn bit_and(int: i64, other: i64) -> i64 {
    int & other
}

/// Returns the bits that are set in at least one of the numbers.
#[weir::function(pure, total)]
pub fn bit_or(int: i64, other: i64) -> i64 {
    int | other
}

/// Returns the bits that are set in exactly one of the numbers.
#[weir::function(pure, total)]
pub fn bit_xor(int: i64, other: i64) -> i64 {
    int ^ other
}

/// Returns the bits that are not set.
#[weir::function(pure, total)]
pub fn bit_not(int: i64) -> i64 {
    !int
}

/// Returns the 64 bits moved to the left by a number of places. Bits that leave are lost; 64 places or more give 0, and
/// fewer than 0 count as 0.
#[weir::function(pure, total)]
pub fn shift_left(int: i64, places: i64) -> i64 {
    u32::try_from(places.max(0)).ok().and_then(|places| int.checked_shl(places)).unwrap_or(0)
}

/// Returns the 64 bits moved to the right by a number of places, with copies of the sign on the left. Fewer than 0 places
/// count as 0.
#[weir::function(pure, total)]
pub fn shift_right(int: i64, places: i64) -> i64 {
    int >> places.clamp(0, 63)
}

/// Returns the number of bits that are set.
#[weir::function(pure, total)]
pub fn count_ones(int: i64) -> i64 {
    int.count_ones().into()
}

fn checked(result: Option<i64>) -> Limited<i64> {
    let overflow = || Failure::new(FailureKind::Arithmetic, "the result does not fit into an `Int`");
    Limited(result.ok_or_else(overflow))
}
