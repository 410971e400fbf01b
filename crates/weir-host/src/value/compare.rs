//! Equality, order and hashes of values, by structure; host values by identity.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Value;

/// Structural. Floats compare by their bits' total order, so that a value always equals itself.
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
        use Value::*;
        match (self, other) {
            (Bool(a), Bool(b)) => a.cmp(b),
            (Int(a), Int(b)) | (Time(a), Time(b)) | (Duration(a), Duration(b)) => a.cmp(b),
            (Float(a), Float(b)) => a.total_cmp(b),
            (Size(a), Size(b)) => a.cmp(b),
            (Text(a), Text(b)) => a.cmp(b),
            (Bytes(a), Bytes(b)) => a.cmp(b),
            (List(a), List(b)) | (Record(a), Record(b)) => a.cmp(b),
            (Map(a), Map(b)) => a.iter().cmp(b.iter()),
            (Variant(a, x), Variant(b, y)) => a.cmp(b).then_with(|| x.cmp(y)),
            (Failure(a), Failure(b)) => a.kind.cmp(&b.kind).then_with(|| a.message.cmp(&b.message)),
            (Host(a), Host(b)) => Arc::as_ptr(a).cast::<()>().cmp(&Arc::as_ptr(b).cast::<()>()),
            _ => rank(self).cmp(&rank(other)),
        }
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
        rank(self).hash(state);
        match self {
            Value::Absent | Value::Unit | Value::Unique(_) => {}
            Value::Bool(value) => value.hash(state),
            Value::Int(value) | Value::Time(value) | Value::Duration(value) => value.hash(state),
            Value::Float(value) => value.to_bits().hash(state),
            Value::Size(value) => value.hash(state),
            Value::Text(value) => value.hash(state),
            Value::Bytes(value) => value.hash(state),
            Value::List(value) | Value::Record(value) => value.hash(state),
            Value::Map(value) => value.iter().for_each(|entry| entry.hash(state)),
            Value::Variant(tag, payload) => (tag, payload).hash(state),
            Value::Failure(value) => value.message.hash(state),
            Value::Host(value) => Arc::as_ptr(value).cast::<()>().hash(state),
        }
    }
}
