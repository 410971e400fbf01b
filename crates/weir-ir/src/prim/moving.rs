//! Values that can only be moved: whether one is or holds such a value, and moving it.

use std::sync::Arc;

use weir_host::Value;

/// Whether the value is or holds one that can only be moved.
#[must_use]
pub fn moves(value: &Value) -> bool {
    match value {
        Value::Unique(_) => true,
        // The elements of a list are of one type: where one holds nothing, none does.
        Value::List(parts) => parts.first().is_some_and(holds) && parts.iter().any(moves),
        Value::Record(parts) | Value::Variant(_, Some(parts)) => parts.iter().any(moves),
        // So are the values of a map, and a key can be copied, for it is compared.
        Value::Map(map) => map.first().is_some_and(|(_, value)| holds(value)) && map.values().any(moves),
        _ => false,
    }
}

/// Whether values of this one's type may hold others, or can only be moved themselves.
fn holds(value: &Value) -> bool {
    use Value::{Absent, List, Map, Record, Unique, Variant};
    // What was moved away says nothing of its type.
    matches!(value, Absent | List(_) | Map(_) | Record(_) | Variant(..) | Unique(_))
}

/// The value: itself where it can only be moved, and [`Value::Absent`] stays behind; else a clone.
#[must_use]
pub fn move_or_clone(value: &mut Value) -> Value {
    if moves(value) { value.take() } else { value.clone() }
}

/// The elements, each moved or cloned.
#[must_use]
pub fn elements(parts: &mut Arc<[Value]>) -> Vec<Value> {
    match Arc::get_mut(parts) {
        Some(parts) => parts.iter_mut().map(move_or_clone).collect(),
        None => parts.to_vec(),
    }
}
