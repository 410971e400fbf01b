//! Move-only values: testing for them, and moving them out.

use weir_host::{Elements, Value, Values};

/// The depth up to which [`moves`] recurses into a value; deeper parts are walked without the stack.
const NESTED_MAX: u32 = 128;

/// Returns true if the value is or holds a move-only value.
#[must_use]
pub fn moves(value: &Value) -> bool {
    moves_within(value, NESTED_MAX)
}

fn moves_within(value: &Value, room: u32) -> bool {
    let Some(room) = room.checked_sub(1) else { return value.walk().any(|value| matches!(*value, Value::Unique(_))) };
    let moves = |value: &Value| moves_within(value, room);
    match value {
        Value::Unique(_) => true,
        Value::List(elements) if elements.is_packed() => false,
        // The elements of a list are of one type: if one holds no move-only value, none does.
        Value::List(elements) => {
            let mut elements = elements.iter().peekable();
            elements.peek().is_some_and(|first| holds(first)) && elements.any(|element| moves(&element))
        }
        Value::Record(parts) | Value::Variant(_, Some(parts)) => parts.iter().any(moves),
        // So are the values of a map, and a key can be copied, because it is compared.
        Value::Map(map) => map.first().is_some_and(|(_, value)| holds(value)) && map.values().any(moves),
        _ => false,
    }
}

/// Returns true if values of the same type may hold other values, or are move-only themselves.
fn holds(value: &Value) -> bool {
    use Value::{Absent, List, Map, Record, Unique, Variant};
    // A value that was moved away does not show its type.
    matches!(value, Absent | List(_) | Map(_) | Record(_) | Variant(..) | Unique(_))
}

/// Moves a move-only value out, so that [`Value::Absent`] stays behind; clones any other value.
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
