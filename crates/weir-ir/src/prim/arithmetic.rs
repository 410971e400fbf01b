//! Arithmetic on numbers, durations, sizes and times: overflow and division by zero are failures.

use weir_host::memory::ask;
use weir_host::{Elements, Failure, Value};

use super::Prim;
use super::interpolate::interpolate;

impl Prim {
    /// Applies arithmetic to two integers, so that engines can inline it. Returns `None` if it fails, and for everything else.
    #[inline]
    #[must_use]
    pub fn calculate(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Prim::Add => a.checked_add(b),
            Prim::Subtract => a.checked_sub(b),
            Prim::Multiply => a.checked_mul(b),
            Prim::Divide => a.checked_div(b),
            Prim::Remainder if b != 0 => Some(a.checked_rem(b).unwrap_or(0)),
            _ => None,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_calculated_as_other_values_are() {
        let numbers = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 2, 7, 1 << 40, i64::MAX];
        for prim in [Prim::Add, Prim::Subtract, Prim::Multiply, Prim::Divide, Prim::Remainder] {
            for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
                let applied = prim.apply(&[&Value::Int(a), &Value::Int(b)]).ok();
                assert_eq!(prim.calculate(a, b).map(Value::Int), applied, "{prim:?} {a} {b}");
            }
        }
        assert_eq!(Prim::Equal.calculate(1, 1), None);
    }
}
