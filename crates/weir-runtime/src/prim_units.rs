//! The units of primitives over data: comparison, concatenation and interpolation of texts, lists and other values whose
//! size the program's input decides.
//!
//! They are estimates from the sizes that are known without looking at the parts of a value. A comparison may end early,
//! at the first difference, so one primitive spends at most a quantum ([`Units::spend_data`](crate::units::Units)): the
//! safe point behind it then reads the clock, which ends the slice only if the primitive has taken long.

use weir_host::Value;
use weir_ir::prim::Prim;

/// The depth of values to which their size is estimated.
const DEPTH_MAX: usize = 4;
/// Bytes that are copied or compared in a unit of about 20 ns.
const BYTES_EACH: usize = 64;
/// Packed elements that are copied or compared in a unit.
const PACKED_EACH: usize = 8;

/// Returns the units of applying a primitive to these values; `reuses` if it may change the first one in place.
#[inline]
pub(crate) fn units<'v>(prim: Prim, mut operands: impl Iterator<Item = &'v Value>, reuses: bool) -> u64 {
    match prim {
        Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessOrEqual | Prim::Greater | Prim::GreaterOrEqual => {
            let (Some(one), Some(other)) = (operands.next(), operands.next()) else { return 0 };
            size(one, DEPTH_MAX).min(size(other, DEPTH_MAX))
        }
        Prim::Add if reuses => operands.skip(1).map(|operand| size(operand, DEPTH_MAX)).sum(),
        Prim::Add | Prim::Interpolate | Prim::Quote | Prim::Pairs | Prim::Collect | Prim::Flatten => {
            operands.fold(0, |units, operand| units.saturating_add(size(operand, DEPTH_MAX)))
        }
        Prim::Rest | Prim::Middle if !reuses => operands.next().map_or(0, |list| size(list, DEPTH_MAX)),
        _ => 0,
    }
}

/// Estimates the units of going through a value: for a list of lists and the like, from its first element.
#[inline]
fn size(value: &Value, depth: usize) -> u64 {
    match value {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => 0,
        Value::Text(text) => (text.len() / BYTES_EACH) as u64,
        other => size_of_parts(other, depth),
    }
}

fn size_of_parts(value: &Value, depth: usize) -> u64 {
    if depth == 0 {
        return 0;
    }
    let parts =
        |mut all: std::slice::Iter<'_, Value>| all.try_fold(0_u64, |sum, part| sum.checked_add(size(part, depth - 1)));
    match value {
        Value::Bytes(bytes) => (bytes.len() / BYTES_EACH) as u64,
        Value::List(list) if list.is_packed() => (list.bytes_to_append() / (8 * PACKED_EACH)) as u64,
        Value::List(list) => {
            let each = list.borrowed(0).map_or(1, |first| 1 + size(first, depth - 1));
            each.saturating_mul(list.len() as u64)
        }
        Value::Map(map) => 4 * map.len() as u64,
        Value::Record(fields) | Value::Variant(_, Some(fields)) => parts(fields.iter()).unwrap_or(u64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(prim: Prim, operands: &[Value]) -> u64 {
        units(prim, operands.iter(), false)
    }

    #[test]
    fn scalars_and_short_texts_are_free() {
        assert_eq!(of(Prim::Add, &[Value::Int(1), Value::Int(2)]), 0);
        assert_eq!(of(Prim::Equal, &[Value::text("short"), Value::text("other")]), 0);
    }

    #[test]
    fn large_values_take_units_by_their_size() {
        let text = Value::text(&"x".repeat(64_000));
        assert_eq!(of(Prim::Add, &[text.clone(), Value::text("y")]), 1_000);
        assert_eq!(of(Prim::Interpolate, &[text.clone(), text.clone()]), 2_000);
        assert_eq!(of(Prim::Equal, &[text.clone(), Value::text("y")]), 0, "the lengths differ");
        assert_eq!(units(Prim::Add, [&text, &Value::text("y")].into_iter(), true), 0, "the first is changed in place");
        let texts = Value::List((0..100).map(|_| text.clone()).collect());
        assert_eq!(of(Prim::Less, &[texts.clone(), texts]), 100 * 1_001);
    }
}
