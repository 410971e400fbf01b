//! An ordered index of a table in memory: the rows by the values of its columns.
//!
//! Rows that agree in the columns are in the order of their keys. So an index whose last column is the key is one of the columns
//! before, which has fewer places.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, RangeBounds};

use weir::Value;

use super::key_tree::{KeyRange, KeyTree};
use crate::tables::schema::IndexSchema;

/// An ordered index.
#[derive(Debug)]
pub(super) struct MemoryIndex {
    /// The columns.
    pub(super) columns: Vec<usize>,
    rows: BTreeMap<IndexValues, IndexedRows>,
}

/// The least and the greatest key that are sought.
pub(super) type KeyBounds = (Option<Value>, Option<Value>);

/// The values of a row in the columns of an index. Those of one or two columns need no memory of their own.
#[derive(Clone, Debug)]
pub(super) enum IndexValues {
    One([Value; 1]),
    Two([Value; 2]),
    Several(Vec<Value>),
}

impl IndexValues {
    /// Returns the values of these columns of a row.
    pub(super) fn of(columns: &[usize], row: &[Value]) -> IndexValues {
        match columns {
            [only] => IndexValues::One([row[*only].clone()]),
            [first, second] => IndexValues::Two([row[*first].clone(), row[*second].clone()]),
            several => IndexValues::Several(several.iter().map(|at| row[*at].clone()).collect()),
        }
    }

    #[inline]
    fn as_slice(&self) -> &[Value] {
        match self {
            IndexValues::One(values) => values,
            IndexValues::Two(values) => values,
            IndexValues::Several(values) => values,
        }
    }
}

impl Borrow<[Value]> for IndexValues {
    #[inline]
    fn borrow(&self) -> &[Value] {
        self.as_slice()
    }
}

impl Ord for IndexValues {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // Most indexes have one column beside the key.
            (IndexValues::One([one]), IndexValues::One([other])) => one.cmp(other),
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

impl PartialOrd for IndexValues {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for IndexValues {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for IndexValues {}

/// The rows that agree in the columns of an index, by their keys. Often it is one: then it needs no memory of its own.
#[derive(Debug)]
pub(super) enum IndexedRows {
    One(Value, Value),
    Several(KeyTree<Value>),
}

impl MemoryIndex {
    /// Returns an empty index of a table with this key.
    pub(super) fn new(index: &IndexSchema, key: &[usize]) -> MemoryIndex {
        let columns = match index.columns.split_last() {
            Some((last, before)) if !index.unique && !before.is_empty() && key == [*last] => before,
            _ => &index.columns[..],
        };
        MemoryIndex { columns: columns.to_vec(), rows: BTreeMap::new() }
    }

    /// Returns the values of a row.
    pub(super) fn values(&self, row: &[Value]) -> IndexValues {
        IndexValues::of(&self.columns, row)
    }

    /// Returns whether the test holds for the key of a row with these values.
    pub(super) fn any_key(&self, values: &[Value], mut test: impl FnMut(&Value) -> bool) -> bool {
        match self.at(values) {
            Some(IndexedRows::One(key, _)) => test(key),
            Some(IndexedRows::Several(rows)) => rows.any_key(test),
            None => false,
        }
    }

    /// Returns the rows with these values.
    pub(super) fn at(&self, values: &[Value]) -> Option<&IndexedRows> {
        match values {
            // A comparison of one value takes less than one of lists.
            [only] => self.rows.get(&IndexValues::One([only.clone()])),
            several => self.rows.get(several),
        }
    }

    pub(super) fn insert(&mut self, values: IndexValues, key: &Value, row: Value) {
        match self.rows.entry(values) {
            Entry::Vacant(entry) => {
                entry.insert(IndexedRows::One(key.clone(), row));
            }
            Entry::Occupied(mut entry) => entry.get_mut().insert(key, row),
        }
    }

    pub(super) fn remove(&mut self, values: IndexValues, key: &Value) {
        let Entry::Occupied(mut entry) = self.rows.entry(values) else { return };
        let is_empty = match entry.get_mut() {
            IndexedRows::One(only, _) => only == key,
            IndexedRows::Several(rows) => {
                rows.remove(key);
                rows.is_empty()
            }
        };
        if is_empty {
            entry.remove();
        }
    }

    /// Calls `visit` with the values between two, and the rows that have them, in the order of the values or the other way
    /// round, until it returns false. The end of a short visit is not looked up, because it is hardly reached.
    pub(super) fn visit(
        &self,
        (low, high): (&[Value], &[Value]),
        descending: bool,
        is_short: bool,
        visit: &mut dyn FnMut(&[Value], &IndexedRows) -> bool,
    ) {
        let begin = if is_short && descending { Bound::Unbounded } else { Bound::Included(low) };
        let end = if is_short && !descending { Bound::Unbounded } else { Bound::Included(high) };
        let mut found = self.rows.range::<[Value], _>((begin, end));
        if descending {
            found.rev().all(|(values, rows)| (!is_short || values.as_slice() >= low) && visit(values.as_slice(), rows));
        } else {
            found.all(|(values, rows)| (!is_short || values.as_slice() <= high) && visit(values.as_slice(), rows));
        }
    }
}

impl IndexedRows {
    fn insert(&mut self, key: &Value, row: Value) {
        match self {
            IndexedRows::Several(rows) => rows.insert(key, row),
            IndexedRows::One(only, of_only) if only == key => *of_only = row,
            IndexedRows::One(only, of_only) => {
                let mut rows = KeyTree::default();
                rows.insert(only, std::mem::replace(of_only, Value::Absent));
                rows.insert(key, row);
                *self = IndexedRows::Several(rows);
            }
        }
    }

    /// Calls `visit` with the rows whose keys are between two, in the order of the keys or the other way round, beginning behind one of
    /// them, until it returns false. Returns whether it never did.
    pub(super) fn all(
        &self,
        descending: bool,
        behind: Option<&Value>,
        between: &KeyBounds,
        mut visit: impl FnMut(&Value) -> bool,
    ) -> bool {
        let Some(range) = key_range(descending, behind, between) else { return true };
        match self {
            IndexedRows::One(key, row) => !range.contains(key) || visit(row),
            IndexedRows::Several(rows) => rows.visit(range, descending, visit),
        }
    }
}

/// Returns the keys between two that are behind one of them in a direction; `None` if there can be none.
fn key_range<'k>(descending: bool, behind: Option<&'k Value>, (low, high): &'k KeyBounds) -> Option<KeyRange<'k>> {
    let bound = |key: &'k Option<Value>| key.as_ref().map_or(Bound::Unbounded, Bound::Included);
    let (mut low, mut high) = (bound(low), bound(high));
    if let Some(behind) = behind {
        match (descending, &low, &high) {
            (true, _, Bound::Included(last)) if *last < behind => {}
            (false, Bound::Included(first), _) if *first > behind => {}
            (true, ..) => high = Bound::Excluded(behind),
            (false, ..) => low = Bound::Excluded(behind),
        }
    }
    let has_none = match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
    };
    (!has_none).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use test_support::random::Random;

    use super::*;

    /// The keys of each value, as sets.
    type KeySets = BTreeMap<Vec<Value>, BTreeSet<Value>>;

    #[test]
    fn keys_are_those_of_sets() {
        let mut random = Random::new(9);
        let of = |values: &[Value]| IndexValues::of(&[0], values);
        let schema = IndexSchema { columns: vec![0, 1], unique: false };
        let mut index = MemoryIndex::new(&schema, &[1]);
        assert_eq!(index.columns, [0], "the key orders what agrees in the columns before");
        let mut expected = KeySets::new();
        for _ in 0..5_000 {
            let [value, key, behind] = [(); 3].map(|()| Value::Int(random.below(6) as i64));
            let values = vec![value];
            if random.below(2) == 0 {
                index.insert(of(&values), &key, key.clone());
                expected.entry(values.clone()).or_default().insert(key);
            } else {
                index.remove(of(&values), &key);
                expected.entry(values.clone()).or_default().remove(&key);
            }
            expected.retain(|_, keys| !keys.is_empty());
            assert!(keys(&index, &values).iter().eq(expected.get(&values).into_iter().flatten()));
            visits_ranges(&index, &values, &expected);
            let bounds = [(); 2].map(|()| Some(Value::Int(random.below(8) as i64)).filter(|_| random.below(2) == 0));
            let [low, high] = bounds;
            visits_keys_between(&index, &values, (low, high), &behind);
        }
    }

    fn keys(index: &MemoryIndex, values: &[Value]) -> Vec<Value> {
        let mut keys = Vec::new();
        index.any_key(values, |key| {
            keys.push(key.clone());
            false
        });
        keys
    }

    /// Compares what is visited from these values on, in either direction, with the sets.
    fn visits_ranges(index: &MemoryIndex, values: &[Value], expected: &KeySets) {
        let high = vec![Value::Int(4)];
        let low = values.to_vec().min(high.clone());
        for (descending, is_short) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut found = Vec::new();
            index.visit((&low, &high), descending, is_short, &mut |values, _| {
                found.push(values.to_vec());
                true
            });
            let mut in_range: Vec<Vec<Value>> =
                expected.range(low.clone()..=high.clone()).map(|(values, _)| values.clone()).collect();
            if descending {
                in_range.reverse();
            }
            assert_eq!(found, in_range);
        }
    }

    /// Compares the keys that are visited between bounds, and behind a key, with all keys.
    fn visits_keys_between(
        index: &MemoryIndex,
        values: &[Value],
        between: (Option<Value>, Option<Value>),
        behind: &Value,
    ) {
        let is_between = |key: &&Value| {
            between.0.as_ref().is_none_or(|low| *key >= low) && between.1.as_ref().is_none_or(|high| *key <= high)
        };
        let visited = |descending, behind| {
            let mut visited = Vec::new();
            let rows = index.at(values);
            _ = rows.is_some_and(|rows| {
                rows.all(descending, behind, &between, |key| {
                    visited.push(key.clone());
                    true
                })
            });
            visited
        };
        let all: Vec<Value> = keys(index, values).iter().filter(is_between).cloned().collect();
        assert_eq!(visited(false, None), all);
        let greater: Vec<Value> = all.iter().filter(|key| *key > behind).cloned().collect();
        assert_eq!(visited(false, Some(behind)), greater);
        let less: Vec<Value> = all.iter().rev().filter(|key| *key < behind).cloned().collect();
        assert_eq!(visited(true, Some(behind)), less);
    }
}
