//! Arithmetic on numbers, durations, sizes and times: overflow and division by zero are failures.

use weir_host::memory::ask;
use weir_host::{Elements, Failure, Value};

use super::interpolate::interpolate;

/// `a + b`; also joins texts and lists.
#[inline]
pub(super) fn add(a: &Value, b: &Value) -> Result<Value, Box<Failure>> {
    use Value::*;
    let sum = match (a, b) {
        (Int(x), Int(y)) => x.checked_add(*y).map(Int),
        (Float(x), Float(y)) => Some(Float(x + y)),
        (Duration(x), Duration(y)) => x.checked_add(*y).map(Duration),
        (Size(x), Size(y)) => x.checked_add(*y).map(Size),
        (Time(x), Duration(y)) | (Duration(x), Time(y)) => x.checked_add(*y).map(Time),
        (Text(_), Text(_)) => Some(Text(interpolate([a, b].into_iter())?)),
        (List(x), List(y)) => Some(List(joined(x, y)?)),
        _ => panic!("add of {a:?} and {b:?} passed the verifier"),
    };
    sum.ok_or_else(|| overflow("+", a, b))
}

fn joined(one: &Elements, other: &Elements) -> Result<Elements, Box<Failure>> {
    ask(one.bytes_to_copy() + other.bytes_to_append())?;
    let mut joined = one.clone();
    joined.append(other.clone());
    Ok(joined)
}

/// `a - b`.
#[inline]
pub(super) fn subtract(a: &Value, b: &Value) -> Result<Value, Box<Failure>> {
    use Value::*;
    let difference = match (a, b) {
        (Int(x), Int(y)) => x.checked_sub(*y).map(Int),
        (Float(x), Float(y)) => Some(Float(x - y)),
        (Duration(x), Duration(y)) | (Time(x), Time(y)) => x.checked_sub(*y).map(Duration),
        (Time(x), Duration(y)) => x.checked_sub(*y).map(Time),
        (Size(x), Size(y)) => x.checked_sub(*y).map(Size),
        _ => panic!("subtract of {a:?} and {b:?} passed the verifier"),
    };
    difference.ok_or_else(|| overflow("-", a, b))
}

/// `a * b`.
#[inline]
pub(super) fn multiply(a: &Value, b: &Value) -> Result<Value, Box<Failure>> {
    use Value::*;
    let product = match (a, b) {
        (Int(x), Int(y)) => x.checked_mul(*y).map(Int),
        (Float(x), Float(y)) => Some(Float(x * y)),
        (Duration(x), Int(y)) | (Int(y), Duration(x)) => x.checked_mul(*y).map(Duration),
        (Size(x), Int(y)) | (Int(y), Size(x)) => u64::try_from(*y).ok().and_then(|y| x.checked_mul(y)).map(Size),
        _ => panic!("multiply of {a:?} and {b:?} passed the verifier"),
    };
    product.ok_or_else(|| overflow("*", a, b))
}

/// `a / b`, towards zero for integers.
#[inline]
pub(super) fn divide(a: &Value, b: &Value) -> Result<Value, Box<Failure>> {
    use Value::*;
    let quotient = match (a, b) {
        (Float(x), Float(y)) => Some(Float(x / y)),
        (_, Int(0) | Duration(0) | Size(0)) => return Err(by_zero(a)),
        (Int(x), Int(y)) => x.checked_div(*y).map(Int),
        (Duration(x), Int(y)) => x.checked_div(*y).map(Duration),
        (Duration(x), Duration(y)) => x.checked_div(*y).map(Int),
        (Size(x), Int(y)) => u64::try_from(*y).ok().map(|y| Size(x / y)),
        (Size(x), Size(y)) => i64::try_from(x / y).ok().map(Int),
        _ => panic!("divide of {a:?} and {b:?} passed the verifier"),
    };
    quotient.ok_or_else(|| overflow("/", a, b))
}

/// `a % b`.
#[inline]
pub(super) fn remainder(a: &Value, b: &Value) -> Result<Value, Box<Failure>> {
    use Value::*;
    match (a, b) {
        (_, Int(0)) => Err(by_zero(a)),
        (Int(x), Int(y)) => Ok(Int(x.checked_rem(*y).unwrap_or(0))),
        (Float(x), Float(y)) => Ok(Float(x % y)),
        _ => panic!("remainder of {a:?} and {b:?} passed the verifier"),
    }
}

/// `-a`.
#[inline]
pub(super) fn negate(a: &Value) -> Result<Value, Box<Failure>> {
    let negative = match a {
        Value::Int(x) => x.checked_neg().map(Value::Int),
        Value::Float(x) => Some(Value::Float(-x)),
        Value::Duration(x) => x.checked_neg().map(Value::Duration),
        _ => panic!("negate of {a:?} passed the verifier"),
    };
    negative.ok_or_else(|| Box::new(Failure::arithmetic(format!("-({a}) is out of range"))))
}

fn overflow(what: &str, a: &Value, b: &Value) -> Box<Failure> {
    Box::new(Failure::arithmetic(format!("{a} {what} {b} is out of range")))
}

fn by_zero(a: &Value) -> Box<Failure> {
    Box::new(Failure::arithmetic(format!("{a} divided by zero")))
}
