//! Sets of the steps of a body that may wait, by their numbers.
//!
//! Most bodies have at most 64 such steps, whose sets are one word. Larger ones take further words, which only those bodies
//! pay for that have so many.

/// The number of steps of a body that have a number of their own. All further ones share the last: a body of 100,000 nodes
/// would otherwise take a gigabyte, because each node has a set.
pub(crate) const WAIT_NUMBERS: u32 = 1_024;

/// A set of numbers below [`WAIT_NUMBERS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitSet {
    first: u64,
    /// The words behind the first, without empty ones at the end.
    more: Vec<u64>,
}

impl WaitSet {
    /// Adds a number.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        if number < u64::BITS {
            self.first |= 1 << number;
        } else {
            self.insert_behind(number);
        }
    }

    #[cold]
    fn insert_behind(&mut self, number: u32) {
        let word = (number / u64::BITS - 1) as usize;
        if self.more.len() <= word {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= 1 << (number % u64::BITS);
    }

    /// Adds the numbers of another set.
    pub(crate) fn insert_all(&mut self, other: &WaitSet) {
        self.first |= other.first;
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        self.more.iter_mut().zip(&other.more).for_each(|(word, other)| *word |= other);
    }

    /// Removes the numbers that another set does not have.
    pub(crate) fn retain_all(&mut self, other: &WaitSet) {
        self.first &= other.first;
        self.more.truncate(other.more.len());
        self.more.iter_mut().zip(&other.more).for_each(|(word, other)| *word &= other);
        while self.more.pop_if(|word| *word == 0).is_some() {}
    }

    /// Returns true if the sets have a number in common.
    #[inline]
    pub(crate) fn meets(&self, other: &WaitSet) -> bool {
        self.first & other.first != 0 || (!self.more.is_empty() && self.meets_behind(other))
    }

    #[cold]
    fn meets_behind(&self, other: &WaitSet) -> bool {
        self.more.iter().zip(&other.more).any(|(word, other)| word & other != 0)
    }

    /// Returns true if the other set has all numbers of this one.
    pub(crate) fn is_within(&self, other: &WaitSet) -> bool {
        let others = other.more.iter().copied().chain(std::iter::repeat(0));
        self.first & !other.first == 0 && self.more.iter().zip(others).all(|(word, other)| word & !other == 0)
    }

    /// Returns true if the set has no number.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|word| *word == 0)
    }

    /// Returns true if the set has this number.
    pub(crate) fn contains(&self, number: u32) -> bool {
        let word = match number / u64::BITS {
            0 => self.first,
            word => self.more.get(word as usize - 1).copied().unwrap_or(0),
        };
        word & (1 << (number % u64::BITS)) != 0
    }

    /// Returns the numbers, the least first.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let words = std::iter::once(self.first).chain(self.more.iter().copied());
        words.zip((0..).step_by(u64::BITS as usize)).flat_map(|(mut word, base)| {
            std::iter::from_fn(move || {
                let next = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (next < u64::BITS).then_some(base + next)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn set(numbers: &[u32]) -> WaitSet {
        let mut set = WaitSet::default();
        numbers.iter().for_each(|number| set.insert(*number));
        set
    }

    #[test]
    fn sets_are_those_of_the_standard_library() {
        let some: [&[u32]; 7] =
            [&[], &[0], &[63], &[64], &[3, 63, 64, 127, 128], &[3, 700, WAIT_NUMBERS - 1], &[5, 64, 700]];
        for one in some {
            let numbers = BTreeSet::from_iter(one.iter().copied());
            assert!(set(one).numbers().eq(numbers.iter().copied()));
            assert_eq!(set(one).is_empty(), numbers.is_empty());
            assert!((0..WAIT_NUMBERS).all(|number| set(one).contains(number) == numbers.contains(&number)));
            for other in some {
                let others = BTreeSet::from_iter(other.iter().copied());
                assert_eq!(set(one).meets(&set(other)), !numbers.is_disjoint(&others), "{one:?} {other:?}");
                assert_eq!(set(one).is_within(&set(other)), numbers.is_subset(&others), "{one:?} {other:?}");
                let mut both = set(one);
                both.insert_all(&set(other));
                assert!(both.numbers().eq(numbers.union(&others).copied()));
                assert_eq!(both == set(one), others.is_subset(&numbers), "{one:?} {other:?}");
                let mut common = set(one);
                common.retain_all(&set(other));
                assert_eq!(common, set(&numbers.intersection(&others).copied().collect::<Vec<_>>()));
            }
        }
    }
}
