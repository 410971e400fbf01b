//! Functions on floats: rounding, conversion, bounds, and roots and powers.

use weir::Value;

use crate::{number_format, units};

weir::library! {
    /// Functions on floats: rounding, conversion, bounds, and roots and powers.
    pub(crate) float: to_int, format, round, floor, ceiling, truncate, abs, min, max, clamp, square_root, power, sum, exponential, logarithm, is_nan, is_finite, pi, sine, cosine, tangent, arc_sine, arc_cosine, arc_tangent
}

/// Returns the number as an `Int` without its fraction; `None` if it does not fit into 64 bits or is not a number. To round
/// first, write `x.round().to_int()`.
#[weir::function(pure, total)]
pub fn to_int(float: f64) -> Option<i64> {
    // 2^63 is a float, and the first one that is too large; -2^63 fits.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    fits.then_some(float as i64)
}

/// Formats the number with this many digits behind the point, with a comma between thousands, and with zeros in front up to a
/// number of characters: `1234.5.format(decimals: Some(2), thousands: true)` is `1,234.50`. Without `decimals`, there are as
/// many digits as distinguish the number from all others. In a text, `{x:.2}`, `{x:,.2}` and `{x:08.2}` do the same.
#[weir::function(pure, total)]
pub fn format(
    float: f64,
    #[default(None)] decimals: Option<i64>,
    #[default(false)] thousands: bool,
    #[default(0)] zeros_to: i64,
) -> String {
    let digits = decimals.map(number_format::bounded);
    let plain = match digits {
        Some(digits) if float.is_finite() => format!("{float:.digits$}"),
        _ => Value::Float(float).to_string(),
    };
    number_format::formatted(&plain, thousands, zeros_to)
}

/// Returns the nearest whole number; one half is rounded away from 0.
#[weir::function(pure, total)]
pub fn round(float: f64) -> f64 {
    float.round()
}

/// Returns the greatest whole number that is not above.
#[weir::function(pure, total)]
pub fn floor(float: f64) -> f64 {
    float.floor()
}

/// Returns the least whole number that is not below.
#[weir::function(pure, total)]
pub fn ceiling(float: f64) -> f64 {
    float.ceil()
}

/// Returns the number without its fraction.
#[weir::function(pure, total)]
pub fn truncate(float: f64) -> f64 {
    float.trunc()
}

/// Returns the number without its sign.
#[weir::function(pure, total)]
pub fn abs(float: f64) -> f64 {
    float.abs()
}

/// Returns the smaller number; of a number and `NaN`, the number.
#[weir::function(pure, total)]
pub fn min(float: f64, other: f64) -> f64 {
    float.min(other)
}

/// Returns the greater number; of a number and `NaN`, the number.
#[weir::function(pure, total)]
pub fn max(float: f64, other: f64) -> f64 {
    float.max(other)
}

/// Returns the number, or the bound that it is beyond. If `least` is above `most`, it is `most`.
#[weir::function(pure, total)]
pub fn clamp(float: f64, least: f64, most: f64) -> f64 {
    float.max(least).min(most)
}

/// Returns the square root; `NaN` for a number below 0.
#[weir::function(pure, total)]
pub fn square_root(float: f64) -> f64 {
    float.sqrt()
}

/// Returns the number raised to a power.
#[weir::function(pure, total)]
pub fn power(float: f64, exponent: f64) -> f64 {
    float.powf(exponent)
}

/// Returns the sum of the numbers of a list, from the first to the last: `float.sum(prices)`.
#[weir::function(pure, total, units = units::length(floats))]
pub fn sum(floats: &[f64]) -> f64 {
    floats.iter().fold(0.0, |sum, float| sum + float)
}

/// Returns e raised to the number.
#[weir::function(pure, total)]
pub fn exponential(float: f64) -> f64 {
    float.exp()
}

/// Returns the natural logarithm; `NaN` for a number below 0.
#[weir::function(pure, total)]
pub fn logarithm(float: f64) -> f64 {
    float.ln()
}

/// Returns π, the ratio of a circle's circumference to its diameter.
#[weir::function(pure, total)]
pub fn pi() -> f64 {
    std::f64::consts::PI
}

/// Returns the sine of an angle in radians.
#[weir::function(pure, total)]
pub fn sine(float: f64) -> f64 {
    float.sin()
}

/// Returns the cosine of an angle in radians.
#[weir::function(pure, total)]
pub fn cosine(float: f64) -> f64 {
    float.cos()
}

/// Returns the tangent of an angle in radians.
#[weir::function(pure, total)]
pub fn tangent(float: f64) -> f64 {
    float.tan()
}

/// Returns the angle in radians, from -π/2 to π/2, with this sine; `NaN` for a number beyond -1 and 1.
#[weir::function(pure, total)]
pub fn arc_sine(float: f64) -> f64 {
    float.asin()
}

/// Returns the angle in radians, from 0 to π, with this cosine; `NaN` for a number beyond -1 and 1.
#[weir::function(pure, total)]
pub fn arc_cosine(float: f64) -> f64 {
    float.acos()
}

/// Returns the angle in radians, from -π to π, of the point at `float` above and `x` to the right of the origin; without `x`, the
/// angle with this tangent.
#[weir::function(pure, total)]
pub fn arc_tangent(float: f64, #[default(1.0)] x: f64) -> f64 {
    float.atan2(x)
}

/// Returns `true` if this is not a number, which equals nothing, not even itself.
#[weir::function(pure, total)]
pub fn is_nan(float: f64) -> bool {
    float.is_nan()
}

/// Returns `true` unless this is infinite or not a number.
#[weir::function(pure, total)]
pub fn is_finite(float: f64) -> bool {
    float.is_finite()
}
