//! A tree of keys in their order. Whole numbers, which most keys are, are kept as such in a tree of their own.

use std::collections::BTreeMap;
use std::ops::Bound;

use weir::Value;

use super::number_tree::NumberTree;

/// The least and the greatest key of a visit. The first is not behind the second.
pub(super) type KeyRange<'k> = (Bound<&'k Value>, Bound<&'k Value>);

/// A tree of keys, each with something else.
#[derive(Debug)]
pub(super) enum KeyTree<V> {
    /// All keys are an `Int`.
    Numbers(NumberTree<V>),
    Values(BTreeMap<Value, V>),
}

impl<V> Default for KeyTree<V> {
    fn default() -> Self {
        KeyTree::Numbers(NumberTree::default())
    }
}

impl<V> KeyTree<V> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            KeyTree::Numbers(numbers) => numbers.is_empty(),
            KeyTree::Values(values) => values.is_empty(),
        }
    }

    pub(super) fn insert(&mut self, key: &Value, of_key: V) {
        match (self, key) {
            (KeyTree::Numbers(numbers), Value::Int(number)) => numbers.insert(*number, of_key),
            (KeyTree::Values(values), key) => _ = values.insert(key.clone(), of_key),
            (tree, key) => {
                tree.keep_values();
                tree.insert(key, of_key);
            }
        }
    }

    pub(super) fn remove(&mut self, key: &Value) {
        match (self, key) {
            (KeyTree::Numbers(numbers), Value::Int(number)) => numbers.remove(*number),
            (KeyTree::Numbers(_), _) => {}
            (KeyTree::Values(values), key) => _ = values.remove(key),
        }
    }

    /// Returns true if the test holds for a key.
    pub(super) fn any_key(&self, mut test: impl FnMut(&Value) -> bool) -> bool {
        match self {
            KeyTree::Numbers(numbers) => numbers.numbers().any(|number| test(&Value::Int(number))),
            KeyTree::Values(values) => values.keys().any(test),
        }
    }

    /// Calls `visit` for the keys in a range, in their order or the other way round, until it returns false. Returns true if it never
    /// did.
    pub(super) fn visit(&self, (low, high): KeyRange<'_>, descending: bool, visit: impl FnMut(&V) -> bool) -> bool {
        match self {
            KeyTree::Numbers(numbers) => {
                let range = least_number(low).zip(greatest_number(high));
                range.is_none_or(|range| numbers.visit(range, descending, visit))
            }
            KeyTree::Values(values) => {
                let mut found = values.range::<Value, _>((low, high)).map(|(_, of_key)| of_key);
                if descending { found.rev().all(visit) } else { found.all(visit) }
            }
        }
    }

    #[cold]
    fn keep_values(&mut self) {
        if let KeyTree::Numbers(numbers) = self {
            let numbers = std::mem::take(numbers).into_entries();
            *self = KeyTree::Values(numbers.map(|(number, of_key)| (Value::Int(number), of_key)).collect());
        }
    }
}

/// Returns the least number behind a bound. A value of another type is before all numbers or behind them: `None` if no number is
/// behind it.
fn least_number(low: Bound<&Value>) -> Option<i64> {
    match low {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(Value::Int(number)) => Some(*number),
        Bound::Excluded(Value::Int(number)) => number.checked_add(1),
        Bound::Included(other) | Bound::Excluded(other) => (*other < Value::Int(0)).then_some(i64::MIN),
    }
}

/// Returns the greatest number before a bound; `None` if no number is before it.
fn greatest_number(high: Bound<&Value>) -> Option<i64> {
    match high {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(Value::Int(number)) => Some(*number),
        Bound::Excluded(Value::Int(number)) => number.checked_sub(1),
        Bound::Included(other) | Bound::Excluded(other) => (*other > Value::Int(0)).then_some(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use test_support::random::Random;

    use super::*;

    #[test]
    fn keys_are_those_of_a_tree_of_values() {
        for kinds in [1, 2] {
            let mut random = Random::new(11);
            let (mut tree, mut expected) = (KeyTree::default(), BTreeMap::new());
            for written in 0..5_000 {
                let [key, low, high] = [(); 3].map(|()| key(&mut random, kinds));
                if random.below(3) > 0 {
                    tree.insert(&key, written);
                    expected.insert(key, written);
                } else {
                    tree.remove(&key);
                    expected.remove(&key);
                }
                assert_eq!(tree.is_empty(), expected.is_empty());
                let is_low = |key: &Value| *key < low;
                assert_eq!(tree.any_key(is_low), expected.keys().any(is_low));
                let others = [Value::Absent, Value::text("a"), Value::Record([].into())];
                let [first, last] = [(); 2].map(|()| others[random.below(3) as usize].clone());
                for (low, high) in [(&low, &high), (&first, &high), (&low, &last), (&first, &last)] {
                    visits_range(&tree, &expected, (low, high), random.below(2) == 0);
                }
            }
        }
    }

    /// Returns a number, or one of other values if there are two kinds of keys.
    fn key(random: &mut Random, kinds: u64) -> Value {
        let number = random.below(40) as i64 - 20;
        if random.below(kinds) == 0 { Value::Int(number) } else { Value::text(&number.to_string()) }
    }

    fn visits_range(
        tree: &KeyTree<i32>,
        expected: &BTreeMap<Value, i32>,
        (low, high): (&Value, &Value),
        descending: bool,
    ) {
        let mut ranges = vec![(Bound::Included(low), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(high))];
        if low <= high {
            ranges.push((Bound::Included(low), Bound::Included(high)));
        }
        if low < high {
            ranges
                .extend([(Bound::Excluded(low), Bound::Excluded(high)), (Bound::Excluded(low), Bound::Included(high))]);
        }
        for range in ranges {
            let mut wanted: Vec<i32> = expected.range::<Value, _>(range).map(|(_, written)| *written).collect();
            if descending {
                wanted.reverse();
            }
            let mut found = Vec::new();
            assert!(tree.visit(range, descending, |written| {
                found.push(*written);
                true
            }));
            assert_eq!(found, wanted, "{range:?}");
            assert_eq!(tree.visit(range, descending, |_| false), wanted.is_empty());
        }
    }
}
