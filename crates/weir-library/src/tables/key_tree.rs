//! An ordered map of a table in memory, from keys. Keys that are one `Int` are stored as numbers, which take less memory, and are
//! compared faster than values are.

use std::collections::BTreeMap;
use std::ops::Bound;

use weir::Value;

/// A map from keys, all of which have the same type.
#[derive(Debug)]
pub(super) enum KeyTree<V> {
    Numbers(BTreeMap<i64, V>),
    Values(BTreeMap<Value, V>),
}

/// The least and the greatest key of a visit.
pub(super) type KeyRange<'k> = (Bound<&'k Value>, Bound<&'k Value>);

impl<V> Default for KeyTree<V> {
    fn default() -> Self {
        KeyTree::Numbers(BTreeMap::new())
    }
}

impl<V> KeyTree<V> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            KeyTree::Numbers(tree) => tree.is_empty(),
            KeyTree::Values(tree) => tree.is_empty(),
        }
    }

    /// Inserts a value, or puts it in place of the one with its key.
    pub(super) fn insert(&mut self, key: Value, value: V) {
        match (&mut *self, key) {
            (KeyTree::Numbers(tree), Value::Int(number)) => {
                tree.insert(number, value);
            }
            (KeyTree::Values(tree), key) => {
                tree.insert(key, value);
            }
            (KeyTree::Numbers(tree), key) => {
                // The first key: the others would be numbers, too.
                let before = std::mem::take(tree).into_iter().map(|(number, value)| (Value::Int(number), value));
                *self = KeyTree::Values(before.chain([(key, value)]).collect());
            }
        }
    }

    pub(super) fn remove(&mut self, key: &Value) {
        match (self, key) {
            (KeyTree::Numbers(tree), Value::Int(number)) => {
                tree.remove(number);
            }
            (KeyTree::Numbers(_), _) => {}
            (KeyTree::Values(tree), key) => {
                tree.remove(key);
            }
        }
    }

    /// Returns whether the test holds for a key.
    pub(super) fn any_key(&self, mut test: impl FnMut(&Value) -> bool) -> bool {
        match self {
            KeyTree::Numbers(tree) => tree.keys().any(|number| test(&Value::Int(*number))),
            KeyTree::Values(tree) => tree.keys().any(test),
        }
    }

    /// Calls `visit` with the values whose keys are in the range, in the order of the keys or the other way round, until it returns false.
    /// Returns whether it never did. The range does not end before it begins.
    pub(super) fn visit(&self, range: KeyRange<'_>, descending: bool, mut visit: impl FnMut(&V) -> bool) -> bool {
        match self {
            KeyTree::Numbers(tree) => {
                let (Some(low), Some(high)) = (least_number(range.0), greatest_number(range.1)) else { return true };
                let mut found = tree.range((low, high)).map(|(_, value)| value);
                if descending { found.rev().all(visit) } else { found.all(visit) }
            }
            KeyTree::Values(tree) => {
                let mut found = tree.range::<Value, _>(range).map(|(_, value)| value);
                if descending { found.rev().all(&mut visit) } else { found.all(visit) }
            }
        }
    }
}

/// Returns the bound of the least number; `None` if no number is so large.
fn least_number(low: Bound<&Value>) -> Option<Bound<i64>> {
    match low {
        Bound::Included(Value::Int(number)) => Some(Bound::Included(*number)),
        Bound::Excluded(Value::Int(number)) => Some(Bound::Excluded(*number)),
        Bound::Included(value) | Bound::Excluded(value) if *value > Value::Int(i64::MAX) => None,
        _ => Some(Bound::Unbounded),
    }
}

/// Returns the bound of the greatest number; `None` if no number is so small.
fn greatest_number(high: Bound<&Value>) -> Option<Bound<i64>> {
    match high {
        Bound::Included(Value::Int(number)) => Some(Bound::Included(*number)),
        Bound::Excluded(Value::Int(number)) => Some(Bound::Excluded(*number)),
        Bound::Included(value) | Bound::Excluded(value) if *value < Value::Int(i64::MIN) => None,
        _ => Some(Bound::Unbounded),
    }
}
