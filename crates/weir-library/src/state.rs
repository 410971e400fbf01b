//! State: shared values of ordinary types, looked into and changed. Each function is one step.
//!
//! `shared hits = 0` makes a number for all flows, and `hits.add(1)` is `state.add(hits, 1)`: these functions can be called
//! on every shared value with a dot. A shared value that is used as a value is [`read`]: it is what it was at that moment,
//! and stays so.

use weir::{Elements, Entries, Generic, Value};

/// Elements of a list, and entries of a map, that are kept where a program does not say how many.
pub const KEPT_MAX: usize = 10_000_000;

weir::library! {
    /// State: shared values of ordinary types, looked into and changed.
    pub(crate) state: read, set, add, get, put, remove, push
}

/// What the value is at this moment; a shared value in an expression is short for it.
#[weir::function(reads)]
pub fn read(value: &Value) -> Value {
    value.clone()
}

/// Gives a shared value another value, and gives back the one before.
#[weir::function(reads)]
pub fn set(value: &mut Value, to: Value) -> Value {
    std::mem::replace(value, to)
}

/// Adds to a shared number, and gives the sum. What does not fit into 64 bits is the largest or smallest number that does.
#[weir::function(reads)]
pub fn add(number: &mut i64, by: i64) -> i64 {
    *number = number.saturating_add(by);
    *number
}

/// What a shared map has under the key.
#[weir::function(reads)]
pub fn get(map: &Entries, key: Generic<'K'>) -> Option<Generic<'V'>> {
    map.get(&key.0).cloned().map(Generic)
}

/// Puts a value under the key of a shared map, and gives back the one before. Of more than `keep` entries, those go whose
/// keys came first.
// Nobody else holds the map most of the time, and then it is changed where it is.
#[weir::function(reads)]
pub fn put(
    map: &mut Entries,
    key: Generic<'K'>,
    value: Generic<'V'>,
    #[default(10_000_000)] keep: usize,
) -> Option<Generic<'V'>> {
    let before = map.insert(key.0, value.0);
    while map.len() > keep.min(KEPT_MAX) {
        map.remove_first();
    }
    before.map(Generic)
}

/// Takes what is under the key out of a shared map, and gives it.
#[weir::function(reads)]
pub fn remove(map: &mut Entries, key: Generic<'K'>) -> Option<Generic<'V'>> {
    map.remove(&key.0).map(Generic)
}

/// Adds an element at the end of a shared list. Of more than `keep`, the first go. Takes the longer, the longer the list is:
/// of many elements, a map is the better home.
#[weir::function(reads)]
pub fn push(list: &mut Elements, value: Value, #[default(10_000_000)] keep: usize) {
    list.push(value);
    list.keep(list.len().saturating_sub(keep.min(KEPT_MAX)), list.len());
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
    fn of_more_elements_than_are_kept_the_first_go() {
        assert_eq!(pushed(&[], 2), list(&[9]));
        assert_eq!(pushed(&[1, 2], KEPT_MAX), list(&[1, 2, 9]));
        assert_eq!(pushed(&[1, 2, 3, 4], 2), list(&[4, 9]));
        assert_eq!(pushed(&[1], 1), list(&[9]));
        assert_eq!(pushed(&[1, 2], 0), list(&[]));
    }

    #[test]
    fn who_has_read_a_list_keeps_what_it_was() {
        let mut elements = list(&[1, 2]);
        let seen = elements.clone();
        push(&mut elements, Value::Int(3), KEPT_MAX);
        assert_eq!((seen, elements), (list(&[1, 2]), list(&[1, 2, 3])));
    }

    #[test]
    fn of_more_entries_than_are_kept_those_go_whose_keys_came_first() {
        let mut entries = Entries::default();
        for key in [1, 2, 1, 3] {
            put(&mut entries, Generic(Value::Int(key)), Generic(Value::Int(-key)), 2);
        }
        let keys: Vec<_> = entries.keys().cloned().collect();
        assert_eq!(keys, [Value::Int(2), Value::Int(3)]);
    }

    #[test]
    fn a_number_stays_within_its_bits() {
        let mut number = i64::MAX - 1;
        assert_eq!(add(&mut number, 5), i64::MAX);
        assert_eq!(add(&mut number, -1), i64::MAX - 1);
    }
}
