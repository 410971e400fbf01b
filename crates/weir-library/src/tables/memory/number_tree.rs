//! A tree of whole numbers in their order, which mostly ascend because a table gives them.
//!
//! It has two floors: *leaves*, each a sorted list of up to [`LEAF_MAX`] numbers, and a tree that finds a leaf by its *bound*. The numbers
//! of a leaf are not less than its bound, and less than that of the next leaf. With leaves of this size, a number behind all others is
//! added in few steps, and a visit goes through memory in order. To move half a leaf takes no longer than a search in a tree of small nodes.

use std::collections::BTreeMap;

/// Maximum number of entries of a leaf.
const LEAF_MAX: usize = if cfg!(test) { 8 } else { 256 };
/// A leaf releases memory if this part of it, or less, is used.
const USED_MIN: usize = 4;

/// A tree of numbers, each with something else.
#[derive(Debug)]
pub(super) struct NumberTree<V> {
    /// The leaves by their bounds. None is empty.
    leaves: BTreeMap<i64, Vec<(i64, V)>>,
}

impl<V> Default for NumberTree<V> {
    fn default() -> Self {
        NumberTree { leaves: BTreeMap::new() }
    }
}

impl<V> NumberTree<V> {
    pub(super) fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Inserts a number, or replaces what is with it.
    pub(super) fn insert(&mut self, number: i64, of_number: V) {
        let Some((_, leaf)) = self.leaf_mut(number) else {
            self.leaves.insert(i64::MIN, vec![(number, of_number)]);
            return;
        };
        match place(leaf, number) {
            Ok(at) => leaf[at].1 = of_number,
            Err(at) if leaf.len() < LEAF_MAX => leaf.insert(at, (number, of_number)),
            // Leaves of ascending numbers are full.
            Err(LEAF_MAX) => _ = self.leaves.insert(number, vec![(number, of_number)]),
            Err(at) => {
                let mut behind = leaf.split_off(LEAF_MAX / 2);
                let bound = behind[0].0;
                match at.checked_sub(leaf.len()) {
                    None | Some(0) => leaf.insert(at, (number, of_number)),
                    Some(at) => behind.insert(at, (number, of_number)),
                }
                self.leaves.insert(bound, behind);
            }
        }
    }

    pub(super) fn remove(&mut self, number: i64) {
        let Some((bound, leaf)) = self.leaf_mut(number) else { return };
        let Ok(at) = place(leaf, number) else { return };
        leaf.remove(at);
        if leaf.is_empty() {
            self.leaves.remove(&bound);
        } else if leaf.len() <= leaf.capacity() / USED_MIN {
            leaf.shrink_to(2 * leaf.len());
        }
    }

    /// Returns the numbers in their order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.leaves.values().flatten().map(|(number, _)| *number)
    }

    /// Returns the numbers in their order, each with what is with it.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (i64, V)> {
        self.leaves.into_values().flatten()
    }

    /// Calls `visit` for the numbers from `least` to `greatest`, in their order or the other way round, until it returns false. Returns
    /// true if it never did.
    pub(super) fn visit(
        &self,
        (least, greatest): (i64, i64),
        descending: bool,
        mut visit: impl FnMut(&V) -> bool,
    ) -> bool {
        if least > greatest {
            return true;
        }
        let first = self.leaves.range(..=least).next_back().map_or(i64::MIN, |(bound, _)| *bound);
        let mut found = self.leaves.range(first..=greatest).map(|(_, leaf)| {
            let begin = leaf.partition_point(|(number, _)| *number < least);
            let end = leaf.partition_point(|(number, _)| *number <= greatest);
            leaf[begin..end].iter()
        });
        match descending {
            true => found.rev().all(|leaf| leaf.rev().all(|(_, of_number)| visit(of_number))),
            false => found.all(|mut leaf| leaf.all(|(_, of_number)| visit(of_number))),
        }
    }

    /// Returns the leaf that has the number if there is one, with its bound.
    fn leaf_mut(&mut self, number: i64) -> Option<(i64, &mut Vec<(i64, V)>)> {
        if self.leaves.last_key_value().is_some_and(|(bound, _)| *bound <= number) {
            return self.leaves.last_entry().map(|last| (*last.key(), last.into_mut()));
        }
        self.leaves.range_mut(..=number).next_back().map(|(bound, leaf)| (*bound, leaf))
    }
}

/// Returns the place of a number in a leaf: where it is, or where it would be.
fn place<V>(leaf: &[(i64, V)], number: i64) -> Result<usize, usize> {
    leaf.binary_search_by_key(&number, |(other, _)| *other)
}

#[cfg(test)]
mod tests {
    use test_support::random::Random;

    use super::*;

    #[test]
    fn numbers_are_those_of_a_map() {
        let mut random = Random::new(13);
        for kinds in [30, 400] {
            let (mut tree, mut expected, mut greatest) = (NumberTree::default(), BTreeMap::new(), 0);
            // Times at which numbers are added, and at which they go.
            for written in 0..6_000 {
                let number = match random.below(kinds) {
                    0 => i64::MIN,
                    1 => i64::MAX,
                    2 => greatest + 1,
                    number => number as i64 - kinds as i64 / 2,
                };
                if random.below(10) < if written / 1_000 % 2 == 0 { 8 } else { 2 } {
                    tree.insert(number, written);
                    expected.insert(number, written);
                    greatest = greatest.max(number.min(1_000));
                } else {
                    tree.remove(number);
                    expected.remove(&number);
                }
                let is_used = |leaf: &Vec<(i64, i32)>| {
                    (1..=LEAF_MAX).contains(&leaf.len()) && leaf.capacity() < (USED_MIN * leaf.len()).max(USED_MIN + 1)
                };
                assert!(tree.leaves.values().all(is_used));
                assert_eq!(tree.is_empty(), expected.is_empty());
                assert!(tree.numbers().eq(expected.keys().copied()));
                visits_range(&tree, &expected, (number, number.saturating_add(random.below(40) as i64 - 2)));
                visits_range(&tree, &expected, (i64::MIN, number));
                visits_range(&tree, &expected, (number, i64::MAX));
            }
            assert!(tree.into_entries().eq(expected));
        }
    }

    fn visits_range(tree: &NumberTree<i32>, expected: &BTreeMap<i64, i32>, (least, greatest): (i64, i64)) {
        for descending in [false, true] {
            let mut found = Vec::new();
            assert!(tree.visit((least, greatest), descending, |written| {
                found.push(*written);
                true
            }));
            let is_between = |(number, _): &(&i64, &i32)| (least..=greatest).contains(*number);
            let mut wanted: Vec<i32> = expected.iter().filter(is_between).map(|(_, written)| *written).collect();
            if descending {
                wanted.reverse();
            }
            assert_eq!(found, wanted);
            assert_eq!(tree.visit((least, greatest), descending, |_| false), wanted.is_empty());
        }
    }
}
