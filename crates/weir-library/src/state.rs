//! Functions on shared values of ordinary types. Each call is atomic.
//!
//! `shared hits = 0` declares a number shared by all flows, and `hits.add(1)` is `state.add(hits, 1)`: these functions
//! can be called on every shared value with a dot. A shared value in an expression is [`read`]: a snapshot that later
//! changes do not affect.

use weir::{Elements, Entries, Generic, Value};

/// Default maximum number of elements of a list, and of entries of a map.
pub const KEPT_MAX: usize = 10_000_000;

weir::library! {
    /// Functions that read and change shared values of ordinary types.
    pub(crate) state: read, set, add, add_at, get, put, remove, push
}

/// Returns a snapshot of the value; a shared value in an expression is short for this.
#[weir::function(reads)]
pub fn read(value: &Value) -> Value {
    value.clone()
}

/// Replaces a shared value, and returns the previous one.
#[weir::function(reads)]
pub fn set(value: &mut Value, to: Value) -> Value {
    std::mem::replace(value, to)
}

/// Adds to a shared `Int`, `Float`, `Duration` or `Size`, and returns the sum. A sum that does not fit into 64 bits saturates.
#[weir::function(reads, commutes)]
pub fn add(number: &mut Value, by: Value) -> Value {
    *number = sum(number, &by);
    number.clone()
}

/// Adds to the number under the key of a shared map, and returns the sum: `counts.add_at(word, 1)`. A key that the map does not
/// have begins at zero, and a sum that does not fit into 64 bits saturates. If the map then has more than `keep` entries, the
/// oldest are removed.
#[weir::function(reads, commutes)]
pub fn add_at(
    map: &mut Entries,
    key: Generic<'k'>,
    by: Generic<'v'>,
    #[default(10_000_000)] keep: usize,
) -> Generic<'v'> {
    let total = map.get(&key.0).map_or_else(|| by.0.clone(), |number| sum(number, &by.0));
    put(map, key, Generic(total.clone()), keep);
    Generic(total)
}

/// Returns the sum of two numbers of one type. The compiler lets no other types pass.
fn sum(number: &Value, by: &Value) -> Value {
    match (number, by) {
        (Value::Int(number), Value::Int(by)) => Value::Int(number.saturating_add(*by)),
        (Value::Float(number), Value::Float(by)) => Value::Float(number + by),
        (Value::Duration(number), Value::Duration(by)) => Value::Duration(number.saturating_add(*by)),
        (Value::Size(number), Value::Size(by)) => Value::Size(number.saturating_add(*by)),
        (other, _) => other.clone(),
    }
}

/// Returns the value of a shared map under the key.
#[weir::function(reads)]
pub fn get(map: &Entries, key: Generic<'k'>) -> Option<Generic<'v'>> {
    map.get(&key.0).cloned().map(Generic)
}

/// Stores a value under the key of a shared map, and returns the previous one. If the map has more than `keep` entries,
/// the oldest are removed.
// The map is usually not shared, and is then changed in place.
#[weir::function(reads)]
pub fn put(
    map: &mut Entries,
    key: Generic<'k'>,
    value: Generic<'v'>,
    #[default(10_000_000)] keep: usize,
) -> Option<Generic<'v'>> {
    let before = map.insert(key.0, value.0);
    while map.len() > keep.min(KEPT_MAX) {
        map.remove_first();
    }
    before.map(Generic)
}

/// Removes the key from a shared map, and returns its value.
#[weir::function(reads)]
pub fn remove(map: &mut Entries, key: Generic<'k'>) -> Option<Generic<'v'>> {
    map.remove(&key.0).map(Generic)
}

/// Appends an element to a shared list, in logarithmic time at most. If the list has more than `keep` elements, the
/// first are removed.
#[weir::function(reads)]
pub fn push(list: &mut Elements, value: Value, #[default(10_000_000)] keep: usize) {
    list.push(value);
    list.remove_first(list.len().saturating_sub(keep.min(KEPT_MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(of: &[i64]) -> Elements {
        of.iter().map(|number| Value::Int(*number)).collect()
    }

    fn pushed(before: &[i64], keep: usize) -> Elements {
        let mut elements = list(before);
        push(&mut elements, Value::Int(9), keep);
        elements
    }

    #[test]
    fn the_first_elements_beyond_the_limit_are_removed() {
        assert_eq!(pushed(&[], 2), list(&[9]));
        assert_eq!(pushed(&[1, 2], KEPT_MAX), list(&[1, 2, 9]));
        assert_eq!(pushed(&[1, 2, 3, 4], 2), list(&[4, 9]));
        assert_eq!(pushed(&[1], 1), list(&[9]));
        assert_eq!(pushed(&[1, 2], 0), list(&[]));
    }

    #[test]
    fn a_snapshot_of_a_list_does_not_change() {
        let mut elements = list(&[1, 2]);
        let seen = elements.clone();
        push(&mut elements, Value::Int(3), KEPT_MAX);
        assert_eq!((seen, elements), (list(&[1, 2]), list(&[1, 2, 3])));
    }

    #[test]
    fn the_oldest_entries_beyond_the_limit_are_removed() {
        let mut entries = Entries::default();
        for key in [1, 2, 1, 3] {
            put(&mut entries, Generic(Value::Int(key)), Generic(Value::Int(-key)), 2);
        }
        let keys: Vec<_> = entries.keys().cloned().collect();
        assert_eq!(keys, [Value::Int(2), Value::Int(3)]);
    }

    #[test]
    fn addition_saturates() {
        let mut number = Value::Int(i64::MAX - 1);
        assert_eq!(add(&mut number, Value::Int(5)), Value::Int(i64::MAX));
        assert_eq!(add(&mut number, Value::Int(-1)), Value::Int(i64::MAX - 1));
        assert_eq!(add(&mut Value::Size(u64::MAX), Value::Size(1)), Value::Size(u64::MAX));
        assert_eq!(add(&mut Value::Duration(i64::MIN), Value::Duration(-1)), Value::Duration(i64::MIN));
    }

    #[test]
    fn a_missing_number_begins_at_zero_and_the_oldest_is_removed() {
        let mut entries = Entries::default();
        let mut added = |key, by| add_at(&mut entries, Generic(Value::Int(key)), Generic(Value::Float(by)), 2).0;
        assert_eq!(
            [added(1, 0.5), added(1, 1.0), added(2, 1.0), added(3, 1.0), added(1, 2.0)],
            [Value::Float(0.5), Value::Float(1.5), Value::Float(1.0), Value::Float(1.0), Value::Float(2.0)]
        );
    }
}
