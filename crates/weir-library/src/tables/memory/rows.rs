//! The rows of a table in memory: a hash finds one by its key, and a tree visits them in the order of their keys.

use std::ops::Bound;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use weir::Value;

use super::key_tree::KeyTree;

/// Rows by their keys.
#[derive(Debug)]
pub(super) struct KeyedRows<R> {
    rows: IndexMap<Value, R, RandomState>,
    /// The place of each row in `rows`.
    in_order: KeyTree<usize>,
}

impl<R> Default for KeyedRows<R> {
    fn default() -> Self {
        KeyedRows { rows: IndexMap::default(), in_order: KeyTree::default() }
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
        match self.rows.entry(key) {
            Entry::Occupied(mut entry) => _ = entry.insert(row),
            Entry::Vacant(entry) => {
                self.in_order.insert(entry.key(), entry.index());
                entry.insert(row);
            }
        }
    }

    /// Removes the row with the key. The last one takes its place.
    pub(super) fn remove(&mut self, key: &Value) -> Option<R> {
        let (place, _, removed) = self.rows.swap_remove_full(key)?;
        self.in_order.remove(key);
        if let Some((moved, _)) = self.rows.get_index(place) {
            self.in_order.insert(moved, place);
        }
        Some(removed)
    }

    /// Calls `visit` with the rows whose keys are between two, in the order of the keys or the other way round, until it returns false.
    pub(super) fn visit(&self, (low, high): (&Value, &Value), descending: bool, mut visit: impl FnMut(&R) -> bool) {
        let range = (Bound::Included(low), Bound::Included(high));
        self.in_order.visit(range, descending, |place| visit(&self.rows[*place]));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use test_support::random::Random;

    use super::*;

    #[test]
    fn rows_are_those_of_a_tree() {
        are_those_of_a_tree(Value::Int);
        are_those_of_a_tree(|number| Value::Record([Value::Int(number), Value::text("a")].into()));
    }

    fn are_those_of_a_tree(key: fn(i64) -> Value) {
        let mut random = Random::new(7);
        let (mut rows, mut expected) = (KeyedRows::default(), BTreeMap::new());
        let of_keys = key;
        for written in 0..5_000 {
            let key = of_keys(random.below(60) as i64);
            if random.below(2) == 0 {
                rows.insert(key.clone(), written);
                expected.insert(key, written);
            } else {
                assert_eq!(rows.remove(&key), expected.remove(&key));
            }
            let low = of_keys(random.below(60) as i64);
            for (from, to) in [
                (&low, &of_keys(60)),
                (&Value::Absent, &low),
                (&low, &Value::Failure(Box::new(weir::Failure::function("")))),
            ] {
                for descending in [false, true] {
                    let mut found = Vec::new();
                    rows.visit((from, to), descending, |row| {
                        found.push(*row);
                        true
                    });
                    let mut wanted: Vec<i32> = expected.range(from.clone()..=to.clone()).map(|(_, row)| *row).collect();
                    if descending {
                        wanted.reverse();
                    }
                    assert_eq!(found, wanted);
                }
            }
            assert_eq!((rows.len(), rows.get(&low)), (expected.len(), expected.get(&low)));
            assert_eq!(rows.contains_key(&low), expected.contains_key(&low));
        }
    }
}
