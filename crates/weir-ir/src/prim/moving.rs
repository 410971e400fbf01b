//! Values that can only be moved: whether one is or holds such a value, and moving it.

use weir_host::{Elements, Value, Values};

/// How deep [`moves`] looks into a value by recursion; deeper, it walks.
const NESTED_MAX: u32 = 128;

/// Whether the value is or holds one that can only be moved.
#[must_use]
pub fn moves(value: &Value) -> bool {
    moves_within(value, NESTED_MAX)
}

fn moves_within(value: &Value, room: u32) -> bool {
    let Some(room) = room.checked_sub(1) else { return value.walk().any(|value| matches!(value, Value::Unique(_))) };
    let moves = |value| moves_within(value, room);
    match value {
        Value::Unique(_) => true,
        // The elements of a list are of one type: where one holds nothing, none does.
        Value::List(elements) => elements.first().is_some_and(holds) && elements.iter().any(moves),
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

/// Returns the elements of a list, each moved or cloned.
#[must_use]
pub fn elements(list: &mut Elements) -> Vec<Value> {
    match list.unshared() {
        Some(elements) => elements.iter_mut().map(move_or_clone).collect(),
        None => list.to_vec(),
    }
}

/// Returns the parts of a record or payload, each moved or cloned.
#[must_use]
pub fn parts(parts: &mut Values) -> Vec<Value> {
    match parts.unshared() {
        Some(parts) => parts.iter_mut().map(move_or_clone).collect(),
        None => parts.to_vec(),
    }
}
