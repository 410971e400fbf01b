//! A persistent hash index: a trie of hashes whose nodes are shared by its clones (Bagwell, "Ideal Hash Trees", 2001),
//! with buckets of several hashes as leaves.

use ecow::EcoVec;

use crate::value::trie::{BITS, Sparse, digit};

/// The number of hashes above which a bucket is divided.
const BUCKET_MAX: usize = 16;

/// Positions by the hashes of their keys. A change copies the nodes on its path that are shared.
#[derive(Clone)]
pub(super) enum Index {
    Branch(Sparse<Index>),
    /// Hashes with their positions, in no order. Equal hashes share a bucket, whatever its length.
    Bucket(EcoVec<(u64, u64)>),
}

impl Default for Index {
    fn default() -> Self {
        Index::Bucket(EcoVec::new())
    }
}

impl Index {
    /// Returns the position with this hash for which `is_key` holds.
    pub(super) fn find(&self, hash: u64, is_key: impl Fn(u64) -> bool) -> Option<u64> {
        let (mut node, mut shift) = (self, 0);
        loop {
            match node {
                Index::Branch(children) => node = children.get(digit(hash, shift))?,
                Index::Bucket(bucket) => {
                    let found = bucket.iter().find(|(other, position)| *other == hash && is_key(*position));
                    return found.map(|(_, position)| *position);
                }
            }
            shift += BITS;
        }
    }

    /// Adds a position.
    pub(super) fn insert(&mut self, hash: u64, position: u64) {
        let (mut node, mut shift) = (self, 0);
        while let Index::Branch(children) = node {
            node = children.get_or_insert(digit(hash, shift), Index::default);
            shift += BITS;
        }
        let Index::Bucket(bucket) = node else { return };
        bucket.push((hash, position));
        if bucket.len() > BUCKET_MAX && shift < u64::BITS {
            *node = Index::divided(bucket, shift);
        }
    }

    /// Removes a position that is in the index, and the nodes that become empty.
    pub(super) fn remove(&mut self, hash: u64, position: u64) {
        self.remove_below(hash, position, 0);
    }

    fn divided(bucket: &[(u64, u64)], shift: u32) -> Index {
        let mut children: Sparse<Index> = Sparse::default();
        for (hash, position) in bucket {
            let child = children.get_or_insert(digit(*hash, shift), Index::default);
            if let Index::Bucket(bucket) = child {
                bucket.push((*hash, *position));
            }
        }
        Index::Branch(children)
    }

    fn remove_below(&mut self, hash: u64, position: u64, shift: u32) {
        match self {
            Index::Bucket(bucket) => {
                let Some(place) = bucket.iter().position(|(_, other)| *other == position) else { return };
                let last = bucket.len() - 1;
                bucket.make_mut().swap(place, last);
                bucket.pop();
            }
            Index::Branch(children) => {
                let digit = digit(hash, shift);
                let Some(child) = children.get_mut(digit) else { return };
                child.remove_below(hash, position, shift + BITS);
                if child.is_empty() {
                    children.remove(digit);
                }
                if children.is_empty() {
                    *self = Index::default();
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Index::Branch(children) => children.is_empty(),
            Index::Bucket(bucket) => bucket.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_and_equal_beginnings_are_told_apart() {
        let mut index = Index::default();
        let hash_of = |position: u64| match position % 3 {
            0 => 42,
            1 => 42 | (position << 55),
            _ => position.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        (0..300).for_each(|position| index.insert(hash_of(position), position));
        for position in 0..300 {
            assert_eq!(index.find(hash_of(position), |found| found == position), Some(position));
        }
        let snapshot = index.clone();
        for position in (0..300).rev() {
            index.remove(hash_of(position), position);
            assert_eq!(index.find(hash_of(position), |found| found == position), None);
        }
        assert!(index.is_empty());
        assert_eq!(snapshot.find(42, |found| found == 297), Some(297));
    }
}
