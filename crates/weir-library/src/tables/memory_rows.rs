//! The rows of a table in memory: a hash finds one by its key, and a tree visits them in the order of their keys.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use weir::Value;

/// Rows by their keys.
#[derive(Debug)]
pub(super) struct KeyedRows<R> {
    rows: IndexMap<Value, R, RandomState>,
    /// The place of each row in `rows`.
    in_order: BTreeMap<Value, usize>,
}

impl<R> Default for KeyedRows<R> {
    fn default() -> Self {
        KeyedRows { rows: IndexMap::default(), in_order: BTreeMap::new() }
    }
}

impl<R> KeyedRows<R> {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    pub(super) fn get(&self, key: &Value) -> Option<&R> {
        self.rows.get(key)
    }

    pub(super) fn contains_key(&self, key: &Value) -> bool {
        self.rows.contains_key(key)
    }

    /// Inserts a row, or puts it in place of the one with its key.
    pub(super) fn insert(&mut self, key: Value, row: R) {
        let (place, before) = self.rows.insert_full(key.clone(), row);
        if before.is_none() {
            self.in_order.insert(key, place);
        }
    }

    /// Removes the row with the key. The last one takes its place.
    pub(super) fn remove(&mut self, key: &Value) -> Option<R> {
        let (place, _, removed) = self.rows.swap_remove_full(key)?;
        self.in_order.remove(key);
        if let Some((moved, _)) = self.rows.get_index(place) {
            self.in_order.insert(moved.clone(), place);
        }
        Some(removed)
    }

    /// Returns the rows whose keys are in the range, in the order of the keys.
    pub(super) fn range(&self, keys: RangeInclusive<Value>) -> impl DoubleEndedIterator<Item = &R> {
        self.in_order.range(keys).map(|(_, place)| &self.rows[*place])
    }
}

#[cfg(test)]
mod tests {
    use test_support::random::Random;

    use super::*;

    #[test]
    fn rows_are_those_of_a_tree() {
        let mut random = Random::new(7);
        let (mut rows, mut expected) = (KeyedRows::default(), BTreeMap::new());
        for written in 0..5_000 {
            let key = Value::Int(random.below(60) as i64);
            if random.below(2) == 0 {
                rows.insert(key.clone(), written);
                expected.insert(key, written);
            } else {
                assert_eq!(rows.remove(&key), expected.remove(&key));
            }
            let low = Value::Int(random.below(60) as i64);
            let range = || low.clone()..=Value::Int(50.max(if let Value::Int(low) = low { low } else { 0 }));
            assert!(rows.range(range()).eq(expected.range(range()).map(|(_, row)| row)));
            assert!(rows.range(range()).rev().eq(expected.range(range()).rev().map(|(_, row)| row)));
            assert_eq!((rows.len(), rows.get(&low)), (expected.len(), expected.get(&low)));
            assert_eq!(rows.contains_key(&low), expected.contains_key(&low));
        }
    }
}
