//! An ordered index of a table in memory: the keys of the rows by the values of its columns.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use weir::Value;

/// An ordered index.
#[derive(Debug, Default)]
pub(super) struct MemoryIndex(BTreeMap<Vec<Value>, IndexedKeys>);

/// The keys of the rows that agree in the columns of an index. Often it is one: then it needs no memory of its own.
#[derive(Debug)]
pub(super) enum IndexedKeys {
    One(Value),
    Several(BTreeSet<Value>),
}

impl MemoryIndex {
    /// Returns the keys of the rows with these values.
    pub(super) fn keys(&self, values: &[Value]) -> impl Iterator<Item = &Value> {
        let (one, several) = match self.0.get(values) {
            Some(IndexedKeys::One(key)) => (Some(key), None),
            Some(IndexedKeys::Several(keys)) => (None, Some(keys)),
            None => (None, None),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    pub(super) fn insert(&mut self, values: Vec<Value>, key: Value) {
        match self.0.entry(values) {
            Entry::Vacant(entry) => {
                entry.insert(IndexedKeys::One(key));
            }
            Entry::Occupied(mut entry) => entry.get_mut().insert(key),
        }
    }

    pub(super) fn remove(&mut self, values: Vec<Value>, key: &Value) {
        let Entry::Occupied(mut entry) = self.0.entry(values) else { return };
        let is_empty = match entry.get_mut() {
            IndexedKeys::One(only) => only == key,
            IndexedKeys::Several(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        };
        if is_empty {
            entry.remove();
        }
    }

    /// Calls `visit` with the values between two, and the keys of the rows that have them, in the order of the values or the other way
    /// round, until it returns false. The end of a short visit is not looked up, because it is hardly reached.
    pub(super) fn visit(
        &self,
        (low, high): (&[Value], &[Value]),
        descending: bool,
        is_short: bool,
        visit: &mut dyn FnMut(&[Value], &IndexedKeys) -> bool,
    ) {
        let begin = if is_short && descending { Bound::Unbounded } else { Bound::Included(low) };
        let end = if is_short && !descending { Bound::Unbounded } else { Bound::Included(high) };
        let mut found = self.0.range::<[Value], _>((begin, end));
        if descending {
            found.rev().all(|(values, keys)| (!is_short || &values[..] >= low) && visit(values, keys));
        } else {
            found.all(|(values, keys)| (!is_short || &values[..] <= high) && visit(values, keys));
        }
    }
}

impl IndexedKeys {
    fn insert(&mut self, key: Value) {
        match self {
            IndexedKeys::Several(keys) => {
                keys.insert(key);
            }
            IndexedKeys::One(only) if *only == key => {}
            IndexedKeys::One(only) => {
                *self = IndexedKeys::Several(BTreeSet::from([std::mem::replace(only, Value::Absent), key]));
            }
        }
    }

    /// Calls `visit` with the keys in this direction, beginning behind one of them, until it returns false. Returns whether it never
    /// did.
    pub(super) fn all(&self, descending: bool, behind: Option<&Value>, visit: impl FnMut(&Value) -> bool) -> bool {
        let start = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let range = if descending { (Bound::Unbounded, start) } else { (start, Bound::Unbounded) };
        let (one, several) = match self {
            IndexedKeys::One(key) => (Some(key).filter(|key| range.contains(key)), None),
            IndexedKeys::Several(keys) => (None, Some(keys.range(range))),
        };
        let mut keys = one.into_iter().chain(several.into_iter().flatten());
        if descending { keys.rev().all(visit) } else { keys.all(visit) }
    }
}

#[cfg(test)]
mod tests {
    use test_support::random::Random;

    use super::*;

    #[test]
    fn keys_are_those_of_sets() {
        let mut random = Random::new(9);
        let (mut index, mut expected) = (MemoryIndex::default(), BTreeMap::<Vec<Value>, BTreeSet<Value>>::new());
        for _ in 0..5_000 {
            let [value, key, behind] = [(); 3].map(|()| Value::Int(random.below(6) as i64));
            let values = vec![value];
            if random.below(2) == 0 {
                index.insert(values.clone(), key.clone());
                expected.entry(values.clone()).or_default().insert(key);
            } else {
                index.remove(values.clone(), &key);
                expected.entry(values.clone()).or_default().remove(&key);
            }
            expected.retain(|_, keys| !keys.is_empty());
            let of_set = expected.get(&values).into_iter().flatten();
            assert!(index.keys(&values).eq(of_set));
            let high = vec![Value::Int(4)];
            for (descending, is_short) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut found = Vec::new();
                index.visit((&values.clone().min(high.clone()), &high), descending, is_short, &mut |values, _| {
                    found.push(values.to_vec());
                    true
                });
                let in_range = expected.range(values.clone().min(high.clone())..=high.clone());
                let mut in_range: Vec<Vec<Value>> = in_range.map(|(values, _)| values.clone()).collect();
                if descending {
                    in_range.reverse();
                }
                assert_eq!(found, in_range);
            }
            let visited = |descending, behind| {
                let mut visited = Vec::new();
                let keys = index.0.get(&values);
                _ = keys.is_some_and(|keys| {
                    keys.all(descending, behind, |key| {
                        visited.push(key.clone());
                        true
                    })
                });
                visited
            };
            let all: Vec<Value> = index.keys(&values).cloned().collect();
            assert_eq!(visited(false, None), all);
            let greater: Vec<Value> = all.iter().filter(|key| **key > behind).cloned().collect();
            assert_eq!(visited(false, Some(&behind)), greater);
            let less: Vec<Value> = all.iter().rev().filter(|key| **key < behind).cloned().collect();
            assert_eq!(visited(true, Some(&behind)), less);
        }
    }
}
