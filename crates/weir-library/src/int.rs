//! Functions on whole numbers: conversion, bounds, and bits.

use std::ops::RangeInclusive;

use weir::{Failure, FailureKind};

use crate::{Limited, number_format};

weir::library! {
    /// Functions on whole numbers: conversion, bounds, and bits.
    pub(crate) int: to_float, format, abs, modulo, floor_divide, gcd, sign, to_base, digits, power, bit_and, bit_or, bit_xor, bit_not, shift_left, shift_right,
        count_ones
}

/// The bases in which numbers are written.
pub(crate) const BASES: RangeInclusive<u32> = 2..=36;

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

/// Returns the remainder of the division with the sign of `divisor`, unlike `%`: `-1.modulo(7)` is 6. A `divisor` of 0 ends the
/// flow.
#[weir::function(pure)]
pub fn modulo(int: i64, divisor: i64) -> Limited<i64> {
    let zero = || Failure::arithmetic(format!("{int} divided by zero"));
    let remainder = if divisor == 0 { Err(zero()) } else { Ok(int.wrapping_rem(divisor)) };
    let other_sign = |rest: i64| rest != 0 && (rest < 0) != (divisor < 0);
    Limited(remainder.map(|rest| if other_sign(rest) { rest + divisor } else { rest }))
}

/// Returns the quotient rounded down, unlike `/`: `-7.floor_divide(2)` is -4. A `divisor` of 0, and a quotient that does not
/// fit into 64 bits, end the flow.
#[weir::function(pure)]
pub fn floor_divide(int: i64, divisor: i64) -> Limited<i64> {
    if divisor == 0 {
        return Limited(Err(Failure::arithmetic(format!("{int} divided by zero"))));
    }
    let is_lower = int.wrapping_rem(divisor) != 0 && (int < 0) != (divisor < 0);
    checked(int.checked_div(divisor).map(|quotient| quotient - i64::from(is_lower)))
}

/// Returns the greatest common divisor, which is 0 only of 0 and 0. One that does not fit into 64 bits ends the flow.
#[weir::function(pure)]
pub fn gcd(int: i64, other: i64) -> Limited<i64> {
    let (mut one, mut other) = (int.unsigned_abs(), other.unsigned_abs());
    while other != 0 {
        (one, other) = (other, one % other);
    }
    checked(i64::try_from(one).ok())
}

/// Returns -1, 0 or 1: the sign of the number.
#[weir::function(pure, total)]
pub fn sign(int: i64) -> i64 {
    int.signum()
}

/// Formats the number in a base, with small letters for the digits from 10 on: `255.to_base(16)` is `ff`. `text.parse_int` reads
/// it. A `base` that is not from 2 to 36 ends the flow.
#[weir::function(pure)]
pub fn to_base(int: i64, base: i64) -> Limited<String> {
    let Some(base) = u32::try_from(base).ok().filter(|base| BASES.contains(base)) else {
        return Limited(Err(Failure::argument(format!("`base` must be from 2 to 36, not {base}"))));
    };
    let (mut left, mut digits) = (int.unsigned_abs(), Vec::new());
    loop {
        digits.extend(char::from_digit((left % u64::from(base)) as u32, base));
        left /= u64::from(base);
        if left == 0 {
            break;
        }
    }
    digits.extend((int < 0).then_some('-'));
    Limited(Ok(digits.into_iter().rev().collect()))
}

/// Returns the decimal digits without the sign, the highest one first: `[1, 2]` for -12.
#[weir::function(pure, total)]
pub fn digits(int: i64) -> Vec<i64> {
    int.unsigned_abs().to_string().bytes().map(|digit| i64::from(digit - b'0')).collect()
}

/// Returns the number raised to a power. A result that does not fit into 64 bits ends the flow, as `*` does, and so does a power
/// below 0 of a number other than 1 and -1, whose result is no whole number.
#[weir::function(pure)]
pub fn power(int: i64, exponent: i64) -> Limited<i64> {
    let result = match (int, u32::try_from(exponent)) {
        (_, Ok(exponent)) => int.checked_pow(exponent),
        (1, Err(_)) => Some(1),
        (0, Err(_)) if exponent > 0 => Some(0),
        (-1, Err(_)) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) if exponent < 0 => {
            let message = format!("{int} to the power of {exponent} is no whole number");
            return Limited(Err(Failure::new(FailureKind::Arithmetic, message)));
        }
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
