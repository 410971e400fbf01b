//! Structural equality, order and hashing of values; host values by identity.
//!
//! All three first examine a value's head, which is everything but its parts, and then the parts: recursively up to
//! [`NESTED_MAX`] levels, without allocation, and with a stack on the heap below.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Value;
use crate::value::NESTED_MAX;

/// Structural equality. Floats compare by the total order of their bits, so that a value always equals itself.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A total order: by type first, then by content.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other, NESTED_MAX)
    }
}

fn compare(one: &Value, other: &Value, room: u32) -> Ordering {
    let (values, others) = match (one, other) {
        (Value::List(a), Value::List(b)) | (Value::Record(a), Value::Record(b)) => (a, b),
        (Value::Variant(x, Some(a)), Value::Variant(y, Some(b))) if x == y => (a, b),
        (Value::Map(_), Value::Map(_)) => return compare_deep(one, other),
        _ => return compare_heads(one, other),
    };
    if are_one(values, others) {
        return Ordering::Equal;
    }
    compare_all(values, others, room).unwrap_or_else(|| compare_deep(one, other))
}

/// Returns `true` if two values share the same parts, which then need no comparison. Without this check, a value that
/// contains another twice, on many levels, would take exponential time.
fn are_one(values: &[Value], others: &[Value]) -> bool {
    std::ptr::eq(values, others)
}

/// Compares the parts in turn; `None` if the recursion limit is reached.
fn compare_all(values: &[Value], others: &[Value], room: u32) -> Option<Ordering> {
    let room = room.checked_sub(1)?;
    for (one, other) in values.iter().zip(others) {
        let ordering = compare(one, other, room);
        if ordering.is_ne() {
            return Some(ordering);
        }
    }
    Some(values.len().cmp(&others.len()))
}

/// Compares the parts of two values with equal heads.
fn compare_deep(one: &Value, other: &Value) -> Ordering {
    let mut open = vec![(one, other, 0)];
    while let Some((one, other, index)) = open.last_mut() {
        let parts = (one.part(*index), other.part(*index));
        *index += 1;
        let ordering = match parts {
            (Some(one), Some(other)) => {
                let ordering = compare_heads(one, other);
                if !one.values().zip(other.values()).is_some_and(|(values, others)| are_one(values, others)) {
                    open.push((one, other, 0));
                }
                ordering
            }
            (None, None) => {
                open.pop();
                Ordering::Equal
            }
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

fn compare_heads(one: &Value, other: &Value) -> Ordering {
    use Value::*;
    match (one, other) {
        (Bool(a), Bool(b)) => a.cmp(b),
        (Int(a), Int(b)) | (Time(a), Time(b)) | (Duration(a), Duration(b)) => a.cmp(b),
        (Float(a), Float(b)) => a.total_cmp(b),
        (Size(a), Size(b)) => a.cmp(b),
        (Text(a), Text(b)) => a.cmp(b),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        (Variant(a, x), Variant(b, y)) => a.cmp(b).then(x.is_some().cmp(&y.is_some())),
        (Failure(a), Failure(b)) => a.kind.cmp(&b.kind).then_with(|| a.message.cmp(&b.message)),
        (Host(a), Host(b)) => Arc::as_ptr(a).cast::<()>().cmp(&Arc::as_ptr(b).cast::<()>()),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Absent => 0,
        Value::Unit => 1,
        Value::Bool(_) => 2,
        Value::Int(_) => 3,
        Value::Float(_) => 4,
        Value::Time(_) => 5,
        Value::Duration(_) => 6,
        Value::Size(_) => 7,
        Value::Text(_) => 8,
        Value::Bytes(_) => 9,
        Value::List(_) => 10,
        Value::Map(_) => 11,
        Value::Record(_) => 12,
        Value::Variant(..) => 13,
        Value::Failure(_) => 14,
        Value::Host(_) => 15,
        Value::Unique(_) => 16,
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self, state, NESTED_MAX);
    }
}

/// Hashes heads in the order of a walk, so that the result does not depend on the recursion depth.
fn hash<H: Hasher>(value: &Value, state: &mut H, room: u32) {
    match (value, value.values(), room.checked_sub(1)) {
        (_, Some(values), Some(room)) => {
            hash_head(value, state);
            values.iter().for_each(|value| hash(value, state, room));
        }
        (Value::Map(_), ..) | (_, Some(_), None) => value.walk().for_each(|value| hash_head(value, state)),
        _ => hash_head(value, state),
    }
}

fn hash_head<H: Hasher>(value: &Value, state: &mut H) {
    rank(value).hash(state);
    match value {
        Value::Absent | Value::Unit | Value::Unique(_) => {}
        Value::Bool(value) => value.hash(state),
        Value::Int(value) | Value::Time(value) | Value::Duration(value) => value.hash(state),
        Value::Float(value) => value.to_bits().hash(state),
        Value::Size(value) => value.hash(state),
        Value::Text(value) => value.hash(state),
        Value::Bytes(value) => value.hash(state),
        Value::List(values) | Value::Record(values) => values.len().hash(state),
        Value::Map(map) => map.len().hash(state),
        Value::Variant(tag, payload) => (tag, payload.as_ref().map(|values| values.len())).hash(state),
        Value::Failure(value) => value.message.hash(state),
        Value::Host(value) => Arc::as_ptr(value).cast::<()>().hash(state),
    }
}
