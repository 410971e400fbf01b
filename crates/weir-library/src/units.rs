//! Units of work of functions over user data, by which engines decide where a call runs (`units` of `#[weir::function]`). A
//! unit is about 20 ns. Each function here is an estimate from above for its kind of work, and takes much less time than
//! the work does.

use weir::Value;

/// Returns the number of bytes of a text or `Bytes`, and 0 for other values.
fn bytes(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        _ => 0,
    }
}

/// Returns the number of elements of a list, or of entries of a map; 0 for other values.
pub(crate) fn length(value: &Value) -> u64 {
    match value {
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.len() as u64,
        _ => 0,
    }
}

/// Returns the units of looking at each byte with vector instructions, as for a search.
pub(crate) fn to_scan(value: &Value) -> u64 {
    bytes(value) / 128
}

/// Returns the units of copying a text or `Bytes` to new memory.
pub(crate) fn to_copy(value: &Value) -> u64 {
    bytes(value) / 64
}

/// Returns the units of reading a text character by character, or of encoding or hashing it.
pub(crate) fn to_transform(value: &Value) -> u64 {
    bytes(value) / 16
}

/// Returns the units of verifying the signature of a text. With ECDSA on P-256, the slowest algorithm, a signature takes
/// about 80 µs; a secret key takes a hundredth of that.
pub(crate) fn to_verify(text: &Value) -> u64 {
    const SIGNATURE: u64 = 4_000;
    to_transform(text).saturating_add(SIGNATURE)
}

/// Returns the units of dividing a text into parts, each of which is allocated.
pub(crate) fn to_divide(value: &Value) -> u64 {
    bytes(value) / 2
}

/// Returns the units of finding all matches of a pattern in a text: each byte may be one.
pub(crate) fn to_match(text: &Value) -> u64 {
    bytes(text).saturating_mul(4)
}

/// Returns the units of joining parts with a separator between them.
pub(crate) fn to_join(parts: &Value, separator: &Value) -> u64 {
    let separators = length(parts).saturating_mul(bytes(separator)) / 64;
    to_read(parts).saturating_add(separators)
}

/// Returns the units of reading a value with everything in it. It looks at no more of the value than decides that the call
/// takes long.
pub(crate) fn to_read(value: &Value) -> u64 {
    /// The number of parts at which a call takes long whatever they are.
    const PARTS_MAX: usize = 10_000;
    if matches!(value, Value::List(list) if list.as_ints().is_some() || list.as_floats().is_some()) {
        return length(value);
    }
    if let Value::List(list) = value
        && let Some(units) = list.as_values().and_then(|values| of_texts(values, PARTS_MAX - 1))
    {
        return units.max(length(value));
    }
    let parts = value.walk().take(PARTS_MAX);
    let seen = parts.fold(0_u64, |units, part| units.saturating_add(1 + bytes(&part) / 64));
    seen.max(length(value))
}

/// Returns the units of reading a list of texts, of which it looks at so many; `None` if there are others.
fn of_texts(values: &[Value], most: usize) -> Option<u64> {
    values.iter().take(most).try_fold(1_u64, |units, value| match value {
        Value::Text(text) => Some(units.saturating_add(1 + text.len() as u64 / 64)),
        _ => None,
    })
}

/// Returns the units of sorting the elements of a list, or the keys of a map.
pub(crate) fn to_sort(value: &Value) -> u64 {
    let comparisons = |units: u64| units.saturating_mul(u64::from(length(value).max(1).ilog2()) + 1);
    match value {
        Value::List(list) if list.as_ints().is_some() || list.as_floats().is_some() => comparisons(length(value)) / 16,
        _ => comparisons(to_read(value)),
    }
}

/// Returns the units of repeating a text.
pub(crate) fn to_repeat(text: &Value, times: &Value) -> u64 {
    bytes(text).saturating_mul(count(times)) / 64
}

/// Returns the units of concatenating lists, each of which is a part of the list.
pub(crate) fn to_concat(lists: &Value) -> u64 {
    let Value::List(lists) = lists else { return 0 };
    lists.iter().fold(0_u64, |units, list| units.saturating_add(1 + length(&list)))
}

/// Returns the units of making a list of the numbers between two.
pub(crate) fn to_count(from: &Value, to: &Value) -> u64 {
    match (from, to) {
        (Value::Int(from), Value::Int(to)) if to > from => to.abs_diff(*from) / 16,
        _ => 0,
    }
}

/// Returns the units of making this many random bytes.
pub(crate) fn to_make(count_of_bytes: &Value) -> u64 {
    count(count_of_bytes) / 16
}

fn count(number: &Value) -> u64 {
    if let Value::Int(number) = number { u64::try_from(*number).unwrap_or(0) } else { 0 }
}
